// SPDX-License-Identifier: BSD-3-Clause
#include "distributed/data/space/bodies.hpp"

#include <algorithm>
#include <memory>
#include <new>

#include "imbrex/scope.hpp"

namespace imbrex::distributed {
namespace {

constexpr std::size_t line_bytes = 64;
[[nodiscard]] constexpr std::size_t whole_lines(const std::size_t bytes) noexcept {
  return (bytes + line_bytes - 1) / line_bytes * line_bytes;
}

// Why the task cannot run; null: it can.
[[nodiscard]] const Trouble* trouble_of(const Insertion& self) noexcept {
  if (self.trouble != nullptr) return self.trouble;
  if (const Trouble* const left = self.space->left(); left != nullptr) return left;
  for (const Use& use : self.all_uses()) {
    if (use.from != nullptr && use.from->trouble != nullptr) return use.from->trouble;
  }
  return nullptr;
}

[[nodiscard]] DataMemory open_place(const Use& use) {
  if (use.to == nullptr) return use.from->readable();
  if (use.reduction != nullptr) {
    // The first user finds no memory.
    const bool first = !use.to->has_memory();
    const DataMemory place = use.to->writable(true);
    if (first) use.reduction->clear(place.memory, place.shape.rows * place.shape.columns);
    return place;
  }
  if (use.from != nullptr && use.from != use.to) {
    use.to->assign(*use.from);
    return use.to->writable(true);
  }
  return use.to->writable(use.from != nullptr);
}

// Returns the trouble of a task that does not run; null: its places are open.
[[nodiscard]] const Trouble* open_places(Insertion& self) noexcept {
  if (const Trouble* const trouble = trouble_of(self); trouble != nullptr) {
    self.space->not_run(*trouble);
    return trouble;
  }
  try {
    for (std::size_t i = 0; i < self.count; ++i) {
      ::new (self.places + i) DataMemory(open_place(self.uses[i]));
    }
  } catch (...) {
    return &self.space->failed(self, std::current_exception());
  }
  static_cast<detail::DataTask*>(self.closure())->places = self.places;
  return nullptr;
}

// Runs the body and returns its trouble: the program's part of `self` is gone afterwards.
[[nodiscard]] const Trouble* run_body(Insertion& self) noexcept {
  const Trouble* const trouble = open_places(self);
  if (trouble != nullptr) {
    if (self.trouble == nullptr) self.ops->drop(self.closure());
    return trouble;
  }
  try {
    self.ops->run(self.closure());
  } catch (...) {
    return &self.space->failed(self, std::current_exception());
  }
  return nullptr;
}

void leave_trouble(const Insertion& self, const Trouble* const trouble) noexcept {
  for (const Use& use : self.all_uses()) {
    // A reduction stays failed, whatever is added to it.
    if (use.to != nullptr && (trouble != nullptr || use.reduction == nullptr)) {
      use.to->trouble = trouble;
    }
  }
}

void run_insertion(void* const closure) {
  Insertion& self = *static_cast<Insertion*>(closure);
  DataSpace& space = *self.space;
  leave_trouble(self, run_body(self));
  for (const Use& use : self.all_uses()) {
    if (use.from != nullptr) use.from->release();
    if (use.to != nullptr) use.to->release();
  }
  space.pending.end(Pending::task);
}

// The program has ended before.
void drop_insertion(void* const closure) noexcept {
  Insertion& self = *static_cast<Insertion*>(closure);
  if (self.trouble == nullptr) self.ops->drop(self.closure());
}

const void* code_of_insertion(const void* const closure) noexcept {
  return code_of(*static_cast<const Insertion*>(closure));
}

}  // namespace

const void* code_of(const Insertion& insertion) noexcept {
  if (insertion.ops->code != nullptr) return insertion.ops->code(insertion.closure());
  return reinterpret_cast<const void*>(insertion.ops->run);
}

// The children of a body end with it: a failure of one would otherwise end the loop on this rank
// alone.
const Trouble* run_again(Insertion& insertion) noexcept {
  const Trouble* trouble = open_places(insertion);
  if (trouble == nullptr) {
    try {
      finish([&] { insertion.ops->repeat->run(insertion.closure()); }, insertion.where);
    } catch (...) {
      trouble = &insertion.space->failed(insertion, std::current_exception());
    }
  }
  leave_trouble(insertion, trouble);
  return trouble;
}

const detail::BodyOps Insertion::run_ops{run_insertion, drop_insertion, nullptr,
                                         code_of_insertion};

std::size_t Insertion::bytes_for(const std::size_t bytes, const std::size_t uses) noexcept {
  return sizeof(Insertion) + whole_lines(bytes) + uses * (sizeof(Use) + sizeof(DataMemory));
}

Insertion& build_insertion(void* const memory, const std::size_t closure_bytes, DataSpace& space,
                           const detail::DataTaskSpec& spec, const detail::BodyOps& ops,
                           const std::span<const Use> uses) {
  auto* const behind =
      static_cast<std::byte*>(memory) + sizeof(Insertion) + whole_lines(closure_bytes);
  auto* const its_uses = reinterpret_cast<Use*>(behind);
  std::uninitialized_copy(uses.begin(), uses.end(), its_uses);
  auto* const places = reinterpret_cast<DataMemory*>(its_uses + uses.size());
  return *::new (memory) Insertion{&space,     &ops,    its_uses, places, spec.name, spec.where,
                                   nullptr, static_cast<std::uint32_t>(uses.size())};
}

}  // namespace imbrex::distributed
