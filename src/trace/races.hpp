// SPDX-License-Identifier: BSD-3-Clause
// Tells ThreadSanitizer the order between pieces of code, in the library's variant for it;
// otherwise does nothing.
//
// That variant is not instrumented itself. ThreadSanitizer therefore sees only the program's code,
// and an order between two pieces of it only where these functions say so. Each task runs in a
// context of its own, and an after() orders it behind a before() with the same key.
// docs/design/races.md has the argument.
#pragma once

#include <cstddef>

#if IMBREX_RACES
extern "C" {
void __tsan_ignore_thread_begin();
void __tsan_ignore_thread_end();
void AnnotateIgnoreSyncBegin(const char* file, int line);
void AnnotateIgnoreSyncEnd(const char* file, int line);
}
#endif

namespace imbrex::trace::races {

#if IMBREX_RACES

inline constexpr bool shown = true;

#pragma GCC visibility push(default)  // of the core: imbrex::mpi uses them, too

// Everything that the calling context has done before a before() comes before everything that any
// context does after a later after() with the same key.
void before(const void* key) noexcept;
void after(const void* key) noexcept;
// Hands an order on: code that comes before `from` also comes before `to`; the calling context
// itself is not ordered.
void pass(const void* from, const void* to) noexcept;

// The calling context has released a hold of the completion with this event; or, if `source` is not
// null, the event `source`, which the context has fired, has released it. Code that begins later,
// or has waited for the completion, comes after.
void let_go_hold(const void* event, const void* source) noexcept;
void after_holds() noexcept;

// The first call makes the common origin of all contexts; it should be at the program's start.
void begin() noexcept;

// While it lives, the code on this stack runs in a context of its own. The thread may change.
class Inside {
 public:
  explicit Inside(const char* name) noexcept;
  ~Inside();
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  void* own_;
  void* outer_;  // null: the context of a worker's loop
};

// While it lives, the code that runs here is invisible: it works for other tasks and follows none.
class Outside {
 public:
  Outside() noexcept;
  ~Outside();
  Outside(const Outside&) = delete;
  Outside& operator=(const Outside&) = delete;

 private:
  void* left_;  // null: the code was invisible before
};

// Runs code of the program that is no task, in the middle of other code, in a context of its own.
// The code comes after every before() with this key, and calls before() at its end. It may throw.
void visit(const void* key, void (*function)(void*), void* argument);

#pragma GCC visibility pop

// Calls code of the program, function(argument), on a stack from `bottom` on that counts as
// untouched.
void call(std::byte* bottom, void (*function)(void*), void* argument);

// The thread switches from one fiber, whose context is saved in `left`, to another; null: none.
void change(void*& left, void* to) noexcept;

// While it lives, the calling context is invisible and orders nothing: it works for many tasks, in
// a library that ThreadSanitizer does not know.
class Silent {
 public:
  Silent() noexcept {
    __tsan_ignore_thread_begin();
    AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
  }
  ~Silent() {
    AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
    __tsan_ignore_thread_end();
  }
  Silent(const Silent&) = delete;
  Silent& operator=(const Silent&) = delete;
};

#else

inline constexpr bool shown = false;
inline void before(const void*) noexcept {}
inline void after(const void*) noexcept {}
inline void pass(const void*, const void*) noexcept {}
inline void let_go_hold(const void*, const void*) noexcept {}
inline void after_holds() noexcept {}
inline void begin() noexcept {}
struct Inside {
  explicit Inside(const char*) noexcept {}
  ~Inside() {}  // not trivial, so that an unused object causes no warning
};
struct Outside {
  Outside() noexcept {}
  ~Outside() {}
};
struct Silent {
  Silent() noexcept {}
  ~Silent() {}
};
inline void visit(const void*, void (*const function)(void*), void* const argument) {
  function(argument);
}

#endif

}  // namespace imbrex::trace::races
