// SPDX-License-Identifier: BSD-3-Clause
// A Share is the state of one worksharing construct (a loop, sections) that the members of a team
// share. The constructs of a region form a list that every member goes along, some ahead of others.
//
// Thread safety: constant once published, except the atomics. Why a share is published once, and
// freed once: the first members to come to a construct each make its share and try to append it to
// the share of the construct before; one succeeds, the others drop their equal shares. A member
// that goes on counts itself at the share that it leaves, after it has read `following`; the last
// one to do so frees the share.
#pragma once

#include <atomic>
#include <cstdint>

#include "omp/region/context.hpp"
#include "omp/region/iterations.hpp"

namespace imbrex::omp {

struct Doacross;  // doacross.cpp

struct Share {
  Iterations iterations;
  Schedule schedule = Schedule::dynamic;
  std::uint64_t chunk = 1;                 // 0, for by_blocks: one block each
  std::atomic<std::uint64_t> next{0};      // the first iteration that no member has
  std::atomic<std::uint64_t> turn{0};      // of an ordered loop: iterations before it are done
  std::atomic<int> passed{0};              // number of members that have gone on
  std::atomic<Share*> following{nullptr};  // release: its contents
  void* memory = nullptr;                  // for the compiler's use, zeroed; owned
  std::uintptr_t* reductions = nullptr;    // tasks/reductions.hpp: of the member that came first
  Doacross* doacross = nullptr;            // owned
  IterationFlags* flags = nullptr;         // llvm/sharing/doacross.cpp
  void* reduced = nullptr;                 // llvm/tasks/reductions.cpp
  bool is_first = false;                   // the team's own, before all constructs
  bool has_sections = false;               // it is no loop
  ~Share();
};

// The next construct if another member has come to it, else null. The member goes on to it.
[[nodiscard]] Share* go_on(Implicit& member) noexcept;
// Goes on to the next construct, which is `mine` if no member has come to it yet; else `mine` is
// dropped. True if `mine` is the next construct.
bool go_on(Implicit& member, Share& mine) noexcept;
// The region is over, for all members: whether a construct has begun in it. If so, each member goes
// on past all constructs; if not, the first share is unchanged.
[[nodiscard]] bool any_begun(const Implicit& member) noexcept;
void pass_all(Implicit& member) noexcept;

// Tells a tool of the construct that the member has come to.
void tell_begin(const Share& share);
[[nodiscard]] tools::Work work_of(Schedule schedule) noexcept;

// The member's next chunk; false if none is left. REQUIRES: a loop.
struct Chunk {
  std::uint64_t begin, end;  // numbers of iterations
};
[[nodiscard]] bool next_chunk(Implicit& member, Share& share, Chunk& chunk) noexcept;
// next_chunk() for an ordered loop: ends the chunk before, and waits for its turn. Suspends.
[[nodiscard]] bool next_ordered_chunk(Implicit& member, Share& share, Chunk& chunk);

}  // namespace imbrex::omp
