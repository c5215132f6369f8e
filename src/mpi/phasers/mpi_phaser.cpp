// SPDX-License-Identifier: BSD-3-Clause
// imbrex/mpi_phaser.hpp.
#include <fmt/format.h>

#include "imbrex/detail/observation.hpp"
#include "imbrex/mpi_phaser.hpp"
#include "mpi/engine/lifetime.hpp"
#include "mpi/phasers/rank_phaser.hpp"

namespace imbrex::detail {

PhaserState& make_mpi_phaser(const MpiPhaserSpec& spec, const std::source_location& where) {
  using namespace mpi;
  if (!in_service()) {
    throw Error(fmt::format("imbrex: an MpiPhaser made at {} outside of MPI_Init and "
                            "MPI_Finalize: call MPI_Init first",
                            detail::text_of(where)));
  }
  if (spec.mode == PhaserMode::wait_only) {
    throw Error(fmt::format("imbrex: an MpiPhaser made as wait_only at {}: its rank would have "
                            "left it from the start. Make it as signal_wait, and drop() it when "
                            "tasks are registered",
                            detail::text_of(where)));
  }
  const MpiPhaserOptions& options = *spec.options;
  const char* const name = options.name.text();
  auto* const ranks = new phasers::RankPhaser(
      options, fmt::format("MpiPhaser \"{}\"{}", name, detail::in_parentheses(where)));
  PhaserState& state = make_phaser({spec.mode, options.ahead, name, ranks}, where);
  try {
    const std::string wish =
        fmt::format("MpiPhaser \"{}\"{}{}{}", name,
                    options.fusion == Fusion::fuzzy ? ", fuzzy" : "",
                    options.ranks_may_leave ? ", ranks may leave" : "",
                    options.key ? fmt::format(", key {}", *options.key) : std::string());
    ranks->begin(state, phasers::take_channel(spec.comm, options.key, wish));
  } catch (...) {
    if (is_registered(state)) drop(&state);
    release(state);
    throw;
  }
  return state;
}

}  // namespace imbrex::detail
