// SPDX-License-Identifier: BSD-3-Clause
// The memory of an event and of a thing that completes once, with a value or a failure. Layout
// only, so that headers can look at it without a call; what changes it is behind waist.hpp.
#pragma once

#include <atomic>
#include <cstdint>

namespace imbrex::detail {

struct Failure;  // src/task/failure.hpp

// Thread safety: any thread. `head` is a stack of waiters until it becomes `fired` for ever; its
// lowest bit but one is a short lock. Only src/task/event.hpp changes it.
struct EventWord {
  static constexpr std::uintptr_t fired = 1;
  std::atomic<std::uintptr_t> head{0};

  [[nodiscard]] bool has_fired() const noexcept {
    return head.load(std::memory_order_acquire) == fired;  // pairs with the release of the firing
  }
};

enum class CompletionKind : std::uint8_t {
  task,     // a task's end
  promise,  // set by whoever holds the promise, perhaps a thread that imbrex does not know
  joint,    // all or any of other completions
  named,    // a promise that anybody can set who knows its name
  phaser,   // that no signaller of a phaser is left
  phase,    // a promise that a phaser sets at the end of a phase
  remote    // a RemoteState: a promise that messages from other processes set
};

// Whether a task runs on the stack of its parent, which waits for it.
enum class InPlace : std::uint8_t {
  no,
  runs,
  ends  // it is about to be complete, or to find that it has more to do for that
};

// The base of tasks, promises, when_all and when_any.
struct Completion {
  std::atomic<std::uint32_t> references;  // at zero the memory is reused
  CompletionKind kind;
  std::atomic<InPlace> in_place;  // tasks: written by the parent; src/task/scope.hpp
  std::atomic<bool> shared;       // tasks: others than the parent may use the parent's future
  EventWord event;           // fires when the value, or `failure`, is there
  Failure* failure;         // null, or why there is no value: written once, before `event` fires
};

}  // namespace imbrex::detail
