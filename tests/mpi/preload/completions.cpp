// SPDX-License-Identifier: BSD-3-Clause
// All completion calls of MPI, for all mixtures of requests that succeed and fail: each request is
// reported once, with its own error, by the rules of MPI. A program of plain MPI that runs under
// imbrex by preloading; compiled with COMPLETIONS_IN_TASKS, each case runs in a task that suspends.
//
// usage: completions            all cases, on two ranks; prints each case that is wrong
//        completions PART       the cases whose label has this part, each with its outcome
//        completions fatal CALL MIXTURE late|early: ends by MPI_ERRORS_ARE_FATAL
#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#ifdef COMPLETIONS_IN_TASKS
#include "imbrex/imbrex.hpp"
#endif

namespace {

// ---- requests --------------------------------------------------------------------------------

// A mixture has a letter for each request; a capital one fails.
//   r R receive        p P persistent receive       g G generalised request
//   c C broadcast (on rank 1)                       s persistent send
//   w a receive that stays pending                  i an inactive persistent receive    n null
bool is_persistent(char kind) { return std::strchr("pPsi", kind) != nullptr; }
bool is_active(char kind) { return std::strchr("niw", kind) == nullptr; }
bool is_receive(char kind) { return std::strchr("rRpP", kind) != nullptr; }

int rank = 0;
int peer = 0;
MPI_Comm comm;

// The error class with which the request ends.
int expected(char kind) {
  if (kind == 'R' || kind == 'P') return MPI_ERR_TRUNCATE;
#ifdef OPEN_MPI
  if (kind == 'C' && rank == 1) return MPI_ERR_TRUNCATE;
#else
  if (kind == 'C' && rank == 1) return MPI_ERR_OTHER;
#endif
  return kind == 'G' ? MPI_ERR_NO_MEM : MPI_SUCCESS;
}

int class_of(int code) {
  int error_class = -1;
  MPI_Error_class(code, &error_class);
  return error_class;
}

constexpr int out[2] = {11, 12};
constexpr int sends_from = 100;  // tags of the persistent sends of a mixture
constexpr int untouched = -5;    // the error field of a status

template <int Code>
int answer(void*, MPI_Status* status) {
  MPI_Status_set_elements(status, MPI_INT, 1);
  MPI_Status_set_cancelled(status, 0);
  status->MPI_SOURCE = 7;
  status->MPI_TAG = 8;
  return Code;
}
int release(void*) { return MPI_SUCCESS; }
int cancel(void*, int) { return MPI_SUCCESS; }

struct One {
  char kind = 'n';
  MPI_Request made = MPI_REQUEST_NULL;
  int in[2] = {-1, -1};
  int reports = 0;
};

MPI_Request make(One& it, int place) {
  MPI_Request request = MPI_REQUEST_NULL;
  switch (it.kind) {
    case 'r': case 'R': case 'w':
      MPI_Irecv(it.in, 1, MPI_INT, peer, place, comm, &request);
      break;
    case 'p': case 'P': case 'i':
      MPI_Recv_init(it.in, 1, MPI_INT, peer, place, comm, &request);
      break;
    case 's':
      MPI_Send_init(out, 1, MPI_INT, peer, sends_from + place, comm, &request);
      break;
    case 'c':
      MPI_Ibcast(it.in, 1, MPI_INT, 0, comm, &request);
      break;
    case 'C':
      MPI_Ibcast(it.in, 2 - rank, MPI_INT, 0, comm, &request);
      break;
    case 'g':
      MPI_Grequest_start(&answer<MPI_SUCCESS>, &release, &cancel, nullptr, &request);
      break;
    case 'G':
      MPI_Grequest_start(&answer<MPI_ERR_NO_MEM>, &release, &cancel, nullptr, &request);
      break;
    default: break;
  }
  if (std::strchr("pPs", it.kind) != nullptr) MPI_Start(&request);
  it.made = request;
  return request;
}

// ---- error handlers --------------------------------------------------------------------------

std::atomic<int> handler_calls{0};
void count_call(MPI_Comm*, int*, ...) { handler_calls.fetch_add(1); }

// MPICH calls its handlers for other communicators, and returns MPI_SUCCESS after a handler of the
// program.
void set_handler(MPI_Errhandler handler) {
  for (const MPI_Comm its : {comm, MPI_COMM_SELF, MPI_COMM_WORLD}) {
    MPI_Comm_set_errhandler(its, handler);
  }
}

// ---- one case --------------------------------------------------------------------------------

enum class When {
  unexpected,  // the messages have come before the receives
  early,       // all requests are complete before the call
  late         // the call waits
};

class Case {
 public:
  Case(std::string call, std::string mixture, bool with_statuses, When when)
      : call_(std::move(call)),
        mixture_(std::move(mixture)),
        with_statuses_(with_statuses),
        when_(when),
        all_(mixture_.size()),
        requests_(mixture_.size(), MPI_REQUEST_NULL),
        statuses_(mixture_.size()) {}

