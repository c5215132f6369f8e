// SPDX-License-Identifier: BSD-3-Clause
// One rank that wants a report asks rank 0; rank 0 requests one from all, waits a second for the
// answers, and prints them in one piece. A rank that rank 0 does not hear prints its own.
#include "mpi/report/watch.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "imbrex/detail/observation.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/detail/waist.hpp"
#include "mpi/below/last_join.hpp"
#include "mpi/below/moved.hpp"
#include "mpi/report/look.hpp"
#include "mpi/watch/channel.hpp"

namespace imbrex::mpi::report {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds tick{100};               // while nothing is going on; five microseconds each
constexpr milliseconds busy_tick{5};            // while letters are under way
constexpr milliseconds answers_patience{3000};  // of rank 0, for the others' answers
constexpr milliseconds rank_0_answers{6000};
constexpr std::size_t awaited_max = 8;          // lines about futures that several ranks await

// ---- the signal ------------------------------------------------------------------------------

// Written once, before the handler is installed; the descriptor is never closed, since a signal may
// come at any time.
int wake_descriptor = -1;
std::atomic<bool> signalled{false};  // set by the handler, taken by the thread

void wake() noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_descriptor, &one, sizeof one);
}

bool programs_own = false;     // a handler was there before MPI_Init
struct sigaction of_mpi;       // what MPI has installed since; MPICH uses the signal itself

extern "C" void on_signal(int number, siginfo_t* info, void* context) {
  const int error = errno;
  signalled.store(true, std::memory_order_relaxed);  // the descriptor orders it
  wake();
  if ((of_mpi.sa_flags & SA_SIGINFO) != 0) {
    of_mpi.sa_sigaction(number, info, context);
  } else if (of_mpi.sa_handler != SIG_DFL && of_mpi.sa_handler != SIG_IGN) {
    of_mpi.sa_handler(number);
  }
  errno = error;
}

void install_handler() {
  if (programs_own || sigaction(SIGUSR1, nullptr, &of_mpi) != 0) return;
  struct sigaction action{};
  action.sa_sigaction = &on_signal;
  action.sa_flags = SA_RESTART | SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  sigaction(SIGUSR1, &action, nullptr);
}

void wait(const milliseconds longest) noexcept {
  pollfd descriptor{.fd = wake_descriptor, .events = POLLIN, .revents = 0};
  if (::poll(&descriptor, 1, static_cast<int>(longest.count())) <= 0) return;
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t taken = ::read(wake_descriptor, &count, sizeof count);
}

// ---- printing --------------------------------------------------------------------------------

std::string join(const Lines& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

// Each line says that it is ours, and of which rank; all in one piece.
std::string prefixed(const std::string& text, const std::string& prefix) {
  std::string result;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    result += prefix + text.substr(begin, end - begin) + "\n";
    begin = end + 1;
  }
  return result;
}

using detail::print;

// Errors that somebody would have been told of at the end are told now.
[[noreturn]] void end_program() {
  detail::report_all_failures();
  detail::abort();
}

// ---- the thread ------------------------------------------------------------------------------

// Why a report is wanted. As text: its first character, then the heading.
struct Wish {
  bool abort;  // the program is to end after it
  std::string heading;

  [[nodiscard]] std::string text() const { return (abort ? "!" : " ") + heading; }
  [[nodiscard]] static Wish from(const std::string& text) {
    return {text.starts_with('!'), text.substr(std::min<std::size_t>(text.size(), 1))};
  }
};

