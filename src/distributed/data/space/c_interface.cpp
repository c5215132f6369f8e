// SPDX-License-Identifier: BSD-3-Clause
// imbrex/distributed/data_tasks.h: the functions of imbrex/data.hpp, without their exceptions.
#include "imbrex/distributed/data_tasks.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "c/guard.hpp"
#include "c/places.hpp"
#include "imbrex/detail/distributed/data_space.hpp"
#include "imbrex/detail/distributed/spaces.hpp"
#include "imbrex/detail/observation.hpp"
#include "imbrex/error.hpp"

namespace imbrex::distributed {
namespace {

using detail::DataAccess;
using detail::DataMode;
using detail::DataReduction;
using detail::DataSpace;
using detail::Datum;

// Handles are the objects themselves; only C++ knows their types.
DataSpace& space_of(const imbrex_space_t space) {
  c::require(space, "an imbrex_space_t");
  return *reinterpret_cast<DataSpace*>(space);
}
Datum& datum_of(const imbrex_data_t data) {
  c::require(data, "an imbrex_data_t");
  return *reinterpret_cast<Datum*>(data);
}

imbrex_data_view view_of(const detail::DataMemory& place) noexcept {
  return {place.memory, place.shape.rows, place.shape.columns, place.shape.leading};
}

// A task's closure: this, then its views, then the copy of its argument.
struct alignas(16) CBody : detail::DataTask {
  imbrex_data_body* body;
  void* argument;
  std::size_t count;
  std::size_t argument_bytes;  // of its copy behind the views; 0: the program's

