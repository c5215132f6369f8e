// SPDX-License-Identifier: BSD-3-Clause
// The record of one datum on one rank: the result of the insertions so far. Only the inserting
// thread uses it, hence no locks. Knows no message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <source_location>
#include <vector>

#include "distributed/data/space/copy.hpp"
#include "distributed/data/space/sends.hpp"
#include "imbrex/detail/distributed/data_space.hpp"

namespace imbrex::distributed {

// A set of ranks of a space: up to 64 of them in place.
class RankSet {
 public:
  [[nodiscard]] bool has(const int rank) const noexcept {
    const auto bit = static_cast<std::size_t>(rank);
    if (bit < 64) return (few_ >> bit & 1) != 0;
    const std::size_t word = bit / 64 - 1;
    return word < more_.size() && (more_[word] >> bit % 64 & 1) != 0;
  }
  void add(const int rank) {
    const auto bit = static_cast<std::size_t>(rank);
    if (bit < 64) {
      few_ |= std::uint64_t{1} << bit;
      return;
    }
    const std::size_t word = bit / 64 - 1;
    if (word >= more_.size()) more_.resize(word + 1);
    more_[word] |= std::uint64_t{1} << bit % 64;
  }
  void clear() noexcept {
    few_ = 0;
    more_.clear();
  }

 private:
  std::uint64_t few_ = 0;
  std::vector<std::uint64_t> more_;
};

// The task that has written a version, for texts.
struct Writer {
  const char* task = nullptr;
  std::source_location where;
};

}  // namespace imbrex::distributed

namespace imbrex::detail {

// Invariants:
//   (1) every rank that has inserted all tasks that concern it knows `source`, the rank that has
//       written the value last and from which others get it. `holders` counts only there.
//   (2) `current` is this rank's copy of the version after the last insertion; null: it has none. A
//       source has one, or the value is zero and was never used.
//   (3) a reduction is open on all ranks or on none: its insertions concern all.
struct Datum {
  Datum(DataSpace& its_space, const std::uint64_t its_number, const DatumSpec& spec)
      : space(its_space), number(its_number), shape(spec.shape), name(spec.name),
        owner(spec.owner), source(spec.owner), temporary(spec.owner < 0) {}
  Datum(const Datum&) = delete;
  Datum& operator=(const Datum&) = delete;

  DataSpace& space;
  const std::uint64_t number;
  const DataShape shape;
  const char* const name;
  int owner;               // a rank of the space; -1: no owner
  int source;
  const bool temporary;
  bool seen_written = false;
  std::uint64_t taken = 0;  // the last task here that has an access to it as a reader
  std::uint64_t seen = 0;  // the last insertion that has named it
  distributed::Copy* current = nullptr;
  distributed::Copy* home = nullptr;        // in the program's memory; null: the program has given
                                            // none here
  distributed::VersionSend* sending = nullptr;  // the newest list of this version
  distributed::RankSet holders;             // (1)
  std::uint32_t recipients = 0;      // number of recipients of this version from here
  bool lists = false;                // they are on more than one list
  distributed::VersionLeads leads;   // to this version, if another rank is its source and the
                                     // policy learns sends
  distributed::Writer writer;
  const DataReduction* reduction = nullptr;  // null: no open reduction, (3)
  std::vector<int> reducers;         // the participating ranks in the order of insertions
  distributed::Copy* partial = nullptr;     // this rank's elements of the reduction
};

}  // namespace imbrex::detail
