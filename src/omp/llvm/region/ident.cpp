// SPDX-License-Identifier: BSD-3-Clause
#include "omp/llvm/region/ident.hpp"

#include <array>
#include <atomic>
#include <bit>
#include <charconv>
#include <string>
#include <string_view>

#include "imbrex/detail/waist.hpp"

namespace imbrex::omp {

namespace {

// The layout of the object that a std::source_location points to, for libstdc++ and libc++.
struct Place {
  const char* file = "";
  const char* function = "";
  unsigned line = 0;
  unsigned column = 0;
};
static_assert(sizeof(std::source_location) == sizeof(const Place*));

// Places by the address of their Ident. An entry is written once: the thread that takes its key
// writes the place, and until then others find none. A full neighbourhood leaves later constructs
// without a place.
struct Entry {
  std::atomic<const Ident*> key{nullptr};
  std::atomic<const Place*> place{nullptr};  // release: the place is complete
};
constexpr std::size_t entries_count = 4096;
constexpr std::size_t neighbours = 8;
std::array<Entry, entries_count> entries;

unsigned number_in(const std::string_view text) noexcept {
  unsigned number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

const Place* make_place(std::string_view text) {
  std::array<std::string_view, 4> fields;
  text.remove_prefix(1);
  for (std::string_view& field : fields) {
    const std::size_t end = text.find(';');
    field = text.substr(0, end);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return new Place{detail::keep_text(fields[0]), detail::keep_text(fields[1]),
                   number_in(fields[2]), number_in(fields[3])};
}

}  // namespace

std::source_location place_of(const Ident* const where) {
  constexpr std::string_view unknown = ";unknown;";
  if (where == nullptr || where->text == nullptr || where->text[0] != ';') return {};
  if (std::string_view(where->text).starts_with(unknown)) return {};
  const auto address = reinterpret_cast<std::uintptr_t>(where);
  const std::size_t first = (address >> 3 ^ address >> 12) % entries_count;
  for (std::size_t index = first; index < first + neighbours; ++index) {
    Entry& entry = entries[index % entries_count];
    const Ident* key = entry.key.load(std::memory_order_relaxed);
    if (key == nullptr &&
        entry.key.compare_exchange_strong(key, where, std::memory_order_relaxed)) {
      entry.place.store(make_place(where->text), std::memory_order_release);
      key = where;
    }
    if (key != where) continue;
    const Place* const place = entry.place.load(std::memory_order_acquire);
    return place == nullptr ? std::source_location{} : std::bit_cast<std::source_location>(place);
  }
  return {};
}

}  // namespace imbrex::omp
