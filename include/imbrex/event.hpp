// SPDX-License-Identifier: BSD-3-Clause
// Event: something that happens once. A task that waits for it is suspended; its worker is not.
#pragma once

#include "imbrex/detail/language.hpp"

#include "imbrex/detail/access.hpp"
#include "imbrex/detail/waist.hpp"

#pragma GCC visibility push(default)

namespace imbrex {

// Thread safety: every member, any thread, also one that imbrex does not know (a driver's
// callback). The event must outlive its last waiter's wake-up, not the call of fire().
class Event {
 public:
  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  // Lets go everything that waits. Throws Error if the event has fired already.
  void fire();
  [[nodiscard]] bool has_fired() const noexcept { return word_.has_fired(); }

 private:
  friend void await(Event& event);
  friend void release_after(Event& event);
  template <class T>
  friend void release_after(Event& event, T&& object);
  detail::EventWord word_;
};

// Suspends the running task until `event` fires; blocks a thread that imbrex does not know. As the
// first use of the runtime it starts that. Throws Error if the runtime has ended.
inline void await(Event& event) {
  static constexpr detail::WaitReason reason{.kind = detail::WaitKind::event};
  if (!event.has_fired()) detail::await(event.word_, reason);
}

// Returns at once; the running task, once its body has ended, keeps its dependents waiting until
// `event` fires. Throws Error outside a task. (OpenMP: detach.)
inline void release_after(Event& event) { detail::release_after(event.word_); }

// Returns at once; the running task's access to `object`, named as it was for in() or out(), ends
// when `event` fires, by any thread, perhaps long after the task: that is complete, and its future
// ready, at the end of its body. A finish() around the task waits for the event too, a taskwait()
// does not. Throws Error if the running task did not declare the access, or has released it.
template <class T>
void release_after(Event& event, T&& object) {
  detail::end_named<T>(object, [&event](const void* const address, const std::size_t bytes) {
    detail::release_access_after(event.word_, address, bytes);
  });
}

}  // namespace imbrex

#pragma GCC visibility pop
