// SPDX-License-Identifier: BSD-3-Clause
#include "distributed/carrier/leaving.hpp"

#include <fmt/format.h>

#include <map>
#include <mutex>

#include "base/guarded.hpp"

namespace imbrex::distributed {

namespace {

// Objects that have left, and that other ranks may still wait for.
struct Left {
  std::mutex mutex;
  std::map<const Leaving*, std::string> all IMBREX_GUARDED_BY(mutex);
};

Left& left() {
  static auto& the_left = *new Left;  // never destroyed: a thread may look until the end
  return the_left;
}

}  // namespace

void Leaving::begin(const std::string& object) noexcept {
  const std::lock_guard guard(left().mutex);
  left().all.emplace(this, object);
}

void Leaving::over() noexcept {
  const std::lock_guard guard(left().mutex);
  left().all.erase(this);
}

void Leaving::describe(const std::size_t lines_max, std::string& text) {
  const std::lock_guard guard(left().mutex);
  std::size_t lines = 0;
  for (const auto& [leaving, object] : left().all) {
    if (++lines > lines_max) return;
    text += fmt::format("an exception has ended {} on this rank\n", object);
  }
}

std::string Leaving::text(const int rank, const std::string& object) {
  return fmt::format("imbrex: an exception has ended {} on rank {}, before all ranks reached its "
                     "end", object, rank);
}

}  // namespace imbrex::distributed
