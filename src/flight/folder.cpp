// SPDX-License-Identifier: BSD-3-Clause
#include "flight/folder.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

namespace imbrex::flight {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t jobs_max = 16;    // folders of jobs that a user keeps
constexpr std::size_t files_max = 256;  // of dead processes, in one folder

std::string variable(const char* const name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// What all ranks of a job on a node agree on. Launchers that say nothing are the parent of their
// ranks.
std::string name_of_job() {
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

// A folder of this user that nobody else may look into.
std::string make_private(const std::string& path) {
  struct stat state{};
  do {  // again, if another process has just taken it away
    if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
      return fmt::format("cannot make {} ({})", path, std::strerror(errno));
    }
  } while (lstat(path.c_str(), &state) != 0 && errno == ENOENT);
  if (!S_ISDIR(state.st_mode)) return fmt::format("{} is no folder", path);
  if (state.st_uid != geteuid() || (state.st_mode & 077) != 0) {
    return fmt::format("{} belongs to another user, or others may look into it", path);
  }
  return {};
}

// HOST.PROCESS.flight.
int process_of(const std::string& file) {
  const std::string ours = host_name() + ".";
  if (!file.starts_with(ours) || !file.ends_with(".flight")) return 0;
  int process = 0;
  const char* const begin = file.data() + ours.size();
  (void)std::from_chars(begin, file.data() + file.size() - 7, process);
  return process;
}

using Aged = std::pair<fs::file_time_type, fs::path>;

// The oldest go until no more than `most` are left.
void remove_oldest(std::vector<Aged>& all, const std::size_t most) {
  if (all.size() <= most) return;
  std::ranges::sort(all);
  std::error_code ignored;
  for (std::size_t i = 0; i < all.size() - most; ++i) fs::remove_all(all[i].second, ignored);
}

[[nodiscard]] std::size_t count_of(const fs::path& folder) {
  std::error_code ignored;
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder, ignored), {}));
}

// Files of processes that run, here or on another host, stay.
std::vector<Aged> dead_files(const fs::path& folder) {
  std::vector<Aged> dead;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const int process = process_of(entry.path().filename().string());
    if (process == 0 || started_at(process) != 0) continue;
    dead.emplace_back(entry.last_write_time(ignored), entry.path());
  }
  return dead;
}

// Mostly there is room, and no process need be looked at.
void make_room_for_jobs(const fs::path& base, const std::string& own) {
  if (count_of(base) <= jobs_max) return;
  std::vector<Aged> jobs;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(base, ignored)) {
    if (!entry.is_directory(ignored) || entry.path().filename() == own) continue;
    if (count_of(entry.path()) != dead_files(entry.path()).size()) continue;
    jobs.emplace_back(entry.last_write_time(ignored), entry.path());
  }
  remove_oldest(jobs, jobs_max);
}

}  // namespace

std::string host_name() {
  char host[64] = "";
  gethostname(host, sizeof host - 1);
  return host;
}

std::string file_name() { return fmt::format("{}.{}.flight", host_name(), getpid()); }

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

Folder make_folder(const std::string& own) {
  Folder folder;
  folder.job = name_of_job();
  std::error_code error;
  if (!own.empty()) {
    fs::create_directories(own, error);
    if (error) {
      folder.problem = fmt::format("cannot make {} ({})", own, error.message());
      return folder;
    }
    folder.path = own;
  } else {
    std::string temporary = variable("TMPDIR");
    if (temporary.empty()) temporary = "/tmp";
    const std::string base = fmt::format("{}/imbrex-{}", temporary, geteuid());
    folder.problem = make_private(base);
    if (folder.problem.empty()) folder.problem = make_private(base + "/" + folder.job);
    if (!folder.problem.empty()) return folder;
    folder.path = base + "/" + folder.job;
    make_room_for_jobs(base, folder.job);
  }
  if (count_of(folder.path) > files_max) {
    std::vector<Aged> dead = dead_files(folder.path);
    remove_oldest(dead, files_max);
  }
  return folder;
}

}  // namespace imbrex::flight
