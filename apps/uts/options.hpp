// SPDX-License-Identifier: BSD-3-Clause
// The command line: the reference program's letters, and long names for the rest.
#pragma once

#include "../harness/command_line.hpp"
#include "variants.hpp"

namespace uts {

enum class Variant { sequential, mpi, openmp, imbrex };
inline constexpr apps::Choice<Variant> variant_names[] = {{"sequential", Variant::sequential},
                                                          {"mpi", Variant::mpi},
                                                          {"openmp", Variant::openmp},
                                                          {"imbrex", Variant::imbrex}};
inline constexpr apps::Choice<Victims> victims_names[] = {{"ring", Victims::ring},
                                                          {"random", Victims::random}};
inline constexpr apps::Choice<Steal> steal_names[] = {{"chunk", Steal::chunk},
                                                      {"half", Steal::half},
                                                      {"none", Steal::none}};

struct Options {
  Variant variant = Variant::imbrex;
  Parameters tree;
  Settings settings;
  int verbosity = 1;  // 0: counts and rate; 1: what is searched, and progress; 2: each searcher
  int repeat = 1;
  bool statistics = false;
  bool json = false;
};

// Throws InputError and HelpAsked.
[[nodiscard]] Options parse_options(int argc, char** argv);

}  // namespace uts
