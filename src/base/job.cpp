// SPDX-License-Identifier: BSD-3-Clause
#include "base/job.hpp"

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace imbrex::base {

int job_rank() noexcept {
  // Slurm's variable is the last: under an mpirun inside of a batch job it describes the script.
  for (const char* const name :
       {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    const char* const value = std::getenv(name);
    if (value == nullptr) continue;
    const std::string_view text = value;
    int rank = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
    if (error == std::errc() && end == text.data() + text.size()) return rank;
  }
  return 0;
}

}  // namespace imbrex::base
