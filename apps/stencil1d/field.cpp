// SPDX-License-Identifier: BSD-3-Clause
#include "field.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "../harness/input_error.hpp"
#include "../tiled/sleep.hpp"

namespace stencil1d {

Domain make_domain(MPI_Comm comm, const std::int64_t size, const std::int64_t ghost,
                   const int chunks, const bool periodic) {
  Domain domain;
  domain.comm = comm;
  MPI_Comm_rank(comm, &domain.rank);
  MPI_Comm_size(comm, &domain.ranks);
  const std::int64_t least = size / domain.ranks;
  if (least < 3 * ghost) {
    throw apps::InputError(fmt::format(
        "--size {} on {} ranks gives a rank {} cells, fewer than 3 ghost layers of {}: take fewer "
        "ranks, more cells, or a smaller --ghost",
        size, domain.ranks, least, ghost));
  }
  domain.size = size;
  domain.ghost = ghost;
  domain.chunks_most = chunks;
  domain.is_periodic = periodic;
  return domain;
}

std::vector<Part> parts_of(const Domain& domain) {
  std::vector<Part> parts;
  for (std::size_t i = 0; i < domain.parts(); ++i) parts.push_back(domain.part(i));
  return parts;
}

Field::Field(const Domain& domain)
    : first_(domain.first()), ghost_(domain.ghost), count_(domain.count()) {
  for (auto& copy : copies_) copy.resize(static_cast<std::size_t>(count_ + 2 * ghost_));
}

void Field::reset() {
  // Ghost cells that belong to no rank are zero for ever.
  for (auto& copy : copies_) std::ranges::fill(copy, 0.0);
  for (std::int64_t cell = 0; cell < count_; ++cell) {
    cells(0)[cell] = initial_value(first_ + cell);
  }
}

double initial_value(const std::int64_t cell) noexcept {
  const auto mixed = static_cast<std::uint64_t>(cell) * 0x9E3779B97F4A7C15;
  return static_cast<double>(mixed >> 11) * 0x1p-53;
}

void sweep(const Domain& domain, const double* const from, double* const to,
           const Part& part) noexcept {
  if (domain.cell_ns > 0) {
    tiled::sleep_precisely(1e-9 * domain.cell_ns * static_cast<double>(part.end - part.begin));
    return;
  }
  const std::int64_t reach = domain.ghost;
  for (std::int64_t cell = part.begin; cell < part.end; ++cell) {
    const double near = from[cell - 1] + from[cell + 1];
    const double far = from[cell - reach] + from[cell + reach];
    to[cell] = 0.5 * from[cell] + 0.125 * (near + far);
  }
}

}  // namespace stencil1d
