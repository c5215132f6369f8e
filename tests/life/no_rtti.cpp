// SPDX-License-Identifier: BSD-3-Clause
// Compiled with -fno-rtti: exceptions of the program's own classes leave tasks, and no call takes
// the last one.
#include <cstdio>
#include <stdexcept>

#include "imbrex/imbrex.hpp"

namespace {

struct Own : std::runtime_error {
  using std::runtime_error::runtime_error;
  int code = 7;
};
struct Derived : imbrex::Error {
  using imbrex::Error::Error;
};
struct Other : std::exception {
  [[nodiscard]] const char* what() const noexcept override { return "of the standard's root"; }
};

template <class Caught, class Thrown>
void throw_and_catch(const Thrown& thrown) {
  try {
    imbrex::finish([&thrown] {
      for (int i = 0; i < 3; ++i) imbrex::task("throws").launch([&thrown] { throw thrown; });
    });
    std::printf("nothing was thrown\n");
  } catch (const Caught& error) {
    std::printf("caught: %s\n", error.what());
  }
}

}  // namespace

int main() {
  throw_and_catch<Own>(Own("own"));
  throw_and_catch<Derived>(Derived("derived from Error"));
  throw_and_catch<std::exception>(Other());
  throw_and_catch<std::runtime_error>(std::runtime_error("of the standard"));
  try {
    imbrex::task("code").spawn([] { throw Own("own"); }).get();
  } catch (const Own& error) {
    std::printf("caught: code %d\n", error.code);
  }
  imbrex::task("load").launch([] { throw Own("own"); });
}
