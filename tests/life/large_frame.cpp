// SPDX-License-Identifier: BSD-3-Clause
// large_frame <case>: a task whose array is larger than its stack, among tasks that are suspended
// on the stacks beside it. Must end with the message that names it; if it goes on, says whose stack
// was written on. Built with and without the compiler's probes.
#include <cstddef>
#include <cstdio>
#include <cstring>

#include "imbrex/imbrex.hpp"

namespace {

// Only the beginning is written, as by a loop over an array that is not full.
template <std::size_t kib>
[[gnu::noinline]] int fill_beginning(const char value) {
  volatile char array[kib * 1024];
  for (std::size_t i = 0; i < 4096; ++i) array[i] = value;
  return array[17];
}

int wait_with_pattern(imbrex::Promise<void>& event, const char value) {
  volatile char pattern[32 * 1024];
  for (volatile char& byte : pattern) byte = value;
  event.future().get();
  int wrong = 0;
  for (volatile char& byte : pattern) wrong += byte != value ? 1 : 0;
  return wrong;
}

template <std::size_t kib>
int overflow() {
  imbrex::Promise<void> event;
  int wrong[12] = {};
  imbrex::finish([&] {
    for (int& mine : wrong) {
      imbrex::task("waits").launch([&] { mine = wait_with_pattern(event, 'w'); });
    }
    imbrex::task("has a large array").launch([&event] {
      imbrex::yield();  // the others stand on their stacks by now
      std::printf("filled with %d\n", fill_beginning<kib>('x'));
      event.set();
    });
  });
  int sum = 0;
  for (const int mine : wrong) sum += mine;
  std::printf("bytes of others overwritten: %d\n", sum);
  return 1;
}

}  // namespace

int main(const int count, char** const arguments) {
  const char* const name = count > 1 ? arguments[1] : "";
  if (std::strcmp(name, "80K") == 0) return overflow<80>();
  if (std::strcmp(name, "1100K") == 0) return overflow<1100>();
  if (std::strcmp(name, "1300K") == 0) return overflow<1300>();
  if (std::strcmp(name, "1900K") == 0) return overflow<1900>();
  if (std::strcmp(name, "20M") == 0) return overflow<20 * 1024>();
  return 2;
}
