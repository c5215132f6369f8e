// SPDX-License-Identifier: BSD-3-Clause
// fake_mpi under ThreadSanitizer. Its one lock would order all threads that call MPI, and so hide
// the races of its callers. While Quiet lives, neither the lock nor the guarded data are visible.
// MPI promises that a thread that is told of a completed transfer sees its data; transferred() and
// told() express that. Without the sanitizer nothing of it exists.
#pragma once

#if defined(__SANITIZE_THREAD__)

extern "C" {
void AnnotateIgnoreSyncBegin(const char* file, int line);
void AnnotateIgnoreSyncEnd(const char* file, int line);
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
void __tsan_acquire(void* address);
void __tsan_release(void* address);
}

namespace imbrex::fake_mpi {

inline void be_quiet() {
  AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
  AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
}
inline void be_loud() {
  AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
  AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
}
inline void transferred(void* request) { __tsan_release(request); }
inline void told(void* request) { __tsan_acquire(request); }

#else

namespace imbrex::fake_mpi {

inline void be_quiet() {}
inline void be_loud() {}
inline void transferred(void*) {}
inline void told(void*) {}

#endif

struct Quiet {
  Quiet() { be_quiet(); }
  ~Quiet() { be_loud(); }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;
};

// Within Quiet: accesses to memory of the program, and calls of its functions.
struct Loud {
  Loud() { be_loud(); }
  ~Loud() { be_quiet(); }
  Loud(const Loud&) = delete;
  Loud& operator=(const Loud&) = delete;
};

}  // namespace imbrex::fake_mpi
