// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/check/ranks/ranks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/guarded.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "mpi/abi/completion_calls.hpp"
#include "mpi/abi/switches.hpp"
#include "mpi/check/ranks/comparison.hpp"
#include "mpi/engine/of_communicators.hpp"
#include "mpi/engine/threads/ship.hpp"
#include "mpi/report/waits/channel.hpp"
#include "mpi/check/ranks/findings.hpp"
#include "mpi/report/waits/mpi_waits.hpp"

namespace imbrex::mpi::check {


using report::Letter;

// A letter that has not been sent. `text` follows the communicator's number.
struct Outgoing {
  Letter letter;
  std::string text;
};

// The communicator of a letter, and its size: the same on all of its ranks.
struct Name {
  std::uint64_t id = 0;  // of its first rank in MPI_COMM_WORLD, and a number there; 0: the world
  int first = 0;         // that rank
  int rank = 0;          // this process there
  int size = 1;
};

namespace {

using report::Channel;
using report::Mail;

using Clock = std::chrono::steady_clock;

// Before each letter of a message.
struct PackedHead {
  int letter;
  std::uint32_t bytes;
};
void pack(std::string& all, const Letter letter, const std::string_view text) {
  const PackedHead head{static_cast<int>(letter), static_cast<std::uint32_t>(text.size())};
  all.append(reinterpret_cast<const char*>(&head), sizeof head);
  all.append(text);
}

std::string in_front(const Name& name, const std::string_view text) {
  return fmt::format("{} {} {} {}", name.id, name.size, name.rank, text);
}

}  // namespace

// This rank's knowledge of the collectives of a communicator: those that are open here, and the
// letters about them. Lives with the communicator, and as long as a collective is open.
//
// Thread safety: any thread uses every member.
// Invariants:
//   (1) learn_id() has begun its broadcast, if there is one, before this rank begins any compared
//       collective, so all ranks have that broadcast in one place of their order.
//   (2) letters leave in the order in which they are written, once the number of the communicator
//       is known.
class Known : public std::enable_shared_from_this<Known> {
 public:
  Known(MPI_Comm its_program, const Name& its_name, const bool is_compared)
      : program(its_program), compared(is_compared), name_(its_name) {}
  // Made from another communicator, as its `place`-th.
  Known(MPI_Comm its_program, const Name& its_name, const bool is_compared,
        std::shared_ptr<Known> parent, const std::uint64_t place)
      : program(its_program), compared(is_compared), parent_(std::move(parent)), place_(place),
        name_(its_name) {}
  ~Known() { end(true); }
  Known(const Known&) = delete;
  Known& operator=(const Known&) = delete;

  const MPI_Comm program;  // may be freed
  const bool compared;     // it has several ranks, all of MPI_COMM_WORLD and of one group

  void learn_id();
  // True once its number is known, or will not be. Only the poller calls it.
  [[nodiscard]] bool is_learnt() noexcept;
  // Whether its broadcast is in flight.
  [[nodiscard]] bool is_broadcasting() const noexcept {
    return broadcasting_.load(std::memory_order_acquire);
  }
  // The number of the next communicator made from it: all ranks make them in one order.
  [[nodiscard]] std::uint64_t next_child() noexcept {
    return 1 + children_.fetch_add(1, std::memory_order_relaxed);
  }

  [[nodiscard]] std::uint64_t begin(Begun& begun, std::uint64_t task);
  // The texts in the letter about a collective that `call` begins in `task`.
  [[nodiscard]] Begun texts_of(const Call& call, const detail::TaskLabel& task);
  void close(std::uint64_t number) noexcept;
  // This rank begins no more collectives on it. No effect the second time.
  void end(bool freed) noexcept;
  // For MPI_Finalize, if its number never came: describes the collectives that this rank has begun.
  [[nodiscard]] std::string describe();

 private:
  struct Open {
    std::uint64_t number;
    std::uint64_t task;
    bool unordered;
  };
  enum class Asked : int { not_yet, being_asked, asked };

  void write(Letter letter, std::string text) IMBREX_REQUIRES(lock_);
  void set_id(std::uint64_t id) IMBREX_REQUIRES(lock_);
  [[nodiscard]] std::optional<std::uint64_t> id();
  void begin_broadcast();

  const std::shared_ptr<Known> parent_;       // null: its number comes by a broadcast
  const std::uint64_t place_ = 0;             // number among the communicators made from the parent
  std::atomic<std::uint64_t> children_{0};    // number made from it; relaxed: a count
  std::atomic<bool> broadcasting_{false};     // release: MPI does not use the communicator any more
  std::atomic<Asked> asked_{Asked::not_yet};  // release: request_ is set
  MPI_Request request_ = MPI_REQUEST_NULL;    // used by the poller once it is set
  std::uint64_t id_ = 0;                      // MPI writes it, until is_learnt()

