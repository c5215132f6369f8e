// SPDX-License-Identifier: BSD-3-Clause
#include "sched/lend/table.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <string_view>
#include <thread>

#include "base/job.hpp"
#include "imbrex/error.hpp"

namespace imbrex::sched::lend {

namespace {

constexpr const char* folder = "/dev/shm/";
constexpr std::uint64_t format_number = 0x696d62726c650001;  // another layout: another number

std::string prefix() { return fmt::format("imbrex-lend-{}-", geteuid()); }

// Tries for a second: a process that was stopped while it held the lock must stop nobody else.
bool lock(const int file) noexcept {
  for (int round = 0; round < 200; ++round) {
    if (flock(file, LOCK_EX | LOCK_NB) == 0) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

class Locked {
 public:
  explicit Locked(const int file) noexcept : file_(file) {}
  ~Locked() { flock(file_, LOCK_UN); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  int file_;
};

std::uint64_t pid_space() noexcept {
  struct stat state{};
  return stat("/proc/self/ns/pid", &state) == 0 ? state.st_ino : 0;
}

bool is_alive(const int pid, const std::uint64_t started) noexcept {
  return base::started_at(pid) == started;
}

[[noreturn]] void refuse(const std::string& why) { throw Error(why); }

}  // namespace

// ---- start and end -----------------------------------------------------------------------------

Table::Table(const std::string& name) : path_(folder + prefix() + name) {
  remove_dead_tables();
  open_file();
  const Locked guard(file_);
  try {
    map_file();
    bury_dead_locked();
    enter();
  } catch (...) {
    if (layout_ != nullptr) munmap(layout_, sizeof(Layout));
    close(file_);
    throw;
  }
}

// Opens and locks the file, which the last process of the table may just remove.
void Table::open_file() {
  for (int round = 0; round < 100; ++round) {
    file_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file_ < 0) refuse(fmt::format("cannot open {} ({})", path_, std::strerror(errno)));
    struct stat state{};
    if (fstat(file_, &state) != 0 || state.st_uid != geteuid() || (state.st_mode & 077) != 0) {
      close(file_);
      refuse(fmt::format("{} belongs to another user, or others may write to it", path_));
    }
    if (!lock(file_)) {
      close(file_);
      refuse(fmt::format("{} has been locked for a second by another process", path_));
    }
    if (fstat(file_, &state) == 0 && state.st_nlink != 0) return;
    close(file_);
  }
  refuse(fmt::format("{} is removed again and again", path_));
}

void Table::map_file() {
  struct stat state{};
  (void)fstat(file_, &state);
  const bool is_new = state.st_size == 0;
  if (!is_new && state.st_size != sizeof(Layout)) {
    refuse(fmt::format("{} is of another version of imbrex", path_));
  }
  // All of it now: a page that the system does not have later would end the process.
  if (is_new) {
    if (const int error = posix_fallocate(file_, 0, sizeof(Layout)); error != 0) {
      const bool is_empty = ftruncate(file_, 0) == 0;
      refuse(fmt::format("no room for {} ({}){}", path_, std::strerror(error),
                         is_empty ? "" : ", and the file cannot be emptied: remove it"));
    }
  }
  void* const memory =
      mmap(nullptr, sizeof(Layout), PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (memory == MAP_FAILED) {
    refuse(fmt::format("cannot map {} ({})", path_, std::strerror(errno)));
  }
  layout_ = static_cast<Layout*>(memory);
  if (is_new) {
    layout_->format = format_number;
    layout_->pid_space = pid_space();
  }
  if (layout_->format != format_number) {
    refuse(fmt::format("{} is of another version of imbrex", path_));
  }
  if (layout_->pid_space != pid_space()) {
    refuse(fmt::format("the processes of {} run in different containers", path_));
  }
}

void Table::enter() {
  for (int index = 0; index < members_max; ++index) {
    Entry& mine = layout_->entries[index];
    if (mine.pid.load(std::memory_order_relaxed) != 0) continue;
    me_ = static_cast<Member>(index + 1);
    mine.wants.store(0, std::memory_order_relaxed);
    mine.lent_ns.store(0, std::memory_order_relaxed);
    mine.borrowed_ns.store(0, std::memory_order_relaxed);
    for (auto& expected : mine.expects) expected.store(0, std::memory_order_relaxed);
    for (base::SharedBell& one : layout_->bells[index]) ::new (&one) base::SharedBell;
    mine.started.store(base::started_at(getpid()), std::memory_order_relaxed);
    mine.pid.store(getpid(), std::memory_order_release);
    int used = layout_->used.load(std::memory_order_relaxed);
    layout_->used.store(std::max(used, index + 1), std::memory_order_release);
    return;
  }
  refuse(fmt::format("{} has {} processes already", path_, members_max));
}

Table::~Table() {
  leave();
  munmap(layout_, sizeof(Layout));
  close(file_);
}

void Table::leave() noexcept {
  if (left_.exchange(true, std::memory_order_relaxed)) return;
  entry(me_).wants.store(0, std::memory_order_relaxed);
  for (const int processor : owned_) {
    (void)change(processor, [this](const Word& word) { return withdrawn(word, me_); });
  }
  for (int processor = 0; processor < processors_max; ++processor) {
    if (holds(processor)) give_back(processor, 0);
  }
  if (!lock(file_)) return;  // the next process that looks finds this one dead
  const Locked guard(file_);
  bury_dead_locked();
  entry(me_).pid.store(0, std::memory_order_release);
  if (members() == 0) unlink(path_.c_str());
}

void Table::remove_if_alone() noexcept {
  if (flock(file_, LOCK_EX | LOCK_NB) != 0) return;
  const Locked guard(file_);
  bury_dead_locked();
  if (members() == 1) unlink(path_.c_str());
}

int Table::members() const noexcept {
  int count = 0;
  for (int index = 0; index < layout_->used.load(std::memory_order_acquire); ++index) {
    if (layout_->entries[index].pid.load(std::memory_order_relaxed) != 0) ++count;
  }
  return count;
}

// ---- dead processes ----------------------------------------------------------------------------

void Table::bury_dead() noexcept {
  if (flock(file_, LOCK_EX | LOCK_NB) != 0) return;
  const Locked guard(file_);
  bury_dead_locked();
}

// The lock keeps the entry of a dead process from being used again meanwhile.
void Table::bury_dead_locked() noexcept {
  for (int index = 0; index < layout_->used.load(std::memory_order_acquire); ++index) {
    Entry& one = layout_->entries[index];
    const int pid = one.pid.load(std::memory_order_acquire);
    if (pid == 0 || is_alive(pid, one.started.load(std::memory_order_relaxed))) continue;
    one.wants.store(0, std::memory_order_relaxed);
    bury(static_cast<Member>(index + 1));
    one.pid.store(0, std::memory_order_release);
  }
}

void Table::bury(const Member dead) noexcept {
  for (int processor = 0; processor < processors_max; ++processor) {
    (void)change(processor, [dead](const Word& word) { return buried(word, dead); });
  }
}

// ---- moves -------------------------------------------------------------------------------------

// Makes the move that `move` computes, if it is possible. Rings the bell of another process that
// holds the processor now. Returns the new state. seq_cst: grant() says why.
template <class Move>
Next Table::change(const int processor, const Move move) noexcept {
  std::atomic<std::uint32_t>& bits = at(processor);
  std::uint32_t before = bits.load();
  for (;;) {
    const Word word = unpacked(before);
    const Next next = move(word);
    if (!next || *next == word) return next;
    if (!bits.compare_exchange_weak(before, packed(*next))) continue;
    const Member holder = next->holder;
    if (holder != word.holder && holder != nobody && holder != me_) {
      bell(holder, processor).notify();
    }
    return next;
  }
}

// The process that gets the processor; nobody if no process wants it.
Member Table::neediest(const int processor) const noexcept {
  const int used = layout_->used.load(std::memory_order_acquire);
  const auto word = static_cast<std::size_t>(processor) / 64;
  const std::uint64_t bit = std::uint64_t{1} << (processor % 64);
  const int best = rule::neediest(used, me_ - 1, [&](const int index) -> std::int64_t {
    const Entry& one = layout_->entries[index];
    if (index == me_ - 1 || one.pid.load(std::memory_order_relaxed) == 0) return 0;
    if ((one.expects[word].load(std::memory_order_relaxed) & bit) == 0) return 0;
    return one.wants.load();
  });
  return static_cast<Member>(best + 1);
}

bool Table::claim(const int processor) noexcept {
  if (!change(processor, [this](const Word& word) { return claimed(word, me_); })) return false;
  owned_.push_back(processor);
  return true;
}

void Table::expect(const int processor) noexcept {
  entry(me_).expects[processor / 64].fetch_or(std::uint64_t{1} << (processor % 64));
}

// A free processor goes to the process that wants one most, if there is one. Call it after the
// processor has become free. A process that begins to want a processor looks for free ones
// afterwards, and this function looks for such a process after the processor is free. All four
// accesses are seq_cst, so one of the two sees the other (tests/models/lending.pml).
void Table::grant(const int processor) noexcept {
  std::uint32_t before = at(processor).load();
  const Word word = unpacked(before);
  const Member to = is_free(word) ? neediest(processor) : nobody;
  if (to == nobody || to == word.owner) return;
  const std::uint32_t after = packed({.owner = word.owner, .holder = to});
  if (!at(processor).compare_exchange_strong(before, after)) return;  // another process has it
  entry(to).wants.fetch_sub(1, std::memory_order_relaxed);
  bell(to, processor).notify();
}

void Table::lend(const int processor) noexcept {
  if (left_.load(std::memory_order_relaxed)) return;
  (void)change(processor, [this](const Word& word) { return lent(word, me_); });
  grant(processor);
}

bool Table::take_back(const int processor) noexcept {
  (void)change(processor, [this](const Word& word) { return asked_for(word, me_); });
  return holds(processor);
}

bool Table::take_back_if_free(const int processor) noexcept {
  return change(processor, [this](const Word& word) {
           const Next next = asked_for(word, me_);
           return next && !next->wanted ? next : Next{};
         }).has_value();
}

void Table::force(const int processor) noexcept {
  (void)change(processor, [this](const Word& word) { return forced(word, me_); });
}

bool Table::borrow(const int processor) noexcept {
  return change(processor, [this](const Word& word) { return borrowed(word, me_); }).has_value();
}

void Table::give_back(const int processor, const std::uint64_t used_ns) noexcept {
  const Word word = unpacked(at(processor).load(std::memory_order_relaxed));
  if (word.owner != nobody && word.owner != dead_owner && word.owner != me_) {
    entry(word.owner).lent_ns.fetch_add(used_ns, std::memory_order_relaxed);
  }
  entry(me_).borrowed_ns.fetch_add(used_ns, std::memory_order_relaxed);
  (void)change(processor, [this](const Word& now) { return given_back(now, me_); });
  grant(processor);
}

void Table::want(const std::int64_t processors) noexcept {
  if (left_.load(std::memory_order_relaxed)) return;
  std::atomic<std::int64_t>& wants = entry(me_).wants;
  if (wants.load(std::memory_order_relaxed) != processors) wants.store(processors);
}

bool Table::others_want() const noexcept {
  const int used = layout_->used.load(std::memory_order_acquire);
  for (int index = 0; index < used; ++index) {
    if (index != me_ - 1 && layout_->entries[index].wants.load(std::memory_order_relaxed) > 0) {
      return true;
    }
  }
  return false;
}

std::uint64_t Table::lent_ns() const noexcept {
  return entry(me_).lent_ns.load(std::memory_order_relaxed);
}
std::uint64_t Table::borrowed_ns() const noexcept {
  return entry(me_).borrowed_ns.load(std::memory_order_relaxed);
}

// ---- tables of dead jobs -----------------------------------------------------------------------

// Removes the table `path` if its processes are dead, and all of them are visible from here.
void Table::remove_if_dead(const std::string& path) noexcept {
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return;
  struct stat state{};
  const bool is_table = flock(file, LOCK_EX | LOCK_NB) == 0 && fstat(file, &state) == 0 &&
                        state.st_uid == geteuid() && state.st_nlink != 0 &&
                        state.st_size == sizeof(Layout);
  void* const memory = is_table ? mmap(nullptr, sizeof(Layout), PROT_READ, MAP_SHARED, file, 0)
                                : MAP_FAILED;
  if (memory != MAP_FAILED) {
    const auto& layout = *static_cast<const Layout*>(memory);
    const bool is_ours = layout.format == format_number && layout.pid_space == pid_space();
    const bool is_used = std::ranges::any_of(layout.entries, [](const Entry& one) {
      const int pid = one.pid.load(std::memory_order_acquire);
      return pid != 0 && is_alive(pid, one.started.load(std::memory_order_relaxed));
    });
    if (is_ours && !is_used) unlink(path.c_str());
    munmap(memory, sizeof(Layout));
  }
  close(file);  // also unlocks it
}

void Table::remove_dead_tables() noexcept {
  DIR* const all = opendir(folder);
  if (all == nullptr) return;
  while (const dirent* const one = readdir(all)) {
    const std::string_view name = one->d_name;
    if (name.starts_with(prefix())) remove_if_dead(folder + std::string(name));
  }
  closedir(all);
}

}  // namespace imbrex::sched::lend
