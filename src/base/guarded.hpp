// SPDX-License-Identifier: BSD-3-Clause
// Words by which a declaration says which lock guards what, so that clang proves that the lock is
// held wherever that is read or written (clang.llvm.org/docs/ThreadSafetyAnalysis.html). For other
// compilers they are empty. `tools/clang_checks.py locks` is the command.
//
// The analysis knows base::SpinLock and std::mutex by std::lock_guard; where it sees
// std::unique_lock or std::scoped_lock it does not know that a lock is held.
#pragma once

#if defined(__clang__)
#define IMBREX_THREAD_SAFETY(attribute) __attribute__((attribute))
#else
#define IMBREX_THREAD_SAFETY(attribute)
#endif

// Behind the name of a member or variable: only to be touched while the lock is held; and the same
// for what a pointer points to.
#define IMBREX_GUARDED_BY(lock) IMBREX_THREAD_SAFETY(guarded_by(lock))
#define IMBREX_PT_GUARDED_BY(lock) IMBREX_THREAD_SAFETY(pt_guarded_by(lock))

// Behind the parameters of a function: its caller holds the lock; takes it; takes it if the result
// is the one given; gives it back.
#define IMBREX_REQUIRES(...) IMBREX_THREAD_SAFETY(requires_capability(__VA_ARGS__))
#define IMBREX_ACQUIRE(...) IMBREX_THREAD_SAFETY(acquire_capability(__VA_ARGS__))
#define IMBREX_TRY_ACQUIRE(...) IMBREX_THREAD_SAFETY(try_acquire_capability(__VA_ARGS__))
#define IMBREX_RELEASE(...) IMBREX_THREAD_SAFETY(release_capability(__VA_ARGS__))

// Before the name of a class: it is a lock; it holds one as long as it lives.
#define IMBREX_LOCK IMBREX_THREAD_SAFETY(capability("mutex"))
#define IMBREX_HOLDS_LOCK IMBREX_THREAD_SAFETY(scoped_lockable)

// For a function that the analysis cannot follow; a comment says why it is right.
#define IMBREX_LOCKS_NOT_SEEN IMBREX_THREAD_SAFETY(no_thread_safety_analysis)
