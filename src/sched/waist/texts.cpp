// SPDX-License-Identifier: BSD-3-Clause
// Texts that are kept until the end of the program, each once: names that are no literals.
#include <mutex>
#include <shared_mutex>
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

struct Texts {
  base::LastingLock<std::shared_mutex> lock;  // most calls only read
  std::unordered_set<std::string, Hash, std::equal_to<>> known  // its strings never move
      IMBREX_GUARDED_BY(lock);
};

// Never destroyed: reports and traces are written after static objects are destroyed.
Texts& texts() {
  static auto& all_texts = *new Texts;
  return all_texts;
}
[[maybe_unused]] const Texts& texts_at_load = texts();

// Null if the text is unknown. The analysis does not know std::shared_lock.
const char* find(Texts& kept, const std::string_view text) IMBREX_LOCKS_NOT_SEEN {
  const std::shared_lock guard(kept.lock);
  const auto found = kept.known.find(text);
  return found != kept.known.end() ? found->c_str() : nullptr;
}

}  // namespace

const char* keep_text(const std::string_view text) {
  Texts& kept = texts();
  if (const char* const known = find(kept, text)) return known;
  const std::lock_guard guard(kept.lock);
  return kept.known.emplace(text).first->c_str();
}

}  // namespace imbrex::detail
