// SPDX-License-Identifier: BSD-3-Clause
// The names of the policies, from the table policies.def. Does not know their meaning.
#pragma once

#include <string_view>

namespace imbrex::base {

inline constexpr std::string_view policy_names[] = {
#define IMBREX_POLICY(name, rest) #name,
#include "base/tables/policies.def"
#undef IMBREX_POLICY
};

// As messages list them: "default, steal, ..., seeded:<number>".
inline constexpr const char* valid_policies = &(
#define IMBREX_POLICY(name, rest) ", " #name rest
#include "base/tables/policies.def"
#undef IMBREX_POLICY
    )[2];

}  // namespace imbrex::base