  [[nodiscard]] imbrex_data_view* views() noexcept {
    return reinterpret_cast<imbrex_data_view*>(this + 1);
  }
  [[nodiscard]] static constexpr std::size_t argument_at(const std::size_t count) noexcept {
    return (sizeof(CBody) + count * sizeof(imbrex_data_view) + 15) & ~std::size_t{15};
  }
  static void run(void* const closure) {
    CBody& self = *static_cast<CBody*>(closure);
    for (std::size_t i = 0; i < self.count; ++i) {
      ::new (self.views() + i) imbrex_data_view(view_of(self.places[i]));
    }
    const int code = self.body(self.argument, self.views());
    if (code == 0) return;
    throw Error(fmt::format("imbrex: the body of task {} returned {}",
                            detail::describe_current_task(), code));
  }
};
// A body keeps nothing between its calls, so it can be called again.
constexpr detail::RepeatOps repeat{
    &CBody::run, [](void* const closure) noexcept {
      CBody& self = *static_cast<CBody*>(closure);
      if (self.argument_bytes == 0) return std::as_bytes(std::span(&self.argument, 1));
      return std::span(static_cast<const std::byte*>(self.argument), self.argument_bytes);
    }};
constexpr detail::BodyOps ops{&CBody::run, [](void*) noexcept {}, nullptr, nullptr, nullptr,
                              &repeat};

// The layout of both structs is two function pointers.
static_assert(sizeof(DataReduction) == sizeof(imbrex_data_reduction));

std::vector<DataAccess> accesses_of(const imbrex_data_task_spec& spec) {
  if (spec.access_count < 0) {
    throw Error(fmt::format("imbrex: imbrex_data_task_spec::access_count is {}: give 0 or more",
                            spec.access_count));
  }
  if (spec.access_count != 0) c::require(spec.accesses, "imbrex_data_task_spec::accesses");
  std::vector<DataAccess> accesses;
  for (int index = 0; index < spec.access_count; ++index) {
    const imbrex_data_access& access = spec.accesses[index];
    const bool reduces = access.kind == IMBREX_DATA_REDUCE;
    if (!reduces && (access.kind < IMBREX_IN || access.kind > IMBREX_INOUT)) {
      throw Error(fmt::format("imbrex: imbrex_data_access::kind is {}: valid: IMBREX_IN, "
                              "IMBREX_OUT, IMBREX_INOUT and IMBREX_DATA_REDUCE", access.kind));
    }
    if (reduces) {
      c::require(access.reduction, "imbrex_data_access::reduction");
      c::require(reinterpret_cast<const void*>(access.reduction->combine),
                 "imbrex_data_reduction::combine");
      c::require(reinterpret_cast<const void*>(access.reduction->clear),
                 "imbrex_data_reduction::clear");
    }
    accesses.push_back({&datum_of(access.data),
                        reduces ? DataMode::reduce : static_cast<DataMode>(access.kind),
                        reduces ? reinterpret_cast<const DataReduction*>(access.reduction)
                                : nullptr});
  }
  return accesses;
}

int executor_of(const imbrex_data_task_spec& spec) noexcept {
  return spec.on == -1 ? detail::DataTaskSpec::by_owner : spec.on;
}

void insert(DataSpace& space, const imbrex_data_task_spec& spec) {
  c::require(reinterpret_cast<const void*>(spec.body), "imbrex_data_task_spec::body");
  if (spec.argument_bytes != 0) c::require(spec.argument, "imbrex_data_task_spec::argument");
  if (spec.argument_bytes > c::bytes_max) throw std::bad_alloc();
  const std::vector<DataAccess> accesses = accesses_of(spec);
  const char* const name = c::name_of_task(spec.name, spec.kept != 0);
  const std::size_t argument_at = CBody::argument_at(accesses.size());
  auto* const memory = static_cast<std::byte*>(detail::begin_insertion(
      space,
      {name, c::place(spec.file, spec.line), spec.priority, executor_of(spec), spec.decides != 0},
      accesses, ops, argument_at + spec.argument_bytes));
  if (memory == nullptr) return;
  auto* const body = ::new (memory) CBody;
  body->body = spec.body;
  body->argument = const_cast<void*>(spec.argument);
  body->count = accesses.size();
  body->argument_bytes = spec.argument_bytes;
  if (spec.argument_bytes != 0) {
    body->argument = std::memcpy(memory + argument_at, spec.argument, spec.argument_bytes);
  }
  detail::insert_here(space, memory);
}

struct CLoop {
  imbrex_space_loop_body* body;
  void* argument;
};

void iterate(DataSpace& space, const detail::IterateSpec& spec, CLoop loop) {
  detail::iterate_data(space, spec,
                       [](void* const of, const std::int64_t iteration) {
                         const CLoop& it = *static_cast<const CLoop*>(of);
                         const int code = it.body(it.argument, iteration);
                         if (code == 0) return;
                         throw Error(fmt::format("imbrex: the body of imbrex_space_iterate() "
                                                 "returned {}", code));
                       },
                       &loop);
}

}  // namespace
}  // namespace imbrex::distributed

using imbrex::Error;
using imbrex::c::guard;
using imbrex::c::place;
using imbrex::c::require;
using imbrex::distributed::datum_of;
using imbrex::distributed::space_of;

