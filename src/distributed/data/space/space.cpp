// SPDX-License-Identifier: BSD-3-Clause
#include "distributed/data/space/space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "distributed/data/copies/departures.hpp"
#include "imbrex/detail/observation.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/error.hpp"

namespace imbrex::detail {

using distributed::Copy;

// ---- the space -------------------------------------------------------------------------------

DataSpace::DataSpace(const distributed::DataNetwork& network, Members ranks, SpaceOptions options)
    : network_(network), ranks_(std::move(ranks)), options_(std::move(options)),
      checks_(network.checks), tickets_to_(ranks_.world.size()),
      tickets_from_(ranks_.world.size()) {
  const auto found = std::ranges::find(ranks_.world, network.rank);
  if (found == ranks_.world.end() || ranks_.nodes.size() != ranks_.world.size()) {
    throw Error(fmt::format("imbrex: space \"{}\" is made on rank {}, which is not among its ranks",
                            options_.name, network.rank));
  }
  if (options_.tasks_ahead < 0) {
    throw Error(fmt::format("imbrex: SpaceOptions::tasks_ahead of space \"{}\" is {}: give 0 (any "
                            "number) or more", options_.name, options_.tasks_ahead));
  }
  me_ = static_cast<int>(found - ranks_.world.begin());
  looks_ahead_ = learns_sends();
  window_ = static_cast<std::uint64_t>(options_.tasks_ahead);
  broadcasts().open_space(id(), options_.name);
  if (network_.recorder != nullptr) recorded_ = network_.recorder->open(window_);
  // Ranks of the process that are not in this space share a node with no rank.
  std::vector<int> nodes(
      static_cast<std::size_t>(*std::ranges::max_element(ranks_.world)) + 1);
  for (std::size_t i = 0; i < nodes.size(); ++i) nodes[i] = -1 - static_cast<int>(i);
  for (std::size_t i = 0; i < ranks_.world.size(); ++i) {
    nodes[static_cast<std::size_t>(ranks_.world[i])] = ranks_.nodes[i];
  }
  broadcasts().set_nodes(id(), std::move(nodes));
}

DataSpace::~DataSpace() {
  for (Datum& datum : data_) {
    close_list(datum);
    drop_current(datum);
    if (datum.partial != nullptr) datum.partial->release();
    if (datum.home != nullptr) datum.home->release();
  }
}

// ---- data ------------------------------------------------------------------------------------

void DataSpace::check_rank(const char* const what, const int rank) const {
  if (rank >= 0 && rank < ranks()) return;
  throw Error(fmt::format("imbrex: {} of space \"{}\" names rank {}: the space has {} ranks", what,
                          options_.name, rank, ranks()));
}

Datum& DataSpace::make(const DatumSpec& spec) {
  refuse_in_loop("a new datum");
  if (spec.owner != -1) check_rank("a datum", spec.owner);
  if (spec.owner == -1 && spec.memory != nullptr) {
    throw Error(fmt::format("imbrex: datum \"{}\" of {} x {} elements, in space \"{}\", has no "
                            "owner (-1), but memory at {}: only an owner's datum can have memory. "
                            "Name a rank, 0 to {}, or give no memory",
                            spec.name, spec.shape.rows, spec.shape.columns, options_.name,
                            spec.memory, ranks() - 1));
  }
  const DataShape& shape = spec.shape;
  if (shape.leading < shape.rows) {
    throw Error(fmt::format("imbrex: a matrix of {} rows has only {} elements from one column to "
                            "the next, in space \"{}\"", shape.rows, shape.leading, options_.name));
  }
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(shape.leading, shape.element_bytes, &bytes) ||
      __builtin_mul_overflow(bytes, shape.columns, &bytes) || bytes > PTRDIFF_MAX) {
    throw Error(fmt::format("imbrex: a datum of {} x {} elements of {} bytes, in space \"{}\", is "
                            "larger than any memory",
                            shape.rows, shape.columns, shape.element_bytes, options_.name));
  }
  Datum& datum = data_.emplace_back(*this, data_.size(), spec);
  if (network_.recorder != nullptr) [[unlikely]] {
    network_.recorder->datum(recorded_, spec.owner,
                             shape.rows * shape.columns * shape.element_bytes);
  }
  if (spec.memory != nullptr && spec.owner == me_) {
    datum.home = new Copy(copy_bytes, shape, spec.memory);
    datum.home->retain();
    datum.current = datum.home;
  }
  if (tracing()) [[unlikely]] {
    trace_datum(text_of(datum), distributed::trace_key({id(), datum.number}));
  }
  return datum;
}

Datum& DataSpace::decision() {
  if (decision_ == nullptr) {
    const DatumSpec spec{0, {1, 1, 1, sizeof(bool)}, nullptr, "decision"};
    decision_ = std::make_unique<Datum>(*this, distributed::decision_datum, spec);
    if (tracing()) [[unlikely]] {
      trace_datum(text_of(*decision_), distributed::trace_key({id(), decision_->number}));
    }
  }
  return *decision_;
}

std::string DataSpace::text_of(const Datum& datum) const {
  if (datum.name != nullptr && *datum.name != '\0') {
    return fmt::format("datum \"{}\" of space \"{}\"", datum.name, options_.name);
  }
  return fmt::format("datum {} of space \"{}\"", datum.number, options_.name);
}

DataMemory DataSpace::memory_of(Datum& datum) {
  const auto refuse = [&](const std::string& why) {
    throw Error(fmt::format("imbrex: view() of {} on rank {}: {}", text_of(datum), me_, why));
  };
  refuse_in_loop("view()");
  if (!pending.none()) refuse("tasks of the space have not ended: call finish() first");
  if (datum.owner != me_) refuse(fmt::format("its owner is rank {}", datum.owner));
  if (datum.reduction != nullptr) refuse("its reduction has not ended: call flush() first");
  if (datum.source < 0) refuse("it was discarded, or no task has written it");
  if (network_.recorder != nullptr) [[unlikely]] {
    if (datum.writer.task != nullptr) network_.recorder->viewed(text_of(datum));
    if (datum.home != nullptr) return datum.home->readable();
    const DataShape& shape = datum.shape;
    return {network_.recorder->zeros(shape.rows * shape.columns * shape.element_bytes),
            {shape.rows, shape.columns, shape.rows, shape.element_bytes}};
  }
  if (datum.source == me_) (void)own(datum);
  if (datum.current == nullptr || (datum.home != nullptr && datum.current != datum.home)) {
    refuse(fmt::format("its value is on rank {}, where task \"{}\" wrote it: call flush() of it "
                       "before finish()", datum.source,
                       datum.writer.task != nullptr ? datum.writer.task : "?"));
  }
  if (datum.current->trouble != nullptr) refuse(datum.current->trouble->text);
  return datum.current->readable();
}

}  // namespace imbrex::detail
