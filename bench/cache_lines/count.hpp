// SPDX-License-Identifier: BSD-3-Clause
// Counts the cache lines that move between threads. The counter stands in place of ThreadSanitizer:
// code that is compiled with -fsanitize=thread calls it at each access to memory. The counter knows
// neither tasks nor imbrex.
//
// The model: each thread has a cache of its own without a limit, with lines of 64 bytes. A line
// moves when a thread reads it that another thread has, and it does not; and when a thread writes
// it that another thread has, too (MESI: a miss, or an upgrade). The first use of a line by any
// thread is no move.
//
// Time is counted, too: an access takes a tick, a line that moves 100 of them, and so on
// (count.cpp). One thread runs at a time, and gives way to the next one after some 100 ticks of its
// own: threads then progress as on processors of their own, whatever else the machine does. Clocks
// show these ticks, 2.5 in a nanosecond, so code that compares times decides as it would at full
// speed. instrumented.hpp gives instrumented code the clock of the processor.
//
// Thread safety: any thread may access memory at any time; one thread calls these functions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bench::lines {

struct Counts {
  std::uint64_t accesses = 0;
  std::uint64_t moved = 0;  // of lines that are not data
  std::uint64_t data = 0;   // moved lines of data
};

// The lines of this memory are data of the program: their moves are counted apart.
void name_data(const void* memory, std::size_t bytes) noexcept;

// Counts from zero, in empty caches.
void start() noexcept;
Counts stop() noexcept;

// Writes the places in the program that moved lines as JSON: [[address, moves], ...], where an
// address counts from the program's start in memory. REQUIRES: stop() has been called.
void print_places() noexcept;

}  // namespace bench::lines
