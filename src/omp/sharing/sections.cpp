// SPDX-License-Identifier: BSD-3-Clause
// Sections, single, and scope.
#include <cstdlib>

#include "omp/sharing/work.hpp"
#include "omp/tasks/reductions.hpp"
#include "omp/region/team.hpp"
#include "omp/region/share.hpp"

namespace imbrex::omp {

namespace {

Share& make_sections(const unsigned count) {
  auto* const share = new Share;
  share->iterations = {1, std::uint64_t{count} + 1, 1, count};
  return *share;
}

// The number of a section, from 1; 0: none is left.
unsigned next_section(Implicit& member) noexcept {
  Chunk chunk{};
  if (!next_chunk(member, *member.share, chunk)) return 0;
  return static_cast<unsigned>(chunk.begin + 1);
}

}  // namespace

// Each member counts the constructs that it has come to; the team counts the taken ones.
bool take_single(Context& context) noexcept {
  Implicit& member = implicit_of(context);
  unsigned mine = member.singles++;
  // acq_rel: orders only which member comes first
  return context.team->singles.compare_exchange_strong(mine, mine + 1, std::memory_order_acq_rel,
                                                       std::memory_order_relaxed);
}

}  // namespace imbrex::omp

#pragma GCC visibility push(default)
extern "C" {

using namespace imbrex::omp;

unsigned GOMP_sections_start(unsigned count) {
  Implicit& member = implicit_of(current());
  if (go_on(member) == nullptr) (void)go_on(member, make_sections(count));
  return next_section(member);
}

unsigned GOMP_sections2_start(unsigned count, std::uintptr_t* reductions, void** memory) {
  Implicit& member = implicit_of(current());
  Share& mine = make_sections(count);
  if (memory != nullptr) mine.memory = std::calloc(1, reinterpret_cast<std::size_t>(*memory));
  if (reductions != nullptr) prepare_reductions(member, mine, reductions);
  const bool first = go_on(member, mine);
  if (reductions != nullptr) join_reductions(member, reductions, first);
  if (memory != nullptr) *memory = member.share->memory;
  return next_section(member);
}

unsigned GOMP_sections_next() { return next_section(implicit_of(current())); }
void GOMP_sections_end() { barrier(current()); }
bool GOMP_sections_end_cancel() { return barrier_or_cancelled(current()); }
void GOMP_sections_end_nowait() {}

void GOMP_parallel_sections(Function function, void* data, unsigned threads, unsigned count,
                            unsigned flags) {
  parallel({function, data, threads, flags, &make_sections(count)});
}
void GOMP_parallel_sections_start(Function function, void* data, unsigned threads,
                                  unsigned count) {
  begin_parallel({function, data, threads, 0, &make_sections(count)});
}

bool GOMP_single_start() { return take_single(current()); }

// Returns null to the member that executes the region; the others wait for its value.
void* GOMP_single_copy_start() {
  Context& context = current();
  if (take_single(context)) return nullptr;
  barrier(context);
  return context.team->copied;
}
void GOMP_single_copy_end(void* data) {
  Context& context = current();
  context.team->copied = data;
  barrier(context);
}

void GOMP_scope_start(std::uintptr_t* reductions) {
  Implicit& member = implicit_of(current());
  Share& mine = make_sections(0);
  prepare_reductions(member, mine, reductions);
  join_reductions(member, reductions, go_on(member, mine));
}

}
#pragma GCC visibility pop
