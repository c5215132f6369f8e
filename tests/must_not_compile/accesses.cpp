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
imbrex::Event event;
const imbrex::Ddf<int> ddf;
std::vector<double> v(8);
std::vector<bool> flags(8);
double few[4] = {};
double* const block = v.data();
double* pointer = block;
const double* const read_only = block;
const std::span<double> view(v);
const imbrex::Future<int> future = promise.future();
struct Opaque;  // as the handles of C libraries are
extern Opaque* const opaque;

void misuse_ddf() {
#if MISUSE == 24  // what cannot be awaited
  imbrex::task("wrong").await_all(x).launch([] {});
#elif MISUSE == 25
  imbrex::task("wrong").await_any(promise).launch([] {});
#elif MISUSE == 26
  imbrex::task("wrong").await_all().launch([] {});
#elif MISUSE == 27
  imbrex::task("wrong").out(ddf).launch([] {});
#elif MISUSE == 28  // neither another type, nor nothing
  ddf.put("text");
#elif MISUSE == 29
  ddf.put();
#endif
}

int main() {
#if MISUSE == 0
  imbrex::task("names")
      .in(future, promise.future(), imbrex::when_all(future, promise.future()))
      .in(v[1], few, few[1], *block, imbrex::at(read_only + 2), std::as_const(v))
      .out(x, imbrex::at(block + 3), imbrex::at(&pointer), v, imbrex::at(opaque))
      .inoutset(imbrex::range(block, 4), imbrex::range(few), imbrex::range(view))
      .in(imbrex::range(std::as_const(v)), imbrex::range(view.subspan(1, 2)))
      .await_all(ddf, future, std::vector{future}).await_any(ddf, imbrex::when_any(future))
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
#elif MISUSE == 13  // what is waited for in another way
  imbrex::task("wrong").in(event).launch([] {});
#elif MISUSE == 14
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
#elif MISUSE >= 24 && MISUSE <= 29
  misuse_ddf();
#else
#error "no such misuse"
#endif
}
