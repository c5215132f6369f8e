// SPDX-License-Identifier: BSD-3-Clause
// What OpenMP knows of the code that runs: each implicit and each explicit task has a Context, and
// so has the code of a thread outside of all. It lies in the closure of the runtime's task, so that
// it goes where the task goes, whatever else its thread runs meanwhile.
//
// Thread safety: a Context is its task's. A variable of a Team that is not atomic is constant while
// members are in it, or says who writes it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/arch.hpp"
#include "imbrex/detail/groups.hpp"
#include "imbrex/detail/waist.hpp"
#include "omp/environment/seats.hpp"
#include "omp/environment/settings.hpp"

namespace imbrex::omp {

using Function = void (*)(void* data);

struct Team;
struct Taskgroup;   // tasks/tasks.hpp
struct Share;       // sharing/share.hpp
struct Implicit;
struct Initial;
struct PoolThread;  // thread_pool.hpp

// The kind of code that a Context stands for.
enum class Form : std::uint8_t {
  task,      // a task of the runtime, with the Context in its closure; or code outside of all
  included,  // the same, but it runs where its creator stands, and so does the Context
  call       // included, and no task of the runtime (yet): make_task()
};

struct Context {
  Team* team;
  Taskgroup* taskgroup = nullptr;  // the innermost that it is in
  int number = 0;                  // of the thread in the team
  bool is_explicit = false;
  bool is_final = false;
  Form form = Form::task;
  Variables variables;
  Context* included = nullptr;     // the innermost included task that runs in it
};

// Where a member is in the group of its team.
struct MemberPlace : detail::Membership {
  Implicit* member = nullptr;
};

// The task of one member of a team.
struct Implicit : Context {
  Share* share = nullptr;        // the worksharing construct that it came to last
  unsigned singles = 0;          // how many it has come to
  std::uint64_t trip = 0;        // of a static schedule: chunks it has had
  std::uint64_t begin = 0;       // its chunk of an ordered loop; equal: none
  std::uint64_t end = 0;
  MemberPlace place;
  detail::Entered entered;
};

// Counts members until all have come. After the last one it may be used again. It is one word, so
// that whoever comes needs its cache line once: the number that it adds to says which meeting this
// is, and the last one still has the line when it lets all go.
class Meeting {
 public:
  // Which meeting one has come to, and as which of its members.
  class Ticket {
   public:
    [[nodiscard]] bool is_last(int members) const noexcept {
      return static_cast<std::uint32_t>(word_) == static_cast<std::uint32_t>(members);
    }

   private:
    friend Meeting;
    std::uint64_t word_ = 0;
  };

  // The last to come must let_go(); others wait until it has.
  [[nodiscard]] Ticket arrive() noexcept {
    Ticket ticket;
    ticket.word_ = word_.fetch_add(1, std::memory_order_acq_rel) + 1;
    return ticket;
  }
  void let_go(Ticket ticket) noexcept;
  [[nodiscard]] bool has_let_go(Ticket ticket) const noexcept {
    // acquire: pairs with let_go()
    return phase(word_.load(std::memory_order_acquire)) != phase(ticket.word_);
  }
  [[nodiscard]] const void* address() const noexcept { return &word_; }
  // REQUIRES: nobody is there. Some may have come and left before the last came.
  void reset() noexcept { word_.store(0, std::memory_order_relaxed); }

 private:
  [[nodiscard]] static std::uint64_t phase(std::uint64_t word) noexcept { return word >> 32; }
  std::atomic<std::uint64_t> word_{0};  // above the members that have come: its number, which wraps
};

// Lines of a team that several members write have nothing else on them.
struct alignas(base::cache_line_bytes) Member {
  Implicit* task = nullptr;
};

struct Team {
  int size = 1;
  int level = 0;                    // regions around, this one included
  int active_level = 0;             // those of more than one thread among them
  Team* outer = nullptr;
  int outer_number = 0;             // the number there of the thread that created it
  std::atomic<int>* busy = nullptr; // threads in all regions of the outermost code, and its own
  int reserved = 0;                 // threads in `busy` for this team, beside its creator
  Initial* keeper = nullptr;        // keeps the team and its threads, if they are not borrowed
  detail::Group* group = nullptr;   // null: the team of a thread outside of parallel regions
  Function function = nullptr;
  void* data = nullptr;
  Variables variables;              // those that members begin with
  Taskgroup* taskgroup = nullptr;   // the one that members begin in
  bool shared_first = false;        // members begin in the first worksharing construct

