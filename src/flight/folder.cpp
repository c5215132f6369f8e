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
#include <string_view>
#include <utility>
#include <vector>

#include "base/job.hpp"

namespace imbrex::flight {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t jobs_max = 16;    // folders of jobs that a user keeps
constexpr std::size_t files_max = 256;  // of dead processes, in one folder

std::string variable(const char* const name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
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
    if (process == 0 || base::started_at(process) != 0) continue;
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

Folder make_folder(const std::string& own) {
  Folder folder;
  folder.job = base::job_name();
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
