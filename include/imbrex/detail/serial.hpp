// SPDX-License-Identifier: BSD-3-Clause
// imbrex.hpp under IMBREX_SERIAL: the C++ interface of detail/serial.h. A task is a plain call at
// the place of its launch, so the events that it names must have fired before: noprogress() does
// that. Only imbrex.hpp includes it, after imbrex.h.
#pragma once

#include <concepts>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace imbrex {

struct SerialEvent {};
[[nodiscard]] inline SerialEvent named(std::string_view, std::int64_t = 0) { return {}; }
inline void trigger(std::string_view name, std::int64_t number = 0) {
  (void)imbrex_trigger(std::string(name).c_str(), number);
}
template <class F>
void progress(F&&) {}  // no runtime calls it
template <class F>
void noprogress(F&& function) {
  if (imbrex_noprogress() != 0) std::forward<F>(function)();
}

// The only place: all tasks run there.
class Place {};
[[nodiscard]] inline int place_count() { return imbrex_place_count(); }
[[nodiscard]] inline Place place(int) { return {}; }

struct IterateOptions {
  std::int64_t period = 1;
};
[[nodiscard]] inline std::int64_t iteration() { return imbrex_iteration(); }
inline void stop_iterating() {
  if (imbrex_stop_iterating() == IMBREX_SUCCESS) return;
  throw std::runtime_error("imbrex: stop_iterating() in a task that does not decide");
}

// While a task runs.
class SerialDecision {
 public:
  explicit SerialDecision(const bool decides)
      : outer_(std::exchange(imbrex_serial_loop.decides, decides ? 1 : 0)) {}
  ~SerialDecision() { imbrex_serial_loop.decides = outer_; }
  SerialDecision(const SerialDecision&) = delete;
  SerialDecision& operator=(const SerialDecision&) = delete;

 private:
  int outer_;
};

// Program order satisfies every access.
class [[nodiscard]] SerialBuilder {
 public:
  template <class... T>
  SerialBuilder& in(const T&...) { return *this; }
  template <class... T>
  SerialBuilder& out(T&...) { return *this; }
  template <class... T>
  SerialBuilder& inout(T&...) { return *this; }
  template <class... T>
  SerialBuilder& mutexinoutset(T&...) { return *this; }
  template <class... T>
  SerialBuilder& inoutset(T&...) { return *this; }
  SerialBuilder& priority(int) { return *this; }
  SerialBuilder& at(Place) { return *this; }
  SerialBuilder& tied() { return *this; }
  SerialBuilder& untied() { return *this; }
  SerialBuilder& decides() {
    decides_ = true;
    return *this;
  }
  template <class F>
  void launch(F&& function) {
    const SerialDecision running(decides_);
    if constexpr (std::invocable<F&&>) {
      static_cast<void>(std::forward<F>(function)());
    } else {
      static_cast<void>(std::forward<F>(function)(iteration()));
    }
  }

 private:
  bool decides_ = false;
};
[[nodiscard]] inline SerialBuilder task(const char*) { return {}; }

template <class F>
void finish(F&& body) {
  std::forward<F>(body)();
  imbrex_finish_t spawned = nullptr;  // filled by the functions of C
  if (imbrex_finish_end(&spawned) != IMBREX_SUCCESS) throw std::runtime_error(imbrex_message());
}
template <class F>
  requires std::invocable<F&, std::int64_t>
void iterate(const std::int64_t count, const IterateOptions& options, F&& body) {
  using Function = std::remove_reference_t<F>;
  struct Loop {
    Function& body;
    std::exception_ptr error;
    static int call(void* argument, std::int64_t i) {
      Loop& loop = *static_cast<Loop*>(argument);
      try {
        loop.body(i);
      } catch (...) {
        loop.error = std::current_exception();
      }
      return loop.error == nullptr ? IMBREX_SUCCESS : IMBREX_ERR_TASK;
    }
  };
  Loop loop{body, nullptr};
  const int code = imbrex_iterate(count, options.period, &Loop::call, &loop, nullptr, 0);
  if (loop.error) std::rethrow_exception(loop.error);
  if (code != IMBREX_SUCCESS) throw std::runtime_error(imbrex_message());
}
template <class F>
  requires std::invocable<F&, std::int64_t>
void iterate(const std::int64_t count, F&& body) {
  iterate(count, IterateOptions{}, std::forward<F>(body));
}
inline void taskwait() { (void)imbrex_taskwait(); }
inline void yield() { (void)imbrex_yield(); }

}  // namespace imbrex