// Thread safety: its thread's, except for the end and leave().
class Watch {
 public:
  Watch() {
    last_join_.begin();
    try {
      thread_ = std::thread([this] {
        run();
        last_join_.left();
      });
    } catch (const std::system_error& error) {  // whoever ends this object does what ranks agree on
      print(fmt::format("imbrex: the system gives no thread ({}), so rank {} does not notice that "
                        "all wait, nor answer SIGUSR1: raise its limit (ulimit -u, or pids.max of "
                        "the control group)\n",
                        error.code().message(), channel_.rank()));
    }
  }
  // Returns when all ranks have called it.
  ~Watch() {
    ending_.store(true, std::memory_order_relaxed);  // the descriptor orders it
    wake();
    if (thread_.joinable()) {
      thread_.join();
    } else {  // after leave(): the program calls MPI_Finalize in an exit handler of its own
      leaving_.store(false, std::memory_order_relaxed);
      run();
    }
  }
  // The process ends, and other ranks may not: stops the thread. False if it may still run: then
  // this object has to stay.
  [[nodiscard]] bool leave() noexcept {
    leaving_.store(true, std::memory_order_relaxed);  // the descriptor orders it
    if (!thread_.joinable() && last_join_.is_here()) return true;
    wake();
    return last_join_.join(thread_);
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  // The answers that rank 0 gathers, and for whom.
  struct Gathering {
    Wish wish;
    Clock::time_point until;
    std::map<int, std::string> answers;  // by rank
    std::vector<int> askers;
  };

  void run();
  void notice();
  [[nodiscard]] bool has_moved_data();
  void look_for_stall();
  void want(const Wish& wish);
  void take(const Mail& mail);
  void gather(const Wish& wish, int asker);
  void print_gathered();
  [[nodiscard]] std::string own_answer();

  Channel channel_{"imbrex reports"};
  const std::int64_t seconds_ = detail::number_option("STALL_S");
  const bool aborts_ = detail::text_option("STALL") == "abort";

  // Used by the thread only.
  Mark mark_;                                  // at the last tick
  Clock::time_point since_ = Clock::now();     // when it last changed, or data moved
  std::uint64_t moved_ = 0;                    // bytes, when it was last asked
  std::int64_t times_ = 1;                     // of STALL_S that the next report takes
  bool told_ = false;                          // this stall is reported already
  std::optional<Wish> asked_;                  // rank 0 has not said yet that it has printed this
  Clock::time_point asked_until_;
  std::optional<Gathering> gathering_;
  Clock::time_point last_print_ = Clock::now() - std::chrono::hours(1);

  std::atomic<bool> ending_{false};            // main
  std::atomic<bool> leaving_{false};           // who calls exit()
  progress::LastJoin last_join_;
  std::thread thread_;                         // made last: it uses all of the above
};

void Watch::run() {
  bool end_begun = false;
  Clock::time_point end_since;
  for (;;) {
    const bool busy = gathering_ || asked_;
    if (end_begun && Clock::now() - end_since < milliseconds(5)) {
      std::this_thread::yield();
    } else {
      wait(busy || end_begun ? busy_tick : tick);
    }
    if (leaving_.load(std::memory_order_relaxed)) return;
    notice();
    if (ending_.load(std::memory_order_relaxed) && !end_begun && !gathering_ && !asked_) {
      channel_.begin_end();
      end_begun = true;
      end_since = Clock::now();
    }
    if (end_begun && !gathering_ && channel_.all_end()) return;
  }
}

void Watch::notice() {
  const Mark now = mark();
  if (!(now == mark_)) {
    mark_ = now;
    since_ = Clock::now();
    told_ = false;
  } else if (seconds_ != 0 && mark_.all_wait && has_moved_data()) {
    since_ = Clock::now();
  }
  while (const std::optional<Mail> mail = channel_.receive()) take(*mail);
  if (signalled.exchange(false, std::memory_order_relaxed)) {
    want({false, fmt::format("rank {} was asked by SIGUSR1 what it does", channel_.rank())});
  }
  look_for_stall();
  if (asked_ && Clock::now() > asked_until_) {
    print("imbrex: " + asked_->heading + ", and rank 0 does not answer\n" +
          prefixed(own_answer(), fmt::format("imbrex: [{}] ", channel_.rank())));
    if (asked_->abort) end_program();
    asked_.reset();
  }
  if (gathering_ && (std::ssize(gathering_->answers) == channel_.ranks() ||
                     Clock::now() > gathering_->until)) {
    print_gathered();
  }
}

// A long message is one operation as long as it takes.
bool Watch::has_moved_data() {
  constexpr std::uint64_t least = 65536;  // in a tick; letters and the launcher's messages are less
  const Moved now = moved_over_tcp(false);
  const std::uint64_t last = std::exchange(moved_, now.sent + now.received);
  return moved_ > last + least;
}

void Watch::look_for_stall() {
  if (seconds_ == 0 || told_ || !mark_.all_wait) return;
  const auto waited = Clock::now() - since_;
  if (waited < std::chrono::seconds(seconds_ * times_)) return;
  // Nobody sees what moves through memory, or by a device: there it has the time that it may need.
  constexpr std::int64_t bytes_each_ms = 100'000;
  const milliseconds needed(largest_open() / bytes_each_ms);
  if (waited < std::chrono::seconds(seconds_ * times_) + needed) return;
  told_ = true;
  times_ *= 2;  // one that is merely slow shall not be drowned in reports
  want({aborts_,
        fmt::format("every task of rank {} waits, no message has arrived and no task has run "
                    "for {} s",
                    channel_.rank(),
                    std::chrono::duration_cast<std::chrono::seconds>(waited).count())});
}

void Watch::want(const Wish& wish) {
  if (channel_.rank() == 0) {
    gather(wish, 0);
  } else if (!asked_) {
    channel_.send(0, Letter::ask, wish.text());
    asked_ = wish;
    asked_until_ = Clock::now() + rank_0_answers;
  }
}

void Watch::take(const Mail& mail) {
  switch (mail.letter) {
    case Letter::ask: gather(Wish::from(mail.text), mail.from); break;
    case Letter::request: channel_.send(0, Letter::answer, own_answer()); break;
    case Letter::answer:
      if (gathering_) gathering_->answers[mail.from] = mail.text;
      break;
    case Letter::printed: asked_.reset(); break;
    case Letter::begun:
    case Letter::unordered:
    case Letter::ended:
    case Letter::several: break;  // of another channel
  }
}

void Watch::gather(const Wish& wish, const int asker) {
  if (!gathering_ && Clock::now() - last_print_ < answers_patience && !wish.abort) {
    // A signal to all ranks, or a stall that they notice one after the other: it is printed.
    if (asker != 0) channel_.send(asker, Letter::printed, "");
    return;
  }
  if (!gathering_) {
    gathering_ = Gathering{wish, Clock::now() + answers_patience, {}, {}};
    gathering_->answers[0] = own_answer();
    for (int rank = 1; rank < channel_.ranks(); ++rank) {
      channel_.send(rank, Letter::request, "");
    }
  }
  gathering_->wish.abort = gathering_->wish.abort || wish.abort;
  if (asker != 0) gathering_->askers.push_back(asker);
}

void Watch::print_gathered() {
  std::string text = "imbrex: " + gathering_->wish.heading + "\n";
  std::vector<int> silent;
  for (int rank = 0; rank < channel_.ranks(); ++rank) {
    const auto answer = gathering_->answers.find(rank);
    if (answer == gathering_->answers.end()) {
      silent.push_back(rank);
    } else {
      text += prefixed(answer->second, fmt::format("imbrex: [{}] ", rank));
    }
  }
  for (const Lines& part :
       {advise(gathering_->answers), list_awaiting(gathering_->answers, awaited_max),
        sum_messages(gathering_->answers, channel_.ranks())}) {
    for (const std::string& line : part) text += "imbrex: " + line + "\n";
  }
  if (!silent.empty()) {
    text += fmt::format("imbrex: no answer within {} s from rank{} {}\n",
                        std::chrono::duration_cast<std::chrono::seconds>(answers_patience).count(),
                        silent.size() == 1 ? "" : "s", ranges(silent));
  }
  print(text);
  last_print_ = Clock::now();
  if (gathering_->wish.abort) end_program();
  for (const int asker : gathering_->askers) channel_.send(asker, Letter::printed, "");
  gathering_.reset();
}

// If it says that all wait, this stall needs no second report.
std::string Watch::own_answer() {
  if (mark_.all_wait && seconds_ != 0) told_ = true;
  return join(look(mark_));
}

// The one of this process, from MPI_Init to MPI_Finalize; main. Never destroyed at exit(): other
// ranks may never end theirs.
std::unique_ptr<Watch>& watch() noexcept {
  static auto& the_watch = *new std::unique_ptr<Watch>;
  return the_watch;
}

void leave_at_exit() {
  if (watch() != nullptr && !watch()->leave()) static_cast<void>(watch().release());
}

}  // namespace

void remember_signal() noexcept {
  struct sigaction present{};
  sigaction(SIGUSR1, nullptr, &present);
  programs_own = (present.sa_flags & SA_SIGINFO) != 0 || present.sa_handler != SIG_DFL;
}

void start_watch() {
  wake_descriptor = eventfd(0, EFD_CLOEXEC);
  watch() = std::make_unique<Watch>();
  install_handler();
  static const int registered = std::atexit(&leave_at_exit);
  static_cast<void>(registered);
}

void stop_watch() { watch().reset(); }

}  // namespace imbrex::mpi::report
