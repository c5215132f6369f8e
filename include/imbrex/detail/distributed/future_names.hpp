// SPDX-License-Identifier: BSD-3-Clause
// What reports call a distributed future: `future 7 of space "sums", whose home is rank 1`. Written
// where these futures are (src/distributed), and found again where the reports of all ranks are put
// together (src/mpi/watch).
#pragma once

#include <string_view>

namespace imbrex::detail {

inline constexpr std::string_view future_begins = "future ";
inline constexpr std::string_view space_begins = " of space \"";
inline constexpr std::string_view home_begins = ", whose home is rank ";

}  // namespace imbrex::detail
