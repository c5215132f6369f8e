// SPDX-License-Identifier: BSD-3-Clause
// What the programs of engine_fuzz.cpp are made of: messages of scripted ranks, operations and what
// became of them, calls that wait for several requests. Used by engine_run.hpp.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <deque>
#include <mutex>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fake_mpi/fake_mpi.hpp"
#include "fuzz/matching.hpp"
#include "imbrex/imbrex.hpp"
#include "imbrex/mpi.hpp"

namespace imbrex::test {

struct Program {
  std::uint64_t seed = 1;
  int workers = 1;
  std::string policy = "default";
  std::vector<int> steps;  // the numbers of those that are carried out
  bool show = false;       // prints the steps

  // One task runs at a time, so that the order of postings is known.
  [[nodiscard]] bool exact() const { return workers == 1 || policy == "seeded"; }
};

// A request of the program: a receive's if it has a taking, else a send's.
struct Open {
  MPI_Request request = MPI_REQUEST_NULL;
  Taking* taking = nullptr;
  bool persistent = false;
  std::vector<std::uint64_t> buffer;  // a send's, or a persistent receive's
  Taking envelope;                    // a persistent receive's
};

enum class Way { test, testall, testany, testsome, wait, waitall, waitany, waitsome };
// The data with which a program does its steps.
// Thread safety: any thread may note the outcome of an operation; all other members belong to the
// root task.
class Workbench {
 protected:
  explicit Workbench(const Program& program) : program_(program), exact_(program.exact()) {
    random_.seed(program.seed);
  }

  static constexpr int ranks = 3;
  static constexpr int tags = 3;
  // The communicators by their place: two like the world, an intercommunicator, and what a step has
  // made and freed.
  static constexpr int without_wildcards = 1;
  static constexpr int between_groups = 2;

  // Half of the programs take no message out of the matching. Then no task may hold a message back
  // while a matching receive is posted, unless it is about to be given to an earlier receive.
  [[nodiscard]] bool matches() const { return program_.seed % 2 == 0; }
  // In some programs MPI calls fail.
  [[nodiscard]] bool faults() const { return program_.seed % 3 == 0; }

  // ---- drawing

  int below(int end) { return static_cast<int>(random_() % static_cast<unsigned>(end)); }
  int draw_comm() { return below(between_groups + 1); }
  // The remote group of the intercommunicator is smaller.
  int draw_source(int comm) { return below(comm == between_groups ? 2 : ranks); }

  Way draw_way() { return static_cast<Way>(below(8)); }

  void draw_envelope(Taking& taking) {
    taking.comm = draw_comm();
    const bool exact = taking.comm == without_wildcards;
    taking.source = !exact && below(3) == 0 ? MPI_ANY_SOURCE : draw_source(taking.comm);
    taking.tag = !exact && below(3) == 0 ? MPI_ANY_TAG : below(tags);
    taking.words = 1 + below(5);
  }

  Taking& add_taking(const char* call) {
    Taking& made = takings_.emplace_back();
    made.number = takings_.size();
    made.call = call;
    draw_envelope(made);
    made.buffer.assign(6, untouched);
    return made;
  }

  // ---- messages

  std::vector<std::uint64_t> words_of(std::uint64_t id, int words) {
    std::vector<std::uint64_t> content(static_cast<std::size_t>(words));
    for (std::size_t i = 0; i < content.size(); ++i) content[i] = id + i;
    return content;
  }
  std::vector<std::uint64_t> draw_content() { return words_of(next_id_ += 16, 1 + below(5)); }

  void send_from_peer(int comm, int source, int tag) {
    const std::vector<std::uint64_t> content = draw_content();
    const auto* const first = reinterpret_cast<const std::byte*>(content.data());
    fake_mpi::send({.comm = comms_[static_cast<std::size_t>(comm)],
                    .source = source,
                    .tag = tag,
                    .bytes = {first, first + content.size() * sizeof content[0]},
                    .synchronous = below(4) == 0,
                    .rounds = below(2) * below(6),
                    .error = below(25) == 0 ? static_cast<int>(MPI_ERR_OTHER) : MPI_SUCCESS});
  }