  alignas(base::cache_line_bytes) Meeting barrier;
  // The end of the region. Members come here once, also if the region is cancelled.
  alignas(base::cache_line_bytes) Meeting end;
  // Members that have not left; for the creator, if it keeps the team, until it ends.
  alignas(base::cache_line_bytes) std::atomic<int> present{0};
  std::atomic<unsigned> singles{0};
  std::atomic<bool> cancelled{false};
  std::atomic<bool> work_cancelled{false};  // the worksharing construct; until the next barrier
  void* copied = nullptr;           // copyprivate; who executes the single, before a barrier
  std::unique_ptr<Share> first;     // before all worksharing constructs; null once it is passed
  std::vector<Member> members;      // each by itself; those outer to a nested region stay
  std::vector<Seat> seats;          // of the members, if threads are bound; before they begin
  Seat creator;                     // the seats were chosen for it and for the binding
  std::uint8_t binding = 0;
  bool displayed = false;           // members say where they are

  Team();
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
};

// The code of a thread outside of parallel regions is a team of one.
struct Initial : Implicit {
  Initial();
  ~Initial();
  Initial(const Initial&) = delete;
  Initial& operator=(const Initial&) = delete;
  Team alone;
  std::vector<PoolThread*> threads;  // those that its outermost regions use: 1 and up
  std::vector<Team*> teams;          // of its past outermost regions, to be used again
  bool in_region = false;            // threads and a team are in use
  int displayed = 0;                 // the size and binding of the last region that was
  std::atomic<int> busy{1};          // threads of its regions, and itself
};

// The Context of the task of the runtime that calls, or of the code outside of all. Starts nothing.
[[nodiscard]] Context& around() noexcept;
// The Context of the code that calls, in `outer`, which is around(): that of the innermost included
// task there, if there is any. (Two steps in a target region outside of all others, which is one
// itself; else one.)
[[nodiscard]] inline Context& innermost(Context& outer) noexcept {
  Context* context = &outer;
  while (context->included != nullptr) context = context->included;
  return *context;
}
[[nodiscard]] inline Context& current() noexcept { return innermost(around()); }
// The Context that the program's questions are about, and that owns locks. It is current(), but in
// a callback: code that MPI calls stands in no task, so that constructs find the thread's code
// outside of all there, a team of one; but its number is that of the thread in the team that it
// works for, as if the code had been called by the task that the callback has interrupted.
[[nodiscard]] Context& caller() noexcept;
[[nodiscard]] Initial& initial() noexcept;
// The implicit task of the thread and team that `context` belongs to.
[[nodiscard]] inline Implicit& implicit_of(Context& context) noexcept {
  return *context.team->members[static_cast<std::size_t>(context.number)].task;
}

// The seat of the thread that runs this.
[[nodiscard]] inline Seat seat_of(const Context& context) noexcept {
  const std::vector<Seat>& seats = context.team->seats;
  return seats.empty() ? Seat{} : seats[static_cast<std::size_t>(context.number)];
}
// The calling thread, outside of all regions, is bound to the first place, if there are any and it
// is not bound yet.
void take_first_seat(Initial& outside);
// The BodyOps of tasks whose closure begins with a Context.
extern const detail::BodyOps implicit_body;
extern const detail::BodyOps explicit_body;  // tasks/tasks.cpp

// That of a task of OpenMP's; null if the body is none.
[[nodiscard]] inline Context* context_in(const detail::RunningBody& body) noexcept {
  const bool is_omp = body.ops == &implicit_body || body.ops == &explicit_body;
  return is_omp ? static_cast<Context*>(body.closure) : nullptr;
}
[[nodiscard]] inline Context& context_of(const detail::RunningBody& body) noexcept {
  Context* const context = context_in(body);
  return context != nullptr ? *context : initial();
}

}  // namespace imbrex::omp
