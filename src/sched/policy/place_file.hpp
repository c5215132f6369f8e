// SPDX-License-Identifier: BSD-3-Clause
// Files of places, in HClib's format: HPT > place+ > (place*, worker*). Parsed by libexpat, which
// is loaded only for such a file. Attributes that do not concern workers are ignored; the DTD is
// not read. Knows no threads.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "sched/policy/place_tree.hpp"

namespace imbrex::sched {

// The places of the file. The workers are numbered in its order, and their number must be that of
// the runtime; but a single worker stands for all of them. Throws Error, which names `name` and the
// line.
[[nodiscard]] Sketch parse_places(std::string_view text, const std::string& name,
                                  std::size_t workers);

}  // namespace imbrex::sched
