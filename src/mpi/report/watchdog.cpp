// SPDX-License-Identifier: BSD-3-Clause
// A rank that wants a report asks rank 0; rank 0 requests one from all ranks, waits some seconds
// for the answers, and prints them in one piece. A rank that rank 0 does not hear prints its own
// report.
//
// IMBREX_STALL=abort: an answer also says whether the rank may go on by itself, and if not, the
// state of all of its threads. Rank 0 ends the program if the answers of all ranks say no, twice in
// a row with equal texts. All first answers arrive before the second ones are requested. There was
// therefore a moment at which no rank went on, and no message in flight has arrived since.
#include "mpi/report/watchdog.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "base/text/ranges.hpp"
#include "diagnosis/causes.hpp"
#include "imbrex/detail/observation.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/detail/waist.hpp"
#include "mpi/abi/tcp_bytes.hpp"
#include "mpi/engine/threads/last_join.hpp"
#include "mpi/report/look.hpp"
#include "mpi/report/waits/channel.hpp"

namespace imbrex::mpi::report {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds tick{100};               // while nothing happens; five microseconds each
constexpr milliseconds busy_tick{5};            // while letters are in flight
constexpr milliseconds answers_patience{3000};  // of rank 0, for the answers of the others
constexpr milliseconds rank_0_answers{6000};
constexpr std::size_t findings_max = 4;         // causes that a report names
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
struct sigaction of_mpi;       // the handler that MPI has installed since; MPICH uses the signal
                               // itself

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

// Each line begins with "imbrex" and the rank; all in one piece.
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

// Errors that would be reported at the end are reported now.
[[noreturn]] void end_program() {
  detail::report_all_failures();
  detail::abort();
}

// ---- the thread ------------------------------------------------------------------------------

// The state of a rank that is in MPI_Finalize, with nothing left to do.
constexpr const char* only_ending = "ends";

// The reason for a report. As text: its first character, then the heading.
struct Wish {
  enum class Why : char {
    asked = ' ',   // by a signal: only a certain cause is named
    stall = 's',   // a rank has stalled
    ending = '!',  // a rank has stalled; the program shall end if no rank goes on
    quiet = '?'    // the report is printed only if the program ends
  };
  Why why;
  std::string heading;

  [[nodiscard]] bool aborts() const noexcept { return why == Why::ending || why == Why::quiet; }
  [[nodiscard]] bool is_quiet() const noexcept { return why == Why::quiet; }
  [[nodiscard]] std::string text() const { return static_cast<char>(why) + heading; }
  [[nodiscard]] static Wish from(const std::string& text) {
    return {text.empty() ? Why::asked : static_cast<Why>(text.front()),
            text.substr(std::min<std::size_t>(text.size(), 1))};
  }
};

// The answer of a rank. As text: a line with the state, and one with the size of the facts; then
// the facts and the report.
struct Answer {
  // A digest of standstill(), or only_ending; empty if the rank may go on.
  std::string state;
  diagnosis::RankFacts facts;
  std::string report;

  [[nodiscard]] std::string text() const {
    const std::string written = diagnosis::write(facts);
    return fmt::format("{}\n{}\n{}{}", state, written.size(), written, report);
  }
  [[nodiscard]] static Answer from(const std::string& text) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::size_t facts_begin = std::min(text.find('\n', end + 1), text.size() - 1) + 1;
    const std::size_t size = std::strtoull(text.c_str() + std::min(end + 1, text.size()), nullptr,
                                           10);
    const std::size_t report_begin = std::min(facts_begin + size, text.size());
    const auto facts = diagnosis::read(
        std::string_view(text).substr(facts_begin, report_begin - facts_begin));
    return {text.substr(0, end), facts.value_or(diagnosis::RankFacts{}),
            text.substr(report_begin)};
  }
};

