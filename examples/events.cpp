// SPDX-License-Identifier: BSD-3-Clause
// Promises set by a thread that imbrex does not know, as a driver's callback would. A task that
// waits gives up its worker; release_after() keeps a task open that has ended.
#include <imbrex/imbrex.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>

int main() {
  imbrex::Promise<void> arrived;   // "the device has delivered"
  imbrex::Promise<void> finished;  // "the device has read our buffer"
  std::atomic<bool> device_has_read = false;
  int data = 0;
  int buffer = 0;

  std::thread device([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    data = 42;
    arrived.set();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    device_has_read = true;
    finished.set();
  });

  bool too_early = false;
  imbrex::finish([&] {
    imbrex::task("wait for the device").out(buffer).launch([&] {
      arrived.future().get();  // suspends this task; its worker does something else
      buffer = data;
      // Dependents wait for this too, though the body ends now.
      imbrex::release_after(finished.future());
    });
    imbrex::task("use the buffer again").inout(buffer).launch([&] {
      too_early = !device_has_read;
      ++buffer;
    });
  });
  device.join();
  std::printf("buffer %d, %s\n", buffer, too_early ? "used too early" : "used after the device");
  return buffer == 43 && !too_early ? 0 : 1;
}
