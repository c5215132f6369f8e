// SPDX-License-Identifier: BSD-3-Clause
// Beginnings and ends of MPI programs, one for each argument; CMakeLists.txt says how each must end
// and what it must print.
#include <mpi.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <span>
#include <stdexcept>
#include <thread>

#include "../until_printed.hpp"
#include "cases.hpp"
#include "imbrex/imbrex.hpp"
#include "imbrex/mpi.hpp"

namespace {

using imbrex::task;

void require(bool condition, const char* text) {
  if (condition) return;
  std::fprintf(stderr, "failed: %s\n", text);
  std::_Exit(1);
}

int rank_in_world() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

// A program without tasks works as always.
void plain() {
  MPI_Init(nullptr, nullptr);
  require(imbrex::detail::in_task(), "main is a task from MPI_Init on");
  int sum = 1;
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  require(sum == ranks, "allreduce");
  MPI_Finalize();
}

// MPI_Finalize completes tasks that no call waited for, also tasks that wait in MPI.
void finalize_completes_tasks() {
  static int received = -1;
  MPI_Init(nullptr, nullptr);
  const int rank = rank_in_world();
  task("receive").launch([rank] {
    MPI_Recv(&received, 1, MPI_INT, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    task("grandchild").launch([] { received += 1000; });
  });
  task("send").launch([rank] { MPI_Send(&rank, 1, MPI_INT, rank, 0, MPI_COMM_WORLD); });
  MPI_Finalize();
  require(received == rank + 1000, "MPI_Finalize completes all tasks");
}

// MPI_Finalize calls functions of the program's, which may call MPI: the first to go are the
// attributes of MPI_COMM_SELF.
void finalize_calls_back() {
  static int called = 0;
  MPI_Init(nullptr, nullptr);
  task("a task").launch([] { MPI_Barrier(MPI_COMM_SELF); });
  const auto forget = [](MPI_Comm, int, void*, void*) -> int {
    const int out = 7;
    int in = 0;
    MPI_Sendrecv(&out, 1, MPI_INT, 0, 1, &in, 1, MPI_INT, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_SELF);
    called += in;
    return MPI_SUCCESS;
  };
  int key = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &key, nullptr);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr);
  MPI_Comm_free_keyval(&key);
  MPI_Finalize();
  require(called == 7, "the attribute's function has run");
}

// A request that no call completes is named, and does not block the end.
void open_operation() {
  MPI_Init(nullptr, nullptr);
  static int never = 0;
  MPI_Request request;
  MPI_Irecv(&never, 1, MPI_INT, rank_in_world(), 7, MPI_COMM_WORLD, &request);
  auto future = imbrex::when(request);
  MPI_Finalize();
  require(!future.ready(), "it never came");
}

