// SPDX-License-Identifier: BSD-3-Clause
#include "base/check.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdlib>

namespace imbrex::base {

namespace {
std::atomic<Describe> describe_current{nullptr};
}

void set_describe(const Describe describe) noexcept {
  describe_current.store(describe, std::memory_order_release);  // pairs with the load in fail()
}

void report(const std::string& text) noexcept {
  std::string line = "imbrex: " + text + "\n";
  std::size_t done = 0;
  while (done < line.size()) {
    const ssize_t written = ::write(STDERR_FILENO, line.data() + done, line.size() - done);
    if (written <= 0) return;  // nowhere left to say it
    done += static_cast<std::size_t>(written);
  }
}

void fail(const char* const file, const int line, const std::string& what) noexcept {
  const Describe describe = describe_current.load(std::memory_order_acquire);
  report(fmt::format("{}\n  in {}; checked at {}:{}", what,
                     describe != nullptr ? describe() : "no task", file, line));
  std::abort();
}

}  // namespace imbrex::base
