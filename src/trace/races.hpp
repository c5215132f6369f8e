// SPDX-License-Identifier: BSD-3-Clause
// Tells ThreadSanitizer who comes after whom, in the library's variant for it; else does nothing.
//
// That variant is not itself instrumented. So ThreadSanitizer sees the program's code only, and an
// order between two pieces of it only where we say so: each task runs in a context of its own, and
// between those there is what after() takes from a before() with the same key.
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

#pragma GCC visibility push(default)  // of the core: imbrex::mpi uses them too

// All that the calling context does up to a before() comes before all that any context does from a
// later after() with the same key on.
void before(const void* key) noexcept;
void after(const void* key) noexcept;
// Hands an order on: what came before `from` comes before `to` too; the calling context learns
// nothing of it.
void pass(const void* from, const void* to) noexcept;

// A hold of the completion whose event this is has been let go by the calling context or, if
// `source` is not null, by that event, which the context has fired. Code that begins later, or has
// waited, comes after it.
void let_go_hold(const void* event, const void* source) noexcept;
void after_holds() noexcept;

// The first call makes what all contexts know of, which should be the program's start.
void begin() noexcept;

// A context of its own for what runs on this stack while it lives. The thread may change.
class Inside {
 public:
  explicit Inside(const char* name) noexcept;
  ~Inside();
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  void* own_;
  void* outer_;  // null: a loop's
};

// While it lives, nothing is seen of what runs here, which is done for others and follows nobody.
class Outside {
 public:
  Outside() noexcept;
  ~Outside();
  Outside(const Outside&) = delete;
  Outside& operator=(const Outside&) = delete;

 private:
  void* left_;  // null: it was so before
};

// Runs code of the program's that is no task, in the middle of something else, in a context of its
// own: after all who have called before() with the same key, which it calls itself at its end. It
// may throw.
void visit(const void* key, void (*function)(void*), void* argument);

#pragma GCC visibility pop

// Calls code of the program's: as function(argument), on a stack from `bottom` on, as if nobody had
// touched it.
void call(std::byte* bottom, void (*function)(void*), void* argument);

// The thread leaves one fiber's stack, whose context is kept in `left`, for another's; null: none.
void change(void*& left, void* to) noexcept;

// While it lives, what the calling context does is neither seen nor orders anything: work for many
// tasks, in a library that ThreadSanitizer does not know.
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
  ~Inside() {}  // not trivial: used, though only made
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
