// SPDX-License-Identifier: BSD-3-Clause
// The tool of the process, if there is one: it is searched for when OpenMP is first used, and
// registers a function for each event that it wants to hear of. A tool defines ompt_start_tool(),
// in the program, in a loaded library, or in one that OMP_TOOL_LIBRARIES names.
//
// Thread safety: any thread. One thread starts the tool; others wait meanwhile, unless they come
// from the tool itself. The functions of the tool are called with no lock held.
#pragma once

#include <array>
#include <atomic>

#include "omp/tools/ompt.hpp"
#include "omp/tools/records.hpp"

namespace imbrex::omp::tools {

enum class Phase : int {
  none,      // there is no tool, or it has ended
  unknown,   // nobody has looked for one yet
  starting,  // a thread looks for one
  listening
};
extern std::atomic<Phase> phase;

// Whether there may be a tool: the only cost of an event without one. relaxed: listens() decides.
[[nodiscard, gnu::always_inline]] inline bool on() noexcept {
  return phase.load(std::memory_order_relaxed) != Phase::none;
}
// Whether there is a tool; searches for it if nobody has.
[[nodiscard]] bool listens();
// The record of the calling thread; null: there is no tool.
[[nodiscard]] ThreadRecord* listener();
// The tool ends now, and hears of nothing any more.
void finish();
// In a child of fork: the tool stays with the parent.
void forget() noexcept;

// The functions of the tool, by event; null: none. release: what they read.
extern std::array<std::atomic<AnyFunction>, events_end> calls;

template <Event event>
[[nodiscard]] typename CallOf<event>::Type call_for() noexcept {
  const AnyFunction call =
      calls[static_cast<std::size_t>(event)].load(std::memory_order_acquire);
  return reinterpret_cast<typename CallOf<event>::Type>(call);
}

// Calls the tool, on the thread of `thread`.
template <Event event, class... Arguments>
void emit(ThreadRecord& thread, const Arguments... arguments) {
  const auto call = call_for<event>();
  if (call == nullptr) return;
  ++thread.in_tool;
  (void)call(arguments...);
  --thread.in_tool;
}

// The function for a name of the standard (queries.cpp); null: imbrex does not have it.
[[nodiscard]] AnyFunction look_up(const char* name);

}  // namespace imbrex::omp::tools
