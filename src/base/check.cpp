// SPDX-License-Identifier: BSD-3-Clause
#include "base/check.hpp"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <ctime>

namespace imbrex::base {

namespace {
std::atomic<Describe> describe_current{nullptr};
}

void set_describe(const Describe describe) noexcept {
  describe_current.store(describe, std::memory_order_release);  // pairs with the load in fail()
}

void report(const std::string& text) noexcept {
  // A failure to write cannot be reported anywhere.
  (void)write_all(STDERR_FILENO, "imbrex: " + text + "\n", nullptr);
}

namespace {

// While it lives, the signals that write() sends to its own thread are not delivered.
class WithoutSignals {
 public:
  WithoutSignals() noexcept {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGPIPE);
    sigaddset(&signals_, SIGXFSZ);
    sigpending(&pending_);
    pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  }
  ~WithoutSignals() {
    const int error = errno;
    for (const int signal : {SIGPIPE, SIGXFSZ}) {
      if (sigismember(&pending_, signal) == 1) continue;  // another code had raised it
      sigset_t one;
      sigemptyset(&one);
      sigaddset(&one, signal);
      constexpr timespec at_once{};
      while (sigtimedwait(&one, nullptr, &at_once) < 0 && errno == EINTR) {
      }
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  WithoutSignals(const WithoutSignals&) = delete;
  WithoutSignals& operator=(const WithoutSignals&) = delete;

 private:
  sigset_t signals_, pending_, before_;
};

}  // namespace

int write_all(const int descriptor, const std::string_view text,
              std::size_t* const written) noexcept {
  const WithoutSignals without;
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t count = ::write(descriptor, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count < 0 ? errno : EIO;
    done += static_cast<std::size_t>(count);
    if (written != nullptr) *written += static_cast<std::size_t>(count);
  }
  return 0;
}

void fail(const char* const file, const int line, const std::string& what) noexcept {
  const Describe describe = describe_current.load(std::memory_order_acquire);
  report(fmt::format("{}\n  in {}; checked at {}:{}", what,
                     describe != nullptr ? describe() : "no task", file, line));
  abort();
}

// ---- how the program ends ----------------------------------------------------------------------

namespace {

std::atomic<bool> drops{false};  // relaxed: read by the thread that ends the program

// Open MPI has such a handler in its libopen-pal.
bool is_of_mpi(const struct sigaction& handler) noexcept {
  const void* const function = (handler.sa_flags & SA_SIGINFO) != 0
                                   ? reinterpret_cast<const void*>(handler.sa_sigaction)
                                   : reinterpret_cast<const void*>(handler.sa_handler);
  Dl_info found{};
  if (dladdr(function, &found) == 0 || found.dli_fname == nullptr) return false;
  std::string_view name = found.dli_fname;
  name.remove_prefix(name.rfind('/') + 1);  // npos + 1 is 0
  return name.starts_with("libopen-pal") || name.starts_with("libmpi");
}

}  // namespace

void drop_backtraces() noexcept {
  drops.store(true, std::memory_order_relaxed);
  struct sigaction handler{};
  if (sigaction(SIGABRT, nullptr, &handler) != 0 || !is_of_mpi(handler)) return;
  handler = {};
  handler.sa_handler = SIG_DFL;
  sigaction(SIGABRT, &handler, nullptr);
}

bool is_dropped(const struct sigaction& handler) noexcept {
  return drops.load(std::memory_order_relaxed) && is_of_mpi(handler);
}

void abort() noexcept {
  drop_backtraces();
  std::abort();
}

}  // namespace imbrex::base
