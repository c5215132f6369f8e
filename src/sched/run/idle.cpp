// SPDX-License-Identifier: BSD-3-Clause
#include "sched/run/idle.hpp"

#include <sched.h>

#include <utility>

#include "sched/run/ready.hpp"

namespace imbrex::sched {

using trace::Activity;

namespace {

// While something is outstanding, one idle thread at a time polls for all. It holds `watched`, but
// not while it naps.
class Watch {
 public:
  explicit Watch(Worker& worker) noexcept : worker_(worker) {}
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // True if this thread must poll now. `fresh`: it has just become idle, or was woken; it then also
  // takes the watch of a thread that naps.
  bool hold(const bool fresh) noexcept {
    RuntimeState& runtime = *worker_.runtime;
    if (runtime.polling(worker_) == Polling::none) {
      drop();
    } else if (!held_ && !runtime.watched.load(std::memory_order_relaxed) &&
               (fresh || !runtime.somebody_naps())) {
      held_ = !runtime.watched.exchange(true, std::memory_order_acquire);
    }
    return held_;
  }

  // Between the two calls any thread that becomes idle may take the watch, and threads that fall
  // asleep rely on this one to poll soon. REQUIRES: hold() has returned true.
  void begin_nap() noexcept {
    worker_.runtime->napping.fetch_add(1, std::memory_order_relaxed);
    drop();  // release: a thread that sees `watched` false sees the nap, too
  }
  void end_nap() noexcept {
    static_cast<void>(hold(true));
    worker_.runtime->napping.fetch_sub(1, std::memory_order_relaxed);
  }

  // Call it before the worker turns to a task: a sleeper takes over, unless one has been woken
  // since there were `sleepers` of them, or a wake-up is owed. The woken worker polls, or passes
  // its wake-up on.
  void hand_over(const int sleepers) noexcept {
    if (!held_) return;
    drop();
    if (worker_.owes_wake_up) return;
    if (worker_.runtime->parking.asleep() >= sleepers) let_another_poll(worker_);
  }

  void drop() noexcept {
    if (!held_) return;
    held_ = false;
    worker_.runtime->watched.store(false, std::memory_order_release);
  }

 private:
  Worker& worker_;
  bool held_ = false;
};

// True if there are tasks that this worker did not get: their owner held the lock, or the worker
// pauses after a theft that was not worth it.
bool others_have_work(const Worker& worker) noexcept {
  return (worker.queues != nullptr || worker.only_queue != nullptr) && worker.some_ready();
}

// The pause between two looks of an idle worker. A poll takes as long as a pause.
void take_breath(const Worker& worker, const int round, const bool polls) noexcept {
  const RuntimeState& runtime = *worker.runtime;
  const int rounds = worker.joined ? 16 : 64;  // the kernel may have put two threads on one
                                               // processor
  if (runtime.shared || runtime.workers_share() || round % rounds == rounds - 1) {
    sched_yield();
  } else if (!polls) {
    for (int pause = 0; pause < 8; ++pause) base::pause();
  }
}

// Polls, and tells `silence` how long the poll took. True if the poll found something.
bool poll_in_silence(Worker& worker, Silence& silence, const bool after_nap) noexcept {
  const RuntimeState& runtime = *worker.runtime;
  const std::uint64_t begin = base::ticks();
  const bool found = poll(worker, true) > 0;
  const std::uint64_t end = base::ticks();
  const std::uint64_t usual = runtime.poll_gap.load(std::memory_order_relaxed) / polls_share;
  if (found) {
    silence.end(end);
  } else {
    silence.note_poll(end, {.spent = end - begin, .usual = usual, .after_nap = after_nap});
  }
  return found;
}

// As poll_in_silence(), but reads no clock while the silence is short.
bool poll_for(Worker& worker, Silence& silence, const std::uint64_t now) noexcept {
  if (silence.is_long(now)) return poll_in_silence(worker, silence, false);
  const bool found = poll(worker, true) > 0;
  if (found) silence.end(now);
  return found;
}

// Announces a sleep, and looks for a task once more. The reason of an earlier wake-up is among what
// this function finds, so nothing is owed any more.
Task* prepare_to_sleep(Worker& worker) noexcept {
  if (worker.queues != nullptr) worker.queues->close();
  worker.drowsy = true;
  worker.runtime->parking.prepare(worker.id);
  worker.owes_wake_up = false;
  return find_claimed(worker, true);
}
// Takes the announcement back: another thread may have chosen this worker meanwhile.
void stay_awake(Worker& worker) noexcept {
  if (!worker.drowsy) return;
  worker.drowsy = false;
  if (!worker.runtime->parking.cancel(worker.id)) worker.owes_wake_up = true;
}
// True if woken.
bool fall_asleep(Worker& worker, const std::uint64_t timeout_us) noexcept {
  worker.drowsy = false;
  worker.owes_wake_up = worker.runtime->parking.sleep(worker.id, timeout_us);
  return worker.owes_wake_up;
}

// Polls once, and sleeps for `us` at most unless the poll finds something or there is a task, which
// it returns. docs/design/progress.md says why no wake-up is lost.
Task* nap(Worker& worker, Watch& watch, Silence& silence, const std::uint64_t us) noexcept {
  RuntimeState& runtime = *worker.runtime;
  watch.begin_nap();
  Task* const task = prepare_to_sleep(worker);
  if (task != nullptr || runtime.stopping.load(std::memory_order_acquire) ||
      others_have_work(worker)) {
    stay_awake(worker);
    silence.end(base::ticks());
  } else if (poll_in_silence(worker, silence, true)) {
    stay_awake(worker);
  } else if (worker.drowsy && fall_asleep(worker, us)) {  // else the poll ran a function of the
                                                          // program
    silence.end(base::ticks());
  }
  watch.end_nap();
  return task;
}

// An idle worker that is awake: it looks for a task, polls for all if nobody else does, and pauses.
class LookOut {
 public:
  // `fresh`: see Watch::hold().
  LookOut(Worker& worker, const bool fresh) noexcept
      : worker_(worker), runtime_(*worker.runtime), watch_(worker), fresh_(fresh),
        begin_(base::ticks()), silence_(runtime_.naps, begin_) {
    worker.back_at_once = begin_ - worker.left_idle < 40 * runtime_.brief;  // cost of a wake-up
  }

