// SPDX-License-Identifier: BSD-3-Clause
// A pipeline over four slots. A task may end one of its accesses before it ends itself: here the
// reader lets the next stage start on a slot's header while it still works on the body.
#include <imbrex/imbrex.hpp>

#include <array>
#include <cstdio>

namespace {

struct Slot {
  int header = 0;
  int body = 0;
  imbrex::Promise<void> header_seen;
};
constexpr int items = 100;

}  // namespace

int main() {
  long sum = 0;
  for (int first = 0; first < items; first += 4) {
    std::array<Slot, 4> slots;
    imbrex::finish([&] {
      for (int i = 0; i < 4; ++i) {
        Slot& slot = slots[static_cast<std::size_t>(i)];
        const int item = first + i;
        imbrex::task("read").out(slot.header, slot.body).launch([&slot, item] {
          slot.header = item;
          imbrex::release(slot.header);     // "look" may run from here on
          slot.header_seen.future().get();  // without the release this would wait for ever
          slot.body = 2 * item;
        });
        imbrex::task("look").in(slot.header).launch([&slot] { slot.header_seen.set(); });
        imbrex::task("sum").in(slot.header, slot.body).inout(sum).launch([&slot, &sum] {
          sum += slot.header + slot.body;
        });
      }
    });
  }
  std::printf("sum %ld\n", sum);
  return sum == 3L * items * (items - 1) / 2 ? 0 : 1;
}
