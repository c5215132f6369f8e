// SPDX-License-Identifier: BSD-3-Clause
// Uses of the interface that the compiler must refuse, one for each value of MISUSE; 0 is the right
// use of the same things. A forgotten spawn and an unused result are warnings, compiled as errors.
#include <memory>

#include "imbrex/imbrex.hpp"

// Wrong uses of a result, a value and a closure.
void values() {
  [[maybe_unused]] int x = 0;
#if MISUSE == 21  // what a result cannot be
  struct alignas(128) Wide {
    double values[16];
  };
  (void)imbrex::task("wide").spawn([] { return Wide(); });
#elif MISUSE == 22
  (void)imbrex::task("refers").spawn([&x]() -> int& { return x; });
#elif MISUSE == 23
  imbrex::Promise<const int> unchanging;
#elif MISUSE == 24  // what a closure cannot be
  struct alignas(128) Wide {
    double values[16];
  };
  imbrex::task("wide").launch([wide = Wide()] { (void)wide; });
#endif
}

int main() {
  int x = 0;
  const int constant = 0;
  imbrex::Promise<int> promise;
  imbrex::Promise<void> done;
  (void)constant;
#if MISUSE == 0
  imbrex::task("right").in(constant).out(x).spawn([] {});
  (void)promise.future().get();
  (void)imbrex::when_any(promise.future(), done.future());
  promise.set(1);
  done.set();
  imbrex::release_after(done.future());
  imbrex::TaskBuilder named = imbrex::task("named").priority(1);
  named.in(constant).spawn([] {});
  imbrex::finish([] {});
  imbrex::task("moves").spawn([p = std::make_unique<int>(1)] { return *p; });
  imbrex::Future<int> plain = imbrex::task("const").spawn([]() -> const int { return 1; });
#elif MISUSE == 1  // a forgotten spawn
  imbrex::task("forgotten");
#elif MISUSE == 2  // the same after an access
  imbrex::task("forgotten").in(x).out(x);
#elif MISUSE == 3  // the same after an attribute
  imbrex::task("forgotten").priority(3);
#elif MISUSE == 4  // a body that cannot be called
  imbrex::task("wrong").spawn(42);
#elif MISUSE == 5  // a body that wants an argument
  imbrex::task("wrong").spawn([](int value) { return value; });
#elif MISUSE == 6  // writing to a temporary
  imbrex::task("wrong").out(x + 1).spawn([] {});
#elif MISUSE == 7
  imbrex::task("wrong").inout(1).spawn([] {});
#elif MISUSE == 8  // a result that no code uses
  promise.future().get();
#elif MISUSE == 9
  imbrex::when_any(promise.future(), done.future());
#elif MISUSE == 10
  imbrex::when_all(promise.future(), done.future());
#elif MISUSE == 11  // a value of another type
  promise.set("text");
#elif MISUSE == 12
  done.set(1);
#elif MISUSE == 13  // no value
  promise.set(1, 2);
#elif MISUSE == 14  // a builder that would be gone
  [[maybe_unused]] auto& gone = imbrex::task("gone").priority(1);
#elif MISUSE == 15
  [[maybe_unused]] imbrex::TaskBuilder& gone = imbrex::task("gone").in(constant).out(x);
#elif MISUSE == 16
  imbrex::finish(42);
#elif MISUSE == 17
  imbrex::Runtime first;
  imbrex::Runtime second = first;
#elif MISUSE == 18  // a future of another type
  imbrex::Future<double> wrong = promise.future();
#elif MISUSE == 19
  imbrex::release_after(promise);
#elif MISUSE == 20  // a mutable lvalue that is moved from by name only: the body is copied
  auto body = [p = std::make_unique<int>(1)] { return *p; };
  imbrex::task("wrong").spawn(body);
#elif MISUSE <= 24
  values();
#else
#error "no such misuse"
#endif
  return x;
}
