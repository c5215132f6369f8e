// SPDX-License-Identifier: BSD-3-Clause
// libFuzzer on files of places in HClib's XML. The number of workers comes from the first byte. An
// accepted file is a tree, in which a place has the workers of all places within; other files are
// refused by an Error that names the file.
#include "sched/policy/place_file.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "imbrex/error.hpp"

namespace {

void expect(const bool right) {
  if (!right) std::abort();
}

void check(const imbrex::sched::Sketch& sketch, const std::size_t workers) {
  int index = 0;
  for (const imbrex::sched::PlannedPlace& place : sketch) {
    expect(place.parent < index);  // after its parent, which -1 stands for if it is the root
    for (const int worker : place.workers) {
      expect(worker >= 0 && static_cast<std::size_t>(worker) < workers);
      if (place.parent < 0) continue;
      const auto& outer = sketch[static_cast<std::size_t>(place.parent)].workers;
      expect(std::ranges::find(outer, worker) != outer.end());
    }
    ++index;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* const data, const std::size_t size) {
  if (size == 0) return 0;
  const std::size_t workers = 1 + data[0] % 8;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    check(imbrex::sched::parse_places(text, "fuzzed.xml", workers), workers);
  } catch (const imbrex::Error& error) {
    expect(std::string_view(error.what()).find("fuzzed.xml") != std::string_view::npos);
  }
  return 0;
}
