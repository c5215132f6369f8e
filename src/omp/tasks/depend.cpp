// SPDX-License-Identifier: BSD-3-Clause
// The compiler's arrays of dependences. In the first form: how many, how many of them `out`, and
// the addresses, `out` first. In the second, which begins with 0: how many, how many of each kind,
// the addresses in the order of the kinds, and pointers to depobj variables (address and kind).
#include <algorithm>
#include <cstdint>

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

// Each address once; two kinds together exclude what either does.
void unite(std::vector<AccessSpec>& accesses) {
  if (accesses.size() < 2) return;
  std::ranges::stable_sort(accesses, {}, &AccessSpec::address);
  auto last = accesses.begin();
  for (auto next = last + 1; next != accesses.end(); ++next) {
    if (next->address != last->address) {
      *++last = *next;
    } else if (next->kind != last->kind) {
      last->kind = AccessKind::inout;
    }
  }
  accesses.erase(last + 1, accesses.end());
}

}  // namespace

std::vector<AccessSpec> accesses_of(void** const depend) {
  std::vector<AccessSpec> accesses;
  const auto add = [&accesses](void** const from, const std::uintptr_t count,
                               const AccessKind kind) {
    for (std::uintptr_t index = 0; index < count; ++index) accesses.push_back({from[index], kind});
    return from + count;
  };
  if (const std::uintptr_t count = number(depend[0]); count != 0) {
    const std::uintptr_t out = number(depend[1]);
    accesses.reserve(count);
    void** const in = add(depend + 2, out, AccessKind::inout);
    (void)add(in, count - out, AccessKind::in);
  } else {
    const std::uintptr_t all = number(depend[1]);
    const std::uintptr_t kinds[] = {number(depend[2]), number(depend[3]), number(depend[4])};
    accesses.reserve(all);
    void** next = add(depend + 5, kinds[0], AccessKind::inout);
    next = add(next, kinds[1], AccessKind::mutexinoutset);
    next = add(next, kinds[2], AccessKind::in);
    for (std::uintptr_t object = kinds[0] + kinds[1] + kinds[2]; object < all; ++object) {
      accesses.push_back(from_depobj(*next++));
    }
  }
  unite(accesses);
  return accesses;
}

void wait_for_accesses(void** const depend) {
  std::vector<AccessSpec> accesses = accesses_of(depend);
  if (accesses.empty()) return;
  // Nobody creates siblings meanwhile: to have followed those before is to exclude them.
  for (AccessSpec& access : accesses) {
    if (access.kind != AccessKind::in) access.kind = AccessKind::inout;
  }
  static constexpr detail::BodyOps nothing{.run = [](void*) {}, .drop = nullptr,
                                           .destroy = nullptr};
  void* const closure = detail::create_with_accesses(
      {.name = "taskwait", .where = {}, .tied = true, .accesses = accesses}, nothing, 0);
  detail::Completion* const done = detail::submit_with_accesses(closure, true);
  detail::await(*done);
  detail::release(*done);
}

}  // namespace imbrex::omp
