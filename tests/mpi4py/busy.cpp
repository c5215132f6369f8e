// SPDX-License-Identifier: BSD-3-Clause
// Preloaded before libimbrex_mpi into a program that knows no tasks, with IMBREX_MAIN_AS_TASK=1: it
// keeps the runtime busy from MPI_Init to MPI_Finalize, on a communicator of its own. One task
// suspends in MPI again and again, so something is always outstanding, and another is always ready,
// so no call of the program's waits in place: those that cannot complete at once suspend.
// BUSY_REPORT=1: MPI_Finalize says how often main did.
#include <dlfcn.h>
#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <imbrex/detail/observation.hpp>
#include <imbrex/imbrex.hpp>
#include <optional>
#include <thread>

namespace {

constexpr int ask_tag = 1;
constexpr int answer_tag = 2;

MPI_Comm ours = MPI_COMM_NULL;
std::atomic<bool> stop{false};  // written by main in MPI_Finalize
std::uint64_t answers = 0;      // by the task that answers; read when it has ended
std::optional<imbrex::Future<void>> asking;
std::optional<imbrex::Future<void>> answering;

// Always ready: it never waits for anything.
void ask_and_ask() {
  for (bool last = false; !last;) {
    last = stop.load(std::memory_order_relaxed);
    const int question = last ? 0 : 1;
    int answer = -1;
    MPI_Request requests[2];
    MPI_Irecv(&answer, 1, MPI_INT, 0, answer_tag, ours, &requests[0]);
    MPI_Isend(&question, 1, MPI_INT, 0, ask_tag, ours, &requests[1]);
    int done = 0;
    while (MPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE), done == 0) {
      imbrex::yield();
      // The rank's other threads, and other ranks, may need this processor to go on.
      std::this_thread::yield();
    }
    if (answer != question) {
      std::fprintf(stderr, "busy: asked %d, answered %d\n", question, answer);
      std::abort();
    }
  }
}

// Suspends in MPI_Recv, each time.
void answer_each() {
  for (int question = 1; question != 0; ++answers) {
    MPI_Recv(&question, 1, MPI_INT, 0, ask_tag, ours, MPI_STATUS_IGNORE);
    MPI_Send(&question, 1, MPI_INT, 0, answer_tag, ours);
  }
}

void begin() {
  MPI_Comm_dup(MPI_COMM_SELF, &ours);
  answering = imbrex::task("busy: answers").spawn(&answer_each);
  asking = imbrex::task("busy: asks").spawn(&ask_and_ask);
}

void end() {
  stop.store(true, std::memory_order_relaxed);
  asking->get();
  answering->get();
  asking.reset();
  answering.reset();
  MPI_Comm_free(&ours);
  const char* const wanted = std::getenv("BUSY_REPORT");
  if (wanted == nullptr || std::strcmp(wanted, "1") != 0) return;
  // With one worker, the answering task suspends once for each question. Whenever the asking task
  // gives way, another of the three goes on. Therefore it suspends no more often than the other two
  // together, and at least this many suspensions are main's, of which two are above.
  const double all = imbrex::detail::totals().suspensions;
  std::fprintf(stderr, "busy: main suspended at least %.0f times\n",
               all / 2 - static_cast<double>(answers) - 2);
}

// The next library's, which is libimbrex_mpi's.
template <class Function>
Function* next(const char* name) {
  void* const found = dlsym(RTLD_NEXT, name);
  if (found == nullptr) {
    std::fprintf(stderr, "busy: nobody defines %s: preload libimbrex_mpi behind this library\n",
                 name);
    std::abort();
  }
  return reinterpret_cast<Function*>(found);
}

}  // namespace

extern "C" [[gnu::visibility("default")]] int MPI_Init(int* argc, char*** argv) {
  const int code = next<decltype(MPI_Init)>("MPI_Init")(argc, argv);
  if (code == MPI_SUCCESS) begin();
  return code;
}

extern "C" [[gnu::visibility("default")]] int MPI_Init_thread(int* argc, char*** argv,
                                                              int required, int* provided) {
  const int code =
      next<decltype(MPI_Init_thread)>("MPI_Init_thread")(argc, argv, required, provided);
  if (code == MPI_SUCCESS) begin();
  return code;
}

extern "C" [[gnu::visibility("default")]] int MPI_Finalize() {
  end();
  return next<decltype(MPI_Finalize)>("MPI_Finalize")();
}
