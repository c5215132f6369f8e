// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/faces/phasers/span.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <utility>

#include "imbrex/detail/observation.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "mpi/engine/active.hpp"
#include "mpi/engine/errors.hpp"

namespace imbrex::mpi::phasers {

namespace {

constexpr const char* phase_call = "a phase of an MpiPhaser";
constexpr const char* farewell_call = "the end of an MpiPhaser";

// So long a rank waits for a phase before it asks whether others have left; then twice as long.
constexpr std::chrono::milliseconds patience_first{100};
constexpr std::chrono::milliseconds patience_most{10'000};
constexpr unsigned asks_for_each_look = 32;  // at the clock

// A rank, and how many phases it has taken part in: the least is that of the fewest phases.
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

// ---- the operation of an accumulator, called by MPI --------------------------------------------

// MPI tells the function of an operation nothing but the datatype: each accumulator has its own.
struct Types {
  base::SpinLock lock;
  std::vector<std::pair<MPI_Datatype, const detail::AccumulatorBase*>> all IMBREX_GUARDED_BY(lock);
};
Types& types() {
  static Types& the_types = *new Types;
  return the_types;
}

void combine(void* in, void* inout, int*, MPI_Datatype* type) {
  const detail::AccumulatorBase* accumulator = nullptr;
  {
    const std::lock_guard guard(types().lock);
    const auto found = std::ranges::find_if(
        types().all, [type](const auto& one) { return one.first == *type; });
    if (found == types().all.end()) return;
    accumulator = found->second;
  }
  accumulator->combine(in, inout);
}

// Never freed: MPI does so in MPI_Finalize, and a program has no further MPI_Init.
MPI_Op operation(const bool ordered) {
  const auto make = [](const int commutes) {
    MPI_Op made = MPI_OP_NULL;
    PMPI_Op_create(&combine, commutes, &made);
    return made;
  };
  static const MPI_Op in_any_order = make(1);
  static const MPI_Op in_order = make(0);
  return ordered ? in_order : in_any_order;
}

// ---- all that have not ended -------------------------------------------------------------------

struct Living {
  std::mutex lock;
  std::vector<Span*> all IMBREX_GUARDED_BY(lock);
};
Living& living() {
  static Living& the_living = *new Living;  // used while static destructors run
  return the_living;
}
void forget(const Span& span) noexcept {
  const std::lock_guard guard(living().lock);
  std::erase(living().all, &span);
}

}  // namespace

Reduction::Reduction(detail::AccumulatorBase& its_accumulator)
    : accumulator(its_accumulator), bytes(accumulator.message_bytes()),
      mine(new std::byte[bytes]()), all(new std::byte[bytes]()) {
  PMPI_Type_contiguous(static_cast<int>(bytes), MPI_BYTE, &type);
  PMPI_Type_commit(&type);
  const std::lock_guard guard(types().lock);
  types().all.emplace_back(type, &accumulator);
}

Reduction::~Reduction() {
  {
    const std::lock_guard guard(types().lock);
    std::erase_if(types().all, [this](const auto& one) { return one.first == type; });
  }
  if (is_active.load(std::memory_order_relaxed)) PMPI_Type_free(&type);
}

Span::Span(const MpiPhaserOptions& options, std::string its_name)
    : name_(std::move(its_name)), fuzzy_(options.fusion == Fusion::fuzzy),
      may_leave_(options.ranks_may_leave) {
  for (Asked* const one : {&collective_, &giving_up_, &farewell_}) one->span = this;
  collective_.ask = &Span::ask_collective;
  collective_.complete = &Span::collective_ended;
  giving_up_.call = {.name = phase_call, .at_once = true};
  giving_up_.ask = [](Operation&) { return true; };
  giving_up_.complete = &Span::gave_up;
  farewell_.ask = &Span::ask_rounds;
  farewell_.complete = &Span::rounds_ended;
}

Span::~Span() { forget(*this); }

void Span::begin(detail::PhaserState& phaser, Line line) noexcept {
  collective_.call = {
      .name = phase_call, .comm = line.phases, .kind = Kind::collective, .throws = true};
  farewell_.call = {.name = farewell_call,
                    .comm = line.farewells,
                    .kind = Kind::collective,
                    .at_once = true,
                    .throws = true};
  phaser_ = &phaser;
  line_ = std::move(line);
  const std::lock_guard guard(living().lock);
  living().all.push_back(this);
}

// ---- phases ------------------------------------------------------------------------------------

// True for whoever begins it, who owns the collectives from then on. `halves` as (3); 0: the phase
// is that of others.
bool Span::claim(const std::uint64_t phase, const int halves) noexcept {
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

bool Span::has_signalled(const std::uint64_t phase) noexcept {
  const std::lock_guard guard(lock_);
  return signalled_ > phase;
}

void Span::prepare(detail::AccumulatorBase* const accumulators) {
  if (std::exchange(prepared_, true)) return;
  std::uint64_t signature = 1;
  for (detail::AccumulatorBase* one = accumulators; one != nullptr; one = one->following) {
    one->rank = line_->rank;
    reductions_.push_back(std::make_unique<Reduction>(*one));
    signature = signature * 1'000'003 + 2 * reductions_.back()->bytes + (one->ordered ? 1 : 0);
  }
  signature_[0] = signature;
  signature_[1] = ~signature;
}

// REQUIRES: claimed.
void Span::start_phase(const std::uint64_t phase, const bool alive) noexcept {
  phase_ = phase;
  step_ = 0;
  mine_alive_ = alive ? 1 : 0;
  patience_ = patience_first;
  late_at_ = {};
}

std::size_t Span::steps() const noexcept {
  const std::size_t several = (phase_ == 0 ? 1u : 0u) + (may_leave_ ? 1u : 0u) + reductions_.size();
  return std::max<std::size_t>(several, 1);
}

int Span::start_step(MPI_Request* const request) noexcept {
  const MPI_Comm comm = line_->phases;
  std::size_t step = step_;
  if (phase_ == 0 && step-- == 0) {
    return PMPI_Iallreduce(signature_, signatures_, 2, MPI_UINT64_T, MPI_BAND, comm, request);
  }
  if (may_leave_ && step-- == 0) {
    return PMPI_Iallreduce(&mine_alive_, &alive_, 1, MPI_INT64_T, MPI_SUM, comm, request);
  }
  if (reductions_.empty()) return PMPI_Ibarrier(comm, request);
  const Reduction& one = *reductions_[step];
  return PMPI_Iallreduce(one.mine.get(), one.all.get(), 1, one.type,
                         operation(one.accumulator.ordered), comm, request);
}

// The one that was under way is complete.
void Span::take_step() noexcept {
  if (collective_.code != MPI_SUCCESS) {
    broken_.store(true, std::memory_order_relaxed);
    step_ = steps();
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
        "imbrex: the ranks do not have the same accumulators on {}: rank {} has {}. All make the "
        "same ones in the same order, before the first phase",
        name_, line_->rank, reductions_.size())));
    return;
  }
  ++step_;
}

