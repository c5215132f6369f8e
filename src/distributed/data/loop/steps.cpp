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
}  // namespace

const void* LoopStep::code() const noexcept {
  return reinterpret_cast<const void*>(&renew);  // a step of the runtime
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
    insertion_.uses[i] = {from, to, nullptr, &datum};
  }
  run_again(insertion_);
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

}  // namespace imbrex::distributed
