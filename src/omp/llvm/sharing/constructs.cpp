// SPDX-License-Identifier: BSD-3-Clause
// Master, single, copyprivate, sections, critical regions, reductions and scope as LLVM's compilers
// call them.
#include <cstdint>

#include "omp/calls/locks.hpp"
#include "omp/llvm/region/ident.hpp"
#include "omp/region/team.hpp"
#include "omp/sharing/work.hpp"

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
  if (method == alone_or_locked && context.team->size > 1) take(*lock, "reduction");
  return method;
}

void end_reduction(const Ident* const where, int* const lock) {
  const Context& context = current();
  if (method_of(where, context) == alone_or_locked && context.team->size > 1) put(*lock);
}

}  // namespace

}  // namespace imbrex::omp

#pragma GCC visibility push(default)
extern "C" {

using namespace imbrex::omp;

std::int32_t __kmpc_master(const Ident*, std::int32_t) { return current().number == 0 ? 1 : 0; }
void __kmpc_end_master(const Ident*, std::int32_t) {}
std::int32_t __kmpc_masked(const Ident*, std::int32_t, std::int32_t filter) {
  return current().number == filter ? 1 : 0;
}
void __kmpc_end_masked(const Ident*, std::int32_t) {}

std::int32_t __kmpc_single(const Ident*, std::int32_t) { return take_single(current()) ? 1 : 0; }
void __kmpc_end_single(const Ident*, std::int32_t) {}

void __kmpc_scope(const Ident*, std::int32_t, void*) {}
void __kmpc_end_scope(const Ident*, std::int32_t, void*) {}

// The others copy from the member that executed the single, which must not leave before.
void __kmpc_copyprivate(const Ident*, std::int32_t, std::size_t, void* data,
                        void (*copy)(void* to, void* from), std::int32_t executed) {
  Context& context = current();
  if (executed != 0) context.team->copied = data;
  barrier(context);
  if (executed == 0) copy(data, context.team->copied);
  barrier(context);
}
void* __kmpc_copyprivate_light(const Ident*, std::int32_t, void* data) {
  Context& context = current();
  if (data != nullptr) context.team->copied = data;
  barrier(context);
  return context.team->copied;
}

void __kmpc_sections_init(const Ident*, std::int32_t) {}
void __kmpc_end_sections(const Ident*, std::int32_t) {}
// The number of the member's next section, from 0; `count` if there is none. The first call of a
// member begins the construct.
std::int32_t __kmpc_next_section(const Ident*, std::int32_t, std::int32_t count) {
  Implicit& member = implicit_of(current());
  if (!member.in_sections) {
    const auto sections = static_cast<std::uint64_t>(count);
    begin_loop(member, {0, sections, 1, sections}, {Schedule::dynamic, 1});
  }
  Chunk chunk{};
  member.in_sections = next_chunk(member, *member.share, chunk);
  return member.in_sections ? static_cast<std::int32_t>(chunk.begin) : count;
}

// `lock` belongs to the compiler, one for each name; any value may be stored in it.
void __kmpc_critical(const Ident*, std::int32_t, int* lock) { take(*lock, "critical"); }
void __kmpc_critical_with_hint(const Ident*, std::int32_t, int* lock, std::uint32_t) {
  take(*lock, "critical");
}
void __kmpc_end_critical(const Ident*, std::int32_t, int* lock) { put(*lock); }

std::int32_t __kmpc_reduce(const Ident* where, std::int32_t, std::int32_t, std::size_t, void*,
                           void (*)(void*, void*), int* lock) {
  return begin_reduction(where, lock);
}
std::int32_t __kmpc_reduce_nowait(const Ident* where, std::int32_t, std::int32_t, std::size_t,
                                  void*, void (*)(void*, void*), int* lock) {
  return begin_reduction(where, lock);
}
void __kmpc_end_reduce(const Ident* where, std::int32_t, int* lock) {
  end_reduction(where, lock);
  barrier(current());
}
void __kmpc_end_reduce_nowait(const Ident* where, std::int32_t, int* lock) {
  end_reduction(where, lock);
}

// As GCC expands `flush`; ThreadSanitizer refuses std::atomic_thread_fence.
void __kmpc_flush(const Ident*, ...) { __sync_synchronize(); }

}
#pragma GCC visibility pop
