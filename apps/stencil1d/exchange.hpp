// SPDX-License-Identifier: BSD-3-Clause
// One message to rank 0 beside one computation, in every way that is compared (Capra et al., figure
// 1, names the first three). measure.cpp uses it.
#pragma once

#include <mpi.h>

#include <string_view>

namespace stencil1d {

enum class Way {
  iw,     // Irecv, Wait: the communication alone
  block,  // Recv, then compute
  icw,    // Irecv, compute, Wait
  itcw,   // Irecv, compute with MPI_Test now and then, Wait
  tests,  // one thread tests, the other computes: the paper's own case
  tasks   // a task that calls MPI_Recv, and tasks that compute
};
[[nodiscard]] std::string_view name_of(Way way) noexcept;

// Work of a known duration: arithmetic, so that a thread that takes processor time from it makes it
// longer. Work by a clock would not become longer.
class Work {
 public:
  Work();  // measures the rate, for some 50 ms
  void run(double us) const;
  // Does the work of run(), and calls `between()` every `step_us`.
  template <class F>
  void run(double us, double step_us, F&& between) const {
    for (; us > step_us; us -= step_us) {
      run(step_us);
      between();
    }
    run(us);
  }

 private:
  double rounds_per_us_ = 0;
};

struct Setting {
  MPI_Comm comm = MPI_COMM_WORLD;  // of two ranks or more
  int bytes = 0;
  double compute_us = 0;
  double step_us = 0;  // between two MPI_Test, and the length of a task
};

// Microseconds from a common start to the end of both on rank 0; elsewhere zero. Collective over
// `setting.comm`: rank 1 sends, others look on. All ways but `tasks`, which suspends, call MPI
// below imbrex. Throws std::runtime_error if the message arrives with wrong content.
[[nodiscard]] double measure(Way way, const Setting& setting, const Work& work);

}  // namespace stencil1d
