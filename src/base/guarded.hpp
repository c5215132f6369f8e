// SPDX-License-Identifier: BSD-3-Clause
// Annotations that tell clang which lock guards which member, so that clang proves that the lock is
// held at each access (clang.llvm.org/docs/ThreadSafetyAnalysis.html). For other compilers they are
// empty. `tools/clang_checks.py locks` runs the proof.
//
// The analysis knows base::SpinLock and std::mutex by std::lock_guard; where it sees
// std::unique_lock or std::scoped_lock it does not know that a lock is held.
#pragma once

#if defined(__clang__)
#define IMBREX_THREAD_SAFETY(attribute) __attribute__((attribute))
#else
#define IMBREX_THREAD_SAFETY(attribute)
#endif

// After the name of a member or variable: it may be accessed only while the lock is held. The PT
// form guards the object that a pointer points to.
#define IMBREX_GUARDED_BY(lock) IMBREX_THREAD_SAFETY(guarded_by(lock))
#define IMBREX_PT_GUARDED_BY(lock) IMBREX_THREAD_SAFETY(pt_guarded_by(lock))

// After the parameters of a function: the caller holds the lock; the function takes it; takes it if
// the result is the given value; releases it.
#define IMBREX_REQUIRES(...) IMBREX_THREAD_SAFETY(requires_capability(__VA_ARGS__))
#define IMBREX_ACQUIRE(...) IMBREX_THREAD_SAFETY(acquire_capability(__VA_ARGS__))
#define IMBREX_TRY_ACQUIRE(...) IMBREX_THREAD_SAFETY(try_acquire_capability(__VA_ARGS__))
#define IMBREX_RELEASE(...) IMBREX_THREAD_SAFETY(release_capability(__VA_ARGS__))

// Before the name of a class: the class is a lock; objects of the class hold a lock as long as they
// live.
#define IMBREX_LOCK IMBREX_THREAD_SAFETY(capability("mutex"))
#define IMBREX_HOLDS_LOCK IMBREX_THREAD_SAFETY(scoped_lockable)

// For a function that the analysis cannot follow; a comment at the function says why it is correct.
#define IMBREX_LOCKS_NOT_SEEN IMBREX_THREAD_SAFETY(no_thread_safety_analysis)
