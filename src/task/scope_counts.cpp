// SPDX-License-Identifier: BSD-3-Clause
#include "task/scope_counts.hpp"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <set>
#include <utility>

#include "base/spin_lock.hpp"
#include "imbrex/error.hpp"
#include "task/scope_stop.hpp"

namespace imbrex::task {

// The owner does not wait, so no field is negative. relaxed: the owner's wait, the next
// subtraction, also acquires the writes before this one.
void Scope::forget_finished() noexcept {
  const std::uint64_t known = finished.load(std::memory_order_relaxed);
  finished.fetch_sub(known, std::memory_order_relaxed);
  spawned -= known;
}

Scope& Scope::for_failures() noexcept {
  const bool of_thread = finish == nullptr && owner != nullptr && owner->is_root();
  return of_thread && owner->scope != nullptr ? *owner->scope : *this;
}

namespace {

// The scopes that have a log. A holder of this lock may lock a scope; a holder of a scope's lock
// does not take this lock.
struct WithLog {
  base::LastingLock<std::mutex> lock;
  std::set<Scope*> scopes IMBREX_GUARDED_BY(lock);
};
WithLog& with_log() noexcept {
  static WithLog* const never_destroyed = new WithLog;  // used last by exit()
  return *never_destroyed;
}
[[maybe_unused]] const WithLog& with_log_at_load = with_log();

}  // namespace

FailureLog& Scope::lock_log() noexcept {
  lock.lock();
  if (failures != nullptr) return *failures;
  lock.unlock();
  WithLog& all = with_log();
  const std::lock_guard guard(all.lock);
  lock.lock();
  if (failures == nullptr) {  // no other thread was faster
    failures = new FailureLog;
    all.scopes.insert(this);
  }
  return *failures;
}

void Scope::end_log() noexcept {
  WithLog& all = with_log();
  const std::lock_guard guard(all.lock);
  all.scopes.erase(this);
  delete std::exchange(failures, nullptr);
}

bool Scope::is_by_stop(Failure& failure) const noexcept {
  if (stop == nullptr || !stop->is_requested() || cause_of(failure).error == nullptr) return false;
  try {
    std::rethrow_exception(cause_of(failure).error);
  } catch (const Cancelled&) {
    return true;
  } catch (...) {
    return false;
  }
}

[[gnu::noinline]] void Scope::fail(Failure& failure) noexcept {
  if (is_by_stop(failure)) return;
  Scope& scope = for_failures();
  FailureLog::Left left;
  {
    FailureLog& log = scope.lock_log();
    const std::lock_guard guard(scope.lock, std::adopt_lock);
    left = log.add(failure);
  }
  scope.count(left);
  if (stop != nullptr && stop->is_of(finish)) stop->note_failure();
}

[[gnu::noinline]] void Scope::fail_with(const Scope& inner) noexcept {
  Scope& scope = for_failures();
  FailureLog::Left left;
  {
    FailureLog& log = scope.lock_log();
    const std::lock_guard guard(scope.lock, std::adopt_lock);
    left = log.add_all(inner.last_log());
  }
  scope.count(left);
}

void Scope::count(const FailureLog::Left& left) noexcept {
  if (left.causes.empty() && left.counted == 0) return;
  if (finish == nullptr) return FailureLog::count_lost(left);
  FailureLog& log = finish->lock_log();  // it lives, because it waits for all tasks that are
                                         // counted here
  const std::lock_guard guard(finish->lock, std::adopt_lock);
  log.count(left);
}

Untold Scope::take_all_untold() noexcept {
  WithLog& all = with_log();
  const std::lock_guard guard(all.lock);
  Untold untold;
  for (Scope* const scope : all.scopes) {
    Untold part = scope->take_untold();
    untold.others += part.others;
    std::ranges::move(part.texts, std::back_inserter(untold.texts));
  }
  return untold;
}

void Scope::forget_all() noexcept {
  WithLog& all = with_log();
  const std::lock_guard guard(all.lock);
  all.scopes.clear();
}

std::exception_ptr Scope::take_error() noexcept {
  const std::lock_guard guard(lock);
  return failures == nullptr ? nullptr : failures->take();
}

Untold Scope::take_untold() noexcept {
  const std::lock_guard guard(lock);
  return failures == nullptr ? Untold() : failures->take_untold();
}

std::string describe(const Scope& scope) {
  if (scope.kind == detail::ScopeKind::taskgroup) {
    return "a taskgroup of OpenMP" + detail::in_parentheses(scope.where);
  }
  const bool repeats = scope.kind == detail::ScopeKind::iterate ||
                       scope.kind == detail::ScopeKind::recording;
  return (repeats ? "the iterate() at " : "the finish() at ") + detail::text_of(scope.where);
}

}  // namespace imbrex::task
