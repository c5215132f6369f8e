// SPDX-License-Identifier: BSD-3-Clause
// Master, single, copyprivate, sections, critical regions, reductions and scope as LLVM's compilers
// call them.
#include <cstdint>

#include "omp/calls/locks.hpp"
#include "omp/region/ident.hpp"
#include "omp/region/team.hpp"
#include "omp/sharing/work.hpp"
#include "omp/tools/events.hpp"

namespace imbrex::omp {

namespace {

// How a member adds its part of a reduction: the value that the compiler's code goes by.
enum Method : std::int32_t { alone_or_locked = 1, by_atomics = 2 };

// Both calls of a reduction find the same method.
Method method_of(const Ident* const where, const Context& context) noexcept {
  const bool atomics = where != nullptr && (where->flags & atomic_reduction) != 0;
  return context.team->size > 1 && atomics ? by_atomics : alone_or_locked;
}

std::int32_t begin_reduction(const Ident* const where, int* const lock) {
  const Context& context = current();
  const Method method = method_of(where, context);
  // With atomics the compiler need not say where the reduction ends.
  if (method == alone_or_locked && tools::on()) [[unlikely]] tools::begin_reduction();
  if (method == alone_or_locked && context.team->size > 1) take(*lock, "reduction");
  return method;
}

void end_reduction(const Ident* const where, int* const lock) {
  const Context& context = current();
  if (method_of(where, context) != alone_or_locked) return;
  if (context.team->size > 1) put(*lock);
  if (tools::on()) [[unlikely]] tools::end_reduction();
}

std::int32_t begin_masked(const std::int32_t member) {
  if (current().number != member) return 0;
  if (tools::on()) [[unlikely]] tools::masked(tools::Endpoint::begin);
  return 1;
}
void end_masked() {
  if (tools::on()) [[unlikely]] tools::masked(tools::Endpoint::end);
}

[[gnu::cold, gnu::noinline]] void tell_single(const bool executes) {
  const tools::Work kind = executes ? tools::Work::single_executor : tools::Work::single_other;
  tools::begin_work(kind, 1);
  if (!executes) tools::end_work(kind, 1);
}

[[gnu::cold, gnu::noinline]] void tell_section(const bool some) {
  if (some) return tools::dispatch_section();
  tools::end_loop();
}

}  // namespace

}  // namespace imbrex::omp

#pragma GCC visibility push(default)
extern "C" {

using namespace imbrex::omp;

std::int32_t __kmpc_master(const Ident*, std::int32_t) {
  tools::entered();
  return begin_masked(0);
}
void __kmpc_end_master(const Ident*, std::int32_t) {
  tools::entered();
  end_masked();
}
std::int32_t __kmpc_masked(const Ident*, std::int32_t, std::int32_t filter) {
  tools::entered();
  return begin_masked(filter);
}
void __kmpc_end_masked(const Ident*, std::int32_t) {
  tools::entered();
  end_masked();
}

std::int32_t __kmpc_single(const Ident*, std::int32_t) {
  tools::entered();
  const bool executes = take_single(current());
  if (tools::on()) [[unlikely]] tell_single(executes);
  return executes ? 1 : 0;
}
void __kmpc_end_single(const Ident*, std::int32_t) {
  tools::entered();
  if (tools::on()) [[unlikely]] tools::end_work(tools::Work::single_executor, 1);
}

void __kmpc_scope(const Ident*, std::int32_t, void*) {
  tools::entered();
  if (tools::on()) [[unlikely]] tools::begin_work(tools::Work::scope, 0);
}
void __kmpc_end_scope(const Ident*, std::int32_t, void*) {
  tools::entered();
  if (tools::on()) [[unlikely]] tools::end_work(tools::Work::scope, 0);
}

// The others copy from the member that executed the single, which must not leave before.
void __kmpc_copyprivate(const Ident*, std::int32_t, std::size_t, void* data,
                        void (*copy)(void* to, void* from), std::int32_t executed) {
  tools::entered();
  Context& context = current();
  if (executed != 0) context.team->copied = data;
  barrier_told(context, tools::Sync::barrier_workshare);
  if (executed == 0) copy(data, context.team->copied);
  barrier_told(context, tools::Sync::barrier_workshare);
}
void* __kmpc_copyprivate_light(const Ident*, std::int32_t, void* data) {
  tools::entered();
  Context& context = current();
  if (data != nullptr) context.team->copied = data;
  barrier_told(context, tools::Sync::barrier_workshare);
  return context.team->copied;
}

void __kmpc_sections_init(const Ident*, std::int32_t) {}
void __kmpc_end_sections(const Ident*, std::int32_t) {}
// The number of the member's next section, from 0; `count` if there is none. The first call of a
// member begins the construct.
std::int32_t __kmpc_next_section(const Ident*, std::int32_t, std::int32_t count) {
  tools::entered();
  Implicit& member = implicit_of(current());
  if (!member.in_sections) begin_sections(member, static_cast<std::uint64_t>(count));
  Chunk chunk{};
  member.in_sections = next_chunk(member, *member.share, chunk);
  if (tools::on()) [[unlikely]] tell_section(member.in_sections);
  return member.in_sections ? static_cast<std::int32_t>(chunk.begin) : count;
}

// `lock` belongs to the compiler, one for each name; any value may be stored in it.
void __kmpc_critical(const Ident*, std::int32_t, int* lock) {
  take_here(*lock, tools::Mutex::critical, "critical");
}
void __kmpc_critical_with_hint(const Ident*, std::int32_t, int* lock, std::uint32_t) {
  take_here(*lock, tools::Mutex::critical, "critical");
}
void __kmpc_end_critical(const Ident*, std::int32_t, int* lock) {
  put_here(*lock, tools::Mutex::critical);
}

std::int32_t __kmpc_reduce(const Ident* where, std::int32_t, std::int32_t, std::size_t, void*,
                           void (*)(void*, void*), int* lock) {
  tools::entered();
  return begin_reduction(where, lock);
}
std::int32_t __kmpc_reduce_nowait(const Ident* where, std::int32_t, std::int32_t, std::size_t,
                                  void*, void (*)(void*, void*), int* lock) {
  tools::entered();
  return begin_reduction(where, lock);
}
void __kmpc_end_reduce(const Ident* where, std::int32_t, int* lock) {
  tools::entered();
  end_reduction(where, lock);
  barrier_told(current(), tools::Sync::barrier_implementation);
}
void __kmpc_end_reduce_nowait(const Ident* where, std::int32_t, int* lock) {
  tools::entered();
  end_reduction(where, lock);
}

// As GCC expands `flush`; ThreadSanitizer refuses std::atomic_thread_fence.
void __kmpc_flush(const Ident*, ...) {
  tools::entered();
  __sync_synchronize();
  if (tools::on()) [[unlikely]] tools::flush();
}

}
#pragma GCC visibility pop
