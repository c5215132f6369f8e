// SPDX-License-Identifier: BSD-3-Clause
#include "base/threads/threads.hpp"

#include <dirent.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <sstream>
#include <string_view>
#include <thread>

#include "base/arch.hpp"
#include "base/guarded.hpp"
#include "base/spin_lock.hpp"

namespace imbrex::base {

namespace {

struct Known {
  base::LastingLock<std::mutex> mutex;
  std::vector<pid_t> own IMBREX_GUARDED_BY(mutex);
  std::vector<pid_t> of_libraries IMBREX_GUARDED_BY(mutex);
};
Known& known() {
  static auto& all = *new Known;  // never destroyed: a thread may end after static objects
  return all;
}
[[maybe_unused]] const Known& known_at_load = known();

bool contains(const std::vector<pid_t>& threads, const pid_t thread) {
  return std::ranges::find(threads, thread) != threads.end();
}

#if IMBREX_TSAN
// The sanitizer's own thread starts together with the first other thread.
[[gnu::constructor]] void add_threads_of_sanitizer() {
  std::thread([] {}).join();
  std::vector<pid_t> threads = thread_ids();
  std::erase(threads, kernel_thread_id());
  add_library_threads(threads);
}
#endif

// Whether other processes may share the memory at `address`; true if unknown.
bool is_shared_memory(const std::uint64_t address) {
  std::ifstream maps("/proc/self/maps");
  std::string line;
  while (std::getline(maps, line)) {  // begin-end rwxp ...; the last letter: private or shared
    char* behind = nullptr;
    const std::uint64_t begin = std::strtoull(line.c_str(), &behind, 16);
    if (*behind != '-') return true;
    const std::uint64_t end = std::strtoull(behind + 1, &behind, 16);
    if (address < begin || address >= end) continue;
    return std::string_view(behind).substr(0, 5).back() != 'p';
  }
  return true;
}

// A system call as /proc shows it: the number, then the arguments.
struct FutexCall {
  std::uint64_t address = 0, operation = 0, timeout = 0;

  // Returns false if `text` shows another call.
  [[nodiscard]] bool parse(const std::string& text) {
    std::istringstream words(text);
    long number = 0;
    std::string its_address, its_operation, its_value, its_timeout;
    if (!(words >> number >> its_address >> its_operation >> its_value >> its_timeout) ||
        number != SYS_futex) {
      return false;
    }
    address = std::strtoull(its_address.c_str(), nullptr, 16);
    operation = std::strtoull(its_operation.c_str(), nullptr, 16);
    timeout = std::strtoull(its_timeout.c_str(), nullptr, 16);
    return true;
  }
  [[nodiscard]] bool is_for_good() const {
    const std::uint64_t command = operation & FUTEX_CMD_MASK;
    if ((command != FUTEX_WAIT && command != FUTEX_WAIT_BITSET) || timeout != 0) return false;
    return (operation & FUTEX_PRIVATE_FLAG) != 0 || !is_shared_memory(address);
  }
};

}  // namespace

std::vector<pid_t> thread_ids() {
  std::vector<pid_t> ids;
  DIR* const folder = opendir("/proc/self/task");
  if (folder == nullptr) return ids;
  while (const dirent* const entry = readdir(folder)) {
    if (entry->d_name[0] == '.') continue;
    ids.push_back(static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10)));
  }
  closedir(folder);
  return ids;
}

void add_own_thread(const pid_t thread) {
  const std::lock_guard guard(known().mutex);
  known().own.push_back(thread);
}

void remove_own_thread(const pid_t thread) noexcept {
  const std::lock_guard guard(known().mutex);
  std::erase(known().own, thread);
}

bool is_own_thread(const pid_t thread) {
  const std::lock_guard guard(known().mutex);
  return contains(known().own, thread);
}

void add_library_threads(const std::span<const pid_t> threads) {
  const std::lock_guard guard(known().mutex);
  known().of_libraries.insert(known().of_libraries.end(), threads.begin(), threads.end());
}

bool is_library_thread(const pid_t thread) {
  const std::lock_guard guard(known().mutex);
  return contains(known().of_libraries, thread);
}

void forget_threads() noexcept {
  const std::lock_guard guard(known().mutex);
  known().own.clear();
  known().of_libraries.clear();
}

FutexSleep futex_sleep_of(const pid_t thread) {
  if (thread == 0) return {};
  const std::string folder = fmt::format("/proc/self/task/{}/", thread);
  std::string text;
  FutexCall call;
  if (!std::getline(std::ifstream(folder + "syscall"), text) || !call.parse(text)) return {};
  std::ifstream status(folder + "status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("voluntary_ctxt_switches")) return {text + line, call.is_for_good()};
  }
  return {text, false};
}

}  // namespace imbrex::base