  // ---- operations

  [[nodiscard]] MPI_Comm comm_of(const Taking& taking) const {
    return comms_[static_cast<std::size_t>(taking.comm)];
  }

  const std::vector<std::uint64_t>& own_content() { return own_.emplace_back(draw_content()); }

  // Runs the step in a task or, if the order of things may be open, now and then in a thread.
  template <class F>
  void launch(F body) {
    ++live_bodies_;
    const auto counted = [this, body]() mutable {
      body();
      --live_bodies_;
    };
    if (!exact_ && below(6) == 0) {
      threads_.emplace_back(counted);
    } else {
      task("body").launch(counted);
    }
  }

  static void pause() {
    if (detail::in_task()) {
      yield();
    } else {
      std::this_thread::yield();
    }
  }

  // `f` posts a receive, and may wait for it then.
  template <class F>
  int posting(Taking& taking, F f) {
    taking.posted_first = taking.posted_last = ++clock_;
    taking.posted.store(true);
    const int code = f();
    if (!exact_) taking.posted_last = ++clock_;
    return code;
  }

  // `f` looks for a message at some time until it returns. REQUIRES: `taking` is complete then.
  // False if it fails; then it is over.
  template <class F>
  bool searching(Taking& taking, F f) {
    taking.posted_first = ++clock_;
    taking.posted.store(true);
    const int code = f();
    taking.posted_last = ++clock_;
    if (code == MPI_SUCCESS) return true;
    complete(taking, code, nullptr);
    return false;
  }

  void receive_matched(Taking& taking, MPI_Message message) {
    MPI_Status status = {};
    const int code =
        MPI_Mrecv(taking.buffer.data(), taking.words, MPI_UINT64_T, &message, &status);
    if (message != MPI_MESSAGE_NULL) fail("MPI_Mrecv left its message");
    complete(taking, code, &status);
  }

  // A probe says no more than its status: the message is the first of that source and tag that is
  // still there, and the check of the order shows whether that can be.
  void see(Taking& probing, const MPI_Status& status) {
    probing.status = status;
    probing.has_status = true;
    probing.done.store(true);
  }

  void complete(Taking& taking, int code, const MPI_Status* status) {
    taking.code = code;
    if (status != nullptr) {
      int cancelled = 0;
      MPI_Test_cancelled(status, &cancelled);
      taking.empty = cancelled != 0;
      taking.status = *status;
      taking.has_status = !taking.empty;
    }
    if (code == injected || (!taking.code_known && taking.buffer[0] == untouched)) {
      taking.empty = true;
    }
    taking.id = taking.buffer[0];
    taking.done.store(true);
  }

  void complete(Open& open, int code, const MPI_Status* status) {
    if (!open.persistent && open.request != MPI_REQUEST_NULL) fail("a complete request is left");
    if (open.taking == nullptr) {
      if (code != MPI_SUCCESS) fail("a send failed");
      return;
    }
    Taking& taking = *std::exchange(open.taking, nullptr);
    if (open.persistent) taking.buffer = open.buffer;
    complete(taking, code, status);
  }

  // Takes requests for which no call waits.
  std::vector<Open*> take_some(int most) {
    std::vector<Open*> some;
    for (int i = 1 + below(most); i > 0 && !available_.empty(); --i) {
      const auto place = available_.begin() + below(static_cast<int>(available_.size()));
      some.push_back(*place);
      available_.erase(place);
    }
    return some;
  }

  // The requests of one call, with a null one among them.
  struct Array {
    explicit Array(const std::vector<Open*>& some)
        : requests(some.size() + 1, MPI_REQUEST_NULL), statuses(some.size() + 1),
          indices(some.size() + 1) {
      for (std::size_t i = 0; i < some.size(); ++i) requests[i] = some[i]->request;
    }
    std::vector<MPI_Request> requests;
    std::vector<MPI_Status> statuses;
    std::vector<int> indices;
  };