  // Returns the mistakes; empty: all is right.
  std::string run() {
    handler_calls.store(0);
    begin();
    if (call_ == "wait" || call_ == "test") {
      complete_each();
#ifdef COMPLETIONS_IN_TASKS
    } else if (call_ == "waits") {
      wait_in_tasks();
#endif
    } else if (call_ == "waitall" || call_ == "testall") {
      complete_all();
    } else {
      complete_in_turn(call_ == "waitany" || call_ == "testany");
    }
    if (sender_.joinable()) sender_.join();
    check_requests();
    end();
    return mistakes_;
  }

  [[nodiscard]] int failed_calls() const { return failed_calls_; }

 private:
  [[nodiscard]] int count() const { return static_cast<int>(mixture_.size()); }
  [[nodiscard]] bool tests() const { return call_.starts_with("test"); }
  MPI_Status* one_status() { return with_statuses_ ? &statuses_[0] : MPI_STATUS_IGNORE; }
  MPI_Status* many_statuses() { return with_statuses_ ? statuses_.data() : MPI_STATUSES_IGNORE; }

  template <class Value>
  void expect(bool right, const char* what, int place, Value found) {
    if (right) return;
    mistakes_ += std::string(" [") + what + " of " + std::to_string(place) + " is " +
                 std::to_string(found) + "]";
  }

  void post() {
    for (int i = 0; i < count(); ++i) {
      all_[i].kind = mixture_[i];
      requests_[i] = make(all_[i], i);
    }
  }
  void send() const {
    for (int i = 0; i < count(); ++i) {
      const char kind = mixture_[i];
      if (is_receive(kind)) {
        MPI_Send(out, kind == 'R' || kind == 'P' ? 2 : 1, MPI_INT, peer, i, comm);
      } else if (kind == 'g' || kind == 'G') {
        MPI_Grequest_complete(all_[i].made);
      }
    }
  }

  void begin() {
    if (when_ == When::unexpected) {
      send();
      MPI_Barrier(comm);
      post();
      return;
    }
    post();
    MPI_Barrier(comm);
    if (when_ == When::late) {
      sender_ = std::thread([this] {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        send();
      });
      return;
    }
    send();
    MPI_Barrier(comm);
    for (int i = 0, flag = 0; i < 20; ++i) {
      MPI_Iprobe(peer, sends_from - 1, comm, &flag, MPI_STATUS_IGNORE);
    }
  }

  // Waits for the request, by MPI_Wait or repeated MPI_Test.
  void complete_each() {
    for (int i = 0; i < count(); ++i) {
      if (mixture_[i] == 'w') continue;
      statuses_[0].MPI_ERROR = untouched;
      int code = MPI_SUCCESS;
      if (tests()) {
        for (int flag = 0; flag == 0 && code == MPI_SUCCESS;) {
          code = MPI_Test(&requests_[i], &flag, one_status());
        }
      } else {
        code = MPI_Wait(&requests_[i], one_status());
      }
      note(i, code, one_status());
      note_call(code);
    }
  }

#ifdef COMPLETIONS_IN_TASKS
  // A task for each request: the completion engine tests them together.
  void wait_in_tasks() {
    std::vector<int> codes(mixture_.size(), MPI_SUCCESS);
    imbrex::finish([&] {
      for (int i = 0; i < count(); ++i) {
        if (mixture_[i] == 'w') continue;
        imbrex::task("wait").launch(
            [&, i] { codes[i] = MPI_Wait(&requests_[i], MPI_STATUS_IGNORE); });
      }
    });
    for (int i = 0; i < count(); ++i) {
      if (mixture_[i] == 'w') continue;
      note(i, codes[i], MPI_STATUS_IGNORE);
      note_call(codes[i]);
    }
  }
#endif

