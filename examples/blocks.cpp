// SPDX-License-Identifier: BSD-3-Clause
// A device fills the blocks of a buffer in an order of its own. The task that starts the device
// ends at once. The task's access to a block ends when that block has arrived, and the reader of
// the block starts then.
#include <imbrex/imbrex.hpp>

#include <array>
#include <atomic>
#include <cstdio>
#include <thread>

int main() {
  constexpr int count = 4;
  std::array<std::array<double, 1000>, count> blocks{};
  std::array<imbrex::Promise<void>, count> came;
  std::array<std::atomic<bool>, count> filled{};
  std::thread device;
  std::atomic<int> wrong = 0;

  imbrex::finish([&] {
    imbrex::TaskBuilder start = imbrex::task("start the device");
    for (auto& block : blocks) (void)start.out(block);
    start.launch([&] {
      for (int i = 0; i < count; ++i) imbrex::release_after(came[i].future(), blocks[i]);
      device = std::thread([&] {
        for (const int i : {2, 0, 3, 1}) {
          blocks[i].fill(i + 1);
          filled[i] = true;
          came[i].set();
        }
      });
    });
    for (int i = 0; i < count; ++i) {
      imbrex::task("read").in(blocks[i]).launch([&, i] {
        if (!filled[i] || blocks[i].back() != i + 1) ++wrong;
      });
    }
  });
  device.join();
  std::printf("%d blocks, %d read too early\n", count, wrong.load());
  return wrong == 0 ? 0 : 1;
}
