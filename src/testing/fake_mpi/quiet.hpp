// SPDX-License-Identifier: BSD-3-Clause
// fake_mpi under ThreadSanitizer: its one lock would order all threads that call MPI, and so hide
// the races of whoever calls it. While Quiet lives, neither the lock nor what it guards is seen;
// what MPI does promise, that a completed transfer is seen by whoever is told of it, is said by
// transferred() and told(). Nothing of it is there without the sanitizer.
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

// Within Quiet: what is done to memory of the program's, and calls of its functions.
struct Loud {
  Loud() { be_loud(); }
  ~Loud() { be_quiet(); }
  Loud(const Loud&) = delete;
  Loud& operator=(const Loud&) = delete;
};

}  // namespace imbrex::fake_mpi