  void complete_all() {
    for (MPI_Status& status : statuses_) status.MPI_ERROR = untouched;
    int code = MPI_SUCCESS;
    if (tests()) {
      for (int flag = 0; flag == 0 && code == MPI_SUCCESS;) {
        code = MPI_Testall(count(), requests_.data(), &flag, many_statuses());
      }
    } else {
      code = MPI_Waitall(count(), requests_.data(), many_statuses());
    }
    note_call(code);
    const bool fails = std::ranges::any_of(mixture_, [](char kind) { return expected(kind) != 0; });
    expect(class_of(code) == (fails ? MPI_ERR_IN_STATUS : MPI_SUCCESS), "the code", -1,
           class_of(code));
    note_several(code, count(), nullptr);
  }

  // Some requests have ended; `indices` null: all.
  void note_several(int code, int found, const int indices[]) {
    for (int k = 0; k < found; ++k) {
      const int i = indices == nullptr ? k : indices[k];
      if (i < 0 || i >= count()) return expect(false, "an index", k, i);
      if (!with_statuses_) {
        ++all_[i].reports;
        continue;
      }
      // The error fields are set only where a request has failed.
      note(i, code == MPI_SUCCESS ? MPI_SUCCESS : statuses_[k].MPI_ERROR, nullptr);
      check_envelope(i, statuses_[k]);
    }
  }

  // Calls for any or for some requests, until all are complete that can be.
  void complete_in_turn(const bool any) {
    auto left = std::ranges::count_if(mixture_, is_active);
    std::vector<int> indices(mixture_.size(), -1);
    while (left > 0 && mistakes_.empty()) {
      int found = 0;
      const int code = ask(any, &found, indices.data());
      note_call(code);
      if (found <= 0 || found > left) return expect(false, "the number of complete", -1, found);
      left -= found;
      if (any) {
        if (indices[0] < 0 || indices[0] >= count()) {
          return expect(false, "the index", -1, indices[0]);
        }
        note(indices[0], code, one_status());
        continue;
      }
      bool fails = false;
      for (int k = 0; k < found; ++k) fails = fails || expected(mixture_[indices[k]]) != 0;
      expect(class_of(code) == (fails ? MPI_ERR_IN_STATUS : MPI_SUCCESS), "the code", -1,
             class_of(code));
      note_several(code, found, indices.data());
    }
    if (mixture_.find('w') == std::string::npos) check_nothing_left(any, indices.data());
  }
  int ask(const bool any, int* found, int indices[]) {
    return any ? ask_for_any(indices, found) : ask_for_some(found, indices);
  }
  int ask_for_any(int* index, int* found) {
    statuses_[0].MPI_ERROR = untouched;
    *found = 1;
    if (!tests()) return MPI_Waitany(count(), requests_.data(), index, one_status());
    int code = MPI_SUCCESS;
    for (int flag = 0; flag == 0 && code == MPI_SUCCESS;) {
      code = MPI_Testany(count(), requests_.data(), index, &flag, one_status());
    }
    return code;
  }
  int ask_for_some(int* found, int indices[]) {
    if (!tests()) {
      return MPI_Waitsome(count(), requests_.data(), found, indices, many_statuses());
    }
    int code = MPI_SUCCESS;
    for (*found = 0; *found == 0 && code == MPI_SUCCESS;) {
      code = MPI_Testsome(count(), requests_.data(), found, indices, many_statuses());
    }
    return code;
  }
  void check_nothing_left(const bool any, int indices[]) {
    int found = 0;
    const int code = ask(any, &found, indices);
    if (any) found = indices[0];
    expect(code == MPI_SUCCESS && found == MPI_UNDEFINED, "what is left", -1, found);
  }

