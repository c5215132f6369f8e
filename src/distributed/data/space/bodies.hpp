// SPDX-License-Identifier: BSD-3-Clause
// A task with data that runs on this rank: the record around the program's closure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <span>

#include "distributed/data/space/space.hpp"

namespace imbrex::distributed {

// Precedes the closure; the uses and places follow it. An insertion without a closure, whose copy
// has thrown, has a trouble from the start.
struct alignas(64) Insertion {
  DataSpace* space;
  const detail::BodyOps* ops;
  Use* uses;
  DataMemory* places;
  const char* name;
  std::source_location where;
  const Trouble* trouble = nullptr;
  std::uint32_t count;

  [[nodiscard]] void* closure() noexcept { return this + 1; }
  [[nodiscard]] const void* closure() const noexcept { return this + 1; }
  [[nodiscard]] static Insertion& of_closure(void* const closure) noexcept {
    return *(static_cast<Insertion*>(closure) - 1);
  }
  [[nodiscard]] std::span<Use> all_uses() const noexcept { return {uses, count}; }

  // The total size around a closure of `bytes`.
  [[nodiscard]] static std::size_t bytes_for(std::size_t bytes, std::size_t uses) noexcept;
  static const detail::BodyOps run_ops;
};

// Builds an Insertion in `memory`; takes over the references of `uses`.
[[nodiscard]] Insertion& build_insertion(void* memory, std::size_t closure_bytes, DataSpace& space,
                                         const detail::DataTaskSpec& spec,
                                         const detail::BodyOps& ops, std::span<const Use> uses);

// Runs the task once more, which keeps its closure, with the uses that it has now; they stay.
// Returns why it has not run, or has failed; null: it has run.
[[nodiscard]] const Trouble* run_again(Insertion& insertion) noexcept;
[[nodiscard]] const void* code_of(const Insertion& insertion) noexcept;

}  // namespace imbrex::distributed