  // One call for some requests: those that it completes leave `some`.
  void ask(std::vector<Open*>& some, Way way, bool ignore) {
    if (some.empty()) return;
    Array all(some);
    MPI_Request* const requests = all.requests.data();
    MPI_Status* const statuses = all.statuses.data();
    int* const indices = all.indices.data();
    int* const places = all.indices.data();
    const int size = static_cast<int>(all.requests.size());
    int flag = 1;
    int found = 1;
    int code = MPI_SUCCESS;
    std::iota(all.indices.begin(), all.indices.end(), 0);
    switch (way) {
      case Way::test: code = MPI_Test(requests, &flag, statuses); break;
      case Way::wait: code = MPI_Wait(requests, statuses); break;
      case Way::testany: code = MPI_Testany(size, requests, places, &flag, statuses); break;
      case Way::waitany: code = MPI_Waitany(size, requests, places, statuses); break;
      case Way::testsome: code = MPI_Testsome(size, requests, &found, indices, statuses); break;
      case Way::waitsome: code = MPI_Waitsome(size, requests, &found, indices, statuses); break;
      case Way::testall:
        found = static_cast<int>(some.size());
        code = MPI_Testall(size, requests, &flag, statuses);
        break;
      case Way::waitall:
        found = static_cast<int>(some.size());
        code = MPI_Waitall(size, requests, ignore ? MPI_STATUSES_IGNORE : statuses);
        break;
    }
    if (flag == 0 && code == MPI_SUCCESS) return;
    complete(some, all, found, code, ignore && way == Way::waitall);
  }

  // The first `found` of the places are complete, by the first of the statuses.
  void complete(std::vector<Open*>& some, const Array& all, int found, int code, bool ignored) {
    std::set<Open*> completed;
    for (std::size_t i = 0; i < static_cast<std::size_t>(found); ++i) {
      const auto place = static_cast<std::size_t>(all.indices[i]);
      if (place >= some.size()) {
        fail("a null request is complete");
        continue;
      }
      const MPI_Status& status = all.statuses[i];
      const int own = code == MPI_ERR_IN_STATUS ? status.MPI_ERROR : code;
      if (own == MPI_ERR_PENDING) continue;
      Open& open = *some[place];
      open.request = all.requests[place];
      if (open.taking != nullptr && ignored) open.taking->code_known = code == MPI_SUCCESS;
      complete(open, own, ignored ? nullptr : &status);
      completed.insert(&open);
    }
    std::erase_if(some, [&](Open* open) { return completed.contains(open); });
    const std::lock_guard guard(mutex_);
    for (Open* open : completed) {
      if (open->persistent) inactive_.push_back(open);
    }
  }

  void wait_for(std::vector<Open*> some, Way way, bool ignore, bool look_first) {
    for (int flag = 0; look_first && flag == 0;) {
      MPI_Status status;
      MPI_Request_get_status(some[0]->request, &flag, &status);
      if (flag == 0) pause();
    }
    while (!some.empty()) {
      ask(some, way, ignore);
      pause();
    }
  }

  void fail(const char* what) {
    std::printf("FAILS: %s\n", what);
    ++failures_;
  }

  static constexpr int injected = MPI_ERR_INTERN;  // no message has this error

  const Program& program_;
  const bool exact_;
  std::mt19937_64 random_;                   // the root task only, as all that has no atomic type
  std::vector<MPI_Comm> comms_;
  std::uint64_t next_id_ = 0;
  std::deque<Taking> takings_;
  std::deque<Open> opens_;
  std::deque<std::vector<std::uint64_t>> own_;  // contents that this rank sends to others
  std::vector<Open*> available_;             // requests for which no call waits
  std::vector<std::thread> threads_;
  std::mutex mutex_;                         // guards inactive_
  std::vector<Open*> inactive_;              // persistent requests that are not started
  std::atomic<std::uint64_t> clock_ = 0;     // any thread; seq_cst: its order is that of the run
  std::atomic<int> live_bodies_ = 0;
  std::atomic<int> failures_ = 0;
};

}  // namespace imbrex::test
