// SPDX-License-Identifier: BSD-3-Clause
// A search that stops: the first task that finds a number stops the others.
#include <imbrex/imbrex.hpp>

#include <atomic>
#include <cstdio>
#include <stop_token>

namespace {

constexpr int parts = 1000;
constexpr int size = 1000;

bool is_wanted(const int i) { return i % 1499 == 17 && i > 2000; }

}  // namespace

int main() {
  std::atomic<int> found{-1};
  imbrex::finish([&](imbrex::Scope search) {
    for (int part = 0; part < parts; ++part) {
      imbrex::task("look").launch([&, search, part](const std::stop_token stop) mutable {
        for (int i = part * size; i < (part + 1) * size && !stop.stop_requested(); ++i) {
          if (!is_wanted(i)) continue;
          found = i;
          search.request_stop();  // parts that have not begun do not begin
        }
      });
    }
  });
  std::printf("found %d\n", found.load());
  return is_wanted(found) ? 0 : 1;
}
