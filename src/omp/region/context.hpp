// SPDX-License-Identifier: BSD-3-Clause
// OpenMP's knowledge of the running code: each implicit and each explicit task has a Context, and
// so has the code of a thread outside of all tasks. It lies in the closure of the runtime's task,
// so that it moves with the task, whatever else its thread runs meanwhile.
//
// Thread safety: only its task uses a Context. A non-atomic variable of a Team is constant while
// members are in it, or its comment names the writer.
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
#include "omp/region/block_cache.hpp"
#include "omp/tools/records.hpp"

namespace imbrex::omp {

using Function = void (*)(void* data);

struct Team;
struct Taskgroup;   // tasks/tasks.hpp
struct Detached;    // tasks/tasks.hpp
struct Share;       // sharing/share.hpp
struct IterationFlags;  // llvm/sharing/flags.hpp
struct Implicit;
struct Initial;
struct PoolThread;  // thread_pool.hpp

// The kind of code that a Context belongs to.
enum class Form : std::uint8_t {
  task,      // a task of the runtime, with the Context in its closure; or code outside of all tasks
  included,  // a task that runs at its creation, as does the Context
  call       // included, and no task of the runtime (yet): make_task()
};

struct Context {
  Team* team;
  Taskgroup* taskgroup = nullptr;  // the innermost one around
  int number = 0;                  // number of the thread in the team
  bool is_explicit = false;
  bool is_final = false;
  Form form = Form::task;
  std::uint8_t next_bind = 0;      // clauses of the next region, for which LLVM's compilers have
  std::uint32_t next_threads = 0;  // calls of their own; 0: none
  std::uint32_t has_accesses = 0;  // 1: a child with dependences has been queued. As wide as the
                                   // word before: one store clears both
  Variables variables;
  Context* included = nullptr;     // the innermost included task that runs in it
  tools::TaskRecord* record = nullptr;  // for a tool
};

// A member's place in the group of its team.
struct MemberPlace : detail::Membership {
  Implicit* member = nullptr;
};

// The task of one member of a team.
struct Implicit : Context {
  Share* share = nullptr;        // the last worksharing construct that it came to
  unsigned singles = 0;          // number of singles that it has come to
  std::uint64_t trip = 0;        // for a static schedule: number of chunks it has had
  std::uint64_t begin = 0;       // its chunk of an ordered loop; equal: none
  std::uint64_t end = 0;
  IterationFlags* flags = nullptr;  // of its ordered(n) loop
  bool ordered = false;          // its loop, which LLVM's compilers tell at the beginning only
  bool in_sections = false;      // it has been given a section, and not yet the end
  MemberPlace place;
  detail::Entered entered;
};

// Counts members until all have come. After the last one it may be used again. It is one word, so
// that a coming member needs its cache line once: the number that the member adds to identifies the
// meeting, and the last member still has the line when it releases all.
class Meeting {
 public:
  // The meeting that a member has come to, and the member's number there.
  class Ticket {
   public:
    [[nodiscard]] bool is_last(int members) const noexcept {
      return static_cast<std::uint32_t>(word_) == static_cast<std::uint32_t>(members);
    }

   private:
    friend Meeting;
    std::uint64_t word_ = 0;
  };

  // The last member must call let_go(); the others wait until it has.
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
  // REQUIRES: no member is there. Some may have come and left before the last one came.
  void reset() noexcept { word_.store(0, std::memory_order_relaxed); }

 private:
  [[nodiscard]] static std::uint64_t phase(std::uint64_t word) noexcept { return word >> 32; }
  std::atomic<std::uint64_t> word_{0};  // the upper part is the meeting's number, which wraps; the
                                        // lower part counts members
};

// Lines of a team that several members write hold nothing else.
struct alignas(base::cache_line_bytes) Member {
  Implicit* task = nullptr;
};

struct Team {
  int size = 1;                     // 0: a child of fork has it from its parent
  int level = 0;                    // number of regions around, this one included
  int active_level = 0;             // number of regions with more than one thread among them
  Team* outer = nullptr;
  int outer_number = 0;             // number of the creating thread there
  std::atomic<int>* busy = nullptr; // number of threads in all regions of the outermost code, and
                                    // its own
  int reserved = 0;                 // number of threads in `busy` for this team, beside its creator
  Initial* keeper = nullptr;        // keeps the team and its threads, if they are not borrowed
  detail::Group* group = nullptr;   // null: the team of a thread outside of parallel regions
  Function function = nullptr;
  void* data = nullptr;
  Variables variables;              // initial variables of the members
  std::vector<int> threads_inside;  // if `lists_threads`: numbers of threads for the regions
                                    // inside; the last one is for all deeper ones
  Taskgroup* taskgroup = nullptr;   // initial taskgroup of the members
  bool shared_first = false;        // members begin in the first worksharing construct

