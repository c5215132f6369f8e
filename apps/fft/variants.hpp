// SPDX-License-Identifier: BSD-3-Clause
// The ways to carry out a transform. All do the same lines and the same transpositions, on the same
// workers; they differ in what computation and communication may overlap. Collective calls of main.
#pragma once

#include <imbrex/imbrex.hpp>
#include <imbrex/parallel.hpp>

#include <memory>
#include <ranges>
#include <utility>
#include <vector>

#include "lines.hpp"
#include "stages.hpp"

namespace fft {

// The input, the steps and the output of a variant. The source of each step of lines is one of
// `steps`, each of the pipeline's points; the first holds the input, the last the output.
struct Work {
  Pipeline& pipeline;
  const Lines& lines;
  std::vector<Complex*> steps;
  bool pack = false;  // blocking: packed by loops, instead of types of MPI
  struct Packed {
    Complex* leaves = nullptr;
    Complex* arrives = nullptr;
  } packed;  // each of the pipeline's points: of what packs
};

// Nothing overlaps: the lines of a step in a parallel loop, then MPI_Alltoall. Returns the seconds
// in it, with packing.
double run_blocking(const Work& work);
// An MPI_Ialltoall for each group of lines, and an MPI_Test after each line that is computed. A
// group's lines are computed when it is here.
void run_test(const Work& work);
// An MPI_Iscatter from each rank instead of an MPI_Alltoall, put in place as each arrives, as in
// HPX's transform (Strack et al., 2024).
void run_scatters(const Work& work);
// Works in 2-D on the input of Pipeline::dealt_input(), like blocking that packs. The task of the
// exchange has declared the data that come from each rank for each group of lines, and calls
// release_by_blocks(): with IMBREX_PARTIAL=on each block is transformed as it arrives, and joined
// when all have; with as many IMBREX_PARTIAL_PARTS as there are groups, each group of lines is.
void run_partial_blocks(const Work& work, const Pieces& pieces);
// Works like blocking, but by an object of a partial collective, whose parts are groups of lines:
// each group is computed when it has arrived. All data to be sent are computed before the call.
void run_partial_receive(const Work& work);
// Tasks, with a plain message for each chunk of rows of each group of lines: it leaves when the
// chunk is computed, and a group's lines are computed when its messages are here.
void run_messages(const Work& work);
// Works like run_messages(), but an object of a partial collective for each group of lines sends
// the chunks, which are its parts.
void run_partial(const Work& work);

// Calls f(i) for each i of a range, in tasks. REQUIRES: they are ints.
template <class F>
void for_each_line(const Range& range, F&& f) {
  imbrex::parallel_for(
      std::views::iota(static_cast<int>(range.first), static_cast<int>(range.last)),
      std::forward<F>(f));
}

// FFTW's own transform of slabs over MPI, where it was built in.
class Library {
 public:
  [[nodiscard]] static bool is_there() noexcept;

  // REQUIRES: is_there(); n is a multiple of the number of ranks. Throws std::bad_alloc.
  Library(int dims, std::int64_t n, Planning planning);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  [[nodiscard]] const Layout& input() const noexcept { return input_; }
  [[nodiscard]] const Layout& output() const noexcept { return output_; }
  [[nodiscard]] Complex* points() noexcept { return points_.get(); }  // input, then output
  void run();

 private:
  Layout input_, output_;
  Points points_;
  fftw_plan plan_ = nullptr;
};

}  // namespace fft
