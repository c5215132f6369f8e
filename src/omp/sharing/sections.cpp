// SPDX-License-Identifier: BSD-3-Clause
// Sections, single, and scope.
#include <cstdlib>

#include "omp/sharing/work.hpp"
#include "omp/tasks/reductions.hpp"
#include "omp/region/team.hpp"
#include "omp/region/share.hpp"
#include "omp/tools/events.hpp"

namespace imbrex::omp {

namespace {

Share& make_sections(const std::uint64_t count) {
  auto* const share = new Share;
  share->iterations = {1, count + 1, 1, count};
  share->has_sections = true;
  return *share;
}

// The number of a section, from 1; 0: none is left.
unsigned next_section(Implicit& member) {
  Chunk chunk{};
  if (!next_chunk(member, *member.share, chunk)) return 0;
  if (tools::on()) [[unlikely]] tools::dispatch_section();
  return static_cast<unsigned>(chunk.begin + 1);
}

}  // namespace

namespace {

// GCC's programs do not say where a single ends.
[[gnu::cold, gnu::noinline]] void tell_single(const bool executes) {
  if (executes) return tools::begin_open_single();
  tools::begin_work(tools::Work::single_other, 1);
  tools::end_work(tools::Work::single_other, 1);
}

}  // namespace

void begin_sections(Implicit& member, const std::uint64_t count) {
  if (go_on(member) == nullptr) (void)go_on(member, make_sections(count));
  if (tools::on()) [[unlikely]] tell_begin(*member.share);
}

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
  tools::entered();
  Implicit& member = implicit_of(current());
  begin_sections(member, count);
  return next_section(member);
}

unsigned GOMP_sections2_start(unsigned count, std::uintptr_t* reductions, void** memory) {
  tools::entered();
  Implicit& member = implicit_of(current());
  Share& mine = make_sections(count);
  if (memory != nullptr) mine.memory = std::calloc(1, reinterpret_cast<std::size_t>(*memory));
  if (reductions != nullptr) prepare_reductions(member, mine, reductions);
  const bool first = go_on(member, mine);
  if (tools::on()) [[unlikely]] tell_begin(*member.share);
  if (reductions != nullptr) join_reductions(member, reductions, first);
  if (memory != nullptr) *memory = member.share->memory;
  return next_section(member);
}

unsigned GOMP_sections_next() {
  tools::entered();
  return next_section(implicit_of(current()));
}
void GOMP_sections_end() {
  if (tools::on()) [[unlikely]] return end_loop_heard(tools::this_call());
  barrier(current());
}
bool GOMP_sections_end_cancel() {
  tools::end_loop_here();
  return barrier_or_cancelled(current(), tools::Sync::barrier_workshare);
}
void GOMP_sections_end_nowait() { tools::end_loop_here(); }

void GOMP_parallel_sections(Function function, void* data, unsigned threads, unsigned count,
                            unsigned flags) {
  tools::entered();
  parallel({function, data, threads, flags, &make_sections(count)});
}
void GOMP_parallel_sections_start(Function function, void* data, unsigned threads,
                                  unsigned count) {
  tools::entered();
  begin_parallel({function, data, threads, 0, &make_sections(count)});
}

bool GOMP_single_start() {
  tools::entered();
  const bool executes = take_single(current());
  if (tools::on()) [[unlikely]] tell_single(executes);
  return executes;
}

// Returns null to the member that executes the region; the others wait for its value.
void* GOMP_single_copy_start() {
  tools::entered();
  Context& context = current();
  const bool executes = take_single(context);
  if (tools::on()) [[unlikely]] tell_single(executes);
  if (executes) return nullptr;
  barrier_told(context, tools::Sync::barrier_workshare);
  return context.team->copied;
}
void GOMP_single_copy_end(void* data) {
  tools::entered();
  Context& context = current();
  context.team->copied = data;
  barrier_told(context, tools::Sync::barrier_workshare);
}

void GOMP_scope_start(std::uintptr_t* reductions) {
  Implicit& member = implicit_of(current());
  Share& mine = make_sections(0);
  prepare_reductions(member, mine, reductions);
  join_reductions(member, reductions, go_on(member, mine));
}

}
#pragma GCC visibility pop
