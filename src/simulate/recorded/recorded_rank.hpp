// SPDX-License-Identifier: BSD-3-Clause
// What the ranks of a traced run did, as tools/imbrex_trace/steps.py has rebuilt it from the
// records: tasks with their accesses and steps, messages and collectives. Knows nothing of traces.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "imbrex/detail/waist.hpp"
#include "simulate/engine/program.hpp"

namespace imbrex::simulate {

struct RecordedTask {
  std::uint32_t name = 0;          // position in RecordedRun::names
  int priority = 0;
  bool is_tied = false;
  std::uint32_t signal = 0;        // of its completion; 0: nobody asks for it
  std::uint64_t first_access = 0;  // in RecordedRank::accesses
  std::uint32_t accesses = 0;
  TaskSteps steps;
};

struct RecordedOperation {
  enum class Kind : std::uint8_t {
    none,  // a receive whose message never arrived: no step begins it
    send,
    receive,
    collective,
    joint  // the end of several signals
  };
  Kind kind = Kind::none;
  int peer = -1;                   // of a collective: the root, or -1
  int tag = 0;
  std::int64_t bytes = 0;
  std::uint32_t name = 0;          // of a collective
  std::uint32_t call = 0;          // of a collective: the same number on all its ranks
  std::uint32_t signal = 0;        // of the end of a request
  std::uint32_t after = 0;         // the signal that it follows; 0: none
  std::uint32_t message = 0;       // the same number at the send and the receive
  std::uint64_t first_part = 0;    // of a collective or joint, in RecordedRank::parts
  std::uint32_t parts = 0;
};

// A message of a collective, or with Role::compute the end of a collective or joint.
struct RecordedPart {
  TaskPlan plan;
  std::vector<std::uint32_t> after;  // signals
};

struct RecordedRank {
  std::vector<RecordedTask> tasks;   // main first
  std::vector<detail::AccessSpec> accesses;
  std::vector<RecordedOperation> operations;
  std::vector<RecordedPart> parts;
  std::uint32_t signals = 0;
};

struct RecordedRun {
  std::vector<std::string> names;
  std::vector<RecordedRank> ranks;
  std::uint32_t messages = 0;  // the largest number of a message
};

// The file is a sequence of 64-bit words, in the byte order of the machine. A text is its length in
// bytes and these bytes, filled up to a word; a list is its length and its entries; numbers below
// zero are two's complements. The file holds:
//   1. the list of the names, which are texts;
//   2. the number of ranks;
//   3. for each rank its list of tasks. A task is its name, its priority, 1 if it is tied, its
//      signal, its list of accesses (address, AccessKind, end of a range or 0; of kind `after` the
//      signal), and its list of steps (Act, number, amount);
//   4. for each rank its number of signals and its list of operations. An operation begins with its
//      kind and its signal. Then follow, of a send or receive: peer, tag, message, bytes, after; of
//      a collective: root, name, call, bytes; of a joint: the list of its signals.
// `creator_ns`: the part of the computation before a task is created that its creation takes in the
// simulation. Throws Error if the file is no such file, or if a task names one address with two
// kinds, as the runtime does.
[[nodiscard]] RecordedRun read_steps(const std::string& path, Time creator_ns);

// The computation of each task takes the time that its name has in `times`, or if that is -1 as
// long as measured, divided by `speed`.
void scale(RecordedRank& rank, const std::vector<Time>& times, double speed);

// Adds the messages of collectives.
void build_collectives(RecordedRun& run);

}  // namespace imbrex::simulate
