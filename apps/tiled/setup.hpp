// SPDX-License-Identifier: BSD-3-Clause
// A program of tiles: its main, and what is checked before a run. The checks are collective; they
// throw InputError, the same on every rank.
#pragma once

#include <memory>
#include <string>

#include "matrix.hpp"
#include "team.hpp"

namespace tiled {

// Is apps::run_program() for a program with imbrex: starts MPI so that the program can be measured.
[[nodiscard]] int run_program(const char* name, int argc, char** argv, int (*run)(int, char**));

// Refuses tiles that are too large or too many, and matrices that do not fit into memory.
void check_layout(const Team& team, const Layout& layout, int matrices);
[[nodiscard]] std::unique_ptr<TiledMatrix> allocate(const Team& team, const Layout& layout);
// Refuses memory that the ranks of a node need together and the node does not have: `mine` bytes on
// this rank. The error is "<what> ... GiB on one node, which has ... GiB; take <other>, or more
// nodes".
void check_memory(MPI_Comm all, double mine, const std::string& what, const std::string& other);

}  // namespace tiled
