// SPDX-License-Identifier: BSD-3-Clause
// What the entries of a period mean: sources, versions and readers, found on each rank by two walks
// through the period. The first collects the versions and the readers behind them; the second adds
// the readers of the period behind.
#include <algorithm>

#include "distributed/data/loop/data_loop.hpp"

namespace imbrex::distributed {

using detail::DataAccess;
using detail::DataMode;

void Loop::plan() {
  for (auto& [number, datum] : data_) datum.now = datum.before;
  walk();
  walk();
  make_steps();
}

void Loop::walk() {
  for (auto& [number, datum] : data_) datum.written = 0;
  for (const Entry& entry : entries_) {
    for (const DataAccess& access : entry.accesses) {
      if (access.mode != DataMode::out) read(of(*access.datum), entry);
    }
    for (const DataAccess& access : entry.accesses) {
      if (access.mode != DataMode::in) write(of(*access.datum), entry);
    }
  }
}

void Loop::read(LoopDatum& datum, const Entry& entry) {
  if (datum.version == LoopDatum::none) {
    if (std::ranges::find(datum.early_readers, entry.rank) == datum.early_readers.end()) {
      datum.early_readers.push_back(entry.rank);
    }
    return;
  }
  LoopVersion& version = datum.versions[datum.version];
  if (entry.rank == version.rank) return;
  if (std::ranges::find(version.readers, entry.rank, &LoopVersion::Reader::rank) ==
      version.readers.end()) {
    version.readers.push_back({entry.rank, entry.priority});
  }
}

void Loop::write(LoopDatum& datum, const Entry& entry) {
  datum.now.source = entry.rank;
  if (datum.now.owner < 0) datum.now.owner = entry.rank;
  datum.now.writer = {entry.name, entry.where};
  datum.version = datum.written++;
  if (datum.version == datum.versions.size()) datum.versions.push_back({entry.rank, {}, nullptr});
}

}  // namespace imbrex::distributed