// Carries out one collective after the other. True when all are complete; false while one is under
// way: then it belongs to the engine.
bool Span::run() noexcept {
  while (step_ < steps()) {
    int done = 0;
    Said said = MPI_SUCCESS;
    {
      const Callback callback(collective_.call);
      said = start_step(&collective_.request);
      if (said.code == MPI_SUCCESS) {
        said = asked::Test(&collective_.request, &done, &collective_.status);
      }
    }
    if (done == 0 && said.code == MPI_SUCCESS) {
      engine().add(collective_);
      detail::wake_poller();  // the caller goes on: somebody idle must ask MPI
      return false;
    }
    collective_.task = detail::current_task();
    collective_.take(said);
    take_step();
  }
  return true;
}

bool Span::ask_collective(Operation& self) {
  Span& span = *static_cast<Asked&>(self).span;
  int done = 0;
  const Said said = asked::Test(&self.request, &done, &self.status);
  self.take(said);
  if (done != 0 || said.code != MPI_SUCCESS) return true;
  span.look_who_left();
  // What has failed somewhere may never be complete: nobody waits for it when all have left.
  return span.left_.load(std::memory_order_relaxed) && span.least_.left == 1 &&
         span.least_.healthy == 0;
}

void Span::collective_ended(Operation& self) noexcept {
  Span& span = *static_cast<Asked&>(self).span;
  if (self.request != MPI_REQUEST_NULL && self.code == MPI_SUCCESS) {  // see ask_collective()
    span.broken_.store(true, std::memory_order_relaxed);
    span.step_ = span.steps();
    if (!span.error_) {
      span.error_ = std::make_exception_ptr(Error(fmt::format(
          "imbrex: a phase of {} has failed on another rank", span.name_)));
    }
  } else {
    span.take_step();
  }
  if (span.run()) span.collectives_ended();
}

