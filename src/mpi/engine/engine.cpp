// SPDX-License-Identifier: BSD-3-Clause
// The completion engine: one thread at a time asks MPI for completions: for single requests by one
// PMPI_Testsome over a compact array, for groups (Waitall, Probe, ...) by one call each.
#include "mpi/engine/engine.hpp"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/arch.hpp"
#include "mpi/engine/traffic.hpp"
#include "trace/races.hpp"

namespace imbrex::mpi {

namespace {

// The most requests of one round, so that it stays short however many are outstanding: a busy
// worker polls between tasks. Testsome costs about 2 ns for each request, a group 50 ns.
constexpr int singles_per_round = 512;
constexpr std::size_t groups_per_round = 16;
constexpr std::size_t feeds_per_round = 16;
constexpr int looked_at_twice = 64;

// REQUIRES: `next` is the link of `item`'s type. Pairs with the exchange that empties the stack.
template <class T>
void push_on(std::atomic<T*>& stack, T& item, T*& next) noexcept {
  next = stack.load(std::memory_order_relaxed);
  while (!stack.compare_exchange_weak(next, &item, std::memory_order_release,
                                      std::memory_order_relaxed)) {
  }
}

}  // namespace

// A receive has got its source and its tag by its message.
void Round::note(const Operation& operation) noexcept {
  const Call& call = operation.call;
  if (operation.task.name == nullptr) return;
  const bool receives = call.kind == Kind::receive && operation.code == MPI_SUCCESS;
  detail::note_completed(operation.task.id, call.name,
                         std::max(receives ? operation.status.MPI_SOURCE : call.peer, -1),
                         std::max(receives ? operation.status.MPI_TAG : call.tag, -1));
}

class Engine::Done final : public Round {
 public:
  explicit Done(Engine& engine) noexcept : engine_(engine) {}
  [[nodiscard]] Operation* first() const noexcept { return first_; }

  // Called by a feed, which knows no lock, from draw(), which holds it.
  void under_way(Operation& operation) override IMBREX_LOCKS_NOT_SEEN {
    engine_.requests_.push_back(operation.request);
    engine_.singles_.push_back(&operation);
  }

