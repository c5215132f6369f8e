// SPDX-License-Identifier: BSD-3-Clause
// What is no access, one for each value of MISUSE; 0 is what may be named.
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "imbrex/imbrex.hpp"

int x = 0;
imbrex::Promise<int> promise;
std::vector<double> v(8);
std::vector<bool> flags(8);
double few[4] = {};
double* const block = v.data();
double* pointer = block;
const double* const read_only = block;
const std::span<double> view(v);
const imbrex::Future<int> future = promise.future();
std::vector<imbrex::Future<int>> futures{future};
struct Opaque;  // as the handles of C libraries are
extern Opaque* const opaque;

int main() {
#if MISUSE == 0
  imbrex::task("names")
      .in(future, promise.future(), imbrex::when_all(future, promise.future()))
      .in(v[1], few, few[1], *block, imbrex::at(read_only + 2), std::as_const(v))
      .out(x, imbrex::at(block + 3), imbrex::at(&pointer), v, imbrex::at(opaque))
      .inoutset(imbrex::range(block, 4), imbrex::range(few), imbrex::range(view))
      .in(imbrex::range(std::as_const(v)), imbrex::range(view.subspan(1, 2)))
      .in(imbrex::when_all(std::vector{future}), imbrex::when_any(future), imbrex::at(&futures))
      .launch([&] {
        imbrex::release(v[1]);
        imbrex::release(imbrex::at(block + 3));
        imbrex::release(imbrex::range(block, 4));
      });
#elif MISUSE == 1  // no object, but a value
  imbrex::task("wrong").in(42).launch([] {});
#elif MISUSE == 2
  imbrex::task("wrong").in(flags[2]).launch([] {});
#elif MISUSE == 3
  imbrex::task("wrong").in(std::span(v).subspan(0, 4)).launch([] {});
#elif MISUSE == 4
  imbrex::task("wrong").in(std::string("a copy")).launch([] {});
#elif MISUSE == 5  // a variable that points to the object, or stands for it
  imbrex::task("wrong").out(block).launch([] {});
#elif MISUSE == 6
  imbrex::task("wrong").in(read_only).launch([] {});
#elif MISUSE == 7
  imbrex::task("wrong").in(v.data()).launch([] {});
#elif MISUSE == 8
  imbrex::task("wrong").inout(view).launch([] {});
#elif MISUSE == 9
  auto flag = flags[2];
  imbrex::task("wrong").inout(flag).launch([] {});
#elif MISUSE == 10  // what cannot be written
  imbrex::task("wrong").out(imbrex::at(read_only)).launch([] {});
#elif MISUSE == 11
  imbrex::task("wrong").out(future).launch([] {});
#elif MISUSE == 12
  imbrex::task("wrong").out(std::as_const(v)).launch([] {});
#elif MISUSE == 13
  imbrex::task("wrong").in(imbrex::Promise<void>()).launch([] {});
#elif MISUSE == 14  // what is waited for in another way
  imbrex::task("wrong").in(promise).launch([] {});
#elif MISUSE == 15  // what no task declares is not released either
  imbrex::release(block);
#elif MISUSE == 16
  imbrex::release(x + 1);
#elif MISUSE == 17
  imbrex::release(future);
#elif MISUSE == 18
  imbrex::task("wrong").in(main).launch([] {});
#elif MISUSE == 19
  imbrex::task("wrong").in(imbrex::at(42)).launch([] {});
#elif MISUSE == 20  // elements that are gone, or constant, or none
  imbrex::task("wrong").in(imbrex::range(std::vector<int>(3))).launch([] {});
#elif MISUSE == 21
  imbrex::task("wrong").out(imbrex::range(read_only, 2)).launch([] {});
#elif MISUSE == 22
  imbrex::task("wrong").in(imbrex::range(x)).launch([] {});
#elif MISUSE == 23
  imbrex::task("wrong").in(imbrex::range(flags)).launch([] {});
#elif MISUSE == 24  // what is waited for as a whole, or by its parts
  imbrex::task("wrong").in(futures).launch([] {});
#elif MISUSE == 25  // the pointer would outlive the value
  (void)promise.future().try_get();
#else
#error "no such misuse"
#endif
}
