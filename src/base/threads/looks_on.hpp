// SPDX-License-Identifier: BSD-3-Clause
// Reads data that other threads may be changing; the reader finds out afterwards whether the read
// was consistent.
#pragma once

#include "base/arch.hpp"

#if IMBREX_TSAN
extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
}
#endif

namespace imbrex::base {

// While it lives, ThreadSanitizer ignores the plain reads of this thread. They read memory that
// stays mapped, and a count that is read before and after tells whether they are of one moment.
class LooksOn {
 public:
#if IMBREX_TSAN
  LooksOn() noexcept { AnnotateIgnoreReadsBegin(__FILE__, __LINE__); }
  ~LooksOn() { AnnotateIgnoreReadsEnd(__FILE__, __LINE__); }
#else
  LooksOn() noexcept {}
  ~LooksOn() {}
#endif
  LooksOn(const LooksOn&) = delete;
  LooksOn& operator=(const LooksOn&) = delete;
};

}  // namespace imbrex::base
