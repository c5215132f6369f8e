// SPDX-License-Identifier: BSD-3-Clause
// Reading what others may be changing, where the reader finds out afterwards whether it was whole.
#pragma once

#include "base/arch.hpp"

#if IMBREX_TSAN
extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
}
#endif

namespace imbrex::base {

// While it lives, ThreadSanitizer sees no plain read of this thread's: they are of memory that is
// mapped for good, and a count that is read before and after says whether they are of one moment.
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