  // Returns a task as soon as there is one. Null if the runtime stops, or if this worker should
  // sleep.
  Task* run() noexcept {
    for (int round = 0;; ++round) {
      now_ = base::ticks();
      if (Task* const task = find()) return task;
      sleepers_ = runtime_.parking.asleep();
      if (seek(worker_)) continue;
      polls_ = watch_.hold(fresh_);
      const bool tired = is_tired();
      const bool sleeps = tired && !polls_ && !others_have_work(worker_);
      if (sleeps || runtime_.stopping.load(std::memory_order_acquire)) {
        watch_.drop();
        return nullptr;
      }
      if (polls_ && poll_or_nap()) continue;
      if (tired) {
        sched_yield();
      } else {
        take_breath(worker_, round, polls_);
      }
    }
  }

 private:
  [[nodiscard]] std::uint64_t elapsed() const noexcept { return now_ - begin_; }

  [[nodiscard]] Task* find() noexcept {
    // After a while it also takes a task that its owner would run at once.
    const bool eager = elapsed() >= runtime_.patience ||
                       runtime_.oversubscribed.load(std::memory_order_relaxed);
    Task* const task = claimed_ != nullptr ? claimed_ : find_claimed(worker_, eager);
    if (task == nullptr) return nullptr;
    watch_.hand_over(sleepers_);
    worker_.left_idle = now_;
    return task;
  }

  // Whether another thread should have this processor.
  [[nodiscard]] bool is_tired() noexcept {
    // A polling thread without a processor of its own shall have this one.
    const bool spins = runtime_.in_place.load(std::memory_order_relaxed) || runtime_.reserved >= 0;
    if (elapsed() > (spins ? runtime_.spin_ticks : 0)) return true;
    if (worker_.joined && (runtime_.crowded() || !runtime_.may_spin(last_look_))) return true;
    return !polls_ && runtime_.watched.load(std::memory_order_relaxed) &&
           runtime_.oversubscribed.load(std::memory_order_relaxed);
  }

  // True if it shall look for a task at once.
  bool poll_or_nap() noexcept {
    runtime_.last_poll.store(now_, std::memory_order_relaxed);
    // No other worker could run a short task sooner.
    const bool alone = runtime_.processors.size() == 1;
    worker_.keeps = alone && worker_.back_at_once ? UINT32_MAX : 1;
    bool found = true;
    if (const std::uint64_t us = silence_.nap_us(now_); us != 0) {
      claimed_ = nap(worker_, watch_, silence_, us);
    } else {
      found = poll_for(worker_, silence_, now_);
    }
    worker_.keeps = 0;
    return found;
  }

