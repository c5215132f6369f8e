// SPDX-License-Identifier: BSD-3-Clause
// Finds why a program hangs, in the facts of its ranks. docs/user/hangs.md lists the causes. Knows
// neither MPI nor tasks.
//
// A finding is certain if it follows from the facts, and nothing can end the hang: no rank runs
// code or is silent, and nothing has moved on any rank for half a second. Without the pause, a
// message in flight would look as if nobody sends it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "diagnosis/facts.hpp"

namespace imbrex::diagnosis {

// The first ones explain the later ones, where a program has several.
enum class Cause : std::uint8_t {
  dead_rank,
  task_circle,     // tasks of one rank wait for each other
  other_order,     // ranks wait in different collectives of one communicator, or of several
  other_message,   // a message has come with another tag, or on another communicator
  held_lock,       // a task sleeps in a lock, another waits with it perhaps; or ranks need the lock
                   // of a window from a rank that waits
  rank_circle,     // ranks wait for messages of each other
  future_circle,   // ranks await distributed futures of each other
  missing_rank,    // a rank has not come to a collective
  nobody_sends,    // and nobody receives
  nobody_puts,     // a future or a promise gets no value
  other_source,    // a message has come from another rank
  silent_rank
};

struct Finding {
  Cause cause;
  bool is_certain;
  std::string sentence;    // without a full stop
  std::string advice;      // what to do, a sentence without a full stop
  std::vector<int> ranks;  // that it names, ascending

  [[nodiscard]] std::string text() const { return (is_certain ? "" : "perhaps: ") + sentence; }
};

// The findings, the most probable cause first. `facts` has at most one entry for each rank.
[[nodiscard]] std::vector<Finding> find_causes(const std::vector<RankFacts>& facts);

// The receive among `waits` that comes closest to `message`, and how it differs.
struct Nearest {
  const Wait* wait = nullptr;  // null: no receive has anything in common with the message
  bool other_comm = false;
  bool other_source = false;
  bool other_tag = false;
};
// Returns std::nullopt if one of `waits` takes the message.
[[nodiscard]] std::optional<Nearest> find_nearest(const Message& message,
                                                  const std::vector<Wait>& waits);

}  // namespace imbrex::diagnosis
