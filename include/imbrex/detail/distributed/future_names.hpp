// SPDX-License-Identifier: BSD-3-Clause
// The name of a distributed future in reports: `future 7 of space "sums", whose home is rank 1`.
// src/distributed writes it; the code that combines the reports of all ranks (src/mpi/report) finds
// it again.
#pragma once

#include <string_view>

namespace imbrex::detail {

inline constexpr std::string_view future_begins = "future ";
inline constexpr std::string_view space_begins = " of space \"";
inline constexpr std::string_view home_begins = ", whose home is rank ";

}  // namespace imbrex::detail
