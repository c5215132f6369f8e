// SPDX-License-Identifier: BSD-3-Clause
// The table in shared memory by which the ranks of a job on one node lend processors to each other.
// The state of a processor is one word (word.hpp). Each process has a bell for each processor, at
// which its worker for that processor waits. Knows neither tasks nor workers.
//
// Thread safety: any thread calls every function. Why nothing hangs: no function waits for another
// process, except await(), which has a time limit, and the start, which tries for a second to lock
// the file. A move is one compare-and-swap, so a process may be killed or stopped between any two
// steps. If it dies between a move and the ring of a bell, the waiting thread looks again when its
// time is over (lending.cpp).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/sleep/bell.hpp"
#include "sched/lend/rule.hpp"
#include "sched/lend/word.hpp"

namespace imbrex::sched::lend {

inline constexpr int processors_max = 1024;

class Table {
 public:
  // Opens the table `name` of this user, or makes it, and enters this process. Also removes tables
  // whose processes are all dead. Throws Error with the reason, for a user to read.
  explicit Table(const std::string& name);
  ~Table();
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  // This process owns the processor. False if another living process does.
  [[nodiscard]] bool claim(int processor) noexcept;
  // This process has a worker that may borrow the processor.
  void expect(int processor) noexcept;

  // ---- the owner -------------------------------------------------------------------------------

  // The processor goes to the process that wants one most, or becomes free.
  void lend(int processor) noexcept;
  // True if this process holds the processor now; otherwise it has been asked for.
  [[nodiscard]] bool take_back(int processor) noexcept;
  // take_back() that asks nobody: false if another process holds it.
  [[nodiscard]] bool take_back_if_free(int processor) noexcept;
  // Takes it from a holder that does not answer.
  void force(int processor) noexcept;

  // ---- the borrower ----------------------------------------------------------------------------

  [[nodiscard]] bool borrow(int processor) noexcept;  // false: it is not free
  // False if the owner wants it back, or has taken it. One read.
  [[nodiscard]] bool may_run(int processor) const noexcept {
    const Word word = unpacked(at(processor).load(std::memory_order_relaxed));
    return word.holder == me_ && !word.wanted;
  }
  // `used_ns`: for how long this process has had it.
  void give_back(int processor, std::uint64_t used_ns) noexcept;

  // ---- both ------------------------------------------------------------------------------------

  [[nodiscard]] bool holds(int processor) const noexcept {
    return unpacked(at(processor).load(std::memory_order_acquire)).holder == me_;
  }
  // Waits until the bell of this process for the processor rings; true if it has rung.
  [[nodiscard]] bool await(int processor, std::uint64_t timeout_ns) noexcept {
    return bell(me_, processor).wait(timeout_ns);
  }
  void ring(const int processor) noexcept { bell(me_, processor).notify(); }

  // This process wants so many processors more.
  void want(std::int64_t processors) noexcept;
  // Whether another process wants a processor.
  [[nodiscard]] bool others_want() const noexcept;
  // Gives back all processors, and removes the table if no other process is left. The destructor
  // does it, too. Other threads may call lend() and want() at the same time and later: they do
  // nothing then, but for a thread that is in the middle of one, which may free a processor of the
  // process that has got this one's entry: that process takes it back.
  void leave() noexcept;
  // Treats processes as gone that have ended without leaving. Skips that while another process
  // changes the list of processes.
  void bury_dead() noexcept;
  // Removes the table's name if no other process is left.
  void remove_if_alone() noexcept;

  [[nodiscard]] std::uint64_t lent_ns() const noexcept;      // of processors of this process
  [[nodiscard]] std::uint64_t borrowed_ns() const noexcept;
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] int members() const noexcept;                // processes that have not left

 private:
  struct Entry {  // of a process; zero: unused
    std::atomic<int> pid{0};                 // written under the file's lock
    std::atomic<std::uint64_t> started{0};   // base::started_at(pid); written before `pid`
    std::atomic<std::int64_t> wants{0};      // its workers write; others take 1 off as they lend
    std::atomic<std::uint64_t> lent_ns{0};   // borrowers add
    std::atomic<std::uint64_t> borrowed_ns{0};  // its workers add
    std::atomic<std::uint64_t> expects[processors_max / 64]{};  // it writes, at its start
  };
  struct Layout {
    std::uint64_t format;      // written under the file's lock, as is the next field
    std::uint64_t pid_space;   // process numbers of another one would mean other processes
    std::atomic<int> used;     // the entries from here on have never been used
    alignas(64) std::atomic<std::uint32_t> words[processors_max];
    Entry entries[members_max];
    base::SharedBell bells[members_max][processors_max];
  };

  [[nodiscard]] std::atomic<std::uint32_t>& at(const int processor) const noexcept {
    return layout_->words[processor];
  }
  [[nodiscard]] Entry& entry(const Member member) const noexcept {
    return layout_->entries[member - 1];
  }
  [[nodiscard]] base::SharedBell& bell(const Member member, const int processor) const noexcept {
    return layout_->bells[member - 1][processor];
  }
  template <class Move>
  Next change(int processor, Move move) noexcept;
  [[nodiscard]] Member neediest(int processor) const noexcept;
  void grant(int processor) noexcept;

  void open_file();
  void map_file();
  void enter();
  void bury_dead_locked() noexcept;
  void bury(Member dead) noexcept;
  static void remove_if_dead(const std::string& path) noexcept;
  static void remove_dead_tables() noexcept;

  std::string path_;
  int file_ = -1;
  Layout* layout_ = nullptr;
  Member me_ = nobody;
  std::vector<int> owned_;  // constant once the workers run
  std::atomic<bool> left_{false};
};

}  // namespace imbrex::sched::lend
