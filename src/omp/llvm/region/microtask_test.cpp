// SPDX-License-Identifier: BSD-3-Clause
// The call of a compiler's function with a number of arguments that is known at run time only.
#include "omp/llvm/region/microtask.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>

namespace imbrex::omp {
namespace {

constexpr std::size_t most = 20;
std::array<char, most> objects;  // arguments are their addresses
std::array<const void*, most> seen;
std::uintptr_t misaligned = 0;

// A function as the compiler makes it: it takes as many arguments as the region has variables.
template <std::size_t>
using Argument = void*;
template <class Indices>
struct Made;
template <std::size_t... Index>
struct Made<std::index_sequence<Index...>> {
  static void function(std::int32_t* const thread, std::int32_t* const number,
                       const Argument<Index>... arguments) {
    alignas(16) volatile char local[16];  // the compiler relies on the alignment of the stack
    local[0] = 0;
    misaligned = reinterpret_cast<std::uintptr_t>(local) % 16;
    seen = {arguments...};
    *thread += *number;
  }
};

template <std::size_t Count>
void arguments_arrive() {
  std::array<void*, std::max<std::size_t>(Count, microtask_room)> arguments{};
  std::array<const void*, most> expected{};
  for (std::size_t index = 0; index < Count; ++index) {
    expected[index] = arguments[index] = &objects[index];
  }
  seen.fill(nullptr);
  std::int32_t thread = 40;
  std::int32_t number = 2;
  const auto function =
      reinterpret_cast<Microtask>(&Made<std::make_index_sequence<Count>>::function);
  void* frame = nullptr;
  imbrex_call_microtask(function, &thread, &number, Count, arguments.data(), &frame);
  EXPECT_NE(frame, nullptr);
  EXPECT_EQ(seen, expected) << Count << " arguments";
  EXPECT_EQ(thread, 42) << Count << " arguments";
  EXPECT_EQ(misaligned, 0u) << Count << " arguments";
}

template <std::size_t... Count>
void all_arrive(std::index_sequence<Count...>) {
  (arguments_arrive<Count>(), ...);
}

TEST(Microtask, gets_any_number_of_arguments_on_an_aligned_stack) {
  all_arrive(std::make_index_sequence<most + 1>());
}

void throws(std::int32_t*, std::int32_t*, void*, void*, void*, void*, void*, void*, void*) {
  throw std::runtime_error("thrown");
}

// A program that is not compiled for it ends in std::terminate(), which prints the exception; and a
// debugger walks the stack by the same tables.
TEST(Microtask, an_exception_passes_the_call) {
  std::array<void*, 7> arguments{};
  std::int32_t thread = 0;
  std::int32_t number = 0;
  void* frame = nullptr;
  EXPECT_THROW(imbrex_call_microtask(reinterpret_cast<Microtask>(&throws), &thread, &number, 7,
                                     arguments.data(), &frame),
               std::runtime_error);
}

}  // namespace
}  // namespace imbrex::omp