  alignas(base::cache_line_bytes) Meeting barrier;
  // The end of the region. Each member comes here once, also if the region is cancelled.
  alignas(base::cache_line_bytes) Meeting end;
  // Number of members that have not left; the creator counts until it ends, if it keeps the team.
  alignas(base::cache_line_bytes) std::atomic<int> present{0};
  std::atomic<unsigned> singles{0};
  std::atomic<bool> cancelled{false};
  std::atomic<bool> work_cancelled{false};  // the worksharing construct; until the next barrier
  void* copied = nullptr;           // copyprivate; the member that executes the single writes it,
                                    // before a barrier
  std::unique_ptr<Share> first;     // before all worksharing constructs; null once it is passed
  std::vector<Member> members;      // each uses its own; members outside of a nested region stay
  std::vector<Seat> seats;          // of the members, if threads are bound; before they begin
  Seat creator;                     // the seats were chosen for it and for the binding
  std::uint8_t binding = 0;
  bool displayed = false;           // members print their affinity
  bool lists_threads = false;       // by a clause of this region, or of one around
  tools::ParallelRecord record;     // for a tool

  Team();
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
};

// A thread's copy of a threadprivate variable; owned.
struct PrivateCopy {
  const void* original;
  void* memory;
  void (*destroy)(void* copy);  // null: no destructor
};

// A reference to the state of a detach(event) clause.
using DetachedReference = std::unique_ptr<Detached, void (*)(Detached*) noexcept>;

// The code of a thread outside of parallel regions is a team of one.
struct Initial : Implicit {
  Initial();
  ~Initial();
  Initial(const Initial&) = delete;
  Initial& operator=(const Initial&) = delete;
  Team own_team;
  std::vector<PoolThread*> threads;  // threads of its outermost regions: 1 and up
  std::vector<Team*> teams;          // of its past outermost regions, for reuse
  bool in_region = false;            // threads and a team are in use
  BlockCache blocks;                 // memory of tasks of LLVM's compilers
  int thread;                        // number of the thread in the process, for LLVM's compilers;
                                     // used again after the thread's end
  std::vector<PrivateCopy> copies;   // llvm/calls/threadprivate.cpp
  int next_teams = 0;                // clauses of the next league, as Context::next_threads
  int next_thread_limit = 0;
  std::vector<int> next_inside;      // of the next region: its Team::threads_inside
  std::vector<DetachedReference> unfulfilled;  // of its tasks: a taskwait waits for them
  int displayed = 0;                 // size and binding of the last region that was displayed
  std::atomic<int> busy{1};          // number of threads of its regions, and itself
};

// The Context of the calling task of the runtime, or of the code outside of all. Starts nothing.
[[nodiscard]] Context& around() noexcept;
// The Context of the calling code, in `outer`, which is around(): that of the innermost included
// task there, if there is any. (Two steps in a target region outside of all others, which is
// included itself; else one step.)
[[nodiscard]] inline Context& innermost(Context& outer) noexcept {
  Context* context = &outer;
  while (context->included != nullptr) context = context->included;
  return *context;
}
[[nodiscard]] inline Context& current() noexcept { return innermost(around()); }
// The Context that the program's queries read, and that owns locks. It is current(), except in a
// callback: code that MPI calls belongs to no task, so constructs find the Context of the thread's
// code outside of all there, a team of one. Its thread number is then that of the interrupted task
// in its team.
[[nodiscard]] Context& caller() noexcept;
[[nodiscard]] Initial& initial() noexcept;
// Null if the calling thread has not used initial() yet. Reads no variables.
[[nodiscard]] Initial* initial_if_any() noexcept;
// The library is loaded: a tool is searched for when a thread first asks for its initial().
void end_load() noexcept;
// A tool hears of the tasks that the calling thread runs. REQUIRES: join_runtime().
void watch_switches() noexcept;
// The implicit task of the thread and team that `context` belongs to.
[[nodiscard]] inline Implicit& implicit_of(Context& context) noexcept {
  return *context.team->members[static_cast<std::size_t>(context.number)].task;
}

// The seat of the thread that runs this.
[[nodiscard]] inline Seat seat_of(const Context& context) noexcept {
  const std::vector<Seat>& seats = context.team->seats;
  return seats.empty() ? Seat{} : seats[static_cast<std::size_t>(context.number)];
}
// Binds the calling thread, outside of all regions, to the first place, if there are places and the
// thread is not bound yet.
void take_first_seat(Initial& outside);
// The BodyOps of tasks whose closure begins with a Context.
extern const detail::BodyOps implicit_body;
extern const detail::BodyOps explicit_body;  // see tasks/tasks.cpp

// The Context of an OpenMP task; null for another body.
[[nodiscard]] inline Context* context_in(const detail::RunningBody& body) noexcept {
  const bool is_omp = body.ops == &implicit_body || body.ops == &explicit_body;
  return is_omp ? static_cast<Context*>(body.closure) : nullptr;
}
[[nodiscard]] inline Context& context_of(const detail::RunningBody& body) noexcept {
  Context* const context = context_in(body);
  return context != nullptr ? *context : initial();
}

}  // namespace imbrex::omp
