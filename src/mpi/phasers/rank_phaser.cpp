// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/phasers/rank_phaser.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <utility>

#include "imbrex/detail/observation.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "mpi/engine/lifetime.hpp"
#include "mpi/engine/mpi_errors.hpp"

namespace imbrex::mpi::phasers {

namespace {

constexpr const char* phase_call = "a phase of an MpiPhaser";
constexpr const char* farewell_call = "the end of an MpiPhaser";

// The time that a rank waits for a phase before it asks whether others have left; doubles each
// time.
constexpr std::chrono::milliseconds patience_first{100};
constexpr std::chrono::milliseconds patience_most{10'000};
constexpr unsigned asks_for_each_look = 32;  // asks between two reads of the clock

// A rank, and its number of phases: the least value belongs to the rank with the fewest phases.
constexpr int rank_bits = 24;
std::int64_t pack(const std::uint64_t phases, const int rank) noexcept {
  return (static_cast<std::int64_t>(phases) << rank_bits) | rank;
}
std::uint64_t phases_of(const std::int64_t packed) noexcept {
  return static_cast<std::uint64_t>(packed >> rank_bits);
}
int rank_of(const std::int64_t packed) noexcept {
  return static_cast<int>(packed & ((std::int64_t{1} << rank_bits) - 1));
}

// ---- all that have not ended -------------------------------------------------------------------

struct Living {
  std::mutex lock;
  std::vector<RankPhaser*> all IMBREX_GUARDED_BY(lock);
};
Living& living() {
  static Living& the_living = *new Living;  // used while static destructors run
  return the_living;
}
void forget(const RankPhaser& it) noexcept {
  const std::lock_guard guard(living().lock);
  std::erase(living().all, &it);
}

}  // namespace

RankPhaser::RankPhaser(const MpiPhaserOptions& options, std::string its_name)
    : name_(std::move(its_name)), fuzzy_(options.fusion == Fusion::fuzzy),
      may_leave_(options.ranks_may_leave) {
  for (PhaserOperation* const one : {&collective_, &giving_up_, &farewell_}) one->owner = this;
  collective_.ask = &RankPhaser::ask_collective;
  collective_.complete = &RankPhaser::collective_ended;
  giving_up_.call = {.name = phase_call, .at_once = true};
  giving_up_.ask = [](Operation&) { return true; };
  giving_up_.complete = &RankPhaser::gave_up;
  farewell_.ask = &RankPhaser::ask_rounds;
  farewell_.complete = &RankPhaser::rounds_ended;
}

RankPhaser::~RankPhaser() { forget(*this); }

void RankPhaser::begin(detail::PhaserState& phaser, Channel channel) noexcept {
  collective_.call = {
      .name = phase_call, .comm = channel.phases, .kind = Kind::collective, .throws = true};
  farewell_.call = {.name = farewell_call,
                    .comm = channel.farewells,
                    .kind = Kind::collective,
                    .at_once = true,
                    .throws = true};
  phaser_ = &phaser;
  channel_ = std::move(channel);
  early = fuzzy_ && has_others();
  is_local = !has_others();
  const std::lock_guard guard(living().lock);
  living().all.push_back(this);
}

// ---- phases ------------------------------------------------------------------------------------

// True for the thread that begins the phase, which owns the collectives from then on. `halves` as
// in (3); 0: the phase belongs to other ranks.
bool RankPhaser::claim(const std::uint64_t phase, const int halves) noexcept {
  {
    const std::lock_guard guard(lock_);
    if (begun_ != phase || under_way_) return false;
    ++begun_;
    under_way_ = true;
    halves_.store(halves, std::memory_order_relaxed);
  }
  if (halves != 0) detail::retain(*phaser_);  // until end_phase()
  return true;
}

void RankPhaser::prepare(detail::AccumulatorBase* const accumulators) {
  if (exchange_) return;
  exchange_.emplace(channel_->rank, channel_->size, accumulators);
  signature_[0] = exchange_->signature();
  signature_[1] = ~signature_[0];
}

// REQUIRES: claimed.
void RankPhaser::start_phase(const std::uint64_t phase, const bool alive) noexcept {
  phase_ = phase;
  step_ = 0;
  mine_alive_ = alive ? 1 : 0;
  patience_ = patience_first;
  late_at_ = {};
}

std::size_t RankPhaser::collectives() const noexcept {
  return (phase_ == 0 ? 1u : 0u) + (may_leave_ ? 1u : 0u);
}

std::size_t RankPhaser::steps() const noexcept {
  const bool meets = exchange_->has_accumulators() || collectives() == 0;
  return collectives() + (meets ? exchange_->rounds() : 0);
}

int RankPhaser::start_step() noexcept {
  const MPI_Comm comm = channel_->phases;
  MPI_Request* const request = &collective_.request;
  if (step_ >= collectives()) return exchange_->start(step_ - collectives(), comm);
  if (phase_ == 0 && step_ == 0) {
    return PMPI_Iallreduce(signature_, signatures_, 2, MPI_UINT64_T, MPI_BAND, comm, request);
  }
  return PMPI_Iallreduce(&mine_alive_, &alive_, 1, MPI_INT64_T, MPI_SUM, comm, request);
}

Outcome RankPhaser::ask_step(int& done) noexcept {
  if (step_ >= collectives()) return exchange_->ask(step_ - collectives(), done);
  return completion::Test(true, &collective_.request, &done, &collective_.status);
}

// No rank waits for the step in flight, and neither does this one.
void RankPhaser::abandon_step() noexcept {
  broken_.store(true, std::memory_order_relaxed);
  if (step_ >= collectives()) exchange_->abandon();
  step_ = steps();
}

// The step in flight is complete.
void RankPhaser::take_step() noexcept {
  if (collective_.code != MPI_SUCCESS) {
    abandon_step();
    if (!given_up_) {
      error_ = std::make_exception_ptr(
          make_error(phase_call, collective_.code,
                     fmt::format("{}, on {}", detail::describe(collective_.task), name_)));
    }
    return;
  }
  const bool agree = signatures_[0] == signature_[0] && signatures_[1] == signature_[1];
  if (phase_ == 0 && step_ == 0 && !agree) {  // all ranks find the same, and none goes on
    step_ = steps();
    error_ = std::make_exception_ptr(Error(fmt::format(
        "imbrex: the ranks do not have the same accumulators on {}: rank {} has {}. All ranks must "
        "make the same accumulators in the same order, before the first phase",
        name_, channel_->rank, exchange_->accumulators())));
    return;
  }
  ++step_;
}

// Carries out one step after the other. True when all are complete; false while one is in flight,
// which then belongs to the engine.
bool RankPhaser::run() noexcept {
  while (step_ < steps()) {
    int done = 0;
    Outcome outcome = MPI_SUCCESS;
    {
      const Callback callback(collective_.call);
      outcome = start_step();
      if (outcome.code == MPI_SUCCESS) outcome = ask_step(done);
    }
    if (done == 0 && outcome.code == MPI_SUCCESS) {
      engine().add(collective_);
      detail::wake_poller();  // the caller goes on, so an idle worker must poll
      return false;
    }
    collective_.task = detail::current_task();
    collective_.take(outcome);
    take_step();
  }
  return true;
}

bool RankPhaser::ask_collective(Operation& self) {
  RankPhaser& it = *static_cast<PhaserOperation&>(self).owner;
  int done = 0;
  const Outcome outcome = it.ask_step(done);
  self.take(outcome);
  if (done != 0 || outcome.code != MPI_SUCCESS) return true;
  it.look_who_left();
  // A collective that has failed on a rank may never be complete: no rank waits for it when all
  // have left.
  it.abandoned_ = it.left_.load(std::memory_order_relaxed) && it.least_.left == 1 &&
                  it.least_.healthy == 0;
  return it.abandoned_;
}

void RankPhaser::collective_ended(Operation& self) noexcept {
  RankPhaser& it = *static_cast<PhaserOperation&>(self).owner;
  if (it.abandoned_) {
    it.abandon_step();
    if (!it.error_) {
      it.error_ = std::make_exception_ptr(Error(fmt::format(
          "imbrex: a phase of {} has failed on another rank", it.name_)));
    }
  } else {
    it.take_step();
  }
  if (it.run()) it.collectives_ended();
}

// True for the second half: acq_rel, since the thread that ends the phase reads the writes of both.
bool RankPhaser::bring_half() noexcept {
  return halves_.fetch_sub(1, std::memory_order_acq_rel) == 1;
}

void RankPhaser::complete_phase() noexcept {
  if (!error_) return exchange_->publish(phase_, over_);
  exchange_->fail(phase_, error_);
  detail::fail_phaser(*phaser_, error_);
}

// REQUIRES: both halves are there. This may be gone after it.
void RankPhaser::end_phase() noexcept {
  detail::PhaserState& phaser = *phaser_;
  complete_phase();
  detail::end_phase(phaser);
  detail::release(phaser);  // of claim()
}

// Ends the collectives of one phase; called by the thread that carried out the last one. This may
// be gone after it: end_phase() may lead to leave(), which then finds nothing in flight.
void RankPhaser::collectives_ended() noexcept {
  const bool has_phase = halves_.load(std::memory_order_relaxed) != 0 && !given_up_;
  bool runs_empty = false;
  {
    const std::lock_guard guard(lock_);
    under_way_ = false;
    runs_empty = left_.load(std::memory_order_relaxed) && (may_leave_ || all_left_);
  }
  if (has_phase && bring_half()) end_phase();
  if (runs_empty) run_empty_phases();
}

void RankPhaser::first_signal(const std::uint64_t phase,
                              detail::AccumulatorBase* const accumulators) noexcept {
  if (accumulators != nullptr || left_.load(std::memory_order_relaxed)) return;
  if (!claim(phase, 2)) return;
  over_ = false;
  prepare(nullptr);
  start_phase(phase, true);
  if (run()) collectives_ended();
}

bool RankPhaser::last_signal(detail::PhaserState& phaser, const std::uint64_t phase,
                             detail::AccumulatorBase* const accumulators,
                             const detail::PhaseFollows follows) noexcept {
  if (!channel_) return true;
  const bool over = follows != detail::PhaseFollows::yes;
  if (left_.load(std::memory_order_relaxed)) {
    detail::fail_phaser(phaser, std::make_exception_ptr(Error(fmt::format(
                                    "imbrex: a phase of {} ends after MPI_Finalize", name_))));
    return true;
  }
  if (!has_others()) {
    for (detail::AccumulatorBase* one = accumulators; one != nullptr; one = one->following) {
      one->end_phase(phase, over);
    }
    return true;
  }
  if (follows == detail::PhaseFollows::none_has_signalled && !may_leave_ &&
      accumulators == nullptr) {
    return true;
  }
  const bool mine = claim(phase, 2);
  if (mine) {
    prepare(accumulators);
    over_ = over;
    exchange_->collect(phase);
    start_phase(phase, !over);
    if (run()) {
      const std::lock_guard guard(lock_);
      under_way_ = false;
      (void)bring_half();
    }
  }
  if (!bring_half()) return false;
  complete_phase();
  detail::release(phaser);  // of claim(); the caller has one
  return true;
}

// ---- the end -----------------------------------------------------------------------------------

void RankPhaser::closed() noexcept {
  if (channel_ && !left_.load(std::memory_order_relaxed)) leave();
}

void RankPhaser::leave() noexcept {
  detail::retain(*phaser_);  // until finish()
  if (!has_others()) {
    left_.store(true, std::memory_order_release);
    return finish();
  }
  prepare(nullptr);          // if no phase has begun here
  bool runs_empty = false;
  {
    const std::lock_guard guard(lock_);
    const bool failed = broken_.load(std::memory_order_relaxed);
    mine_ = {pack(begun_ - (failed ? 1 : 0), channel_->rank), 1,
             INT64_MAX - static_cast<std::int64_t>(begun_), failed ? 0 : 1};
    left_.store(true, std::memory_order_release);  // pairs with ask_rounds(), look_who_left()
    runs_empty = may_leave_ && !under_way_;
  }
  if (runs_empty) return run_empty_phases();
  if (may_leave_) return;
  engine().add(farewell_);
  detail::wake_poller();
}

// REQUIRES: this rank has left, and nothing is in flight; all ranks have left, unless ranks may
// leave. This may be gone after it.
void RankPhaser::run_empty_phases() noexcept {
  for (;;) {
    std::uint64_t begun = 0;
    {
      const std::lock_guard guard(lock_);
      begun = begun_;
    }
    const bool ends = may_leave_ ? begun != 0 && alive_ == 0
                                 : static_cast<std::int64_t>(begun) >=
                                       INT64_MAX - least_.not_begun;
    if (ends || broken_.load(std::memory_order_relaxed) || least_.healthy == 0) return finish();
    (void)claim(begun, 0);
    exchange_->bring_nothing();
    start_phase(begun, false);
    if (!run()) return;
    const std::lock_guard guard(lock_);
    under_way_ = false;
  }
}

void RankPhaser::finish() noexcept {
  detail::PhaserState& phaser = *phaser_;
  forget(*this);
  give_back(*channel_, !broken_.load(std::memory_order_relaxed) && least_.healthy != 0);
  detail::release(phaser);
}

// ---- rounds: all under the engine's lock -------------------------------------------------------

// Joins the next round, if none is open, and tests it once.
bool RankPhaser::round_has_ended() noexcept {
  int code = MPI_SUCCESS;
  if (round_ == MPI_REQUEST_NULL) {
    constexpr int words = sizeof(Farewell) / sizeof(std::int64_t);
    sent_ = left_.load(std::memory_order_acquire) ? mine_ : Farewell();  // pairs with leave()
    code = PMPI_Iallreduce(&sent_, &received_, words, MPI_INT64_T, MPI_MIN, channel_->farewells,
                           &round_);
  }
  int done = 0;
  if (code == MPI_SUCCESS) code = completion::Test(true, &round_, &done, MPI_STATUS_IGNORE).code;
  if (code != MPI_SUCCESS) {
    rounds_failed_ = true;
    least_ = {0, 1, INT64_MAX, 0};
    return true;
  }
  if (done == 0) return false;
  least_ = received_;
  return true;
}

// The current phase has not ended yet.
void RankPhaser::look_who_left() noexcept {
  if (may_leave_ || given_up_ || rounds_failed_ || left_.load(std::memory_order_acquire)) return;
  if (++asked_ % asks_for_each_look != 0) return;
  const auto now = std::chrono::steady_clock::now();
  if (late_at_ == std::chrono::steady_clock::time_point()) late_at_ = now + patience_;
  if (now < late_at_ || !round_has_ended() || rounds_failed_) return;
  const std::int64_t who = least_.who;
  if (who == INT64_MAX || phases_of(who) > phase_) {
    patience_ = std::min(2 * patience_, patience_most);
    late_at_ = now + patience_;
    return;
  }
  given_up_ = true;
  left_behind_ = std::make_exception_ptr(Error(fmt::format(
      "imbrex: rank {} waits in phase {} of {} for rank {}, whose tasks have all left it, or have "
      "failed, after {} phases. Let all ranks take part in the same phases, or make the phaser "
      "with {{.ranks_may_leave = true}}",
      channel_->rank, phase_, name_, rank_of(who), phases_of(who))));
  engine().add(giving_up_);  // threads that end phases may not do so here
}

void RankPhaser::gave_up(Operation& self) noexcept {
  RankPhaser& it = *static_cast<PhaserOperation&>(self).owner;
  it.error_ = it.left_behind_;
  if (it.bring_half()) it.end_phase();
}

bool RankPhaser::ask_rounds(Operation& self) {
  RankPhaser& it = *static_cast<PhaserOperation&>(self).owner;
  if (!it.round_has_ended()) return false;
  return it.least_.left == 1;
}

void RankPhaser::rounds_ended(Operation& self) noexcept {
  RankPhaser& it = *static_cast<PhaserOperation&>(self).owner;
  bool runs_empty = false;
  {
    const std::lock_guard guard(it.lock_);
    it.all_left_ = true;
    runs_empty = !it.under_way_;
  }
  if (runs_empty) it.run_empty_phases();
}

void RankPhaser::leave_all() noexcept {
  std::vector<RankPhaser*> all;
  {
    const std::lock_guard guard(living().lock);
    all = living().all;
  }
  for (RankPhaser* const one : all) {
    if (!one->left_.load(std::memory_order_acquire)) one->leave();
  }
  const auto some_live = [] {
    const std::lock_guard guard(living().lock);
    return !living().all.empty();
  };
  while (some_live()) {
    if (engine().poll() == 0) sched_yield();
  }
}

}  // namespace imbrex::mpi::phasers
