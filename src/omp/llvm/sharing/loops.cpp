// SPDX-License-Identifier: BSD-3-Clause
// Loops as LLVM's compilers call them, for four types of the loop variable (4, 4u, 8, 8u). Bounds
// are inclusive. With a static schedule each member computes its part from its number; the others
// ask for chunks of a Share.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "omp/region/ident.hpp"
#include "omp/region/share.hpp"
#include "omp/sharing/work.hpp"
#include "omp/tools/events.hpp"

namespace imbrex::omp {

namespace {

// The values of `sched_type`, without the modifiers. 64 more: ordered. 128 more: not mergeable.
enum Kind : std::int32_t {
  static_chunked = 33, static_blocks = 34, dynamic_chunked = 35, guided_chunked = 36,
  runtime_kind = 37, auto_kind = 38, trapezoidal = 39, static_greedy = 40, static_balanced = 41,
  guided_iterative = 42, guided_analytical = 43, static_steal = 44, balanced_chunked = 45,
  guided_simd = 46, runtime_simd = 47,
  distribute_chunked = 91, distribute_blocks = 92
};
constexpr std::int32_t modifiers = (1 << 29) | (1 << 30);
constexpr std::int32_t ordered_offset = 32, ordered_least = 65, ordered_most = 71,
                       not_mergeable_offset = 128, not_mergeable_least = 161;

struct Named {
  std::int32_t kind;
  bool ordered;
};
Named named(std::int32_t kind) noexcept {
  kind &= ~modifiers;
  if (kind >= not_mergeable_least) kind -= not_mergeable_offset;
  const bool ordered = kind >= ordered_least && kind <= ordered_most;
  return {ordered ? kind - ordered_offset : kind, ordered};
}

template <class T>
using Signed = std::make_signed_t<T>;

// The number of iterations from `lower` to `upper`, both included.
template <class T>
std::uint64_t count_of(const T lower, const T upper, const Signed<T> step) noexcept {
  using U = std::make_unsigned_t<T>;
  if (step > 0) {
    if (upper < lower) return 0;
    const U distance = static_cast<U>(static_cast<U>(upper) - static_cast<U>(lower));
    return std::uint64_t{distance} / static_cast<U>(step) + 1;
  }
  if (lower < upper || step == 0) return 0;
  const U distance = static_cast<U>(static_cast<U>(lower) - static_cast<U>(upper));
  return std::uint64_t{distance} / static_cast<U>(-static_cast<U>(step)) + 1;
}

// A part of a loop. `*upper` may lie beyond the last iteration of the loop.
template <class T>
struct Bounds {
  T* lower;
  T* upper;
  Signed<T> step;
  [[nodiscard]] std::uint64_t count() const noexcept { return count_of(*lower, *upper, step); }
  [[nodiscard]] T value(const T first, const std::uint64_t iteration) const noexcept {
    return static_cast<T>(static_cast<std::uint64_t>(first) +
                          iteration * static_cast<std::uint64_t>(std::int64_t{step}));
  }
  // Iterations [begin, end) of the loop.
  void cut(const std::uint64_t begin, const std::uint64_t end) const noexcept {
    const T first = *lower;
    *lower = value(first, begin);
    *upper = value(first, end - 1);
  }
  // No iteration: the bounds are the wrong way round, without passing the type's limits.
  void clear() const noexcept {
    const T next = value(*upper, 1);
    if (step > 0 ? next > *upper : next < *upper) {
      *lower = next;
    } else {
      *lower = *upper;
      *upper = value(*upper, ~std::uint64_t{0});
    }
  }
};

struct Members {
  std::uint64_t number, count;
};
Members teams_of(const Context& context) noexcept {
  return {static_cast<std::uint64_t>(context.variables.team_number),
          static_cast<std::uint64_t>(std::max(context.variables.teams, 1))};
}
Members members_of(const Context& context) noexcept {
  return {static_cast<std::uint64_t>(context.number),
          static_cast<std::uint64_t>(context.team->size)};
}

// One block for each member, as large as the first one but for the last: LLVM's default. Returns
// whether the member has the last iteration.
template <class T>
bool give_block(const Bounds<T>& bounds, const Members& members, const std::uint64_t multiple) {
  const std::uint64_t count = bounds.count();
  std::uint64_t each = (count + members.count - 1) / members.count;
  each = (each + multiple - 1) / multiple * multiple;
  const std::uint64_t begin = each * members.number;
  if (begin >= count) {
    bounds.clear();
    return false;
  }
  const std::uint64_t end = std::min(begin + each, count);
  bounds.cut(begin, end);
  return end == count;
}

// The first chunk of a member, which continues by the stride.
template <class T>
bool give_chunks(const Bounds<T>& bounds, const Members& members, std::uint64_t chunk,
                 Signed<T>* const stride) {
  const std::uint64_t count = bounds.count();
  chunk = std::clamp<std::uint64_t>(chunk, 1, count);
  const std::uint64_t chunks = (count - 1) / chunk + 1;
  const auto step = static_cast<std::uint64_t>(std::int64_t{bounds.step});
  *stride = static_cast<Signed<T>>(chunk * std::min(chunks, members.count) * step);
  if (members.number >= chunks) {
    bounds.clear();
  } else {
    bounds.cut(members.number * chunk, std::min((members.number + 1) * chunk, count));
  }
  return members.number == (chunks - 1) % members.count;
}

template <class T>
struct StaticLoop {
  std::int32_t kind;
  std::int32_t* last;
  Bounds<T> bounds;
  Signed<T>* stride;
  Signed<T> chunk;
};

template <class T>
void give_static(const StaticLoop<T>& loop, const Members& members) {
  const std::uint64_t count = loop.bounds.count();
  bool last = false;
  const auto chunk = static_cast<std::uint64_t>(std::max<Signed<T>>(loop.chunk, 1));
  if (count == 0) {
    *loop.stride = loop.bounds.step;  // the bounds already say that there is no iteration
  } else if (members.count == 1) {
    *loop.stride = static_cast<Signed<T>>(
        count * static_cast<std::uint64_t>(std::int64_t{loop.bounds.step}));
    last = true;
  } else if (loop.kind == static_chunked) {
    last = give_chunks(loop.bounds, members, chunk, loop.stride);
  } else {
    *loop.stride = static_cast<Signed<T>>(count);
    last = give_block(loop.bounds, members, loop.kind == balanced_chunked ? chunk : 1);
  }
  if (loop.last != nullptr) *loop.last = last ? 1 : 0;
}

// What a tool hears of a loop that each member computes itself: LLVM's compilers give sections,
// too, the form of a loop, and then say so in the flags of the place.
constexpr std::int32_t sections_flag = 0x400;

[[gnu::cold, gnu::noinline]] void tell_static(const Ident* const where, const std::int32_t kind,
                                              const std::uint64_t count) {
  const bool is_distribute = kind == distribute_chunked || kind == distribute_blocks;
  const bool has_sections = where != nullptr && (where->flags & sections_flag) != 0;
  tools::begin_loop(is_distribute  ? tools::Work::distribute
                    : has_sections ? tools::Work::sections
                                   : tools::Work::loop_static,
                    count);
}
template <class T>
[[gnu::cold, gnu::noinline]] void tell_part(const Ident* const where, const Bounds<T>& part) {
  const std::uint64_t count = part.count();
  if (count == 0) return;
  if (where != nullptr && (where->flags & sections_flag) != 0) {
    tools::dispatch_section();
  } else {
    tools::dispatch_chunk(tools::Dispatch::loop_chunk, static_cast<std::uint64_t>(*part.lower),
                          count);
  }
}

template <class T>
void static_init(const Ident* const where, const std::int32_t kind, StaticLoop<T> loop) {
  const Context& context = current();
  const std::int32_t plain = named(kind).kind;
  if (tools::on()) [[unlikely]] tell_static(where, plain, loop.bounds.count());
  if (plain == distribute_chunked || plain == distribute_blocks) {
    loop.kind = plain - distribute_blocks + static_blocks;
    give_static(loop, teams_of(context));
  } else {
    loop.kind = plain;
    give_static(loop, members_of(context));
  }
  if (tools::on()) [[unlikely]] tell_part(where, loop.bounds);
}

// A loop over teams and their members: first a block for the team, whose bound goes to
// `team_upper`.
template <class T>
void dist_static_init(const std::int32_t kind, StaticLoop<T> loop, T* const team_upper) {
  const Context& context = current();
  std::int32_t last_team = 1;
  Signed<T> unused{};
  give_static<T>({static_blocks, &last_team, loop.bounds, &unused, 0}, teams_of(context));
  *team_upper = *loop.bounds.upper;
  loop.kind = named(kind).kind;
  give_static(loop, members_of(context));
  if (loop.last != nullptr && last_team == 0) *loop.last = 0;
}

// ---- schedules that give chunks at run time ----------------------------------------------------

Plan plan_for(const std::int32_t kind, const std::int64_t clause) {
  const auto chunk = static_cast<std::uint64_t>(std::max<std::int64_t>(clause, 0));
  switch (kind) {
    case static_chunked: return plan_of(Schedule::by_blocks, std::max<std::uint64_t>(chunk, 1));
    case static_blocks:
    case static_greedy:
    case static_balanced: return plan_of(Schedule::by_blocks, 0);
    case guided_chunked:
    case trapezoidal:
    case guided_iterative:
    case guided_analytical: return plan_of(Schedule::guided, chunk);
    case runtime_kind: return plan_of(Schedule::runtime, 0);
    case auto_kind: return plan_of(Schedule::automatic, 0);
    default: return plan_of(Schedule::dynamic, chunk);
  }
}

// schedule(simd: runtime): all chunks but the last are multiples of `width`. Guided chunks become
// equal ones.
Plan simd_plan(const std::uint64_t width, const std::uint64_t count, const Team& team) {
  Plan plan = plan_of(Schedule::runtime, 0);
  const std::uint64_t multiple = std::max<std::uint64_t>(width, 1);
  if (plan.schedule == Schedule::guided) plan.schedule = Schedule::dynamic;
  if (plan.schedule == Schedule::by_blocks && plan.chunk == 0) {
    const auto members = static_cast<std::uint64_t>(team.size);
    const std::uint64_t each = (count + members - 1) / members;
    plan.chunk = std::max<std::uint64_t>((each + multiple - 1) / multiple, 1);
  }
  plan.chunk *= multiple;
  return plan;
}

template <class T>
void dispatch_init(const std::int32_t kind, const T lower, const T upper, const Signed<T> step,
                   const Signed<T> chunk) {
  Implicit& member = implicit_of(current());
  const auto bits = [](const auto value) {
    return std::is_signed_v<decltype(value)> ? static_cast<std::uint64_t>(std::int64_t(value))
                                             : static_cast<std::uint64_t>(value);
  };
  const Named name = named(kind);
  const std::uint64_t count = count_of(lower, upper, step);
  const Plan plan = name.kind == runtime_simd
                        ? simd_plan(static_cast<std::uint64_t>(chunk), count, *member.team)
                        : plan_for(name.kind, chunk);
  begin_loop(member, {bits(lower), bits(upper), bits(step), count}, plan);
  member.ordered = name.ordered;
}

template <class T>
int dispatch_next(std::int32_t* const last, T* const lower, T* const upper,
                  Signed<T>* const step) {
  Implicit& member = implicit_of(current());
  Share& share = *member.share;
  Chunk chunk{};
  const bool some = member.ordered ? next_ordered_chunk(member, share, chunk)
                                   : next_chunk(member, share, chunk);
  const Iterations& all = share.iterations;
  if (!some) {
    if (tools::on()) [[unlikely]] tools::end_loop();
    return 0;
  }
  const auto value = [&all](const std::uint64_t number) {
    return static_cast<T>(all.start + number * all.step);
  };
  *lower = value(chunk.begin);
  *upper = value(chunk.end - 1);
  if (tools::on()) [[unlikely]] {
    tools::dispatch_chunk(tools::Dispatch::loop_chunk, static_cast<std::uint64_t>(*lower),
                          chunk.end - chunk.begin);
  }
  if (step != nullptr) *step = static_cast<Signed<T>>(all.step);
  if (last != nullptr) *last = chunk.end == all.count ? 1 : 0;
  return 1;
}

template <class T>
void dist_dispatch_init(const std::int32_t kind, std::int32_t* const last, T lower, T upper,
                        const Signed<T> step, const Signed<T> chunk) {
  Signed<T> unused{};
  give_static<T>({static_blocks, last, {&lower, &upper, step}, &unused, 0}, teams_of(current()));
  dispatch_init(kind, lower, upper, step, chunk);
}

}  // namespace

}  // namespace imbrex::omp