 private:
  Engine& engine_;
};

void Engine::add(Operation& operation) noexcept {
  operation.task = detail::current_task();
  outstanding_.fetch_add(1, std::memory_order_relaxed);  // before the push: see (3)
  push(operation);
}

void Engine::push(Operation& operation) noexcept { push_on(intake_, operation, operation.next); }

void Engine::add(Feed& feed) noexcept { push_on(feed_intake_, feed, feed.next_); }

void Engine::expect() noexcept {
  outstanding_.fetch_add(1, std::memory_order_relaxed);
  hints_.fetch_add(one_fed + one_unattended, std::memory_order_relaxed);
}

void Engine::want_polls() noexcept {
  const int before = outstanding_.fetch_add(1, std::memory_order_relaxed);
  // release: has_open(), if it sees this request, sees the outstanding operation
  polls_wanted_.fetch_add(1, std::memory_order_release);
  if (before == 0) detail::wake_poller();  // the caller goes on
}

void Engine::call_off_polls(const int count) noexcept {
  polls_wanted_.fetch_sub(count, std::memory_order_relaxed);
  outstanding_.fetch_sub(count, std::memory_order_release);
}

int Engine::poll() noexcept {
  const trace::races::Outside of_the_task;
  if (outstanding_.load(std::memory_order_relaxed) == 0 ||
      wanted_.load(std::memory_order_relaxed) != 0 || !lock_.try_lock()) {
    return 0;
  }
  Done done(*this);
  {
    const Callback callback;
    poller_.store(base::this_thread(), std::memory_order_relaxed);
    take_intake();
    if (!feeds_.empty() || feed_intake_.load(std::memory_order_relaxed) != nullptr) draw(done);
    if (!requests_.empty()) ask_singles(done);
    if (!groups_.empty()) ask_groups(done);
    forget_kept();  // of completion calls without a waiting call
    poller_.store(pthread_t{}, std::memory_order_relaxed);
  }
  lock_.unlock();

  int count = 0;
  for (Operation* operation = done.first(); operation != nullptr; ++count) {
    Operation* const next = operation->next;  // before the owner may end it
    operation->complete(*operation);
    operation = next;
  }
  if (count != 0) outstanding_.fetch_sub(count, std::memory_order_release);
  return count;
}

bool Engine::polling_here() const noexcept {
  // Only this thread stores its own name, so a stale value cannot equal it.
  return base::is_this_thread(poller_.load(std::memory_order_relaxed));
}

void Engine::take_intake() {
  if (intake_.load(std::memory_order_relaxed) == nullptr) return;
  Operation* operation = intake_.exchange(nullptr, std::memory_order_acquire);  // pairs with add()
  Operation* oldest = nullptr;
  while (operation != nullptr) {
    Operation* const next = std::exchange(operation->next, oldest);
    oldest = operation;
    operation = next;
  }
  for (; oldest != nullptr; oldest = oldest->next) {
    if (oldest->ask != nullptr) {
      groups_.push_back(oldest);
    } else {
      requests_.push_back(oldest->request);
      singles_.push_back(oldest);
    }
  }
}

// ---- feeds -----------------------------------------------------------------------------------

void Engine::take_feeds() {
  if (feed_intake_.load(std::memory_order_relaxed) == nullptr) return;
  Feed* feed = feed_intake_.exchange(nullptr, std::memory_order_acquire);  // pairs with add()
  for (; feed != nullptr; feed = feed->next_) feeds_.push_back(feed);
}

void Engine::draw(Done& done) {
  take_feeds();
  const std::size_t rounds = std::min(feeds_.size(), feeds_per_round);
  for (std::size_t i = 0; i < rounds; ++i) {
    if (next_feed_ >= feeds_.size()) next_feed_ = 0;
    if (feeds_[next_feed_]->draw(done)) {
      ++next_feed_;
    } else {  // another thread may have added it again already: to the intake, not to feeds_
      feeds_[next_feed_] = feeds_.back();
      feeds_.pop_back();
    }
  }
}

// ---- singles ---------------------------------------------------------------------------------

void Engine::ask_singles(Done& done) {
  const int size = static_cast<int>(requests_.size());
  if (size == 1) {  // the cheapest call, and it makes progress, too
    ask_each(0, 1, done);
    forget_finished(0, 1);
    return;
  }
  if (next_single_ >= size) next_single_ = 0;
  const int first = next_single_;
  const int count = std::min(size - first, singles_per_round);
  if (reads_requests) {
    ask_for_complete(first, count, done);
    forget_finished(first, count);
    return;
  }
  if (std::ssize(statuses_) < count) {
    statuses_.resize(static_cast<std::size_t>(count));
    indices_.resize(static_cast<std::size_t>(count));
  }

  int found = 0;
  const auto look = [&]() IMBREX_REQUIRES(lock_) {
    return completion::Testsome(count, requests_.data() + first, &found, indices_.data(),
                                statuses_.data());
  };
  Outcome outcome = look();
  // Open MPI tests first and then makes progress: a second test sees arrivals of the first.
  if (outcome.code == MPI_SUCCESS && found == 0 && count <= looked_at_twice) outcome = look();
  const int code = outcome.code;
  if (code == MPI_SUCCESS && found == 0) {
    next_single_ += count;
    return;
  }
  // Neither happens in a correct program; one bad request must not keep the others from completing.
  if (found == MPI_UNDEFINED || (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS)) {
    ask_each(first, count, done);
  } else if (code == MPI_ERR_IN_STATUS) {
    settle_errors(first, count, found, outcome, done);
  } else {
    for (int i = 0; i < found; ++i) finish(first + indices_[i], statuses_[i], MPI_SUCCESS, done);
  }
  forget_finished(first, count);
}

void Engine::ask_each(int first, int count, Done& done) {
  for (int place = first; place < first + count; ++place) {
    int flag = 0;
    MPI_Status status = {};
    const bool owes = singles_[place]->call.owes_handler();
    const Outcome outcome = completion::Test(owes, &requests_[place], &flag, &status);
    const int code = outcome.code;
    if (code == MPI_SUCCESS && flag == 0) continue;
    singles_[place]->take(outcome);
    finish(place, status, code, done);
  }
}

// If the state of requests can be read, MPI is asked only for complete requests, and for one more,
// another one each time: MPI then makes progress, and detects a failed process.
void Engine::ask_for_complete(int first, int count, Done& done) {
  turn_ = turn_ + 1 < count ? turn_ + 1 : 0;
  ask_each(first + turn_, 1, done);
  for (int place = first; place < first + count; ++place) {
    if (singles_[place] == nullptr || state_of(requests_[place]) == RequestState::pending) continue;
    ask_each(place, 1, done);
  }
}

// At least one of the found requests has failed. MPI has called the error handler of the first of
// them in the array, or none (`owed`); the tasks of the others will call theirs.
void Engine::settle_errors(int first, int count, int found, const Outcome& outcome, Done& done) {
  std::vector<const Operation*> failed;
  int first_failed = count;
  for (int i = 0; i < found; ++i) {
    if (statuses_[i].MPI_ERROR != MPI_SUCCESS) first_failed = std::min(first_failed, indices_[i]);
  }
  for (int i = 0; i < found; ++i) {
    Operation& operation = *singles_[first + indices_[i]];
    if (indices_[i] == first_failed && !operation.call.owes_handler()) {
      operation.handler_ran = !outcome.owed;
      operation.handler = outcome.kept;
    }
    if (statuses_[i].MPI_ERROR != MPI_SUCCESS) {
      operation.call.name_handler(outcome);
      failed.push_back(&operation);
    }
    finish(first + indices_[i], statuses_[i], statuses_[i].MPI_ERROR, done);
  }
  // Open MPI frees every failed request of the array, also one that failed after the completed ones
  // were collected, and never names it. If many tasks wait for a failing process, their requests
  // end this way.
  for (int place = first; place < first + count; ++place) {
    if (singles_[place] != nullptr && requests_[place] == MPI_REQUEST_NULL) {
      MPI_Status unknown = {};
      unknown.MPI_SOURCE = MPI_ANY_SOURCE;
      unknown.MPI_TAG = MPI_ANY_TAG;
      const Call& call = singles_[place]->call;
      const auto like = std::ranges::find_if(failed, [&](const Operation* const other) {
        return other->call.comm == call.comm && other->call.peer == call.peer;
      });
      const bool known = call.peer != Call::none && like != failed.end();
      finish(place, unknown, known ? (*like)->code : MPI_ERR_UNKNOWN, done);
    }
  }
}

void Engine::finish(int place, const MPI_Status& status, int code, Done& done) {
  Operation& operation = *std::exchange(singles_[place], nullptr);
  operation.request = requests_[place];  // null, or persistent and inactive
  operation.status = status;
  operation.code = code;
  done.complete(operation);
}

void Engine::forget_finished(int first, int count) {
  int place = first;
  int end = first + count;
  while (place < end) {
    if (singles_[place] != nullptr) {
      ++place;
      continue;
    }
    // The last of this round fills the gap, the last of all fills the gap that it leaves.
    --end;
    singles_[place] = singles_[end];
    requests_[place] = requests_[end];
    singles_[end] = singles_.back();
    requests_[end] = requests_.back();
    singles_.pop_back();
    requests_.pop_back();
  }
  next_single_ = end;
}

// ---- groups ----------------------------------------------------------------------------------

void Engine::ask_groups(Done& done) {
  const std::size_t rounds = std::min(groups_.size(), groups_per_round);
  for (std::size_t i = 0; i < rounds; ++i) {
    if (next_group_ >= groups_.size()) next_group_ = 0;
    Operation& operation = *groups_[next_group_];
    if (!operation.ask(operation)) {
      ++next_group_;
      continue;
    }
    groups_[next_group_] = groups_.back();
    groups_.pop_back();
    done.complete(operation);
  }
}

// ---- callback modes --------------------------------------------------------------------------

bool Engine::glance(bool (*is_complete)(MPI_Request)) noexcept {
  if (!lock_.try_lock()) return false;
  constexpr std::size_t looks_max = 4;
  bool found = false;
  for (std::size_t i = 0; i < std::min(requests_.size(), looks_max) && !found; ++i) {
    if (next_glance_ >= requests_.size()) next_glance_ = 0;
    found = is_complete(requests_[next_glance_++]);
  }
  lock_.unlock();
  return found;
}

// ---- reports ---------------------------------------------------------------------------------

// True if no operations but `open` ones are outstanding. Two counters cannot be read at once, so
// each is read twice: a thread that changes one also changes the other.
bool Engine::has_open(const int open) const noexcept {
  const int wanted = polls_wanted_.load(std::memory_order_acquire);
  const int outstanding = outstanding_.load(std::memory_order_acquire);  // as poll(); see (3)
  return outstanding - wanted == open &&
         wanted == polls_wanted_.load(std::memory_order_acquire) &&
         outstanding == outstanding_.load(std::memory_order_relaxed);
}

namespace {

// While it lives no active message is handled. It gives up waiting for a handler that does not end
// by a mistake of the program, because that must be reported, too. The flag guards no variable.
class NoHandler {
 public:
  NoHandler() noexcept IMBREX_LOCKS_NOT_SEEN {
    constexpr int tries = 10'000;
    for (int i = 0; i < tries && !sure_; ++i) {
      if (i != 0) sched_yield();
      sure_ = traffic().handling.try_lock();
    }
  }
  ~NoHandler() IMBREX_LOCKS_NOT_SEEN {
    if (sure_) traffic().handling.unlock();
  }
  NoHandler(const NoHandler&) = delete;
  NoHandler& operator=(const NoHandler&) = delete;
  [[nodiscard]] bool is_sure() const noexcept { return sure_; }

 private:
  bool sure_ = false;
};

}  // namespace

bool Engine::try_to_hold_still(const std::function<void(const Operation&)>& visit,
                               const std::function<void(bool settled)>& look)
    IMBREX_LOCKS_NOT_SEEN {
  wanted_.fetch_add(1, std::memory_order_relaxed);  // otherwise pollers could keep this thread out
  constexpr std::chrono::seconds patience{2};
  const auto begin = std::chrono::steady_clock::now();
  while (!lock_.try_lock()) {
    if (std::chrono::steady_clock::now() - begin > patience) {
      wanted_.fetch_sub(1, std::memory_order_relaxed);
      return false;
    }
    sched_yield();
  }
  const NoHandler quiet;
  wanted_.fetch_sub(1, std::memory_order_relaxed);
  take_intake();
  take_feeds();
  int open = 0;
  const auto count = [&](const Operation& operation) {
    ++open;
    visit(operation);
  };
  for (const Operation* const operation : singles_) count(*operation);
  for (const Operation* const operation : groups_) count(*operation);
  for (Feed* const feed : feeds_) feed->for_each(count);
  look(quiet.is_sure() && has_open(open));
  lock_.unlock();
  return true;
}

}  // namespace imbrex::mpi