// Thread safety: only its thread, except for the end and leave().
class Watchdog {
 public:
  Watchdog() {
    last_join_.begin();
    try {
      thread_ = std::thread([this] {
        const detail::OwnThread own;
        run();
        last_join_.left();
      });
    } catch (const std::system_error& error) {  // the end of this object takes part in the
                                                // agreement of the ranks
      print(fmt::format("imbrex: the system gives no thread ({}), so rank {} neither notices a "
                        "stall nor answers SIGUSR1: raise the limit of threads (ulimit -u, or "
                        "pids.max of the control group)\n",
                        error.code().message(), channel_.rank()));
    }
  }
  // Returns when all ranks have called it.
  ~Watchdog() {
    ending_.store(true, std::memory_order_relaxed);  // the descriptor orders it
    wake();
    if (thread_.joinable()) {
      thread_.join();
    } else {  // after leave(): the program calls MPI_Finalize in an exit handler of its own
      leaving_.store(false, std::memory_order_relaxed);
      run();
    }
  }
  // The process ends, and other ranks may not: stops the thread. False if the thread may still run:
  // this object must then stay.
  [[nodiscard]] bool leave() noexcept {
    leaving_.store(true, std::memory_order_relaxed);  // the descriptor orders it
    if (!thread_.joinable() && last_join_.is_here()) return true;
    wake();
    return last_join_.join(thread_);
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  // The answers that rank 0 gathers, and the ranks that asked.
  struct Gathering {
    Wish wish;
    Clock::time_point until;
    std::map<int, std::string> answers;  // the reports, by rank
    std::map<int, std::string> states;   // by rank
    std::vector<diagnosis::RankFacts> facts;
    std::vector<int> askers;
  };
  // The answers to one request say that no rank goes on: the ranks are asked once more.
  struct Suspicion {
    std::map<int, std::string> states;
    std::string heading;
    bool printed;                        // the report
    Clock::time_point again;
  };

  void run();
  void notice();
  [[nodiscard]] bool has_moved_data();
  void look_for_stall();
  void keep_facts();
  [[nodiscard]] static milliseconds needed();
  void want(const Wish& wish);
  void take(const Mail& mail);
  void gather(const Wish& wish, int asker);
  void add(int rank, const Answer& answer);
  void end_gathering();
  [[nodiscard]] std::string gathered() const;
  void decide();
  [[nodiscard]] Answer own_answer(bool quiet);

  Channel channel_{"imbrex reports"};
  const std::int64_t seconds_ = detail::number_option("STALL_S");
  const bool aborts_ = detail::text_option("STALL") == "abort";

  // Used by the thread only.
  Mark mark_;                                  // at the last tick
  Clock::time_point since_ = Clock::now();     // time of its last change, or of the last moved data
  std::uint64_t moved_ = 0;                    // bytes at the last check
  std::int64_t times_ = 1;                     // multiple of STALL_S until the next report
  bool reported_ = false;                      // this stall is reported already
  bool kept_ = false;                          // keep_facts() has kept those of this moment
  std::optional<Wish> asked_;                  // rank 0 has not yet confirmed that it has printed
                                               // this
  Clock::time_point asked_until_;
  Clock::time_point wished_ = Clock::now();    // a report, or quietly
  std::optional<Gathering> gathering_;
  std::optional<Suspicion> suspicion_;         // of rank 0
  Clock::time_point last_print_ = Clock::now() - std::chrono::hours(1);

  std::atomic<bool> ending_{false};            // main
  std::atomic<bool> leaving_{false};           // the thread that calls exit()
  threads::LastJoin last_join_;
  std::thread thread_;                         // made last, because it uses all of the above
};

void Watchdog::run() {
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

void Watchdog::notice() {
  const Mark now = mark();
  if (!(now == mark_)) {
    mark_ = now;
    since_ = Clock::now();
    reported_ = kept_ = false;
  } else if (seconds_ != 0 && mark_.all_wait && has_moved_data()) {
    since_ = Clock::now();
  }
  while (const std::optional<Mail> mail = channel_.receive()) take(*mail);
  if (signalled.exchange(false, std::memory_order_relaxed)) {
    want({Wish::Why::asked,
          fmt::format("rank {} was asked by SIGUSR1 for a report", channel_.rank())});
  }
  look_for_stall();
  keep_facts();
  if (asked_ && Clock::now() > asked_until_) {
    if (!asked_->is_quiet()) {
      print("imbrex: " + asked_->heading + ", and rank 0 does not answer\n" +
            prefixed(own_answer(false).report, fmt::format("imbrex: [{}] ", channel_.rank())));
    }
    asked_.reset();
  }
  if (suspicion_ && !gathering_ && Clock::now() >= suspicion_->again) {
    gather({Wish::Why::quiet, suspicion_->heading}, 0);
  }
  if (gathering_ && (std::ssize(gathering_->answers) == channel_.ranks() ||
                     Clock::now() > gathering_->until)) {
    end_gathering();
  }
}

// For the time when nobody can ask this rank any more. A rank that moves keeps nothing: the flight
// recorder has what it does.
void Watchdog::keep_facts() {
  constexpr milliseconds pause{1000};
  if (kept_ || Clock::now() - since_ < pause) return;
  kept_ = true;
  detail::keep_flight_facts(diagnosis::write(own_answer(true).facts));
}

// A long message is one operation for its whole duration.
bool Watchdog::has_moved_data() {
  constexpr std::uint64_t least = 65536;  // in a tick; letters and the launcher's messages are
                                          // smaller
  const Moved now = moved_over_tcp(false);
  const std::uint64_t last = std::exchange(moved_, now.sent + now.received);
  return moved_ > last + least;
}

void Watchdog::look_for_stall() {
  if (seconds_ == 0) return;
  const std::chrono::seconds limit(seconds_);
  // A report of this process alone has been printed, and does not know the state of other ranks.
  const bool halted = mark_.halted && channel_.ranks() > 1;
  if (aborts_ && (halted || (reported_ && mark_.all_wait)) && Clock::now() - wished_ > limit) {
    want({Wish::Why::quiet, fmt::format("no task of rank {} has run for {} s or more",
                                        channel_.rank(), seconds_)});
    return;
  }
  if (reported_ || !mark_.all_wait) return;
  const auto waited = Clock::now() - since_;
  if (waited < limit * times_ || waited < limit * times_ + needed()) return;
  reported_ = true;
  times_ *= 2;  // a program that is only slow must not be flooded with reports
  const std::string what =
      mark_.keeps_others ? fmt::format("a task of rank {} tests repeatedly and lets no other task "
                                       "run",
                                       channel_.rank())
                         : fmt::format("every task of rank {} waits", channel_.rank());
  want({aborts_ ? Wish::Why::ending : Wish::Why::stall,
        fmt::format("{}, no message has arrived and no task has run for {} s", what,
                    std::chrono::duration_cast<std::chrono::seconds>(waited).count())});
}

// Data that move through memory, or by a device, are invisible: the operation gets the time that it
// may need.
milliseconds Watchdog::needed() {
  constexpr std::int64_t bytes_each_ms = 100'000;
  return milliseconds(largest_open() / bytes_each_ms);
}

void Watchdog::want(const Wish& wish) {
  wished_ = Clock::now();
  if (channel_.rank() == 0) {
    gather(wish, 0);
  } else if (!asked_) {
    channel_.send(0, Letter::ask, wish.text());
    asked_ = wish;
    asked_until_ = Clock::now() + rank_0_answers;
  }
}

void Watchdog::take(const Mail& mail) {
  switch (mail.letter) {
    case Letter::ask: gather(Wish::from(mail.text), mail.from); break;
    case Letter::request:
      channel_.send(0, Letter::answer, own_answer(mail.text == "?").text());
      break;
    case Letter::answer:
      if (gathering_) add(mail.from, Answer::from(mail.text));
      break;
    case Letter::printed: asked_.reset(); break;
    case Letter::begun:
    case Letter::unordered:
    case Letter::ended:
    case Letter::several: break;  // belongs to another channel
  }
}

void Watchdog::gather(const Wish& wish, const int asker) {
  if (!gathering_ && Clock::now() - last_print_ < answers_patience && !wish.aborts()) {
    // A signal to all ranks, or a stall that they notice one after the other: it is printed.
    if (asker != 0) channel_.send(asker, Letter::printed, "");
    return;
  }
  if (!gathering_) {
    gathering_ = Gathering{wish, Clock::now() + answers_patience, {}, {}, {}, {}};
    add(0, own_answer(wish.is_quiet()));
    for (int rank = 1; rank < channel_.ranks(); ++rank) {
      channel_.send(rank, Letter::request, wish.is_quiet() ? "?" : "");
    }
  }
  Wish& present = gathering_->wish;
  const bool aborts = present.aborts() || wish.aborts();
  if (present.is_quiet() && !wish.is_quiet()) present = wish;
  if (aborts && !present.is_quiet()) present.why = Wish::Why::ending;
  if (asker != 0) gathering_->askers.push_back(asker);
}

void Watchdog::add(const int rank, const Answer& answer) {
  if (gathering_->answers.contains(rank)) return;
  gathering_->answers[rank] = answer.report;
  gathering_->states[rank] = answer.state;
  gathering_->facts.push_back(answer.facts);
  gathering_->facts.back().rank = rank;
}

void Watchdog::end_gathering() {
  if (!gathering_->wish.is_quiet()) {
    print(gathered());
    last_print_ = Clock::now();
  }
  if (gathering_->wish.aborts()) decide();
  for (const int asker : gathering_->askers) channel_.send(asker, Letter::printed, "");
  gathering_.reset();
}

// Ends the program if no rank goes on, and none has gone on since all were asked before.
void Watchdog::decide() {
  const auto& states = gathering_->states;
  const bool all_wait =
      std::ssize(states) == channel_.ranks() &&
      std::ranges::none_of(states, [](const auto& state) { return state.second.empty(); }) &&
      // Ranks that all end do so as soon as they get a processor.
      std::ranges::any_of(states, [](const auto& state) { return state.second != only_ending; });
  const bool still = all_wait && suspicion_ && suspicion_->states == gathering_->states;
  const bool printed = !gathering_->wish.is_quiet() || (still && suspicion_->printed);
  if (still) {
    print((printed ? "" : gathered()) +
          "imbrex: no rank makes progress: imbrex ends the program (IMBREX_STALL=abort)\n");
    end_program();
  }
  suspicion_.reset();
  if (!all_wait) return;
  const milliseconds pause(std::clamp<std::int64_t>(seconds_ * 250, 500, 5000));
  suspicion_ = Suspicion{gathering_->states, gathering_->wish.heading, printed,
                         Clock::now() + pause};
}

// The cause comes first, with its advice; then the reports of the ranks; then further causes.
std::string Watchdog::gathered() const {
  std::vector<diagnosis::RankFacts> facts = gathering_->facts;
  std::vector<int> silent;
  std::string reports;
  for (int rank = 0; rank < channel_.ranks(); ++rank) {
    const auto answer = gathering_->answers.find(rank);
    if (answer == gathering_->answers.end()) {
      silent.push_back(rank);
      facts.push_back({.rank = rank, .ranks = channel_.ranks(),
                       .state = diagnosis::RankState::silent});
    } else {
      reports += prefixed(answer->second, fmt::format("imbrex: [{}] ", rank));
    }
  }
  std::vector<diagnosis::Finding> findings = diagnosis::find_causes(facts);
  if (gathering_->wish.why == Wish::Why::asked) {
    std::erase_if(findings, [](const diagnosis::Finding& one) { return !one.is_certain; });
  }
  std::string text = "imbrex: " + gathering_->wish.heading + "\n";
  if (!findings.empty()) {
    text = fmt::format("imbrex: {} ({})\nimbrex: {}.\n", findings.front().text(),
                       gathering_->wish.heading, findings.front().advice);
  }
  text += reports;
  for (std::size_t i = 1; i < std::min(findings.size(), findings_max); ++i) {
    text += fmt::format("imbrex: also: {}. {}.\n", findings[i].text(), findings[i].advice);
  }
  for (const Lines& part : {list_awaiting(gathering_->answers, awaited_max),
                            sum_messages(gathering_->answers, channel_.ranks())}) {
    for (const std::string& line : part) text += "imbrex: " + line + "\n";
  }
  if (!silent.empty()) {
    text += fmt::format("imbrex: no answer within {} s from rank{} {}\n",
                        std::chrono::duration_cast<std::chrono::seconds>(answers_patience).count(),
                        silent.size() == 1 ? "" : "s", base::text::ranges(silent));
  }
  return text;
}

// If the answer says that all tasks wait, this stall needs no second report. A message that may
// still be in flight lets the rank go on.
Answer Watchdog::own_answer(const bool quiet) {
  if (mark_.all_wait && seconds_ != 0 && !quiet) reported_ = true;
  Look seen = look(mark_);
  Answer answer{"", std::move(seen.facts), join(seen.lines)};
  const auto still = Clock::now() - since_;
  if (still < needed()) return answer;
  const std::string threads = standstill(mark_);
  answer.facts.may_continue = threads.empty();
  answer.facts.still_ms = std::chrono::duration_cast<milliseconds>(still - needed()).count();
  if (!aborts_ || threads.empty()) return answer;
  if (only_ends(mark_)) {
    answer.state = only_ending;
    return answer;
  }
  const auto since = since_.time_since_epoch().count();
  answer.state = fmt::format("{:016x}", std::hash<std::string>()(threads + std::to_string(since)));
  return answer;
}

// The Watchdog of this process, from MPI_Init to MPI_Finalize; only main uses it. Never destroyed
// at exit(), because other ranks may never end theirs.
std::unique_ptr<Watchdog>& watchdog() noexcept {
  static auto& the_watchdog = *new std::unique_ptr<Watchdog>;
  return the_watchdog;
}

void leave_at_exit() {
  if (watchdog() != nullptr && !watchdog()->leave()) static_cast<void>(watchdog().release());
}

}  // namespace

void remember_signal() noexcept {
  struct sigaction present{};
  sigaction(SIGUSR1, nullptr, &present);
  programs_own = (present.sa_flags & SA_SIGINFO) != 0 || present.sa_handler != SIG_DFL;
}

void start_watchdog() {
  wake_descriptor = eventfd(0, EFD_CLOEXEC);
  watchdog() = std::make_unique<Watchdog>();
  install_handler();
  static const int registered = std::atexit(&leave_at_exit);
  static_cast<void>(registered);
}

void stop_watchdog() { watchdog().reset(); }

}  // namespace imbrex::mpi::report
