// SPDX-License-Identifier: BSD-3-Clause
// Files of places, as HClib has them: HPT > place+ > (place*, worker*). Parsed by libexpat, which
// is loaded when there is such a file. Attributes that say nothing of workers are passed over; the
// DTD is not read. Knows no threads.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "sched/policy/place_tree.hpp"

namespace imbrex::sched {

// Of what stands in the file. The workers are numbered in its order, and it must have as many of
// them; but where there is one worker alone, it is all of them. Throws Error, which says `name` and
// the line.
[[nodiscard]] Sketch parse_places(std::string_view text, const std::string& name,
                                  std::size_t workers);

}  // namespace imbrex::sched
