// SPDX-License-Identifier: BSD-3-Clause
// ordered(n) loops whose iterations wait for each other, as LLVM's compilers call them: the flags
// of the iterations are a construct of its own, begun before the loop.
//
// The first member to come makes the flags, for all members. The last member to end the loop frees
// them: the constructs of the list (share.hpp) are freed earlier.
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "omp/region/ident.hpp"
#include "omp/llvm/sharing/flags.hpp"
#include "omp/region/gate.hpp"
#include "omp/region/share.hpp"
#include "omp/sharing/work.hpp"

namespace imbrex::omp {

namespace {

// The compiler's description of one loop; bounds are inclusive.
struct Dimension {
  std::int64_t lower, upper, step;
};

IterationFlags* make_flags(const int dimensions, const Dimension* const first, const int members) {
  auto flags = std::make_unique<IterationFlags>();
  std::uint64_t all = 1;
  for (int index = 0; index < dimensions; ++index) {
    const Dimension& loop = first[index];
    const auto lower = static_cast<std::uint64_t>(loop.lower);
    const auto upper = static_cast<std::uint64_t>(loop.upper);
    const auto step = static_cast<std::uint64_t>(loop.step);
    std::uint64_t count = 0;
    if (loop.step > 0 && loop.upper >= loop.lower) count = (upper - lower) / step + 1;
    if (loop.step < 0 && loop.lower >= loop.upper) count = (lower - upper) / -step + 1;
    flags->loops.push_back({loop.lower, loop.upper, loop.step, count});
    all *= count;
  }
  flags->words.reset(new std::atomic<std::uint32_t>[all / 32 + 1]{});
  flags->members.store(members, std::memory_order_relaxed);
  return flags.release();
}

// The number of an iteration, of which the compiler gives the loops' variables. False: the loops do
// not have it.
bool find(const IterationFlags& flags, const std::int64_t* const variables,
          std::uint64_t& number) noexcept {
  number = 0;
  for (std::size_t index = 0; index < flags.loops.size(); ++index) {
    const IterationFlags::Loop& loop = flags.loops[index];
    const std::int64_t value = variables[index];
    const bool inside = loop.step > 0 ? value >= loop.lower && value <= loop.upper
                                      : value <= loop.lower && value >= loop.upper;
    if (!inside) return false;
    const std::uint64_t distance = loop.step > 0
                                       ? static_cast<std::uint64_t>(value) -
                                             static_cast<std::uint64_t>(loop.lower)
                                       : static_cast<std::uint64_t>(loop.lower) -
                                             static_cast<std::uint64_t>(value);
    const std::uint64_t step = loop.step > 0 ? static_cast<std::uint64_t>(loop.step)
                                             : -static_cast<std::uint64_t>(loop.step);
    number = number * loop.count + distance / step;
  }
  return true;
}

}  // namespace

}  // namespace imbrex::omp

#pragma GCC visibility push(default)
extern "C" {

using namespace imbrex::omp;

void __kmpc_doacross_init(const Ident*, std::int32_t, std::int32_t dimensions,
                          const Dimension* loops) {
  Implicit& member = implicit_of(current());
  member.flags = nullptr;
  if (member.team->size == 1) return;
  if (go_on(member) == nullptr) {
    Share& mine = make_share({0, 0, 1, 0}, {Schedule::dynamic, 1});
    mine.flags = make_flags(dimensions, loops, member.team->size);
    IterationFlags* const made = mine.flags;
    if (!go_on(member, mine)) delete made;
  }
  member.flags = member.share->flags;
}

void __kmpc_doacross_wait(const Ident*, std::int32_t, const std::int64_t* variables) {
  IterationFlags* const flags = implicit_of(current()).flags;
  std::uint64_t number = 0;
  if (flags == nullptr || !find(*flags, variables, number)) return;
  std::atomic<std::uint32_t>& word = flags->words[number / 32];
  const std::uint32_t bit = std::uint32_t{1} << (number % 32);
  // acquire: pairs with the release of the post
  wait_until(&word, "ordered depend(sink)",
             [&] { return (word.load(std::memory_order_acquire) & bit) != 0; });
}

void __kmpc_doacross_post(const Ident*, std::int32_t, const std::int64_t* variables) {
  IterationFlags* const flags = implicit_of(current()).flags;
  std::uint64_t number = 0;
  if (flags == nullptr || !find(*flags, variables, number)) return;
  std::atomic<std::uint32_t>& word = flags->words[number / 32];
  word.fetch_or(std::uint32_t{1} << (number % 32), std::memory_order_release);
  wake_all(&word);
}

void __kmpc_doacross_fini(const Ident*, std::int32_t) {
  Implicit& member = implicit_of(current());
  IterationFlags* const flags = member.flags;
  member.flags = nullptr;
  if (flags == nullptr) return;
  if (flags->members.fetch_sub(1, std::memory_order_acq_rel) == 1) delete flags;
}

}
#pragma GCC visibility pop
