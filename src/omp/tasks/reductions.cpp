// SPDX-License-Identifier: BSD-3-Clause
#include "omp/tasks/reductions.hpp"

#include <cstdlib>
#include <cstring>

#include "omp/environment/fatal.hpp"
#include "omp/region/team.hpp"
#include "omp/tools/events.hpp"

namespace imbrex::omp {

namespace {

// The compiler's list consists of blocks of words.
enum Word : std::size_t {
  variables = 0,    // how many
  thread_bytes = 1, // of one thread's copies
  base = 2,         // in: alignment; out: address of the copies
  following = 4,    // the next block, or 0
  end = 6,          // out: past the copies
  first_entry = 7   // three words for each variable: its address, its offset, and one for this
                    // library
};
constexpr std::size_t entry_words = 3;

std::uintptr_t* next_block(const std::uintptr_t* const block) noexcept {
  return reinterpret_cast<std::uintptr_t*>(block[following]);
}

// The address of a thread's copy, and of its original variable.
struct Copy {
  std::uintptr_t address = 0;
  std::uintptr_t original = 0;
};

// `address` is a variable of the block, or any thread's copy of one.
bool find_in_block(const std::uintptr_t* const block, const std::uintptr_t address,
                   const std::uintptr_t thread, Copy& copy) noexcept {
  const bool is_copy = address >= block[base] && address < block[end];
  const std::uintptr_t offset = is_copy ? (address - block[base]) % block[thread_bytes] : 0;
  for (std::uintptr_t index = 0; index < block[variables]; ++index) {
    const std::uintptr_t* const entry = block + first_entry + entry_words * index;
    if (is_copy ? entry[1] != offset : entry[0] != address) continue;
    copy = {block[base] + thread * block[thread_bytes] + entry[1], entry[0]};
    return true;
  }
  if (is_copy) copy = {block[base] + thread * block[thread_bytes] + offset, 0};
  return is_copy;
}

Copy find(const Context& context, const std::uintptr_t address) {
  const auto thread = static_cast<std::uintptr_t>(context.number);
  Copy copy;
  for (const Taskgroup* group = context.taskgroup; group != nullptr; group = group->outer) {
    for (auto data = group->reductions.rbegin(); data != group->reductions.rend(); ++data) {
      for (const std::uintptr_t* block = *data; block != nullptr; block = next_block(block)) {
        if (find_in_block(block, address, thread, copy)) return copy;
      }
    }
  }
  fatal("couldn't find matching task_reduction or reduction with task modifier for %p",
        reinterpret_cast<void*>(address));
}

}  // namespace

void allocate_reductions(std::uintptr_t* const data, const int threads) {
  for (std::uintptr_t* block = data; block != nullptr; block = next_block(block)) {
    const std::size_t alignment = std::max<std::size_t>(block[base], sizeof(void*));
    const std::size_t wanted = block[thread_bytes] * static_cast<std::size_t>(threads);
    const std::size_t bytes = (wanted + alignment - 1) / alignment * alignment;
    void* const memory = std::aligned_alloc(alignment, bytes);
    if (memory == nullptr) fatal("Out of memory allocating %zu bytes", bytes);
    std::memset(memory, 0, bytes);
    block[base] = reinterpret_cast<std::uintptr_t>(memory);
    block[end] = block[base] + wanted;
  }
}

void free_reductions(std::uintptr_t* const data) noexcept {
  for (std::uintptr_t* block = data; block != nullptr; block = next_block(block)) {
    std::free(reinterpret_cast<void*>(block[base]));
  }
}

void prepare_reductions(const Implicit& member, Share& mine, std::uintptr_t* const data) {
  allocate_reductions(data, member.team->size);
  mine.reductions = data;
}

void join_reductions(Implicit& member, std::uintptr_t* const data, const bool first) {
  if (!first) {
    free_reductions(data);
    const std::uintptr_t* shared = member.share->reductions;
    for (std::uintptr_t* block = data; block != nullptr; block = next_block(block)) {
      block[base] = shared[base];
      block[end] = shared[end];
      shared = next_block(shared);
    }
  }
  Taskgroup& group = begin_taskgroup(member);
  group.of_work = true;
  group.reductions.push_back(data);
}

}  // namespace imbrex::omp

#pragma GCC visibility push(default)
extern "C" {

using namespace imbrex::omp;

void GOMP_taskgroup_reduction_register(std::uintptr_t* data) {
  Context& context = current();
  if (context.taskgroup == nullptr) (void)begin_taskgroup(context);
  allocate_reductions(data, caller().team->size);  // the number that the compiler asks for
  context.taskgroup->reductions.push_back(data);
}

void GOMP_taskgroup_reduction_unregister(std::uintptr_t* data) { free_reductions(data); }

// Replaces each address by that of the calling thread's copy; after them come the addresses of the
// original variables of the first `originals` addresses.
void GOMP_task_reduction_remap(std::size_t count, std::size_t originals, void** addresses) {
  const Context& context = current();
  for (std::size_t index = 0; index < count; ++index) {
    const Copy copy = find(context, reinterpret_cast<std::uintptr_t>(addresses[index]));
    addresses[index] = reinterpret_cast<void*>(copy.address);
    if (index < originals) addresses[count + index] = reinterpret_cast<void*>(copy.original);
  }
}

void GOMP_workshare_task_reduction_unregister(bool cancelled) {
  Context& context = current();
  std::uintptr_t* const data = context.taskgroup->reductions.back();
  end_taskgroup(context);
  // The copies are in use until all members have ended their taskgroups.
  if (!cancelled) barrier_told(context, tools::Sync::barrier_workshare);
  if (context.number == 0) free_reductions(data);
}

unsigned GOMP_parallel_reductions(Function function, void* data, unsigned threads,
                                  unsigned flags) {
  tools::entered();
  std::uintptr_t* const reductions = *static_cast<std::uintptr_t**>(data);
  Taskgroup group;
  group.reductions.push_back(reductions);
  const Prepare prepare = [](Team& team, void* const argument) {
    auto& shared = *static_cast<Taskgroup*>(argument);
    allocate_reductions(shared.reductions.front(), team.size);
    team.taskgroup = &shared;
  };
  const int size = parallel_prepared({function, data, threads, flags}, prepare, &group);
  return static_cast<unsigned>(size);
}

}
#pragma GCC visibility pop
