// SPDX-License-Identifier: BSD-3-Clause
#include "sched/life/process.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "base/arch.hpp"
#include "imbrex/error.hpp"
#include "sched/life/visit.hpp"
#include "sched/run/runtime_state.hpp"

// Found by name in other copies; never called.
extern "C" [[gnu::visibility("default")]] const char imbrex_core_copy[] = "imbrex";

namespace imbrex::sched {

namespace {

struct CopySearch {
  const void* own_base;
  std::string other;
};

const void* base_of(const void* const address) noexcept {
  Dl_info info;
  return dladdr(address, &info) != 0 ? info.dli_fbase : nullptr;
}

int look_for_copy(dl_phdr_info* const info, std::size_t, void* const data) {
  CopySearch& search = *static_cast<CopySearch*>(data);
  if (info->dlpi_name == nullptr || info->dlpi_name[0] == '\0') return 0;
  void* const handle = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return 0;
  const void* const found = dlsym(handle, "imbrex_core_copy");
  dlclose(handle);
  if (found == nullptr || base_of(found) == search.own_base) return 0;
  Dl_info other;
  search.other = dladdr(found, &other) != 0 ? other.dli_fname : info->dlpi_name;
  return 1;
}

// ---- overflow --------------------------------------------------------------------------------

struct sigaction previous;

void say(const char* const text) noexcept {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text, std::strlen(text));
}

void say(unsigned number) noexcept {
  char digits[12];
  char* first = digits + sizeof digits - 1;
  *first = '\0';
  do {
    *--first = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number != 0);
  say(first);
}

// Whether the fault at `address` is an overflow of the stack of the current code: in a guard of a
// StackPool, or just below the native stack of a thread.
bool is_overflow(const RuntimeState& runtime, const Worker* const worker,
                 const void* const address) {
  if (runtime.stacks.in_guard(address)) return true;
  if (worker == nullptr || worker->fiber == nullptr || !worker->fiber->native) return false;
  constexpr std::ptrdiff_t near = 2 << 20;  // a large frame may step over the system's guard
  const auto* const bottom = worker->native.stack.bottom;
  const auto* const fault = static_cast<const std::byte*>(address);
  constexpr std::ptrdiff_t guard = 128 * 1024;  // glibc counts its guard as part of the stack
  return fault < bottom + guard && fault > bottom - near;
}

// Uses only calls that are safe in a signal handler.
void on_fault(const int signal, siginfo_t* const info, void* const context) {
  const RuntimeState* const here = runtime();
  const Worker* const worker = current_worker() != nullptr ? current_worker() : visitor();
  if (here != nullptr && info->si_code > 0 && is_overflow(*here, worker, info->si_addr)) {
    const Task* const task = worker != nullptr ? static_cast<Task*>(worker->task) : nullptr;
    say("imbrex: stack overflow in task \"");
    say(task != nullptr ? task->name : "none");
    say("\" (");
    say(task != nullptr ? task->where.file_name() : "");
    say(":");
    say(task != nullptr ? task->where.line() : 0u);
    say(worker != nullptr && worker->fiber != nullptr && worker->fiber->native
            ? "): it ran on its thread's own stack, which is full; raise ulimit -s, or keep large "
              "arrays off the stack\n"
            : "): its stack is full; raise IMBREX_STACK_SIZE, or keep large arrays off the "
              "stack\n");
    ::signal(signal, SIG_DFL);
    raise(signal);
    return;
  }
  if ((previous.sa_flags & SA_SIGINFO) != 0 && previous.sa_sigaction != nullptr) {
    previous.sa_sigaction(signal, info, context);
  } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    previous.sa_handler(signal);
  } else {
    sigaction(signal, &previous, nullptr);  // the fault repeats, and ends the program
  }
}

}  // namespace

void refuse_second_copy() {
  CopySearch search{base_of(imbrex_core_copy), {}};
  dl_iterate_phdr(&look_for_copy, &search);
  if (search.other.empty()) return;
  Dl_info own;
  dladdr(imbrex_core_copy, &own);
  throw Error(fmt::format("imbrex: two copies of the library in one process: {} and {}. Link all "
                          "parts of the program with one of them",
                          own.dli_fname, search.other));
}

void alternate_stack() {
  stack_t present;
  if (sigaltstack(nullptr, &present) == 0 && (present.ss_flags & SS_DISABLE) == 0) return;
  constexpr std::size_t bytes = 32 * 1024;
  stack_t stack{};
  stack.ss_sp = std::malloc(bytes);  // lives as long as the thread; a few threads, never freed
  stack.ss_size = bytes;
  if (stack.ss_sp != nullptr) sigaltstack(&stack, nullptr);
}

void catch_overflow() {
  alternate_stack();
  struct sigaction present;
  if (sigaction(SIGSEGV, nullptr, &present) == 0 &&
      (present.sa_sigaction == &on_fault || keeps_trace_at(SIGSEGV))) {
    return;  // installed, or replaced by the handler that writes the trace
  }
  previous = present;
  struct sigaction action{};
  action.sa_sigaction = &on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, nullptr);
}

}  // namespace imbrex::sched
