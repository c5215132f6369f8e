// SPDX-License-Identifier: BSD-3-Clause
// The table of handles with a waiting task, and the test whether a handle in it still stands for
// the request that the task waits for.
#include "mpi/check/double_wait.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <array>
#include <cstdio>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include "base/guarded.hpp"
#include "base/spin_lock.hpp"
#include "imbrex/detail/observation.hpp"
#include "mpi/abi/completion_calls.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/mpi_errors.hpp"

namespace imbrex::mpi::check {

namespace {

struct WaitEntry {
  const char* call;
  detail::TaskLabel task;
  const Waiting* waiting = nullptr;  // the Waiting that has entered it, and takes it out
};

// Thread safety: any thread, under the lock. It may be taken while the engine's lock is held, not
// the other way round.
struct Shard {
  base::SpinLock lock;
  std::map<MPI_Request, WaitEntry> entries IMBREX_GUARDED_BY(lock);
};
Shard& shard_of(MPI_Request request) {
  constexpr std::size_t count = 64;
  static auto& shards = *new std::array<Shard, count>;  // tasks may wait while static objects are
                                                        // destroyed
  return shards[(std::hash<MPI_Request>()(request) >> 4) % count];  // many handles are addresses
}

int refuse(const WaitEntry& fresh, const WaitEntry& earlier) {
  std::fprintf(stderr, "imbrex: %s\n",
               fmt::format("{} in task {} waits for a request that {} in task {} waits for "
                           "already: let one task wait for the request, and the other task for "
                           "that task",
                           fresh.call, detail::describe(fresh.task), earlier.call,
                           detail::describe(earlier.task))
                   .c_str());
  return raise_error({.name = fresh.call, .comm = MPI_COMM_WORLD}, MPI_ERR_REQUEST);
}

// One wait for one request.
struct Claim {
  MPI_Request request;
  const WaitEntry& entry;
  bool enters;           // it shall be in the table, unless its task is already
  bool entered = false;
};

enum class Answer : std::uint8_t {
  granted,
  refused,    // another task waits for it
  mpi_knows,  // MPI may have given the handle back: a thread asks it at this time
  engine_knows
};

// The result for a claim that meets the entry of another task. `found`: whether the engine's lists
// have the request, read under its lock; null: not checked.
Answer judge(const Waiting& earlier, const bool* found) noexcept {
  switch (earlier.state()) {
    case Waiting::State::open:
      return Answer::refused;
    case Waiting::State::over:
      return Answer::granted;
    case Waiting::State::at_engine:
      if (found == nullptr) return Answer::engine_knows;
      return *found ? Answer::refused : Answer::granted;
    case Waiting::State::asked:
      break;
  }
  return Answer::mpi_knows;
}

void grant(Shard& shard, Claim& claim) IMBREX_REQUIRES(shard.lock) {
  if (!claim.enters) return;
  shard.entries.insert_or_assign(claim.request, claim.entry);
  claim.entered = true;
}

// Sets `earlier` if the claim is refused.
Answer try_to_grant(Claim& claim, const bool* found, std::optional<WaitEntry>* earlier) {
  Shard& shard = shard_of(claim.request);
  const std::lock_guard guard(shard.lock);
  const auto place = shard.entries.find(claim.request);
  if (place == shard.entries.end()) {
    grant(shard, claim);
    return Answer::granted;
  }
  const WaitEntry& there = place->second;
  if (there.task.id == claim.entry.task.id) {
    if (there.waiting->state() == Waiting::State::over) grant(shard, claim);
    return Answer::granted;
  }
  const Answer answer = judge(*there.waiting, found);
  if (answer == Answer::refused) *earlier = there;
  if (answer == Answer::granted) grant(shard, claim);
  return answer;
}

// try_to_grant() by the engine's lists, under its lock, so that no operation ends meanwhile.
Answer ask_engine(Claim& claim, std::optional<WaitEntry>* earlier) {
  bool found = false;
  Answer answer = Answer::engine_knows;
  engine().hold_still(
      [&](const Operation& operation) {
        found = found || (operation.ask == nullptr && operation.request == claim.request);
      },
      [&](bool) { answer = try_to_grant(claim, &found, earlier); });
  return answer;
}

// Returns the task that waits for the request already, if it is another one. In doubt returns none.
std::optional<WaitEntry> find_earlier(Claim& claim) {
  std::optional<WaitEntry> earlier;
  Answer answer = try_to_grant(claim, nullptr, &earlier);
  // A call of MPI is short, except in a thread that blocks there. The retries are for tasks that
  // really wait for one request: no task is refused because they were too few.
  constexpr int looks_max = 1'000;
  for (int look = 0; answer == Answer::mpi_knows && look < looks_max; ++look) {
    sched_yield();
    answer = try_to_grant(claim, nullptr, &earlier);
  }
  // A callback of MPI may hold what the engine waits for, and belongs to no task.
  if (answer == Answer::engine_knows && detail::in_task()) answer = ask_engine(claim, &earlier);
  if (answer == Answer::mpi_knows || answer == Answer::engine_knows) {
    Shard& shard = shard_of(claim.request);
    const std::lock_guard guard(shard.lock);
    grant(shard, claim);
  }
  return earlier;
}

void take_out(const MPI_Request request, const Waiting* const waiting) noexcept {
  Shard& shard = shard_of(request);
  const std::lock_guard guard(shard.lock);
  const auto place = shard.entries.find(request);
  if (place != shard.entries.end() && place->second.waiting == waiting) shard.entries.erase(place);
}

// MPICH gives one handle to all requests that are complete at once, so many tasks may wait for it.
// Asked only if another task waits, because this call frees the request of a file in MPICH 5.
bool may_be_shared(MPI_Request request) noexcept { return completion::is_complete(request); }

}  // namespace

void forget_waits(MPI_Request request) noexcept {
  Shard& shard = shard_of(request);
  const std::lock_guard guard(shard.lock);
  shard.entries.erase(request);
}

int second_wait(const char* const call, MPI_Request request) {
  const WaitEntry fresh{call, detail::current_task()};
  Claim claim{.request = request, .entry = fresh, .enters = false};
  const std::optional<WaitEntry> earlier = find_earlier(claim);
  return earlier && !may_be_shared(request) ? refuse(fresh, *earlier) : MPI_SUCCESS;
}

void Waiting::enter(const int count, const MPI_Request requests[]) {
  if (!requests_.empty()) return;
  const WaitEntry fresh{call_, detail::current_task(), this};
  for (int i = 0; i < count; ++i) {
    if (requests[i] == MPI_REQUEST_NULL) continue;
    Claim claim{.request = requests[i], .entry = fresh, .enters = true};
    const std::optional<WaitEntry> earlier = find_earlier(claim);
    if (claim.entered) requests_.push_back(requests[i]);
    if (!earlier || may_be_shared(requests[i])) continue;
    code_ = refuse(fresh, *earlier);
    return;
  }
}

void Waiting::keep_only(const int count, const MPI_Request still[]) noexcept {
  if (requests_.empty()) return;
  const std::set<MPI_Request> open(still, still + count);
  std::erase_if(requests_, [&](const MPI_Request request) {
    if (open.contains(request)) return false;
    take_out(request, this);
    return true;
  });
}

void Waiting::end() noexcept {
  for (const MPI_Request request : requests_) take_out(request, this);
}

}  // namespace imbrex::mpi::check