  std::mutex lock_;
  Name name_ IMBREX_GUARDED_BY(lock_);
  bool knows_ IMBREX_GUARDED_BY(lock_) = false;  // the number is known
  bool has_ended_ IMBREX_GUARDED_BY(lock_) = false;
  std::uint64_t total_ IMBREX_GUARDED_BY(lock_) = 0;
  std::string first_ IMBREX_GUARDED_BY(lock_);      // the first collective
  // Texts that most letters have in common.
  std::string name_text_ IMBREX_GUARDED_BY(lock_);
  std::uint64_t last_task_ IMBREX_GUARDED_BY(lock_) = 0;
  std::string task_text_ IMBREX_GUARDED_BY(lock_);  // the task of that text, if not empty
  std::vector<Open> open_ IMBREX_GUARDED_BY(lock_);
  std::deque<Outgoing> unsent_ IMBREX_GUARDED_BY(lock_);  // until the number is known
};

namespace {

// The letters of this rank, those that it receives, and their comparisons.
//
// Thread safety: any thread calls write(), learn() and poll(); the rest runs in MPI_Init and
// MPI_Finalize.
// Invariants:
//   (1) only the thread that has set `busy_` uses the channel, the comparisons, and requests of
//       Known.
//   (2) letters stay in the box until a thread checks it: a polling thread after `interval_ns`, or
//       close().
// `interval_ns`, close() in any case.
class Letters {
 public:
  void open() { channel_.emplace("imbrex checks"); }
  void write(const int to, const Letter letter, std::string text) {
    const std::lock_guard guard(lock_);
    pack(outbox_[to], letter, text);
  }
  void learn(std::shared_ptr<Known> known) {
    const std::lock_guard guard(lock_);
    learning_.push_back(std::move(known));
  }
  void poll() noexcept;
  void close(const std::vector<std::shared_ptr<Known>>& living);

 private:
  static constexpr std::int64_t interval_ns = 1'000'000;

  void look() noexcept;
  void look_for_ids();
  void send();
  void take_all(std::string_view text);
  void take(Letter letter, std::string_view text);
  [[nodiscard]] std::vector<std::shared_ptr<Known>> learning() {
    const std::lock_guard guard(lock_);
    return learning_;
  }
  template <class Done>
  void wait_until(Done done);
  // No other thread writes any more: sends all letters, and then `call()` uses the channel.
  template <class F>
  auto with_channel(F call);

  std::atomic<bool> busy_{false};
  std::atomic<std::int64_t> due_ns_{0};  // time of the next check of poll(); relaxed: any value
                                         // will do
  std::optional<Channel> channel_;                   // (1)
  // (1): for communicators whose first rank is this rank, by number.
  std::map<std::uint64_t, Comparison> comparisons_;

