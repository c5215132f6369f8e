// SPDX-License-Identifier: BSD-3-Clause
#include "distributed/data/loop/steps.hpp"

#include <exception>
#include <memory>
#include <utility>

#include "distributed/carrier/errors.hpp"
#include "imbrex/detail/observation.hpp"
#include "imbrex/detail/plug_ins.hpp"

namespace imbrex::distributed {

namespace {
[[nodiscard]] std::uint32_t ticket(const PairTransfers::Pair& pair, const std::uint32_t number,
                                   const std::uint64_t round) noexcept {
  return pair.first + static_cast<std::uint32_t>(round) * pair.count + number;
}
[[nodiscard]] DataSpace& space_of(const Slot& slot) noexcept { return slot.datum->space; }

void renew(Slot& slot) {
  Copy* const copy = new Copy(space_of(slot).copy_bytes, slot.datum->shape, nullptr);
  std::exchange(slot.copy, copy)->release();
}

// There is no memory for a step: its version does not exist.
void fail(Slot& slot) noexcept {
  DataSpace& space = space_of(slot);
  space.send_failed(std::current_exception());
  slot.copy->trouble = &space.keep(detail::thrown_text(std::current_exception()));
}

void renew_or_fail(Slot& slot) noexcept {
  try {
    renew(slot);
  } catch (...) {
    fail(slot);
  }
}
}  // namespace

const void* LoopStep::code() const noexcept {
  return reinterpret_cast<const void*>(&renew);  // a step of the runtime
}

void clear(Copy& copy, const detail::DataReduction& reduction) {
  const DataMemory to = copy.writable(false);
  for (std::size_t column = 0; column < to.shape.columns; ++column) {
    reduction.clear(
        static_cast<std::byte*>(to.memory) + column * to.shape.leading * to.shape.element_bytes,
        to.shape.rows);
  }
}

void LoopEnd::stop() noexcept {
  iterations_.store(detail::iteration() + 1, std::memory_order_relaxed);
  detail::stop_iterating();
}

// ---- tasks -----------------------------------------------------------------------------------

TaskStep::TaskStep(Insertion& insertion, const int its_priority, const std::uint32_t its_offset,
                   std::vector<SlotUse> uses)
    : LoopStep(insertion.name, insertion.where, its_priority, its_offset), insertion_(insertion),
      uses_(std::move(uses)) {}

void TaskStep::run(std::uint64_t) noexcept {
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    const SlotUse& use = uses_[i];
    if (use.takes) std::swap(use.from->copy, use.to->copy);
    Copy* const to = use.to != nullptr ? use.to->copy : nullptr;
    Copy* const from = use.from == nullptr ? nullptr : use.takes ? to : use.from->copy;
    Datum& datum = use.to != nullptr ? *use.to->datum : *use.from->datum;
    insertion_.uses[i] = {from, to, use.reduction, &datum};
  }
  const bool failed = run_again(insertion_) != nullptr;
  if (end_ != nullptr) leave_decision(failed);
}

void TaskStep::decide(LoopEnd& end, Slot* const decision) noexcept {
  decides = true;
  end_ = &end;
  decision_ = decision;
}

void TaskStep::leave_decision(const bool failed) noexcept {
  const bool stops = failed || detail::is_last_iteration();
  if (stops) end_->stop();
  if (decision_ == nullptr) return;
  try {
    *static_cast<bool*>(decision_->copy->writable(false).memory) = stops;
  } catch (...) {
    fail(*decision_);
    end_->stop();
  }
}

const void* TaskStep::code() const noexcept { return code_of(insertion_); }

// ---- transfers -------------------------------------------------------------------------------

SendStep::SendStep(const StepPlace& place, Slot& slot, PairTransfers& transfers,
                   std::vector<To> to)
    : LoopStep("send of data", place.where, place.priority, place.offset), slot_(slot),
      transfers_(transfers), to_(std::move(to)) {}

void SendStep::run(const std::uint64_t round) noexcept {
  DataSpace& space = space_of(slot_);
  try {
    std::vector<Recipient> list;
    list.reserve(to_.size());
    for (const To& to : to_) {
      const PairTransfers::Pair& pair = transfers_.to[static_cast<std::size_t>(to.rank)];
      list.push_back(space.recipient(to.rank, ticket(pair, to.number, round), to.priority));
    }
    auto& sending = *new VersionSend(*slot_.datum, *slot_.copy, std::move(list));
    space.pending.begin(Pending::step);
    sending.send();
    sending.release();
  } catch (...) {
    space.send_failed(std::current_exception());
  }
  if (renews_) renew_or_fail(slot_);
}

void SendStep::renew() noexcept {
  renews_ = true;
  accesses.front().kind = detail::AccessKind::inout;
}

ReceiveStep::ReceiveStep(const StepPlace& place, Slot& slot, PairTransfers& transfers,
                         const From& from)
    : LoopStep("arrival of data", place.where, place.priority, place.offset), slot_(slot),
      transfers_(transfers), from_(from) {}

void ReceiveStep::run(const std::uint64_t round) noexcept {
  DataSpace& space = space_of(slot_);
  const PairTransfers::Pair& pair = transfers_.from[static_cast<std::size_t>(from_.rank)];
  try {
    renew(slot_);
    space.begin_arrival(*slot_.datum, *slot_.copy, from_.rank, ticket(pair, from_.number, round),
                        from_.writer);
    detail::release_after(slot_.copy->arrival->event);
  } catch (...) {
    fail(slot_);
  }
}

// ---- what is no task of the program ----------------------------------------------------------

MergeStep::MergeStep(const StepPlace& place, const Merging& merging)
    : LoopStep(merging.reduction != nullptr ? "combination of data"
               : merging.takes              ? "move of data"
                                            : "flush of data",
               place.where, place.priority, place.offset), merging_(merging) {}

void MergeStep::run(std::uint64_t) noexcept {
  const auto& [to, from, reduction, takes, renews] = merging_;
  if (takes && !to->copy->is_program()) {
    std::swap(to->copy, from->copy);
  } else {
    merge_values(*to->datum, *to->copy, *from->copy, reduction);
  }
  if (renews) renew_or_fail(*from);
}

DropStep::DropStep(const StepPlace& place, Slot& slot,
                   const detail::DataReduction* const reduction)
    : LoopStep("discard of data", place.where, place.priority, place.offset), slot_(slot),
      reduction_(reduction) {}

void DropStep::run(std::uint64_t) noexcept {
  try {
    renew(slot_);
    if (reduction_ != nullptr) clear(*slot_.copy, *reduction_);
  } catch (...) {
    fail(slot_);
  }
}

DecisionStep::DecisionStep(const StepPlace& place, Slot& slot, LoopEnd& end)
    : LoopStep("decision of another rank", place.where, place.priority, place.offset),
      slot_(slot), end_(end) {
  decides = true;
}

void DecisionStep::run(std::uint64_t) noexcept {
  const Copy& copy = *slot_.copy;
  const bool stops =
      copy.trouble != nullptr || *static_cast<const bool*>(slot_.copy->readable().memory);
  if (stops) end_.stop();
}

}  // namespace imbrex::distributed
