// SPDX-License-Identifier: BSD-3-Clause
#include "omp/tools/tool.hpp"

#include <dlfcn.h>
#include <link.h>
#include <sched.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/arch.hpp"
#include "imbrex/runtime.hpp"
#include "omp/environment/fatal.hpp"

namespace imbrex::omp::tools {

std::atomic<Phase> phase{Phase::unknown};
std::array<std::atomic<AnyFunction>, events_end> calls;

namespace {

constexpr unsigned interface_version = 201811;  // OpenMP 5.0, the first version with tools
constexpr const char* start_name = "ompt_start_tool";
using Start = StartResult* (*)(unsigned version, const char* runtime);

StartResult* tool = nullptr;        // only the thread that starts or ends the tool
std::atomic<int> starting_thread{0};

std::string_view value_of(const char* const name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

// OMP_TOOL_VERBOSE_INIT: the steps of the search, to a stream or a file.
class Log {
 public:
  Log() {
    const std::string to(value_of("OMP_TOOL_VERBOSE_INIT"));
    if (to.empty() || to == "disabled") return;
    if (to == "stdout" || to == "stderr") {
      file_ = to == "stdout" ? stdout : stderr;
    } else {
      file_ = std::fopen(to.c_str(), "w");
      owned_ = file_ != nullptr;
      if (!owned_) warn("OMP_TOOL_VERBOSE_INIT=%s: this file cannot be written", to.c_str());
    }
    print("----- START LOGGING OF TOOL REGISTRATION -----\n");
  }
  ~Log() {
    print("----- END LOGGING OF TOOL REGISTRATION -----\n");
    if (owned_) std::fclose(file_);
  }
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  template <class... Values>
  [[gnu::format(printf, 2, 0)]] void print(const char* const format, const Values... values) {
    if (file_ == nullptr) return;
    std::fprintf(file_, format, values...);
    std::fflush(file_);
  }
  void print(const char* const text) {
    if (file_ == nullptr) return;
    std::fputs(text, file_);
    std::fflush(file_);
  }

 private:
  std::FILE* file_ = nullptr;
  bool owned_ = false;
};

StartResult* ask(void* const found) {
  const auto start = reinterpret_cast<Start>(found);
  static const std::string name = std::string("imbrex ") + version();
  return start != nullptr ? start(interface_version, name.c_str()) : nullptr;
}

// The first definition may be that of a face (which calls ours, and answers null), in front of the
// tool's. So each loaded object is asked for its own.
StartResult* search_process() {
  void* const first = dlsym(RTLD_DEFAULT, start_name);
  if (first == nullptr) return nullptr;
  if (StartResult* const result = ask(first)) return result;
  std::vector<void*> asked{first};
  void* const program = dlopen(nullptr, RTLD_LAZY);
  link_map* object = nullptr;
  if (program == nullptr || dlinfo(program, RTLD_DI_LINKMAP, &object) != 0) return nullptr;
  for (; object != nullptr; object = object->l_next) {
    void* const handle = dlopen(object->l_name, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) continue;
    void* const found = dlsym(handle, start_name);
    dlclose(handle);
    bool is_new = found != nullptr;
    for (void* const one : asked) is_new = is_new && one != found;
    if (!is_new) continue;
    asked.push_back(found);
    if (StartResult* const result = ask(found)) return result;
  }
  return nullptr;
}

StartResult* search_library(const std::string& path, Log& log) {
  log.print("Opening %s... ", path.c_str());
  void* const library = dlopen(path.c_str(), RTLD_LAZY);
  if (library == nullptr) {
    log.print("Failed: %s\n", dlerror());
    return nullptr;
  }
  log.print("Success. \n");
  log.print("Searching for ompt_start_tool in %s... ", path.c_str());
  void* const found = dlsym(library, start_name);
  if (found == nullptr) {
    log.print("Failed: %s\n", dlerror());
    dlclose(library);
    return nullptr;
  }
  StartResult* const result = ask(found);
  if (result == nullptr) {
    log.print("Found but not using the OMPT interface.\nContinuing search...\n");
    dlclose(library);
  } else {
    log.print("Success. \n");
  }
  return result;
}

StartResult* search(Log& log) {
  log.print("Search for OMP tool in current address space... ");
  if (StartResult* const result = search_process()) {
    log.print("Success. \n");
    return result;
  }
  log.print("Failed.\n");
  std::string_view libraries = value_of("OMP_TOOL_LIBRARIES");
  if (libraries.empty()) {
    log.print("No OMP_TOOL_LIBRARIES defined.\n...searching tool libraries failed.\n");
    return nullptr;
  }
  log.print("Searching tool libraries...\n");
  log.print("OMP_TOOL_LIBRARIES = %s\n", std::string(libraries).c_str());
  for (;;) {
    const std::size_t colon = libraries.find(':');
    const std::string path(libraries.substr(0, colon));
    if (!path.empty()) {
      if (StartResult* const result = search_library(path, log)) return result;
    }
    if (colon == std::string_view::npos) break;
    libraries.remove_prefix(colon + 1);
  }
  log.print("...searching tool libraries failed.\n");
  return nullptr;
}

StartResult* find() {
  Log log;
  StartResult* const found = search(log);
  log.print(found != nullptr ? "Tool was started and is using the OMPT interface.\n"
                             : "No OMP tool loaded.\n");
  return found;
}

// True: the tool listens from now on.
bool start() {
  const std::string switched(value_of("OMP_TOOL"));
  if (switched == "disabled") return false;
  if (!switched.empty() && switched != "enabled") {
    warn("OMP_TOOL has invalid value \"%s\". legal values are (NULL,\"\",\"disabled\","
         "\"enabled\").",
         switched.c_str());
    return false;
  }
  tool = find();
  if (tool == nullptr) return false;
  constexpr int host = 0;
  if (tool->initialize(&look_up, host, &tool->tool_data) == 0) {
    tool = nullptr;
    return false;
  }
  // Registered after the tool's own objects were made: it ends before they do.
  std::atexit(&finish);
  return true;
}

}  // namespace

bool listens() {
  Phase now = phase.load(std::memory_order_acquire);
  if (now == Phase::unknown &&
      phase.compare_exchange_strong(now, Phase::starting, std::memory_order_acquire)) {
    starting_thread.store(base::kernel_thread_id(), std::memory_order_relaxed);
    now = start() ? Phase::listening : Phase::none;
    starting_thread.store(0, std::memory_order_relaxed);
    phase.store(now, std::memory_order_release);
  }
  while (now == Phase::starting || now == Phase::unknown) {
    // The tool's own calls of OpenMP are not heard.
    if (starting_thread.load(std::memory_order_relaxed) == base::kernel_thread_id()) return false;
    sched_yield();
    now = phase.load(std::memory_order_acquire);
  }
  return now == Phase::listening;
}

void finish() {
  if (phase.exchange(Phase::none, std::memory_order_acq_rel) != Phase::listening) return;
  end_all_threads();
  if (tool->finalize != nullptr) tool->finalize(&tool->tool_data);
}

void forget() noexcept {
  phase.store(Phase::none, std::memory_order_relaxed);
  forget_threads();
}

}  // namespace imbrex::omp::tools