  std::mutex lock_;
  std::map<int, std::string> outbox_ IMBREX_GUARDED_BY(lock_);  // packed, by receiver
  std::vector<std::shared_ptr<Known>> learning_ IMBREX_GUARDED_BY(lock_);
};

// Never destroyed, like the engine.
Letters& letters() noexcept {
  static Letters& all = *new Letters;
  return all;
}

OfCommunicators<Known>& known() {
  static auto& all = *new OfCommunicators<Known>;
  return all;
}

// ---- letters -----------------------------------------------------------------------------------

// Letters that go together cost one message, and a waiting thread polls far more often than there
// are letters.
void Letters::poll() noexcept {
  const std::int64_t now = std::chrono::nanoseconds(Clock::now().time_since_epoch()).count();
  if (now < due_ns_.load(std::memory_order_relaxed)) return;
  if (busy_.exchange(true, std::memory_order_acquire)) return;
  due_ns_.store(now + interval_ns, std::memory_order_relaxed);
  look();
  busy_.store(false, std::memory_order_release);
}

// MPI may call functions of the program, which belong to no task. The caller's name stays.
void Letters::look() noexcept {
  const Callback callback(Call{.name = detail::callback_call()});
  look_for_ids();
  send();
  while (const std::optional<Mail> mail = channel_->receive()) take_all(mail->text);
}

void Letters::look_for_ids() {
  for (const std::shared_ptr<Known>& it : learning()) {
    if (!it->is_learnt()) continue;
    const std::lock_guard guard(lock_);
    std::erase(learning_, it);
  }
}

void Letters::send() {
  std::map<int, std::string> outbox;
  if (const std::lock_guard guard(lock_); true) outbox.swap(outbox_);
  for (auto& [to, text] : outbox) {
    if (to == channel_->rank()) {
      take_all(text);
    } else {
      channel_->send(to, Letter::several, std::move(text));
    }
  }
}

void Letters::take_all(std::string_view text) {
  while (text.size() >= sizeof(PackedHead)) {
    PackedHead head;
    std::memcpy(&head, text.data(), sizeof head);
    text.remove_prefix(sizeof head);
    take(static_cast<Letter>(head.letter), text.substr(0, head.bytes));
    text.remove_prefix(std::min<std::size_t>(text.size(), head.bytes));
  }
}

// An unreadable letter comes from another version of the library.
void Letters::take(const Letter letter, std::string_view text) {
  std::array<std::uint64_t, 3> numbers{};  // the communicator, its size, the rank there
  for (std::uint64_t& number : numbers) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end == text.data() + text.size()) return;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  }
  const auto [id, size, from] = numbers;
  const int rank = static_cast<int>(from);
  Comparison& comparison =
      comparisons_.try_emplace(id, static_cast<int>(size)).first->second;
  std::string finding;
  std::uint64_t number = 0;
  switch (letter) {
    case Letter::begun:
      if (const std::optional<Begun> begun = read(text)) finding = comparison.begin(rank, *begun);
      break;
    case Letter::unordered:
      std::from_chars(text.data(), text.data() + text.size(), number);
      finding = comparison.set_unordered(number);
      break;
    case Letter::ended:
      std::from_chars(text.data(), text.data() + text.size(), number);
      finding = comparison.end(rank, {.total = number, .freed = text.ends_with('f')});
      break;
    default: break;
  }
  report_finding(finding);
  if (comparison.is_over()) comparisons_.erase(id);
}

// A call of poll() before is not enough, because it may leave letters in the box.
template <class F>
auto Letters::with_channel(F call) {
  while (busy_.exchange(true, std::memory_order_acquire)) threads::wait_for_lock();
  look();
  const auto result = call();
  busy_.store(false, std::memory_order_release);
  return result;
}

template <class Done>
void Letters::wait_until(Done done) {
  while (!with_channel(done)) threads::wait_for_lock();
}

// First all ranks come here, so that communicators that are still unknown then were never begun by
// some rank. Then all letters have been sent, and are waited for.
void Letters::close(const std::vector<std::shared_ptr<Known>>& living) {
  for (const std::shared_ptr<Known>& it : living) it->end(false);
  with_channel([this] { return channel_->begin_end(), true; });
  wait_until([this] { return channel_->all_end(); });
  const Clock::time_point begin = Clock::now();
  wait_until([this, begin] {
    return learning().empty() || Clock::now() - begin > std::chrono::seconds(2);
  });
  for (const std::shared_ptr<Known>& it : learning()) report_finding(it->describe());
  with_channel([this] { return channel_->begin_count(), true; });
  wait_until([this] { return channel_->has_all(); });
  with_channel([this] {
    for (auto& [id, comparison] : comparisons_) report_finding(comparison.end_others());
    comparisons_.clear();
    switches.compares_ranks = false;
    channel_.reset();
    return true;
  });
}

// ---- a communicator ----------------------------------------------------------------------------

// The rank in MPI_COMM_WORLD of the first member; empty if not all members are there.
std::optional<int> first_in_world(MPI_Comm comm, const int size) {
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::vector<int> in_world(ranks.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Group world = MPI_GROUP_NULL;
  PMPI_Comm_group(comm, &group);
  PMPI_Comm_group(MPI_COMM_WORLD, &world);
  PMPI_Group_translate_ranks(group, size, ranks.data(), world, in_world.data());
  PMPI_Group_free(&group);
  PMPI_Group_free(&world);
  for (const int rank : in_world) {
    if (rank == MPI_UNDEFINED) return std::nullopt;
  }
  return in_world.front();
}

// A unique number.
std::uint64_t next_id(const int rank) noexcept {
  static std::atomic<std::uint32_t> numbers{0};
  const auto first = static_cast<std::uint64_t>(static_cast<std::uint32_t>(rank));
  return first << 32 | (1 + numbers.fetch_add(1, std::memory_order_relaxed));
}

// `parent`: the communicator that it was made from, as the `place`-th; null: unknown.
std::shared_ptr<Known> make_known(MPI_Comm comm, const std::shared_ptr<Known>& parent,
                                  const std::uint64_t place) {
  Name name;
  int between_groups = 0;
  PMPI_Comm_test_inter(comm, &between_groups);
  PMPI_Comm_size(comm, &name.size);
  PMPI_Comm_rank(comm, &name.rank);
  if (between_groups != 0 || name.size == 1) return std::make_shared<Known>(comm, name, false);
  const std::optional<int> first = first_in_world(comm, name.size);
  name.first = first.value_or(0);
  return std::make_shared<Known>(comm, name, first.has_value(), parent, place);
}

std::shared_ptr<Known> known_of(MPI_Comm comm) {
  int code = MPI_SUCCESS;
  return known().find_or(comm, code, [comm] { return make_known(comm, nullptr, 0); });
}

constexpr std::uint64_t of_made = std::uint64_t{1} << 63;  // bit of numbers that no broadcast gives
[[nodiscard]] constexpr std::uint64_t mixed(std::uint64_t hash, const std::uint64_t word) noexcept {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 29;
}

}  // namespace