#pragma GCC visibility push(default)
extern "C" {

using namespace imbrex::omp;

#define IMBREX_OMP_LLVM_LOOPS(suffix, T, S)                                                       \
  void __kmpc_for_static_init_##suffix(const Ident* where, std::int32_t, std::int32_t kind,       \
                                       std::int32_t* last, T* lower, T* upper, S* stride, S step, \
                                       S chunk) {                                                 \
    tools::entered();                                                                             \
    static_init<T>(where, kind, {0, last, {lower, upper, step}, stride, chunk});                  \
  }                                                                                               \
  void __kmpc_dist_for_static_init_##suffix(const Ident*, std::int32_t, std::int32_t kind,        \
                                            std::int32_t* last, T* lower, T* upper,               \
                                            T* team_upper, S* stride, S step, S chunk) {          \
    dist_static_init<T>(kind, {0, last, {lower, upper, step}, stride, chunk}, team_upper);        \
  }                                                                                               \
  void __kmpc_team_static_init_##suffix(const Ident*, std::int32_t, std::int32_t* last, T* lower, \
                                        T* upper, S* stride, S step, S chunk) {                   \
    give_static<T>({static_chunked, last, {lower, upper, step}, stride, chunk},                   \
                   teams_of(current()));                                                          \
  }                                                                                               \
  void __kmpc_dispatch_init_##suffix(const Ident*, std::int32_t, std::int32_t kind, T lower,      \
                                     T upper, S step, S chunk) {                                  \
    tools::entered();                                                                             \
    dispatch_init<T>(kind, lower, upper, step, chunk);                                            \
  }                                                                                               \
  void __kmpc_dist_dispatch_init_##suffix(const Ident*, std::int32_t, std::int32_t kind,          \
                                          std::int32_t* last, T lower, T upper, S step,           \
                                          S chunk) {                                              \
    tools::entered();                                                                             \
    dist_dispatch_init<T>(kind, last, lower, upper, step, chunk);                                 \
  }                                                                                               \
  int __kmpc_dispatch_next_##suffix(const Ident*, std::int32_t, std::int32_t* last, T* lower,     \
                                    T* upper, S* step) {                                          \
    tools::entered();                                                                             \
    return dispatch_next<T>(last, lower, upper, step);                                            \
  }                                                                                               \
  void __kmpc_dispatch_fini_##suffix(const Ident*, std::int32_t) {}

IMBREX_OMP_LLVM_LOOPS(4, std::int32_t, std::int32_t)
IMBREX_OMP_LLVM_LOOPS(4u, std::uint32_t, std::int32_t)
IMBREX_OMP_LLVM_LOOPS(8, std::int64_t, std::int64_t)
IMBREX_OMP_LLVM_LOOPS(8u, std::uint64_t, std::int64_t)

void __kmpc_dispatch_deinit(const Ident*, std::int32_t) {}
void __kmpc_for_static_fini(const Ident*, std::int32_t) { tools::end_loop_here(); }

void __kmpc_ordered(const Ident*, std::int32_t) {
  tools::entered();
  wait_for_turn(implicit_of(current()));
}
void __kmpc_end_ordered(const Ident*, std::int32_t) {
  tools::entered();
  end_turn();
}

}
#pragma GCC visibility pop
