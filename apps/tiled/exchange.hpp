// SPDX-License-Identifier: BSD-3-Clause
// The messages of a tiled factorisation as tasks: one send task and one receive task for each tile
// of the factor and each rank that reads it. In those, plain MPI_Send and MPI_Recv block.
//
// Failure: a rank whose kernel fails skips all further kernels, and its sends carry one NaN instead
// of a tile, from which the receivers learn it. Every message still has its partner, so nothing
// waits for ever, and the rest of the graph runs empty.
#pragma once

#include <imbrex/imbrex.hpp>
#include <mpi.h>

#include <nlohmann/json_fwd.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "matrix.hpp"
#include "team.hpp"

namespace tiled {

// Returns the step of the algorithm that needs tile (i, j): min(i, j), in a factorisation; j; or i.
enum class StepOf : std::uint8_t { smaller, column, row };

// The tasks that get a priority.
enum class Priorities : std::uint8_t {
  none,
  panel,  // the panel and its messages, before the update
  sends   // the sends alone: what communication-aware policies go by
};

// The way in which an algorithm makes its tasks.
struct TaskOptions {
  // Variants with messages: the number of steps of the algorithm whose received tiles may be in
  // memory at once.
  int lookahead = 3;
  Priorities priorities = Priorities::none;
  // Inserted: leave out of the loop, on each rank, what does not concern it.
  bool trim = false;
  // Inserted products: each tile of C is a sum of so many parts, which are made by as many groups
  // of ranks at once and put together by a reduction: 2.5-D, after Solomonik and Demmel, 2011. It
  // divides the number of ranks. Not with `trim`.
  int slices = 1;
  std::int64_t window = 4096;  // inserted: of the space
};

struct ExchangeOptions {
  int lookahead;         // steps whose received tiles may be in memory at once
  int send_priority;     // of the tasks
  int receive_priority;
  StepOf step_of = StepOf::smaller;
  int first_tag = 0;  // of as many as there are tiles
};

// Counts how the tiles whose source is this rank went to other ranks, for inserted tasks.
struct Broadcasts {
  std::int64_t versions = 0;      // that went to some rank
  std::int64_t to_several = 0;    // of them, to more than one
  std::int64_t full = 0;          // of them, with one list that held every rank that got it
  std::int64_t root_copies = 0;   // that the source sent itself,
  std::int64_t relay_copies = 0;  // and that this rank sent on for others
};

// Collective.
[[nodiscard]] Broadcasts sum_over_ranks(const Team& team, const Broadcasts& mine);
// A line for people; empty if nothing was sent.
[[nodiscard]] std::string describe(const Broadcasts& broadcasts);
// Adds them to the record of a run.
void add_to(nlohmann::json& record, const Broadcasts& broadcasts);

// Memory that the tasks of this rank used.
struct TaskUse {
  std::size_t tiles_peak = 0;  // received tiles in memory at once
  std::int64_t bytes_sent = 0;
  std::int64_t bytes_received = 0;
  Broadcasts broadcasts;
};

// Memory for received tiles, all of one size.
// Thread safety: any.
class TilePool {
 public:
  explicit TilePool(std::size_t doubles) : doubles_(doubles) {}

  double* take();
  void give(double* tile);
  // The most that were in use at once. Only when nothing runs any more.
  [[nodiscard]] std::size_t peak() const noexcept { return all_.size(); }

 private:
  const std::size_t doubles_;
  std::mutex mutex_;           // never held across a suspension
  std::vector<Doubles> all_;   // guarded by mutex_
  std::vector<double*> free_;  // guarded by mutex_
};

// Thread safety: one task creates; the bodies of the tasks that it creates run anywhere.
class Exchange {
 public:
  Exchange(const Team& team, TiledMatrix& matrix, const ExchangeOptions& options);

  // Once the task that makes tile (i, j) of the factor is created. Sends the tile to `readers`, in
  // ascending order, if it is mine; receives it if I am one of them.
  void pass_on(int i, int j, const std::vector<int>& readers);
  // Once the tasks that read the tile are created: lets its memory go after them, if I received it.
  void release(int i, int j, const std::vector<int>& readers);

  // Returns tile (i, j) of the factor: in the matrix, or, received, in a slot. The slots of its
  // step serve again `lookahead` steps later: their receives wait for the last readers of that
  // step, which bounds the memory. The reference names the tile in dependencies.
  [[nodiscard]] double*& operand(int i, int j);

  void fail() noexcept { failed_.store(true, std::memory_order_release); }
  [[nodiscard]] bool has_failed() const noexcept {
    // pairs with the release of the task that found or received the failure
    return failed_.load(std::memory_order_acquire);
  }
  // Only when nothing runs any more.
  [[nodiscard]] TaskUse use() const noexcept {
    return {pool_.peak(), bytes_sent_, bytes_received_, {}};
  }

 private:
  void create_send(int i, int j, int to);
  void create_receive(int i, int j);
  [[nodiscard]] bool receives(int i, int j, const std::vector<int>& readers) const;
  [[nodiscard]] int count(int i, int j) const noexcept;
  [[nodiscard]] int tag(int i, int j) const noexcept;

  const Team& team_;
  TiledMatrix& matrix_;
  const Layout& layout_;
  const int lookahead_;
  const int send_;     // priorities
  const int receive_;
  const StepOf step_of_;
  const int first_tag_;
  std::vector<double*> slots_;  // written by receive tasks; ordered by dependencies
  TilePool pool_;
  std::int64_t bytes_sent_ = 0;  // only the creator
  std::int64_t bytes_received_ = 0;
  std::atomic<bool> failed_{false};  // any task; once true it stays
};

// Creates and runs all tasks of a graph that has an Exchange. Collective. Returns, the same on
// every rank, 0, or the order of the first leading minor that is bad.
template <class Graph>
[[nodiscard]] std::int64_t run_graph(const Team& team, Graph& graph, TaskUse& use) {
  imbrex::finish([&] { graph.create(); });
  use = graph.use();
  const std::int64_t mine = graph.bad_minor();
  std::int64_t minor = 0;  // at most one rank has one: the minors are found in order
  MPI_Allreduce(&mine, &minor, 1, MPI_INT64_T, MPI_MAX, team.all());
  return minor;
}

}  // namespace tiled