// MPI_COMM_WORLD has the number 0. A communicator made from another one is named by its parent, by
// how many were made from the parent before, and, since those of a split do not meet, by its first
// rank. This needs no message. If the parent is unknown, the first rank gives it a number by a
// broadcast there.
void Known::learn_id() {
  if (asked_.load(std::memory_order_acquire) == Asked::asked) return;
  Asked state = Asked::not_yet;
  if (!asked_.compare_exchange_strong(state, Asked::being_asked, std::memory_order_acquire)) {
    while (asked_.load(std::memory_order_acquire) != Asked::asked) threads::wait_for_lock();
    return;
  }
  if (program == MPI_COMM_WORLD) {
    const std::lock_guard guard(lock_);
    knows_ = true;
  } else if (parent_ == nullptr) {
    begin_broadcast();
    letters().learn(shared_from_this());
  } else if (!is_learnt()) {
    letters().learn(shared_from_this());
  }
  asked_.store(Asked::asked, std::memory_order_release);
}

void Known::begin_broadcast() {
  if (const std::lock_guard guard(lock_); name_.rank == 0) {
    id_ = next_id(name_.first);
    set_id(id_);
  }
  broadcasting_.store(true, std::memory_order_relaxed);
  const Callback callback;
  const Asking quiet(true);
  const int code = PMPI_Ibcast(&id_, 1, MPI_UINT64_T, 0, program, &request_);
  if (quiet.outcome(code).code != MPI_SUCCESS) request_ = MPI_REQUEST_NULL;
}

bool Known::is_learnt() noexcept {
  if (parent_ != nullptr) {
    const std::optional<std::uint64_t> of_parent = parent_->id();
    if (!of_parent) return false;
    const std::lock_guard guard(lock_);
    const std::uint64_t first = static_cast<std::uint64_t>(name_.first);
    set_id(mixed(mixed(*of_parent, place_), first) | of_made);
    return true;
  }
  if (request_ != MPI_REQUEST_NULL) {
    const Asking quiet(true);
    int done = 0;
    const int code = PMPI_Test(&request_, &done, MPI_STATUS_IGNORE);
    if (quiet.outcome(code).code == MPI_SUCCESS && done == 0) return false;
    if (done == 0) id_ = 0;  // no number is known
  }
  broadcasting_.store(false, std::memory_order_release);
  const std::lock_guard guard(lock_);
  if (id_ != 0 && !knows_) set_id(id_);
  return true;
}

void Known::set_id(const std::uint64_t id) {
  knows_ = true;
  name_.id = id;
  for (Outgoing& it : std::exchange(unsent_, {})) write(it.letter, std::move(it.text));
}

std::optional<std::uint64_t> Known::id() {
  const std::lock_guard guard(lock_);
  return knows_ ? std::optional(name_.id) : std::nullopt;
}

void Known::write(const Letter letter, std::string text) {
  if (knows_) {
    letters().write(name_.first, letter, in_front(name_, text));
  } else {
    unsent_.push_back({letter, std::move(text)});
  }
}

// Open collectives of other tasks have no order with it, nor with earlier ones, so these are
// reported again.
std::uint64_t Known::begin(Begun& begun, const std::uint64_t task) {
  const std::lock_guard guard(lock_);
  begun.number = ++total_;
  if (first_.empty()) first_ = check::describe(begun);
  if (begun.ordering.by != By::key) {
    for (Open& other : open_) {
      if (other.task == task) continue;
      begun.unordered = true;
      if (std::exchange(other.unordered, true)) continue;
      write(Letter::unordered, std::to_string(other.number));
    }
    open_.push_back({begun.number, task, begun.unordered});
  }
  write(Letter::begun, check::write(begun));
  return begun.number;
}