#pragma GCC visibility push(default)
extern "C" {

int imbrex_space_check(void) {
  return guard(IMBREX_ERR_USE, [] { imbrex::detail::require_messages("a space of data"); });
}

int imbrex_space_open(const uint64_t id, const int ranks, const int world[], const int nodes[],
                      const imbrex_space_options* const options, imbrex_space_t* const space) {
  return guard(IMBREX_ERR_USE, [&] {
    require(space, "the result of imbrex_space_create()");
    imbrex::SpaceOptions its_options;
    if (options != nullptr) {
      if (options->name != nullptr) its_options.name = options->name;
      if (options->tasks_ahead != -1) its_options.tasks_ahead = options->tasks_ahead;
    }
    *space = reinterpret_cast<imbrex_space_t>(imbrex::detail::make_data_space(
        {id, {world, world + ranks}, {nodes, nodes + ranks}}, std::move(its_options)));
  });
}

int imbrex_space_refuse(const char* const why) {
  return guard(IMBREX_ERR_USE, [&] { throw Error(std::string("imbrex: ") + why); });
}

int imbrex_space_free(imbrex_space_t* const space) {
  return guard(IMBREX_ERR_USE, [&] {
    require(space, "the argument of imbrex_space_free()");
    imbrex::detail::close_data_space(&space_of(*space));
    *space = nullptr;
  });
}

int imbrex_space_rank(const imbrex_space_t space) {
  int rank = -1;
  (void)guard(IMBREX_ERR_USE, [&] { rank = imbrex::detail::data_rank(space_of(space)); });
  return rank;
}
int imbrex_space_size(const imbrex_space_t space) {
  int size = -1;
  (void)guard(IMBREX_ERR_USE, [&] { size = imbrex::detail::data_ranks(space_of(space)); });
  return size;
}

int imbrex_data_create(const imbrex_space_t space, const int owner, const size_t rows,
                       const size_t columns, const size_t element_bytes, void* const memory,
                       const size_t leading, const char* const name, imbrex_data_t* const data) {
  return guard(IMBREX_ERR_USE, [&] {
    require(data, "the result of imbrex_data_create()");
    *data = reinterpret_cast<imbrex_data_t>(imbrex::detail::make_datum(
        space_of(space),
        {owner, {rows, columns, leading == 0 ? rows : leading, element_bytes}, memory,
         name == nullptr ? "" : imbrex::detail::keep_text(name)}));
  });
}

int imbrex_data_owner(const imbrex_data_t data) {
  int owner = -1;
  (void)guard(IMBREX_ERR_USE, [&] { owner = imbrex::detail::owner_of(datum_of(data)); });
  return owner;
}

int imbrex_data_launch(const imbrex_space_t space, const imbrex_data_task_spec* const spec) {
  return guard(IMBREX_ERR_USE, [&] {
    require(spec, "the imbrex_data_task_spec");
    imbrex::distributed::insert(space_of(space), *spec);
  });
}

int imbrex_data_concerns(const imbrex_space_t space, const imbrex_data_task_spec* const spec) {
  int answer = -1;
  (void)guard(IMBREX_ERR_USE, [&] {
    require(spec, "the imbrex_data_task_spec");
    answer = imbrex::detail::concerns(space_of(space),
                                      imbrex::distributed::executor_of(*spec),
                                      imbrex::distributed::accesses_of(*spec))
                 ? 1
                 : 0;
  });
  return answer;
}

int imbrex_data_flush(const imbrex_data_t data, const char* const file, const int line) {
  return guard(IMBREX_ERR_USE,
               [&] { imbrex::detail::flush_datum(datum_of(data), place(file, line)); });
}
int imbrex_data_discard(const imbrex_data_t data, const char* const file, const int line) {
  return guard(IMBREX_ERR_USE,
               [&] { imbrex::detail::discard_datum(datum_of(data), place(file, line)); });
}
int imbrex_data_move(const imbrex_data_t data, const int owner, const char* const file,
                     const int line) {
  return guard(IMBREX_ERR_USE,
               [&] { imbrex::detail::move_datum(datum_of(data), owner, place(file, line)); });
}

int imbrex_space_iterate(const imbrex_space_t space, const int64_t count, const int64_t period,
                         imbrex_space_loop_body* const body, void* const argument,
                         const char* const file, const int line) {
  return guard(IMBREX_ERR_USE, [&] {
    require(reinterpret_cast<const void*>(body), "the body of imbrex_space_iterate()");
    imbrex::distributed::iterate(space_of(space),
                                 {count, period, place(file, line), "imbrex_space_iterate()"},
                                 {body, argument});
  });
}

int imbrex_space_finish(const imbrex_space_t space) {
  int code = IMBREX_ERR_USE;
  return guard(code, [&] {
    imbrex::detail::DataSpace& it = space_of(space);
    code = IMBREX_ERR_TASK;
    imbrex::detail::finish_data(it);
  });
}

int imbrex_data_get(const imbrex_data_t data, imbrex_data_view* const view) {
  return guard(IMBREX_ERR_USE, [&] {
    require(view, "the result of imbrex_data_get()");
    *view = imbrex::distributed::view_of(imbrex::detail::memory_of(datum_of(data)));
  });
}

}  // extern "C"
#pragma GCC visibility pop
