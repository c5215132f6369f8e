// SPDX-License-Identifier: BSD-3-Clause
// The arguments of a collective that must be equal on all ranks: root, operation, and bytes if all
// blocks have one size. Used by interpose.cpp, for IMBREX_CHECK.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>

#include "mpi/abi/inquiries.hpp"
#include "mpi/check/ranks/ranks.hpp"

namespace imbrex::mpi::alike {

struct What {
  bool root = false;
  bool operation = false;
  bool bytes = false;
};

// For the call of this name, without MPI_.
constexpr What what_of(std::string_view name) {
  for (const std::string_view suffix : {"_c", "_init"}) {
    if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  }
  if (name.size() > 1 && name[0] == 'I' && name[1] >= 'a') name.remove_prefix(1);
  const std::string_view rest = name.substr(1);  // its first letter may be upper or lower case
  const bool has_block = rest == "educe" || rest == "llreduce" || rest == "can" ||
                         rest == "xscan" || rest == "educe_scatter_block";
  return {.root = rest == "cast" || rest == "educe" || rest == "ather" || rest == "atherv" ||
                  rest == "catter" || rest == "catterv",
          .operation = has_block || rest == "educe_scatter",
          .bytes = has_block || rest == "cast"};
}

// The equal arguments of a call. The arguments end with count, type, operation, root, and
// communicator, as far as the call has them.
template <What what, class... Arguments>
check::Alike arguments_of(const Arguments&... arguments) {
  constexpr std::size_t comm = sizeof...(Arguments) - 1;
  constexpr std::size_t root = what.root ? comm - 1 : comm;
  constexpr std::size_t operation = what.operation ? root - 1 : root;
  const auto all = std::tie(arguments...);
  check::Alike alike;
  if constexpr (what.root) alike.root = std::get<root>(all);
  if constexpr (what.operation) alike.op = check::name_of(std::get<operation>(all));
  if constexpr (what.bytes) {
    const std::int64_t bytes =
        bytes_of(std::get<operation - 2>(all), std::get<operation - 1>(all));
    alike.bytes = bytes < 0 ? check::Alike::none : bytes;
  }
  return alike;
}

}  // namespace imbrex::mpi::alike
