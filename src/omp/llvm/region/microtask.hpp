// SPDX-License-Identifier: BSD-3-Clause
// Calls the function that LLVM's compilers make of a region: its number of arguments is known at
// run time only. One file for each processor (microtask_*.cpp) defines the call.
#pragma once

#include <cstdint>

namespace imbrex::omp {

using Microtask = void (*)(std::int32_t* thread, std::int32_t* number, ...);

// The least room in the array of arguments, which are loaded into registers whatever their number.
inline constexpr int microtask_room = 6;

// Calls function(thread, number, arguments[0], ... arguments[count - 1]); the address of the frame
// that calls it goes to `*frame`.
extern "C" [[gnu::visibility("hidden")]] void imbrex_call_microtask(
    Microtask function, std::int32_t* thread, std::int32_t* number, std::int64_t count,
    void** arguments, void** frame);

}  // namespace imbrex::omp