// A task that waits for a message for long is named, and completed when it comes after all.
void late_message() {
  MPI_Init(nullptr, nullptr);
  static int value = 0;
  task("late").launch([] {
    MPI_Recv(&value, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  });
  std::thread sender([] {
    imbrex::test::until_printed("MPI_Recv from 0, tag 7");
    const int one = 1;
    MPI_Send(&one, 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
  });
  sender.detach();
  MPI_Finalize();
  require(value == 1, "the message came");
}

// The runtime may run before MPI does, and after it.
void runtime_around_mpi() {
  require(task("before").spawn([] { return 1; }).get() == 1, "a task before MPI_Init");
  MPI_Init(nullptr, nullptr);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  require(task("after").spawn([] { return 2; }).get() == 2, "a task after MPI_Finalize");
}

// exit() while a task waits in MPI.
void exit_from_a_task() {
  MPI_Init(nullptr, nullptr);
  static int never = 0;
  task("never").launch([] {
    MPI_Recv(&never, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  });
  task("exit").launch([] { std::exit(3); });
  imbrex::taskwait();
}

// One rank ends in the middle of everything, while the other waits for it.
void end_of_one_rank(void (*end)()) {
  MPI_Init(nullptr, nullptr);
  if (rank_in_world() == 0) end();
  int never = 0;
  MPI_Recv(&never, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Finalize();
}
void exit_of_one_rank() {
  end_of_one_rank([] { std::exit(7); });
}
void exit_of_one_rank_in_a_task() {
  end_of_one_rank([] { task("exit").spawn([] { std::exit(7); }).get(); });
}
void exit_of_one_rank_on_a_thread() {
  end_of_one_rank([] {
    std::thread thread([] { std::exit(7); });
    task("waits").spawn([] { MPI_Barrier(MPI_COMM_WORLD); }).get();
  });
}
void abort_of_one_rank() {
  end_of_one_rank([] { std::abort(); });
}
void mpi_abort_of_one_rank() {
  end_of_one_rank([] { MPI_Abort(MPI_COMM_WORLD, 7); });
}
void mpi_abort_in_a_task() {
  MPI_Init(nullptr, nullptr);
  task("ends").spawn([] { MPI_Abort(MPI_COMM_WORLD, 7); }).get();
}

// Main returns, and never calls MPI_Finalize. Tasks that can run to their end do so; a task that
// waits for a message that no rank sends is left.
void return_without_finalize() {
  MPI_Init(nullptr, nullptr);
  static int never = 0;
  const int rank = rank_in_world();
  task("left").launch([rank] {
    MPI_Recv(&never, 1, MPI_INT, rank, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  });
  task("served").launch([rank] {
    const int out = 1;
    int in = 0;
    MPI_Sendrecv(&out, 1, MPI_INT, rank, 8, &in, 1, MPI_INT, rank, 8, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    std::fprintf(stderr, "served\n");
  });
}

// MPI_Finalize by a static object, whose destructor runs behind the exit handlers of MPI_Init.
// Later output of a rank may be lost: a launcher may end with the last MPI_Finalize.
void finalize_at_exit() {
  static const struct Finalizer {
    ~Finalizer() {
      std::fprintf(stderr, "finalizes\n");
      MPI_Finalize();
      int finalized = 0;
      MPI_Finalized(&finalized);
      if (finalized == 0) std::_Exit(3);
    }
  } finalizer;
  MPI_Init(nullptr, nullptr);
  int sum = 1;
  task("sum").launch([&sum] {
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  });
  imbrex::taskwait();
  std::exit(0);
}

// Requests before MPI_Init are refused by the C++ calls.
void too_early() {
  MPI_Request request = MPI_REQUEST_NULL;
  bool refused = false;
  try {
    (void)imbrex::when(request);
  } catch (const imbrex::Error& error) {
    refused = true;
    std::fprintf(stderr, "%s\n", error.what());
  }
  require(refused, "when() before MPI_Init");
}

// The default error handler ends the program, also for an error that a worker meets.
void fatal_error() {
  MPI_Init(nullptr, nullptr);
  if (rank_in_world() == 0) {
    task("receive").launch([] {
      int value = 0;
      MPI_Recv(&value, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    });
  } else {
    const int values[2] = {1, 2};
    MPI_Send(values, 2, MPI_INT, 0, 7, MPI_COMM_WORLD);
  }
  MPI_Finalize();
}

// The message names the program's call, not what imbrex has asked MPI.
void fatal_errors_on_threads() {
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  std::thread([comm] {
    int values[64] = {};
    MPI_Bcast(values, rank_in_world() == 0 ? 64 : 1, MPI_INT, 0, comm);
  }).join();
  MPI_Finalize();
}

// Rank 0's send depends on what was never loaded, so it does not run: rank 1 would wait for ever.
void error_that_nobody_takes() {
  static int data = 0;
  MPI_Init(nullptr, nullptr);
  if (rank_in_world() == 0) {
    task("load").out(data).launch([] { throw std::runtime_error("no such file"); });
    task("send").in(data).launch([] { MPI_Send(&data, 1, MPI_INT, 1, 7, MPI_COMM_WORLD); });
  } else {
    task("receive").launch([] {
      MPI_Recv(&data, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    });
  }
  MPI_Finalize();
}

// Errors that the program has caught do not end it, also errors of MPI.
void errors_that_are_taken() {
  MPI_Init(nullptr, nullptr);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int caught = 0;
  auto future = task("load").spawn([] { throw std::runtime_error("no such file"); });
  try {
    imbrex::finish([] {
      task("send").launch([] {
        const int one = 1;
        if (MPI_Send(&one, 1, MPI_INT, 77, 7, MPI_COMM_WORLD) != MPI_SUCCESS) {
          throw std::runtime_error("MPI_Send has failed");
        }
      });
    });
  } catch (const std::runtime_error&) {
    ++caught;
  }
  try {
    future.get();
  } catch (const std::runtime_error&) {
    ++caught;
  }
  MPI_Finalize();
  require(caught == 2, "both were thrown");
}

int threads_of_this_process() {
  const std::filesystem::directory_iterator threads("/proc/self/task");
  return static_cast<int>(std::distance(begin(threads), end(threads)));
}

void use_a_window() {
  int* memory = nullptr;
  MPI_Win window;
  MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD,
                   static_cast<void*>(&memory), &window);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
  MPI_Win_unlock(0, window);
  MPI_Win_free(&window);
}

// One rank may use a processor, and the other rank that one and a second: each gets one.
void overlapping_masks() {
  cpu_set_t mask;
  std::memset(&mask, 0xff, sizeof mask);
  sched_setaffinity(0, sizeof mask, &mask);  // a launcher may have bound the ranks
  sched_getaffinity(0, sizeof mask, &mask);
  const bool alone = CPU_COUNT(&mask) < 2;
  bool odd = false;
  for (const char* const name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"}) {
    if (const char* const rank = std::getenv(name)) odd = std::atoi(rank) % 2 == 1;
  }
  int most = odd ? 2 : 1;
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (CPU_ISSET(processor, &mask) && --most < 0) CPU_CLR(processor, &mask);
  }
  sched_setaffinity(0, sizeof mask, &mask);
  unsetenv("IMBREX_WORKERS");
  MPI_Init(nullptr, nullptr);
  require(odd == (rank_in_world() == 1), "the launcher says which rank this is");
  require(imbrex::worker_count() == 1, "each rank has a worker for its own processor");
  std::printf("%s\n", alone ? "one processor for both" : "a processor for each");
  MPI_Finalize();
}

// A main program without tasks makes its calls itself; with tasks, spare threads make them, until
// MPI_Finalize.
void spare_threads() {
  MPI_Init(nullptr, nullptr);
  const int at_first = threads_of_this_process();
  use_a_window();
  require(threads_of_this_process() == at_first, "no thread for a program without tasks");
  task("window").spawn(use_a_window).get();
  require(threads_of_this_process() == at_first + 1, "one spare thread for calls one by one");
  MPI_Finalize();
  require(threads_of_this_process() <= at_first, "no spare thread after MPI_Finalize");
}

// Something for the summary and the trace to show.
void messages() {
  MPI_Init(nullptr, nullptr);
  const int rank = rank_in_world();
  MPI_Comm reversed;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
  for (MPI_Comm comm : {MPI_COMM_WORLD, reversed}) {
    int ranks = 0;
    int mine = 0;
    MPI_Comm_size(comm, &ranks);
    MPI_Comm_rank(comm, &mine);
    task("send").launch([=] { MPI_Send(&mine, 1, MPI_INT, (mine + 1) % ranks, 5, comm); });
    task("receive").launch([=] {
      int value = -1;
      MPI_Recv(&value, 1, MPI_INT, (mine + ranks - 1) % ranks, 5, comm, MPI_STATUS_IGNORE);
      require(value == (mine + ranks - 1) % ranks, "the message");
    });
  }
  imbrex::taskwait();
  MPI_Comm_free(&reversed);
  MPI_Finalize();
}

// A message of each kind to the other of two ranks, in one task; the tag says which kind.
void send_all_kinds(int peer, MPI_Comm comm) {
  const int value = 7;
  MPI_Request requests[3];
  MPI_Isend(&value, 1, MPI_INT, peer, 1, comm, &requests[0]);
  MPI_Issend(&value, 1, MPI_INT, peer, 2, comm, &requests[1]);
  MPI_Send_init(&value, 1, MPI_INT, peer, 3, comm, &requests[2]);
  MPI_Start(&requests[2]);
  MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
  MPI_Request_free(&requests[2]);
  for (const int tag : {4, 5, 6, 7}) MPI_Send(&value, 1, MPI_INT, peer, tag, comm);
  int answer = 0;
  MPI_Sendrecv(&value, 1, MPI_INT, peer, 8, &answer, 1, MPI_INT, peer, 8, comm, MPI_STATUS_IGNORE);
}

// The other sends that give a request, with tags from 9 on; where MPI has no
// large counts, the others once more.
void send_other_kinds(int peer, MPI_Comm comm) {
  static char memory[1 << 12];
  MPI_Buffer_attach(memory, sizeof memory);
  const int value = 7;
  MPI_Request requests[6];
  MPI_Irsend(&value, 1, MPI_INT, peer, 9, comm, &requests[0]);
  MPI_Ibsend(&value, 1, MPI_INT, peer, 10, comm, &requests[1]);
#if MPI_VERSION >= 4
  MPI_Isend_c(&value, 1, MPI_INT, peer, 11, comm, &requests[2]);
  MPI_Issend_c(&value, 1, MPI_INT, peer, 12, comm, &requests[3]);
  MPI_Irsend_c(&value, 1, MPI_INT, peer, 13, comm, &requests[4]);
  MPI_Ibsend_c(&value, 1, MPI_INT, peer, 14, comm, &requests[5]);
#else
  MPI_Isend(&value, 1, MPI_INT, peer, 11, comm, &requests[2]);
  MPI_Issend(&value, 1, MPI_INT, peer, 12, comm, &requests[3]);
  MPI_Irsend(&value, 1, MPI_INT, peer, 13, comm, &requests[4]);
  MPI_Ibsend(&value, 1, MPI_INT, peer, 14, comm, &requests[5]);
#endif
  MPI_Waitall(6, requests, MPI_STATUSES_IGNORE);
  MPI_Ssend(&value, 1, MPI_INT, peer, 15, comm);
  MPI_Send(&value, 1, MPI_INT, peer, 16, comm);
  MPI_Send_init(&value, 1, MPI_INT, peer, 17, comm, &requests[0]);
  MPI_Ssend_init(&value, 1, MPI_INT, peer, 18, comm, &requests[1]);
  MPI_Startall(2, requests);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  for (MPI_Request& request : std::span(requests, 2)) MPI_Request_free(&request);
  int both = value;
  MPI_Sendrecv_replace(&both, 1, MPI_INT, peer, 19, peer, 19, comm, MPI_STATUS_IGNORE);
  int other = 0;
  comm = MPI_COMM_WORLD;  // where imbrex matches nothing, so that MPI itself receives
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5  // MPICH gives a status of zeros
  MPI_Isendrecv(&value, 1, MPI_INT, peer, 20, &other, 1, MPI_INT, peer, 20, comm, &requests[0]);
  MPI_Isendrecv_replace(&both, 1, MPI_INT, peer, 21, peer, 21, comm, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
#else
  for (const int tag : {20, 21}) {
    MPI_Sendrecv(&value, 1, MPI_INT, peer, tag, &other, 1, MPI_INT, peer, tag, comm,
                 MPI_STATUS_IGNORE);
  }
#endif
  void* gone = nullptr;
  int bytes = 0;
  MPI_Buffer_detach(static_cast<void*>(&gone), &bytes);
}

void receive_all_kinds(int peer, MPI_Comm comm) {
  int values[5];
  MPI_Request requests[4];
  for (const int tag : {1, 2}) {
    MPI_Irecv(&values[tag], 1, MPI_INT, peer, tag, comm, &requests[tag]);
  }
  MPI_Waitall(2, &requests[1], MPI_STATUSES_IGNORE);
  MPI_Recv_init(&values[3], 1, MPI_INT, peer, 3, comm, &requests[3]);
  MPI_Start(&requests[3]);
  MPI_Wait(&requests[3], MPI_STATUS_IGNORE);
  MPI_Request_free(&requests[3]);
  MPI_Message message;
  MPI_Mprobe(peer, 4, comm, &message, MPI_STATUS_IGNORE);
  MPI_Mrecv(&values[4], 1, MPI_INT, &message, MPI_STATUS_IGNORE);
  MPI_Mprobe(peer, 5, comm, &message, MPI_STATUS_IGNORE);
  MPI_Imrecv(&values[4], 1, MPI_INT, &message, &requests[0]);
  int done = 0;
  while (done == 0) MPI_Test(&requests[0], &done, MPI_STATUS_IGNORE);
  MPI_Irecv(&values[0], 1, MPI_INT, peer, 6, comm, &requests[0]);
  int index = -1;
  MPI_Waitany(1, requests, &index, MPI_STATUS_IGNORE);
  static int late = 0;  // it may come when this task's body has ended
  MPI_Irecv(&late, 1, MPI_INT, peer, 7, comm, &requests[0]);
  imbrex::release_after(requests[0]);
}

// `are_posted()` is called between.
template <class F>
void receive_other_kinds(int peer, MPI_Comm comm, F are_posted) {
  int values[6];
  MPI_Request requests[6];
  for (int i = 0; i < 6; ++i) {
    MPI_Irecv(&values[i], 1, MPI_INT, peer, 9 + i, comm, &requests[i]);
  }
  are_posted();
  MPI_Waitall(6, requests, MPI_STATUSES_IGNORE);
  for (const int tag : {15, 16}) {
    imbrex::when_arrived(peer, tag, comm).get().receive(&values[0], 1, MPI_INT);
  }
  for (int i = 0; i < 2; ++i) {
    MPI_Recv_init(&values[i], 1, MPI_INT, peer, 17 + i, comm, &requests[i]);
  }
  MPI_Startall(2, requests);
  int found = 0;
  for (int done = 0; done < 2; done += found) {
    int indices[2];
    MPI_Waitsome(2, requests, &found, indices, MPI_STATUSES_IGNORE);
  }
  for (MPI_Request& request : std::span(requests, 2)) MPI_Request_free(&request);
}

void all_kinds() {
  MPI_Init(nullptr, nullptr);
  const int peer = 1 - rank_in_world();
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  task("sends").launch([=] { send_all_kinds(peer, comm); });
  task("receives").launch([=] { receive_all_kinds(peer, comm); });
  imbrex::taskwait();
  imbrex::Promise<void> posted;
  task("receives").launch([&posted, peer, comm] {
    receive_other_kinds(peer, comm, [&posted] { posted.set(); });
  });
  posted.future().get();
  MPI_Barrier(MPI_COMM_WORLD);
  task("sends").launch([=] { send_other_kinds(peer, comm); });
  imbrex::taskwait();
  task("reduces").launch([=] {
    const int mine = 1;
    int sum = 0;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
    require(sum == 2, "the sum");
  });
  imbrex::taskwait();
  MPI_Comm_free(&comm);
  MPI_Finalize();
}

// The task is complete when the message comes, long after its body has ended.
void held_tasks() {
  MPI_Init(nullptr, nullptr);
  const int rank = rank_in_world();
  static int values[3] = {};
  static std::atomic<int> ended = 0;
  for (int i = 0; i < 3; ++i) {
    task("held").launch([rank, i] {
      MPI_Request request;
      MPI_Irecv(&values[i], 1, MPI_INT, rank, i, MPI_COMM_WORLD, &request);
      imbrex::release_after(request);
      ++ended;
    });
  }
  while (ended < 3) imbrex::yield();
  const int one = 1;
  for (const int i : {0, 1, 2}) MPI_Send(&one, 1, MPI_INT, rank, i, MPI_COMM_WORLD);
  imbrex::taskwait();
  require(values[0] + values[1] + values[2] == 3, "the messages came");
  MPI_Finalize();
}

const imbrex::test::Cases cases{
    {"plain", plain},
    {"overlapping_masks", overlapping_masks},
    {"finalize_completes_tasks", finalize_completes_tasks},
    {"finalize_calls_back", finalize_calls_back},
    {"open_operation", open_operation},
    {"late_message", late_message},
    {"runtime_around_mpi", runtime_around_mpi},
    {"exit_from_a_task", exit_from_a_task},
    {"exit_of_one_rank", exit_of_one_rank},
    {"exit_of_one_rank_in_a_task", exit_of_one_rank_in_a_task},
    {"exit_of_one_rank_on_a_thread", exit_of_one_rank_on_a_thread},
    {"abort_of_one_rank", abort_of_one_rank},
    {"mpi_abort_of_one_rank", mpi_abort_of_one_rank},
    {"mpi_abort_in_a_task", mpi_abort_in_a_task},
    {"return_without_finalize", return_without_finalize},
    {"finalize_at_exit", finalize_at_exit},
    {"too_early", too_early},
    {"fatal_error", fatal_error},
    {"fatal_errors_on_threads", fatal_errors_on_threads},
    {"error_that_nobody_takes", error_that_nobody_takes},
    {"errors_that_are_taken", errors_that_are_taken},
    {"spare_threads", spare_threads},
    {"messages", messages},
    {"all_kinds", all_kinds},
    {"held_tasks", held_tasks},
};

}  // namespace

int main(int argc, char** argv) {
  const auto& run = imbrex::test::chosen(cases, argc, argv).second;
  run();
}