// True for who brings the second: acq_rel, since the one who ends the phase reads what both did.
bool Span::bring_half() noexcept { return halves_.fetch_sub(1, std::memory_order_acq_rel) == 1; }

void Span::settle_phase() noexcept {
  for (const std::unique_ptr<Reduction>& one : reductions_) {
    if (error_) {
      one->accumulator.fail(phase_, error_);
    } else {
      one->accumulator.publish(phase_, one->all.get(), over_);
    }
  }
  if (error_) detail::fail_phaser(*phaser_, error_);
}

// REQUIRES: both halves are there. This may be gone after it.
void Span::end_phase() noexcept {
  detail::PhaserState& phaser = *phaser_;
  settle_phase();
  detail::end_phase(phaser);
  detail::release(phaser);  // of claim()
}

// Of one phase; by whoever carried out the last. This may be gone after it: end_phase() may lead to
// leave(), which then finds nothing under way.
void Span::collectives_ended() noexcept {
  const bool has_phase = halves_.load(std::memory_order_relaxed) != 0 && !given_up_;
  bool alone = false;
  {
    const std::lock_guard guard(lock_);
    under_way_ = false;
    alone = left_.load(std::memory_order_relaxed) && (may_leave_ || all_left_);
  }
  if (has_phase && bring_half()) end_phase();
  if (alone) go_on_alone();
}

void Span::first_signal(const std::uint64_t phase,
                        detail::AccumulatorBase* const accumulators) noexcept {
  {
    const std::lock_guard guard(lock_);
    signalled_ = std::max(signalled_, phase + 1);
  }
  if (!fuzzy_ || accumulators != nullptr || !line_ || left_.load(std::memory_order_relaxed)) return;
  if (!claim(phase, 2)) return;
  over_ = false;
  prepare(nullptr);
  start_phase(phase, true);
  if (run()) collectives_ended();
}

bool Span::last_signal(detail::PhaserState& phaser, const std::uint64_t phase,
                       detail::AccumulatorBase* const accumulators, const bool over) noexcept {
  if (!line_) return true;
  if (left_.load(std::memory_order_relaxed)) {
    detail::fail_phaser(phaser, std::make_exception_ptr(Error(fmt::format(
                                    "imbrex: a phase of {} ends after MPI_Finalize", name_))));
    return true;
  }
  if (over && !may_leave_ && accumulators == nullptr && !has_signalled(phase)) return true;
  const bool mine = claim(phase, 2);
  if (mine) {
    prepare(accumulators);
    over_ = over;
    for (const std::unique_ptr<Reduction>& one : reductions_) {
      one->accumulator.collect(phase, one->mine.get());
    }
    start_phase(phase, !over);
    if (run()) {
      const std::lock_guard guard(lock_);
      under_way_ = false;
      (void)bring_half();
    }
  }
  if (!bring_half()) return false;
  settle_phase();
  detail::release(phaser);  // of claim(); the caller has one
  return true;
}

