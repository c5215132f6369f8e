// SPDX-License-Identifier: BSD-3-Clause
// `imbrex top`: what the ranks of a running job do, again and again.
#pragma once

#include <string>
#include <vector>

#include "explain/recording.hpp"

namespace imbrex::explain {

// A table of the state at `now`, with the shares of time since `before`, an earlier look at the
// same files (or none). At most `rows` lines of at most `columns` characters.
[[nodiscard]] std::string table_of(const std::vector<Recording>& before,
                                   const std::vector<Recording>& now, std::size_t rows,
                                   std::size_t columns);

// Prints a table for each second until the job has ended or `looks` are over (0: no limit): in
// place on a terminal, one below the other elsewhere.
void run_top(const std::vector<std::string>& paths, int looks);

}  // namespace imbrex::explain
