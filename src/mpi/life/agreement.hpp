// SPDX-License-Identifier: BSD-3-Clause
// What the ranks tell each other in MPI_Init, so that all of them begin the same, or none.
#pragma once

#include <string>

#include "mpi/collectives/blocks/blocks.hpp"

namespace imbrex::mpi {

// The error of this rank, and the exit status; empty if there is none.
struct Wrong {
  std::string text = {};
  int status = 1;
};

// The answers of all ranks together: each number is the minimum.
struct Agreement {
  int well;               // their start has not failed
  int learns_paths;       // by their policy
  int is_quiet;           // no rank wants active messages
  int calls_nobody;       // no rank wants calls of other ranks
  int lends_nobody;       // no rank lends processors
  int checks;             // IMBREX_CHECK is on
  int attached;           // imbrex_attach() has brought imbrex to a program that is not linked with
                          // it, so that no task calls MPI
  int partial_least;      // of the value of IMBREX_PARTIAL; the next field is the largest one,
                          // negated
  int partial_negated;
  int parts_least;  // the same for IMBREX_PARTIAL_PARTS
  int parts_negated;
  int first_well;         // a rank
  int first_failed;       // a rank
  int why_least;          // of a number for the error; INT_MAX if there is none
  int why_least_negated;  // of the negated number
  int status_negated;     // exit status, negated; 0 if there is no error

  // REQUIRES: all ranks have begun well and alike.
  [[nodiscard]] blocks::Setting partial() const noexcept {
    return {static_cast<blocks::Mode>(partial_least), parts_least};
  }
};

// The answer of this rank. `wrong` has the error of its start, `partial` its options if there is no
// error; `brought`: see Agreement::attached.
[[nodiscard]] Agreement view_of(const Wrong& wrong, const blocks::Setting& partial, bool brought);

// The answers of all ranks. Collective: waits for all of them.
[[nodiscard]] Agreement agree(const Agreement& mine);

// Ends all ranks, with the reasons, unless all have begun well and alike. Collective.
void end_unless_well(const Wrong& wrong, const Agreement& mine, const Agreement& all);

}  // namespace imbrex::mpi
