// SPDX-License-Identifier: BSD-3-Clause
// The compiler includes this file first in all code that bench/lines instruments: the processor's
// clock is that of the counter (count.hpp), and a pause takes time there.
#pragma once

extern "C" {
unsigned long long bench_lines_ticks(void);
void bench_lines_pause(void);
}
#define __builtin_ia32_rdtsc() bench_lines_ticks()
#define __builtin_ia32_pause() bench_lines_pause()
