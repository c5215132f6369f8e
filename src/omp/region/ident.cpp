// SPDX-License-Identifier: BSD-3-Clause
#include "omp/region/ident.hpp"

#include <array>
#include <atomic>
#include <bit>
#include <charconv>
#include <string>
#include <string_view>

#include "imbrex/detail/waist.hpp"

namespace imbrex::omp {

namespace {

// The layout of the object that a std::source_location points to, for libstdc++ and libc++; then
// the name of tasks, and the text that all was made of.
struct Place {
  const char* file = "";
  const char* function = "";
  unsigned line = 0;
  unsigned column = 0;
  const char* task = nullptr;
  const char* text = nullptr;
};
static_assert(sizeof(std::source_location) == sizeof(const Place*));

// Places by the address of their Ident, for all threads without a lock. Why this is right:
//
// (1) Entries are never freed, and a key changes once, from null, by compare-and-swap. All threads
// try the entries of an Ident in one order, and pass an entry only if another Ident has it for
// good. So no two entries have one Ident.
// (2) Only the thread that sets the key writes the place. Its release pairs with a reader's
// acquire, so a place that is found is complete. Keys are relaxed, because nothing else is read on
// account of a key: a reader that sees the key and not yet the place finds no place.
// (3) A library may lie where an unloaded one was. Its text has another address, so it finds none.
//
// A full neighbourhood leaves later constructs without a place. ident_test.cpp has the stress test.
struct Entry {
  std::atomic<const Ident*> key{nullptr};
  std::atomic<const Place*> place{nullptr};
};
constexpr std::size_t entries_count = 4096;
constexpr std::size_t neighbours = 8;
std::array<Entry, entries_count> entries;

unsigned number_in(const std::string_view text) noexcept {
  unsigned number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

const Place* make_place(const char* const given) {
  std::array<std::string_view, 4> fields;
  std::string_view text = given;
  text.remove_prefix(1);
  for (std::string_view& field : fields) {
    const std::size_t end = text.find(';');
    field = text.substr(0, end);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  // The line tells constructs of one function apart.
  const std::string task = std::string(fields[1]).append(":").append(fields[2]);
  return new Place{detail::keep_text(fields[0]), detail::keep_text(fields[1]),
                   number_in(fields[2]), number_in(fields[3]), detail::keep_text(task), given};
}

}  // namespace

Construct known_construct(const Ident& where) {
  constexpr std::string_view unknown = ";unknown;";
  if (where.text == nullptr || where.text[0] != ';') return {};
  if (std::string_view(where.text).starts_with(unknown)) return {};
  const auto address = reinterpret_cast<std::uintptr_t>(&where);
  const std::size_t first = (address >> 3 ^ address >> 12) % entries_count;
  for (std::size_t index = first; index < first + neighbours; ++index) {
    Entry& entry = entries[index % entries_count];
    const Ident* key = entry.key.load(std::memory_order_relaxed);
    if (key == nullptr &&
        entry.key.compare_exchange_strong(key, &where, std::memory_order_relaxed)) {
      entry.place.store(make_place(where.text), std::memory_order_release);
      key = &where;
    }
    if (key != &where) continue;
    const Place* const place = entry.place.load(std::memory_order_acquire);
    if (place == nullptr || place->text != where.text) return {};
    return {place->task, std::bit_cast<std::source_location>(place)};
  }
  return {};
}

}  // namespace imbrex::omp
