// SPDX-License-Identifier: BSD-3-Clause
#include "sched/run/idle.hpp"

#include <sched.h>
#include <sys/resource.h>

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

bool has_work(const Worker& worker) noexcept { return worker.some_ready() || worker.has_others(); }

// True if there are tasks that this worker did not get: their owner held the lock, or the worker
// pauses after a theft that was not worth it.
bool others_have_work(const Worker& worker) noexcept {
  if (worker.seat.away) return has_work(worker);
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

// ---- processors that ranks lend to each other --------------------------------------------------

// A worker that has lent its processor takes it back if there is something to run. True if this
// process holds the processor. Meanwhile spare workers get free processors of other ranks.
bool take_processor_back(Worker& worker) noexcept {
  if (!has_work(worker)) return false;
  RuntimeState& runtime = *worker.runtime;
  Lending& lending = *runtime.lending;
  lending.take_back_if_free(worker.seat);
  if (!worker.seat.away) return true;
  lending.borrow_for(runtime.groups.ready());
  return lending.take_back(worker.seat, [&worker, &runtime] {
    return has_work(worker) && !runtime.stopping.load(std::memory_order_acquire);
  });
}

// ---- sleep -------------------------------------------------------------------------------------

// Announces a sleep, and looks for a task once more. The reason of an earlier wake-up is among what
// this function finds, so nothing is owed any more.
Task* prepare_to_sleep(Worker& worker) noexcept {
  if (worker.queues != nullptr) worker.queues->close();
  worker.drowsy = true;
  worker.runtime->parking.prepare(worker.id);
  worker.owes_wake_up = false;
  return worker.seat.away ? nullptr : find_claimed(worker, true);
}
// Takes the announcement back: another thread may have chosen this worker meanwhile.
void stay_awake(Worker& worker) noexcept {
  if (!worker.drowsy) return;
  worker.drowsy = false;
  if (!worker.runtime->parking.cancel(worker.id)) worker.owes_wake_up = true;
}
// True if woken. The worker's processor is lent from here on.
bool fall_asleep(Worker& worker, const std::uint64_t timeout_us) noexcept {
  worker.drowsy = false;
  if (worker.runtime->lending != nullptr) worker.runtime->lending->lend(worker.seat);
  worker.owes_wake_up = worker.runtime->parking.sleep(worker.id, timeout_us);
  return worker.owes_wake_up;
}

// Polls once, and sleeps for `us` at most unless the poll finds something or there is a task, which
// it returns. docs/design/progress.md says why no wake-up is lost.
Task* nap(Worker& worker, Watch& watch, Silence& silence, const std::uint64_t us) noexcept {
  RuntimeState& runtime = *worker.runtime;
  watch.begin_nap();
  Task* task = prepare_to_sleep(worker);
  if (task != nullptr || runtime.stopping.load(std::memory_order_acquire) ||
      others_have_work(worker)) {
    stay_awake(worker);
    silence.end(base::ticks());
  } else if (poll_in_silence(worker, silence, true)) {
    stay_awake(worker);
  } else {
    // The poll may have run a function of the program, and has then taken the announcement back.
    // Another rank shall not wait for the processor because of that. Whatever becomes outstanding
    // from here on waits for one nap at most.
    if (!worker.drowsy && runtime.lending != nullptr) task = prepare_to_sleep(worker);
    if (task != nullptr || others_have_work(worker)) {
      stay_awake(worker);
    } else if (worker.drowsy && fall_asleep(worker, us)) {
      silence.end(base::ticks());
    }
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
    if (worker_.seat.away && !take_processor_back(worker_)) return nullptr;
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
    if (worker_.joined && (runtime_.crowded() || !may_spin(worker_, last_look_))) return true;
    if (runtime_.lending != nullptr && lends_now()) return true;
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
    if (const std::uint64_t us = nap_us(); us != 0) {
      claimed_ = nap(worker_, watch_, silence_, us);
    } else {
      found = poll_for(worker_, silence_, now_);
    }
    worker_.keeps = 0;
    return found;
  }

  [[nodiscard]] bool lends_now() const noexcept {
    return worker_.seat.away || runtime_.lending->lends_now(worker_.seat, elapsed(), polls_);
  }

  // The length of the nap that it takes now, lending its processor or not; 0: none.
  [[nodiscard]] std::uint64_t nap_us() noexcept {
    const std::uint64_t us = silence_.nap_us(now_);
    if (runtime_.lending == nullptr) return us;
    if (worker_.seat.away) runtime_.lending->take_back_if_free_unless_wanted(worker_.seat);
    if (!worker_.seat.away && !lends_now()) return us;
    const std::uint64_t spins = worker_.seat.away ? 0 : runtime_.spin_ticks;
    return std::max(us, silence_.pause_us(now_, spins));
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
  std::uint64_t last_look_ = 0;  // of may_spin()
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

namespace {

// A spare worker that this process has a processor for looks for a task, for as long as an idle
// worker spins at most.
Task* look_out_on_loan(Worker& worker) noexcept {
  const RuntimeState& runtime = *worker.runtime;
  worker.recorder.enter(Activity::idle);
  const std::uint64_t begin = base::ticks();
  for (std::uint64_t now = begin; now - begin <= runtime.spin_ticks; now = base::ticks()) {
    if (runtime.stopping.load(std::memory_order_acquire) || must_leave(worker)) return nullptr;
    if (Task* const task = find_claimed(worker, now - begin >= runtime.patience)) return task;
    for (int pause = 0; pause < 8; ++pause) base::pause();
  }
  return nullptr;
}

// Tasks that are tied to a spare worker go on although its processor has gone back, for they can
// run nowhere else: if it is not free within a millisecond, beside its owner.
Task* run_tied_anyway(Worker& worker) noexcept {
  Lending& lending = *worker.runtime->lending;
  constexpr std::uint64_t patience_ns = 1'000'000;
  const std::uint64_t begin = base::monotonic_ns();
  while (!lending.borrow(worker.seat) && !lending.begin_loan(worker.seat)) {
    if (base::monotonic_ns() - begin > patience_ns) break;
    lending.await(worker.seat, patience_ns / 4);
  }
  return find_claimed(worker, true);
}

// Its tasks are left to other workers.
void give_processor_back(Worker& worker) noexcept {
  RuntimeState& runtime = *worker.runtime;
  LocalQueues* const queues = worker.membership->group->policy->local_queues(
      worker.membership->index);
  if (queues != nullptr) queues->close();
  runtime.lending->give_back(worker.seat);
  if (worker.some_ready()) pass_wake_up_on(worker);
}

// idle() for a spare worker: it sleeps at its bell in the table, where another process or a worker
// of this one wakes it when this process has got its processor.
[[gnu::noinline]] Task* idle_as_spare(Worker& worker) noexcept {
  RuntimeState& runtime = *worker.runtime;
  Task* task = nullptr;
  while (task == nullptr && !runtime.stopping.load(std::memory_order_acquire)) {
    if (runtime.lending->begin_loan(worker.seat)) {
      task = look_out_on_loan(worker);
      if (task == nullptr) give_processor_back(worker);
    } else if (worker.has_others()) {
      task = run_tied_anyway(worker);
    } else {
      worker.recorder.enter(Activity::away);
      worker.parked.store(true, std::memory_order_release);
      runtime.lending->await(worker.seat, 0);
      worker.parked.store(false, std::memory_order_relaxed);
    }
  }
  worker.recorder.enter(Activity::overhead);
  return task;
}

}  // namespace

bool lost_processor(Worker& worker) noexcept {
  rusage used{};
  if (getrusage(RUSAGE_THREAD, &used) != 0) return true;
  return std::exchange(worker.displacements, used.ru_nivcsw) != used.ru_nivcsw;
}

Task* idle(Worker& worker) noexcept {
  if (worker.seat.spare) [[unlikely]] return idle_as_spare(worker);
  RuntimeState& runtime = *worker.runtime;
  worker.recorder.enter(Activity::idle);
  if (runtime.lending != nullptr) runtime.lending->want_nothing();
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
