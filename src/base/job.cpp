// SPDX-License-Identifier: BSD-3-Clause
#include "base/job.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <sstream>
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

namespace {

std::string variable(const char* const name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

// Launchers that say nothing are the parent of their ranks.
std::string job_name() {
  std::string name;
  if (const std::string slurm = variable("SLURM_JOB_ID"); !slurm.empty()) {
    name = "slurm-" + slurm + "." + variable("SLURM_STEP_ID");
  }
  for (const char* const one : {"PMIX_NAMESPACE", "PMI_JOBID", "PBS_JOBID", "LSB_JOBID",
                                "FLUX_JOB_ID"}) {
    if (name.empty()) name = variable(one);
  }
  if (name.empty()) name = fmt::format("parent-{}", getppid());
  const auto is_odd = [](const unsigned char c) {
    return std::isalnum(c) == 0 && c != '-' && c != '.';
  };
  std::ranges::replace_if(name, is_odd, '_');
  if (name.front() == '.') name.front() = '_';
  return name.substr(0, 60);
}

std::uint64_t started_at(const int process) noexcept {
  try {
    std::ifstream file(fmt::format("/proc/{}/stat", process));
    std::string text;
    std::getline(file, text);
    const std::size_t name_end = text.rfind(')');  // the name may contain anything
    if (name_end == std::string::npos) return 0;
    std::istringstream rest(text.substr(name_end + 1));
    std::string field;
    rest >> field;  // the state, which is the third field
    if (field == "Z" || field == "X") return 0;  // it has ended, and nobody has asked how
    for (int number = 4; number < 22; ++number) rest >> field;
    std::uint64_t ticks = 0;
    rest >> ticks;
    return ticks;
  } catch (...) {
    return 0;
  }
}

}  // namespace imbrex::base
