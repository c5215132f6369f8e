// SPDX-License-Identifier: BSD-3-Clause
#include "c/places.hpp"

#include <pthread.h>

#include <bit>
#include <map>
#include <mutex>
#include <utility>

#include "imbrex/detail/observation.hpp"

namespace imbrex::c {

namespace {

// The layout of the object that a std::source_location points to, the same for libstdc++ and
// libc++; tests/core/c_test.c checks that the texts are correct.
struct Location {
  const char* file;
  const char* function;
  unsigned line;
  unsigned column;
};
static_assert(sizeof(std::source_location) == sizeof(const Location*));

// Guards the places; this layer does not see base/guarded.hpp. fork() holds the lock, so that the
// child finds it free, and the places whole.
std::mutex lock;
[[maybe_unused]] const int held_by_fork =
    pthread_atfork([] { lock.lock(); }, [] { lock.unlock(); }, [] { lock.unlock(); });

}  // namespace

std::source_location place(const char* const file, const int line) {
  if (file == nullptr) return {};
  static auto& places = *new std::map<std::pair<const char*, int>, Location>;  // never destroyed
  const std::lock_guard guard(lock);
  const auto [found, inserted] = places.try_emplace(
      {file, line}, Location{file, "", static_cast<unsigned>(line < 0 ? 0 : line), 0});
  const Location* const place = &found->second;
  return std::bit_cast<std::source_location>(place);
}

}  // namespace imbrex::c

namespace imbrex::detail {

const char code_mark[] = "";

namespace {

struct OfCode : c::Location {
  const void* code;
};

}  // namespace

std::source_location place_of_code(const void* const code) {
  static auto& places = *new std::map<const void*, OfCode>;  // never destroyed
  const std::lock_guard guard(c::lock);
  const auto [found, inserted] = places.try_emplace(code, OfCode{{"", code_mark, 0, 0}, code});
  const c::Location* const place = &found->second;
  return std::bit_cast<std::source_location>(place);
}

const void* code_at(const std::source_location& where) noexcept {
  if (where.line() != 0 || where.function_name() != code_mark) return nullptr;
  return static_cast<const OfCode*>(std::bit_cast<const c::Location*>(where))->code;
}

}  // namespace imbrex::detail
