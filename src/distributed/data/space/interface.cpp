// SPDX-License-Identifier: BSD-3-Clause
// The functions behind the public headers, except those that know active messages.
#include <exception>

#include "distributed/data/space/bodies.hpp"
#include "distributed/data/space/space.hpp"

namespace imbrex::detail {

void close_data_space(DataSpace* const space) { space->end(); }

int data_rank(const DataSpace& space) noexcept { return space.rank(); }
int data_ranks(const DataSpace& space) noexcept { return space.ranks(); }
Datum* make_datum(DataSpace& space, const DatumSpec& spec) { return &space.make(spec); }
int owner_of(const Datum& datum) noexcept { return datum.owner; }
DataMemory memory_of(Datum& datum) { return datum.space.memory_of(datum); }

bool concerns(DataSpace& space, const int on, const std::span<const DataAccess> accesses) {
  return space.concerns(on, accesses);
}

void* begin_insertion(DataSpace& space, const DataTaskSpec& spec,
                      const std::span<const DataAccess> accesses, const BodyOps& ops,
                      const std::size_t bytes) {
  return space.begin(spec, accesses, ops, bytes);
}
void insert_here(DataSpace& space, void* const closure) {
  if (space.is_in_loop()) [[unlikely]] return space.built_in_loop();
  (void)submit_with_accesses(&distributed::Insertion::of_closure(closure), false);
}
void drop_insertion(DataSpace& space, void* const closure) noexcept {
  if (space.is_in_loop()) [[unlikely]] return space.not_built_in_loop(std::current_exception());
  distributed::Insertion& insertion = distributed::Insertion::of_closure(closure);
  insertion.trouble = &space.failed(insertion, std::current_exception());
  insert_here(space, closure);
}
void iterate_data(DataSpace& space, const IterateSpec& spec,
                  void (*const body)(void*, std::int64_t), void* const argument) {
  space.iterate(spec, body, argument);
}
void check_iterates(const DataSpace& space, const char* const what) { space.check_iterates(what); }

void flush_datum(Datum& datum, const std::source_location& where) {
  datum.space.flush(datum, where);
}
void flush_data(DataSpace& space, const std::source_location& where) { space.flush_all(where); }
void discard_datum(Datum& datum, const std::source_location& where) {
  datum.space.discard(datum, where);
}
void move_datum(Datum& datum, const int owner, const std::source_location& where) {
  datum.space.move(datum, owner, where);
}
void finish_data(DataSpace& space) { space.finish(); }
SpaceCounters data_counters(const DataSpace& space) noexcept { return space.counters(); }

}  // namespace imbrex::detail
