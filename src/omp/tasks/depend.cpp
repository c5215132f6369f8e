// SPDX-License-Identifier: BSD-3-Clause
// The compilers' arrays of dependences. GCC's first form: the number of dependences, the number of
// `out` ones, and the addresses, `out` first. Second form, which begins with 0: the number of
// dependences, the number of each kind, the addresses in the order of the kinds, and pointers to
// depobj variables (address and kind). From GCC 13 on a null address that is written stands for
// omp_all_memory.
#include <algorithm>
#include <cstdint>
#include <source_location>

#include "base/few_addresses.hpp"
#include "imbrex/error.hpp"
#include "omp/environment/fatal.hpp"
#include "omp/environment/others.hpp"
#include "omp/tasks/tasks.hpp"

namespace imbrex::omp {

using detail::AccessKind;
using detail::AccessSpec;

namespace {

std::uintptr_t number(const void* const word) { return reinterpret_cast<std::uintptr_t>(word); }

AccessSpec from_depobj(const void* const object) {
  const auto* const words = static_cast<void* const*>(object);
  switch (number(words[1])) {
    case 1: return {words[0], AccessKind::in};
    case 4: return {words[0], AccessKind::mutexinoutset};
    case 5: return {words[0], AccessKind::inoutset};
    default: return {words[0], AccessKind::inout};
  }
}

}  // namespace

Accesses::Accesses(const Depends& depend) : Accesses(depend, Form::as_given) {
  if (is_plain()) return;
  if (count_ > 1) unite();
  find_everything();
  find_events();
}

Accesses::Accesses(const Depends& depend, Form) {
  if (depend.gnu != nullptr) {
    add_gnu(depend.gnu);
  } else {
    make_room(depend.llvm[0].size() + depend.llvm[1].size());
    for (const std::span<const LlvmDepend> depends : depend.llvm) add_llvm(depends);
  }
}

void Accesses::make_room(const std::size_t count) {
  if (count <= few) return;
  outside_ = std::make_unique_for_overwrite<AccessSpec[]>(count);
  first_ = outside_.get();
}

void Accesses::add_gnu(void** const depend) {
  const bool is_short = number(depend[0]) != 0;
  const std::uintptr_t all = number(depend[is_short ? 0 : 1]);
  if (all == 0) return;  // an iterator over an empty range: the array ends here
  make_room(all);
  if (is_short) {
    const std::uintptr_t out = number(depend[1]);
    add(depend + 2, out, AccessKind::inout);
    add(depend + 2 + out, all - out, AccessKind::in);
  } else {
    void* const* next = depend + 5;
    const AccessKind kinds[] = {AccessKind::inout, AccessKind::mutexinoutset, AccessKind::in};
    for (int kind = 0; kind < 3; ++kind) {
      const std::uintptr_t count = number(depend[2 + kind]);
      add(next, count, kinds[kind]);
      next += count;
    }
    while (count_ < all) first_[count_++] = from_depobj(*next++);
  }
}

// An access to everything becomes that of GCC's form: a null address that is written.
void Accesses::add_llvm(const std::span<const LlvmDepend> depends) noexcept {
  for (const LlvmDepend& depend : depends) {
    const bool is_all = (depend.flags & LlvmDepend::all) != 0 || ~number(depend.address) == 0;
    AccessKind kind = AccessKind::inout;
    if (depend.flags == LlvmDepend::in) kind = AccessKind::in;
    if (depend.flags == LlvmDepend::mutexinoutset) kind = AccessKind::mutexinoutset;
    if (depend.flags == LlvmDepend::inoutset) kind = AccessKind::inoutset;
    first_[count_++] = is_all ? AccessSpec{nullptr, AccessKind::inout}
                              : AccessSpec{depend.address, kind};
  }
}

// True for most: each address is that of an object, and named only once.
bool Accesses::is_plain() const noexcept {
  base::FewAddresses addresses;
  return std::ranges::all_of(std::span(first_, count_), [&addresses](const AccessSpec& access) {
    return access.address != nullptr && !detail::is_name(access.address) &&
           addresses.add(access.address);
  });
}

Accesses::~Accesses() {
  if (!has_events_) return;
  for (const AccessSpec& access : span()) {
    if (access.kind != AccessKind::after) continue;
    detail::release(*static_cast<detail::Completion*>(const_cast<void*>(access.address)));
  }
}

void Accesses::add(void* const* const from, const std::size_t count,
                   const AccessKind kind) noexcept {
  for (std::size_t index = 0; index < count; ++index) first_[count_++] = {from[index], kind};
}

// Leaves each address once. Two kinds for one address together exclude everything that either
// excludes.
void Accesses::unite() noexcept {
  if (count_ > few) std::ranges::sort(span(), {}, &AccessSpec::address);
  const std::size_t look_back = count_ > few ? 1 : few;  // sorted: equal ones are neighbours
  std::size_t kept = 0;
  for (const AccessSpec& access : span()) {
    const std::size_t begin = kept > look_back ? kept - look_back : 0;
    AccessSpec* const found = std::find_if(
        first_ + begin, first_ + kept,
        [&access](const AccessSpec& other) { return other.address == access.address; });
    if (found == first_ + kept) {
      first_[kept++] = access;
    } else if (found->kind != access.kind) {
      found->kind = AccessKind::inout;
    }
  }
  count_ = kept;
}

// An access to everything includes all others, except events.
void Accesses::find_everything() noexcept {
  const auto is_everything = [](const AccessSpec& access) {
    return access.address == nullptr && access.kind == AccessKind::inout;
  };
  if (std::ranges::none_of(span(), is_everything)) [[likely]] return;
  const auto others = std::ranges::remove_if(
      span(), [](const AccessSpec& access) { return !detail::is_name(access.address); });
  count_ -= others.size();
  first_[count_++] = {nullptr, AccessKind::everything};
}

namespace {

tools::DependKind told_kind(const AccessKind kind) noexcept {
  switch (kind) {
    case AccessKind::in: return tools::DependKind::in;
    case AccessKind::mutexinoutset: return tools::DependKind::mutexinoutset;
    case AccessKind::inoutset: return tools::DependKind::inoutset;
    default: return tools::DependKind::inout;
  }
}

}  // namespace

std::vector<tools::Dependence> told(const Depends& depend) {
  std::vector<tools::Dependence> all;
  if (!depend.any()) return all;
  Accesses accesses(depend, Accesses::Form::as_given);
  for (const AccessSpec& access : accesses.span()) {
    tools::Dependence one{.variable = {}, .kind = told_kind(access.kind)};
    one.variable.pointer = const_cast<void*>(access.address);
    if (access.address == nullptr && access.kind == AccessKind::inout) {
      one.kind = tools::DependKind::out_all_memory;
    }
    all.push_back(one);
  }
  return all;
}

void Accesses::find_events() {
  for (AccessSpec& access : span()) {
    if (!detail::is_name(access.address)) [[likely]] continue;
    static constexpr std::source_location nowhere{};
    try {
      access = {detail::name_event(detail::name_at(access.address), nowhere), AccessKind::after};
    } catch (const Error& error) {
      fatal("%s", error.what());
    }
    has_events_ = true;
  }
}

void wait_for_accesses(const Depends& depend) {
  make_task(current());
  Accesses accesses(depend);
  if (accesses.span().empty()) return;
  // No siblings are created meanwhile: a task that has followed the earlier ones has excluded them.
  for (AccessSpec& access : accesses.span()) {
    if (access.kind == AccessKind::mutexinoutset || access.kind == AccessKind::inoutset) {
      access.kind = AccessKind::inout;
    }
  }
  static constexpr detail::BodyOps nothing{.run = [](void*) {}, .drop = nullptr,
                                           .destroy = nullptr};
  const detail::TaskSpec spec{.name = "taskwait", .where = {}, .tied = true,
                              .accesses = accesses.span(), .distinct = true};
  void* const closure = detail::create_with_accesses(spec, nothing, 0);
  detail::Completion* const done = detail::submit_with_accesses(closure, true);
  detail::await(*done);
  detail::release(*done);
}

void wait_for(const Context& context, const Depends& depend) {
  // Events have names of imbrex, which no code uses then.
  if (context.has_accesses == 0 && only_openmp_waits()) return;
  (context.team->group != nullptr ? wait_for_accesses : wait_for_events)(depend);
}

void wait_for_events(const Depends& depend) {
  Accesses accesses(depend);
  for (const AccessSpec& access : accesses.span()) {
    if (access.kind != AccessKind::after) continue;
    try {
      detail::await(*static_cast<detail::Completion*>(const_cast<void*>(access.address)));
    } catch (const Error& error) {  // in a callback, which cannot wait
      fatal("%s", error.what());
    }
  }
}

}  // namespace imbrex::omp
