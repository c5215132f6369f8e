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

// The workers are numbered in the order of the file, which must have as many of them; but where
// there is one worker alone, it is all of them. Throws Error, which names the file and the line.
[[nodiscard]] Sketch read_place_file(const std::string& path, std::size_t workers);

// The same of what stands in the file. `name`: for errors.
[[nodiscard]] Sketch parse_places(std::string_view text, const std::string& name,
                                  std::size_t workers);

}  // namespace imbrex::sched