  Worker& worker_;
  RuntimeState& runtime_;
  Watch watch_;
  const bool fresh_;
  const std::uint64_t begin_;
  Silence silence_;
  std::uint64_t now_ = 0;        // in ticks, when this round has begun
  bool polls_ = false;           // in this round
  int sleepers_ = 0;             // before this worker looked last whether there is a task
  std::uint64_t last_look_ = 0;  // of RuntimeState::may_spin()
  Task* claimed_ = nullptr;      // found after a nap
};

// `woken` is set to true if another thread has ended the sleep.
Task* sleep(Worker& worker, bool& woken) noexcept {
  RuntimeState& runtime = *worker.runtime;
  constexpr std::uint64_t look_us = 200'000;  // how often worker 0 looks for a stall
  Task* const task = prepare_to_sleep(worker);
  if (task != nullptr || runtime.stopping.load(std::memory_order_acquire) ||
      (!runtime.watched.load(std::memory_order_acquire) && !runtime.somebody_naps() &&
       runtime.polling(worker) != Polling::none) ||
      others_have_work(worker)) {
    stay_awake(worker);
    return task;
  }
  runtime.above.before_sleep(runtime);
  worker.parked.store(true, std::memory_order_release);
  woken = fall_asleep(worker, worker.id == 0 ? look_us : 0);
  worker.parked.store(false, std::memory_order_relaxed);
  if (!woken && worker.id == 0) runtime.above.nothing_to_do(runtime);
  return nullptr;
}

}  // namespace

void pass_wake_up_on(Worker& worker) noexcept {
  worker.owes_wake_up = false;
  base::Parking& parking = worker.runtime->parking;
  if (!parking.some_asleep()) return;
  // A policy that takes all wakes the worker that it has chosen.
  if (!worker.runtime->one_at_a_time) {
    for (const Membership* place = worker.membership; place != nullptr; place = place->outer) {
      if (place->group->some_ready()) place->group->wake_member(parking);
    }
  }
  let_another_poll(worker);
}

void turn_to_program(Worker& worker) noexcept {
  if (worker.task != nullptr) return;
  stay_awake(worker);
  if (std::exchange(worker.keeps, 0) > 1) worker.owes_wake_up = true;  // it may have kept some
  if (worker.owes_wake_up) pass_wake_up_on(worker);
}

Task* idle(Worker& worker) noexcept {
  RuntimeState& runtime = *worker.runtime;
  worker.recorder.enter(Activity::idle);
  Task* task = nullptr;
  bool fresh = true;
  while (task == nullptr && !runtime.stopping.load(std::memory_order_acquire)) {
    task = LookOut(worker, fresh).run();
    if (task == nullptr) task = sleep(worker, fresh);
  }
  if (worker.owes_wake_up) pass_wake_up_on(worker);
  worker.recorder.enter(Activity::overhead);
  return task;
}

namespace {

// Polls once, and waits for the bell for `us` at most unless the poll finds something. True if the
// bell was rung.
bool nap_at_bell(Worker& worker, Watch& watch, Silence& silence, const std::uint64_t us) noexcept {
  watch.begin_nap();
  base::heavy_fence();  // as in Parking::prepare()
  const bool rung = !poll_in_silence(worker, silence, true) && worker.bell.wait(1000 * us);
  watch.end_nap();
  return rung || worker.bell.was_notified();
}

// True once the bell has been rung; false when another thread polls, or nothing needs a poll.
// `fresh`: see Watch::hold().
bool poll_for_all(Worker& worker, const bool fresh) noexcept {
  RuntimeState& runtime = *worker.runtime;
  Watch watch(worker);
  // Completions may run destructors of the program, which belong to no task.
  Task* const waiting = std::exchange(worker.task, nullptr);
  const std::uint64_t begin = base::ticks();
  bool rung = false;
  int sleepers = 0;
  Silence silence(runtime.naps, begin);
  while (!rung && !runtime.stopping.load(std::memory_order_relaxed) && watch.hold(fresh)) {
    const std::uint64_t now = base::ticks();
    runtime.last_poll.store(now, std::memory_order_relaxed);
    sleepers = runtime.parking.asleep();
    if (const std::uint64_t us = silence.nap_us(now); us != 0) {
      rung = nap_at_bell(worker, watch, silence, us);
      continue;
    }
    const bool found = poll_for(worker, silence, now);
    rung = worker.bell.was_notified();
    if (!rung && !found && now - begin > runtime.spin_ticks) sched_yield();
  }
  watch.hand_over(sleepers);
  worker.task = waiting;
  return rung;
}

}  // namespace

void poll_until_rung(Worker& worker) noexcept {
  constexpr std::uint64_t look_us = 1000;  // the polling thread may turn to a long task
  const RuntimeState& runtime = *worker.runtime;
  bool fresh = true;
  for (bool rung = worker.bell.was_notified(); !rung;) {
    if (poll_for_all(worker, std::exchange(fresh, false))) return;
    const bool looks = !runtime.stopping.load(std::memory_order_relaxed) &&
                       runtime.polling(worker) != Polling::none;
    worker.parked.store(true, std::memory_order_release);
    rung = worker.bell.wait(looks ? 1000 * look_us : 0);
    worker.parked.store(false, std::memory_order_relaxed);
  }
}

}  // namespace imbrex::sched
