// SPDX-License-Identifier: BSD-3-Clause
// The files of a traced run. tools/imbrex_simulate.py reads and checks the heads (rank-R.json), and
// passes what is needed of them in one file; the records (rank-R.events) are read here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulate/engine/event_queue.hpp"
#include "trace/trace.hpp"

namespace imbrex::simulate {

using Record = trace::Record;

struct TraceHead {
  int rank = 0;
  int workers = 1;
  std::uint64_t events = 0;
  std::string path;                // of the records
  std::vector<std::string> names;  // by the numbers in the records
  std::vector<Time> times;         // of the computation of a task so named; -1: as measured
};

// One rank after the other, from 0. Throws Error if the file is no such file.
[[nodiscard]] std::vector<TraceHead> read_heads(const std::string& path);

// In the order of time, but for clocks that differ: each worker's own order stays, and no record of
// a task stands before its creation. `position` is the place in the file, for messages.
struct PlacedRecord {
  Record record;
  std::uint64_t position;
};
// Throws Error, with file and record, for a file that is truncated, or that has unknown kinds,
// workers or names.
[[nodiscard]] std::vector<PlacedRecord> read_records(const TraceHead& head);

}  // namespace imbrex::simulate