// ---- the end -----------------------------------------------------------------------------------

void Span::closed() noexcept {
  if (line_ && !left_.load(std::memory_order_relaxed)) leave();
}

void Span::leave() noexcept {
  detail::retain(*phaser_);  // until finish()
  prepare(nullptr);          // if no phase has begun here
  bool alone = false;
  {
    const std::lock_guard guard(lock_);
    const bool failed = broken_.load(std::memory_order_relaxed);
    mine_ = {pack(begun_ - (failed ? 1 : 0), line_->rank), 1,
             INT64_MAX - static_cast<std::int64_t>(begun_), failed ? 0 : 1};
    left_.store(true, std::memory_order_release);  // pairs with ask_rounds(), look_who_left()
    alone = may_leave_ && !under_way_;
  }
  if (alone) return go_on_alone();
  if (may_leave_) return;
  engine().add(farewell_);
  detail::wake_poller();
}

// REQUIRES: this rank has left, and nothing is under way; all have, unless ranks may leave. This
// may be gone after it.
void Span::go_on_alone() noexcept {
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
    for (const std::unique_ptr<Reduction>& one : reductions_) {
      std::fill_n(one->mine.get(), one->bytes, std::byte{});  // nothing
    }
    start_phase(begun, false);
    if (!run()) return;
    const std::lock_guard guard(lock_);
    under_way_ = false;
  }
}

void Span::finish() noexcept {
  detail::PhaserState& phaser = *phaser_;
  forget(*this);
  give_back(*line_, !broken_.load(std::memory_order_relaxed) && least_.healthy != 0);
  detail::release(phaser);
}

// ---- rounds: all in the engine's lock ----------------------------------------------------------

// Joins the next round, if none is open, and asks for it once.
bool Span::round_has_ended() noexcept {
  int code = MPI_SUCCESS;
  if (round_ == MPI_REQUEST_NULL) {
    constexpr int words = sizeof(Farewell) / sizeof(std::int64_t);
    told_ = left_.load(std::memory_order_acquire) ? mine_ : Farewell();  // pairs with leave()
    code = PMPI_Iallreduce(&told_, &heard_, words, MPI_INT64_T, MPI_MIN, line_->farewells,
                           &round_);
  }
  int done = 0;
  if (code == MPI_SUCCESS) code = asked::Test(&round_, &done, MPI_STATUS_IGNORE).code;
  if (code != MPI_SUCCESS) {
    rounds_failed_ = true;
    least_ = {0, 1, INT64_MAX, 0};
    return true;
  }
  if (done == 0) return false;
  least_ = heard_;
  return true;
}

// The phase that is under way has not ended yet.
void Span::look_who_left() noexcept {
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
      line_->rank, phase_, name_, rank_of(who), phases_of(who))));
  engine().add(giving_up_);  // who ends phases may not do so here
}

void Span::gave_up(Operation& self) noexcept {
  Span& span = *static_cast<Asked&>(self).span;
  span.error_ = span.left_behind_;
  if (span.bring_half()) span.end_phase();
}

bool Span::ask_rounds(Operation& self) {
  Span& span = *static_cast<Asked&>(self).span;
  if (!span.round_has_ended()) return false;
  return span.least_.left == 1;
}

void Span::rounds_ended(Operation& self) noexcept {
  Span& span = *static_cast<Asked&>(self).span;
  bool alone = false;
  {
    const std::lock_guard guard(span.lock_);
    span.all_left_ = true;
    alone = !span.under_way_;
  }
  if (alone) span.go_on_alone();
}

void Span::end_all() noexcept {
  std::vector<Span*> all;
  {
    const std::lock_guard guard(living().lock);
    all = living().all;
  }
  for (Span* const one : all) {
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
