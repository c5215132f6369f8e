// SPDX-License-Identifier: BSD-3-Clause
// libFuzzer on the IMBREX_* variables: each line of the input is one, without its prefix. The
// runtime reads every value, or refuses it by an Error that says what is valid.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "base/options.hpp"
#include "imbrex/error.hpp"

extern char** environ;

namespace {

void expect(const bool right) {
  if (!right) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* const data, const std::size_t size) {
  std::istringstream input(std::string(reinterpret_cast<const char*>(data), size));
  std::vector<std::string> variables;
  for (std::string line; std::getline(input, line);) {
    variables.push_back("IMBREX_" + line.substr(0, line.find('\0')));
  }
  std::vector<char*> entries;
  for (std::string& variable : variables) entries.push_back(variable.data());
  entries.push_back(nullptr);

  char** const kept = environ;
  environ = entries.data();
  try {
    const imbrex::base::Options options = imbrex::base::read_options();
    expect(options.WORKERS >= 0 && options.WORKERS <= 4096);
    expect(options.STACK_SIZE >= 16 << 10 && options.STACK_SIZE <= 1 << 30);
    expect(!options.POLICY.empty());
  } catch (const imbrex::Error& error) {
    expect(std::string_view(error.what()).find(": valid: ") != std::string_view::npos);
  }
  environ = kept;

  std::vector<std::string_view> names;
  for (const std::string_view variable : variables) {
    names.push_back(variable.substr(7, variable.find('=') - 7));
  }
  expect(imbrex::base::describe_unknown(names).empty() == names.empty());
  return 0;
}