  void note_call(int code) {
    if (code != MPI_SUCCESS) ++failed_calls_;
  }
  // Request `i` has ended; `status` is that of a call that returns one.
  void note(int i, int code, const MPI_Status* status) {
    ++all_[i].reports;
    expect(class_of(code) == expected(mixture_[i]), "the error", i, class_of(code));
    if (status == nullptr || status == MPI_STATUS_IGNORE) return;
    // MPICH sets the field in the status of a null or inactive request.
    if (is_active(mixture_[i])) {
      expect(status->MPI_ERROR == untouched, "the error field", i, status->MPI_ERROR);
    }
    check_envelope(i, *status);
  }
  void check_envelope(int i, const MPI_Status& status) {
    int elements = -1;
    MPI_Get_count(&status, MPI_INT, &elements);
    if (is_receive(mixture_[i])) {
      expect(status.MPI_SOURCE == peer, "the source", i, status.MPI_SOURCE);
      expect(status.MPI_TAG == i, "the tag", i, status.MPI_TAG);
      // How many elements a truncated message has is the MPI's choice.
      expect(elements == 1 || expected(mixture_[i]) != MPI_SUCCESS, "the count", i, elements);
    } else if (!is_active(mixture_[i])) {
      expect(status.MPI_TAG == MPI_ANY_TAG && elements == 0, "the empty status", i, elements);
    }
  }

  void check_requests() {
    for (int i = 0; i < count(); ++i) {
      const char kind = mixture_[i];
      const bool is_null = requests_[i] == MPI_REQUEST_NULL;
      const bool in_turn = call_.ends_with("any") || call_.ends_with("some");
      const int times = kind == 'w' || (in_turn && !is_active(kind)) ? 0 : 1;
      expect(all_[i].reports == times, "the number of reports", i, all_[i].reports);
      if (kind == 'w') {
        expect(requests_[i] == all_[i].made, "the pending request", i, is_null);
      } else if (is_persistent(kind) && !may_be_freed(kind)) {
        expect(requests_[i] == all_[i].made, "the persistent request", i, is_null);
      } else if (!is_persistent(kind)) {
        expect(is_null, "the ended request", i, is_null);
      }
      if (is_receive(kind)) expect(all_[i].in[0] == out[0], "the value", i, all_[i].in[0]);
    }
  }
  // Open MPI 4 frees a persistent request that has failed.
  static bool may_be_freed([[maybe_unused]] char kind) {
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5
    return kind == 'P';
#else
    return false;
#endif
  }

  // Ends what is left, and starts persistent receives once more: they are as good as before.
  void end() {
    MPI_Barrier(comm);
    for (int i = 0; i < count(); ++i) {
      if (mixture_[i] == 'w') {
        MPI_Cancel(&requests_[i]);
        MPI_Wait(&requests_[i], MPI_STATUS_IGNORE);
      } else if (mixture_[i] == 's') {
        int value = 0;
        MPI_Recv(&value, 1, MPI_INT, peer, sends_from + i, comm, MPI_STATUS_IGNORE);
      }
      if (mixture_[i] == 'p' || mixture_[i] == 'P') restart(i);
      if (requests_[i] != MPI_REQUEST_NULL) MPI_Request_free(&requests_[i]);
    }
    MPI_Barrier(comm);
  }
  void restart(int i) {
    MPI_Request sent;
    MPI_Isend(out + 1, 1, MPI_INT, peer, i, comm, &sent);
    int code = MPI_SUCCESS;
    if (requests_[i] != MPI_REQUEST_NULL) {
      MPI_Start(&requests_[i]);
      code = MPI_Wait(&requests_[i], MPI_STATUS_IGNORE);
    } else {
      code = MPI_Recv(all_[i].in, 1, MPI_INT, peer, i, comm, MPI_STATUS_IGNORE);
    }
    expect(code == MPI_SUCCESS && all_[i].in[0] == out[1], "the next message", i, all_[i].in[0]);
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
  }

