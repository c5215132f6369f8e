// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/abi/quirks.hpp"

#include <charconv>

namespace imbrex::mpi {

namespace {

// Reads "4.1.4" behind `mark`, and whatever stands between that is no digit; 0 if there is none.
int version_behind(const std::string_view text, const std::string_view mark) noexcept {
  std::size_t at = text.find(mark);
  if (at == std::string_view::npos) return 0;
  at = text.find_first_of("0123456789", at + mark.size());
  if (at == std::string_view::npos) return 0;
  int parts[3] = {};
  const char* const end = text.data() + text.size();
  const char* here = text.data() + at;
  for (int& part : parts) {
    const auto [next, error] = std::from_chars(here, end, part);
    if (error != std::errc() || next == end || *next != '.') break;
    here = next + 1;
  }
  return version_of(parts[0], parts[1]) + parts[2];
}

}  // namespace

Identity identify(const std::string_view text, const int or_else) noexcept {
  const std::string_view line = text.substr(0, text.find('\n'));
  if (line.starts_with("Open MPI")) return {Family::openmpi, version_behind(line, "Open MPI")};
  if (line.starts_with("Intel(R) MPI")) return {Family::intel, version_behind(line, "Library")};
  if (line.starts_with("MPICH")) return {Family::mpich, version_behind(line, "Version:")};
  // Relatives of MPICH: Cray's, "CRAY MPICH version 8.1.29 (ANL base 3.4a2)", and MVAPICH.
  if (line.find("MPICH") != std::string_view::npos ||
      line.find("MVAPICH") != std::string_view::npos) {
    const int base = version_behind(line, "ANL base");
    return {Family::mpich, base != 0 ? base : or_else};
  }
  return {};
}

}  // namespace imbrex::mpi
