// SPDX-License-Identifier: BSD-3-Clause
// Texts that are kept until the end of the program, each once: names that are no literals.
#include <array>
#include <climits>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_set>

#include "base/guarded.hpp"
#include "base/spin_lock.hpp"
#include "imbrex/detail/waist.hpp"

namespace imbrex::detail {

namespace {

struct Hash {
  using is_transparent = void;
  [[nodiscard]] std::size_t operator()(const std::string_view text) const noexcept {
    return std::hash<std::string_view>{}(text);
  }
};

// A part of the table, so that threads seldom meet.
struct Part {
  base::LastingLock<std::mutex> lock;
  std::unordered_set<std::string, Hash, std::equal_to<>> known  // its strings never move
      IMBREX_GUARDED_BY(lock);
};
constexpr unsigned parts_bits = 4;
using Parts = std::array<Part, 1 << parts_bits>;

// Never destroyed: reports and traces are written after static objects are destroyed.
Parts& parts() {
  static auto& all_parts = *new Parts;
  return all_parts;
}
[[maybe_unused]] const Parts& parts_at_load = parts();

}  // namespace

const char* keep_text(const std::string_view text) {
  // The first bits choose the part, since the sets use the last ones.
  Part& part = parts()[Hash{}(text) >> (sizeof(std::size_t) * CHAR_BIT - parts_bits)];
  const std::lock_guard guard(part.lock);
  const auto found = part.known.find(text);
  return (found != part.known.end() ? found : part.known.emplace(text).first)->c_str();
}

}  // namespace imbrex::detail