  const std::string call_;
  const std::string mixture_;
  const bool with_statuses_;
  const When when_;
  std::vector<One> all_;
  std::vector<MPI_Request> requests_;
  std::vector<MPI_Status> statuses_;
  std::thread sender_;
  int failed_calls_ = 0;
  std::string mistakes_;
};

// ---- all cases -------------------------------------------------------------------------------

std::string run_case(Case& it) {
#ifdef COMPLETIONS_IN_TASKS
  using namespace imbrex;
  // Something is always ready, so the task suspends when it waits.
  std::atomic<bool> stop{false};
  const auto other = task("other").spawn([&stop] {
    while (!stop.load()) yield();
  });
  std::string mistakes = task("case").spawn([&it] { return it.run(); }).get();
  stop.store(true);
  other.wait();
  return mistakes;
#else
  return it.run();
#endif
}

const char* name_of(When when) {
  if (when == When::unexpected) return "unexpected";
  return when == When::early ? "early" : "late";
}

constexpr const char* calls[] = {
#ifdef COMPLETIONS_IN_TASKS
    "waits",
#endif
    "wait", "test", "waitany", "testany", "waitall", "testall", "waitsome", "testsome"};
constexpr const char* mixtures[] = {"r",  "R",   "p",   "P",      "rR",     "pP",  "PP",  "RR",
                                    "PpR", "pPrRs", "nPi", "iRn",  "G",      "gG",  "GP",  "rGsP",
                                    "wP", "Pw",  "wRG", "rpgsniw", "cP",     "C",   "CRP"};

// Bit 0: no statuses; bit 1: a handler of the program, else MPI_ERRORS_RETURN.
#ifdef COMPLETIONS_IN_TASKS
constexpr int ways[] = {0, 3};
#else
constexpr int ways[] = {0, 1, 2, 3};
#endif

bool is_possible(const std::string& call, const std::string& mixture, When when) {
  // The generalised requests complete after they have been made.
  if (when == When::unexpected && mixture.find_first_of("gG") != std::string::npos) return false;
#ifndef OPEN_MPI
  // MPICH's own MPI_Testall takes a failed request while others are pending, and its calls for
  // several requests, which the engine uses too, give a wrong error for generalised ones:
  // docs/design/mpi-facts.md.
  const bool for_several = call == "testall" || call == "waits" || call.ends_with("some");
  if (for_several && mixture.find('G') != std::string::npos) return false;
  if (call == "testall" && when != When::early && mixture.size() > 1) return false;
#endif
  return mixture.find('w') == std::string::npos || !call.ends_with("all");
}

int run_all(const char* const part) {
  MPI_Errhandler counting;
  MPI_Comm_create_errhandler(&count_call, &counting);
  int wrong = 0;
  for (const std::string call : calls) {
    for (const std::string mixture : mixtures) {
      for (const When when : {When::unexpected, When::early, When::late}) {
        if (!is_possible(call, mixture, when)) continue;
        for (const int way : ways) {
          const bool with_statuses = way % 2 == 0;
          const bool counts = way >= 2;
          const std::string label = call + " " + mixture + " " + name_of(when) +
                                    (with_statuses ? " statuses" : " ignore") +
                                    (counts ? " handler" : " return");
          if (part != nullptr && label.find(part) == std::string::npos) continue;
          set_handler(counts ? counting : MPI_ERRORS_RETURN);
          Case it(call, mixture, with_statuses, when);
          std::string mistakes = run_case(it);
          if (counts && handler_calls.load() != it.failed_calls()) {
            mistakes += " [" + std::to_string(handler_calls.load()) + " handler calls for " +
                        std::to_string(it.failed_calls()) + " failed calls]";
          }
          if (!mistakes.empty()) ++wrong;
          if (!mistakes.empty() || part != nullptr) {
            std::printf("%d: %s:%s\n", rank, label.c_str(),
                        mistakes.empty() ? " right" : mistakes.c_str());
            std::fflush(stdout);
          }
        }
      }
    }
  }
  MPI_Errhandler_free(&counting);
  int all = 0;
  MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::printf("completions: %d cases are wrong\n", all);
  return all == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_rank(comm, &rank);
  peer = 1 - rank;
  int end = 0;
  if (argc > 4 && std::strcmp(argv[1], "fatal") == 0) {
    const When when = std::strcmp(argv[4], "late") == 0 ? When::late : When::early;
    Case it(argv[2], argv[3], false, when);
    (void)run_case(it);
    std::printf("completions: the program goes on\n");
  } else {
    end = run_all(argc > 1 ? argv[1] : nullptr);
  }
  MPI_Comm_free(&comm);
  MPI_Finalize();
  return end;
}