// A communicator may be renamed while it is used: that is seen sooner or later.
Begun Known::texts_of(const Call& call, const detail::TaskLabel& task) {
  constexpr std::uint64_t collectives_of_a_name = 64;
  const std::lock_guard guard(lock_);
  if (total_ % collectives_of_a_name == 0) name_text_ = report::name_of(call.comm);
  if (task_text_.empty() || task.id != last_task_) {
    task_text_ = detail::describe(task);
    last_task_ = task.id;
  }
  return {.call = call.name, .comm = name_text_, .task = task_text_};
}

void Known::close(const std::uint64_t number) noexcept {
  const std::lock_guard guard(lock_);
  std::erase_if(open_, [number](const Open& it) { return it.number == number; });
}

void Known::end(const bool freed) noexcept {
  const std::lock_guard guard(lock_);
  if (!compared || total_ == 0 || !switches.compares_ranks) return;
  if (std::exchange(has_ended_, true)) return;
  write(Letter::ended, fmt::format("{}{}", total_, freed ? " f" : ""));
}

std::string Known::describe() {
  const std::lock_guard guard(lock_);
  if (total_ == 0) return "";
  return fmt::format(
      "a rank has begun no collective on a communicator, but other ranks have:\n"
      "imbrex:   rank {}: {}, the first of {}\n"
      "imbrex:   All ranks must call the same collectives: see that each rank comes to this one",
      name_.rank, first_, total_);
}

// ---- a collective ------------------------------------------------------------------------------

void Compared::find(MPI_Comm comm) {
  if (comm == MPI_COMM_NULL) return;
  comm_ = known_of(comm);
  if (comm_ != nullptr && !comm_->compared) comm_ = nullptr;
  if (comm_ != nullptr) comm_->learn_id();
}

void Compared::begin(const Call& call, const detail::TaskLabel& task, Alike alike,
                     Ordering ordering) {
  Begun begun = comm_->texts_of(call, task);
  begun.alike = std::move(alike);
  begun.ordering = std::move(ordering);
  number_ = comm_->begin(begun, task.id);
  poll_letters();
}

void Compared::end() noexcept {
  if (number_ != 0) comm_->close(number_);
  comm_ = nullptr;
}

// ---- a communicator is made --------------------------------------------------------------------

void Making::find(MPI_Comm parent) {
  if (parent == MPI_COMM_NULL) return;
  parent_ = known_of(parent);
  if (parent_ != nullptr && !parent_->compared) parent_ = nullptr;
  if (parent_ != nullptr) parent_->learn_id();
}

void Making::draw() noexcept { place_ = parent_->next_child(); }

void Making::record(MPI_Comm created) {
  if (created == MPI_COMM_NULL) return;
  int code = MPI_SUCCESS;
  (void)known().find_or(created, code, [&] { return make_known(created, parent_, place_); });
}

std::string name_of(MPI_Op op) {
  const std::pair<MPI_Op, const char*> all[] = {
      {MPI_SUM, "MPI_SUM"},       {MPI_PROD, "MPI_PROD"},     {MPI_MAX, "MPI_MAX"},
      {MPI_MIN, "MPI_MIN"},       {MPI_MAXLOC, "MPI_MAXLOC"}, {MPI_MINLOC, "MPI_MINLOC"},
      {MPI_LAND, "MPI_LAND"},     {MPI_BAND, "MPI_BAND"},     {MPI_LOR, "MPI_LOR"},
      {MPI_BOR, "MPI_BOR"},       {MPI_LXOR, "MPI_LXOR"},     {MPI_BXOR, "MPI_BXOR"}};
  for (const auto& [one, name] : all) {
    if (one == op) return name;
  }
  return "an operation of the program";
}

// ---- begin and end -----------------------------------------------------------------------------

void start_comparing() {
  letters().open();
  switches.compares_ranks = true;
}

void end_communicator(MPI_Comm comm) {
  int code = MPI_SUCCESS;
  if (!switches.compares_ranks || comm == MPI_COMM_NULL) return;
  const std::shared_ptr<Known> it = known().find(comm, code);
  if (it == nullptr) return;
  it->end(true);
  // MPI allows that a communicator is freed while a collective is in flight, but Open MPI 4.1 may
  // crash then. All ranks have begun the broadcast, or will; otherwise the program is wrong.
  const Clock::time_point begin = Clock::now();
  while (it->is_broadcasting() && Clock::now() - begin < std::chrono::seconds(2)) {
    poll_letters();
    threads::wait_for_lock();
  }
}

void poll_letters() noexcept { letters().poll(); }

void end_comparing() {
  letters().close(known().living());
  known().end();
}

}  // namespace imbrex::mpi::check
