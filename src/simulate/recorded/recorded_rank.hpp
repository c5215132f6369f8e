// SPDX-License-Identifier: BSD-3-Clause
// What one rank did, rebuilt from the records of its trace: its tasks with their accesses and
// steps, and its messages and collectives.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "imbrex/detail/waist.hpp"
#include "simulate/engine/program.hpp"
#include "simulate/recorded/trace_files.hpp"

namespace imbrex::simulate {

struct RecordedTask {
  std::uint32_t name = 0;          // its position in the head
  int priority = 0;
  bool is_tied = false;
  bool has_begun = false;
  bool has_ended = false;
  std::uint32_t signal = 0;        // of its completion; 0: nobody asks for it
  std::uint64_t first_access = 0;  // in RecordedRank::accesses
  std::uint32_t accesses = 0;
  TaskSteps steps;
};

struct RecordedOperation {
  enum class Kind : std::uint8_t {
    none,        // a receive whose message never arrived
    send,
    receive,
    collective
  };
  Kind kind = Kind::none;
  int peer = -1;                   // of a collective: the root, or -1
  int tag = 0;
  std::int64_t bytes = 0;
  std::uint32_t communicator = 0;
  std::uint32_t name = 0;          // of a collective
  std::uint32_t signal = 0;        // of the end of a request
  std::uint32_t after = 0;         // the signal that it follows; 0: none
  std::uint32_t message = 0;       // after match_messages()
  std::uint64_t record = 0;        // position, for messages
  std::uint64_t first_part = 0;    // of a collective, in RecordedRank::parts
  std::uint32_t parts = 0;
};

// A message of a collective, or with Role::compute the end of the collective.
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
  // What the steps do not contain, with the number of times.
  std::map<std::string, std::uint64_t> left_out;
};

// `creator_ns`: the part of the time before a task is created that its creation takes in the
// simulation. Throws Error, with file and record, if the records contradict each other or are of a
// program that cannot be simulated.
[[nodiscard]] RecordedRank rebuild(const TraceHead& head, Time creator_ns);

// The computation of each task takes the time that its name has in the head, or as long as
// measured, divided by `speed`.
void scale(RecordedRank& rank, const TraceHead& head, double speed);

// Gives the same number to a send and the receive that got it, and the messages of collectives
// their numbers. Throws Error if a message has no partner, or a collective lacks a rank.
void match(std::vector<RecordedRank>& ranks, const std::vector<TraceHead>& heads);

}  // namespace imbrex::simulate
