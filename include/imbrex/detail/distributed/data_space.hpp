// SPDX-License-Identifier: BSD-3-Clause
// The functions of src/distributed that data.hpp calls: data with owners, and tasks that are
// inserted on every rank. Names no MPI, and no type of the program.
#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include "imbrex/detail/distributed/members.hpp"
#include "imbrex/detail/loops.hpp"
#include "imbrex/detail/waist.hpp"
#include "imbrex/values/space_options.hpp"

#pragma GCC visibility push(default)

namespace imbrex::detail {

class DataSpace;
struct Datum;  // one datum on one rank; lives as long as its space

// `columns` columns of `rows` elements each; `leading` elements lie between the beginnings of two
// columns.
struct DataShape {
  std::size_t rows = 0;
  std::size_t columns = 1;
  std::size_t leading = 0;
  std::size_t element_bytes = 0;
};
struct DatumSpec {
  int owner;           // a rank of the space; -1: the rank that writes it first
  DataShape shape;     // shape of the owner's memory; copies on other ranks have no gaps
  void* memory;        // the owner's; null: the runtime allocates it at the first use, all bits
                       // zero
  const char* name;    // kept; empty: messages show a number only
};

enum class DataMode : std::uint8_t { in, out, inout, reduce };

// The functions that combine elements, and set them to the identity; `count` elements each.
struct DataReduction {
  void (*combine)(void* into, const void* from, std::size_t count);
  void (*clear)(void* memory, std::size_t count);
};
struct DataAccess {
  Datum* datum;
  DataMode mode;
  const DataReduction* reduction = nullptr;
};

// Where an access of a running task has its elements.
struct DataMemory {
  void* memory;
  DataShape shape;
};

// Precedes the closure of a task with data; the runtime's part.
struct DataTask {
  const DataMemory* places = nullptr;  // of its accesses, in their order, while the body runs
};

struct DataTaskSpec {
  static constexpr int by_owner = INT_MIN;  // on the owner of the first datum that the task writes
  const char* name;
  std::source_location where;
  int priority = 0;
  int on = by_owner;  // or a rank of the space
  bool decides = false;  // may end iterate_data(), on all ranks
};

// Makes the space of these ranks. Never suspends.
[[nodiscard]] DataSpace* make_data_space(Members ranks, SpaceOptions options);
// Collective. Suspends: finish_data(), then waits until all ranks have called it.
void close_data_space(DataSpace* space);

[[nodiscard]] int data_rank(const DataSpace& space) noexcept;
[[nodiscard]] int data_ranks(const DataSpace& space) noexcept;
[[nodiscard]] Datum* make_datum(DataSpace& space, const DatumSpec& spec);
[[nodiscard]] int owner_of(const Datum& datum) noexcept;
// Returns where the owner has its value. Throws Error on another rank, and if the value is not
// here.
[[nodiscard]] DataMemory memory_of(Datum& datum);

// True if this rank runs the task, or if the task changes this rank's records of the data.
[[nodiscard]] bool concerns(DataSpace& space, int on,
                            std::span<const DataAccess> accesses);
// Records the insertion. Returns null if the task does not run here. Otherwise returns memory for
// its closure, which begins with a DataTask: construct the rest, then call insert_here(), or
// drop_insertion() if the construction has thrown. `ops`: as for create(); run() is called when the
// places are known; `repeat` is for iterate_data(). Suspends for tasks_ahead, and for room to send.
// Throws Error.
[[nodiscard]] void* begin_insertion(DataSpace& space, const DataTaskSpec& spec,
                                    std::span<const DataAccess> accesses, const BodyOps& ops,
                                    std::size_t bytes);
void insert_here(DataSpace& space, void* closure);
void drop_insertion(DataSpace& space, void* closure) noexcept;

// Calls body(argument, i) for each i of the first period, which inserts; then runs what it has
// inserted `count` times. Suspends. Throws Error, and what the body throws.
void iterate_data(DataSpace& space, const IterateSpec& spec,
                  void (*body)(void* argument, std::int64_t iteration), void* argument);
// Throws Error unless the body of iterate_data() runs.
void check_iterates(const DataSpace& space, const char* what);

void flush_datum(Datum& datum, const std::source_location& where);
void flush_data(DataSpace& space, const std::source_location& where);
void discard_datum(Datum& datum, const std::source_location& where);
void move_datum(Datum& datum, int owner, const std::source_location& where);
void finish_data(DataSpace& space);  // Collective. Suspends; rethrows.
[[nodiscard]] SpaceCounters data_counters(const DataSpace& space) noexcept;

}  // namespace imbrex::detail

#pragma GCC visibility pop
