/* SPDX-License-Identifier: BSD-3-Clause
 * Why a wake-up at the gate (omp/region/gate.cpp) reaches a task that can use it, although threads
 * wait in callbacks. Checked for every interleaving by spin (run_model.sh).
 *
 * Tasks A and C wait for lock 1, which a third task gives back; A is tied to thread Z, on which a
 * function of the program that MPI calls waits for lock 2. C holds lock 2 until it has had lock 1.
 * A wake-up of lock 1 takes the first waiter. A thread that is about to wait in a callback makes all
 * waiters check again: those that are tied to the thread cannot, but they are out of the queue, and
 * whoever was behind them has checked.
 *
 * Checked: all of them end. With the defect NO_SWEEP, spin finds a wait for ever.
 */
#define A 0
#define C 1
#define Z 2

bool lock1_free = false;
bool lock2_free = false;
bool waits[3];             /* queued at the gate: A and C for lock 1, Z for lock 2 */
bool fired[3];             /* woken */
bool a_first = false;      /* A was queued before C */
bool z_free = true;        /* thread Z runs tasks */

/* Waking::add() of lock 1, under its bucket's lock, at one address. */
inline wake_lock1() {
  atomic {
    if
    :: waits[A] && (a_first || !waits[C]) -> waits[A] = false; fired[A] = true
    :: waits[C] && (!a_first || !waits[A]) -> waits[C] = false; fired[C] = true
    :: else
    fi
  }
}
inline wake_lock2() {
  atomic { if :: waits[Z] -> waits[Z] = false; fired[Z] = true :: else fi }
}
/* Every bucket in turn. */
inline sweep() {
  atomic {
    if :: waits[A] -> waits[A] = false; fired[A] = true :: else fi;
    if :: waits[C] -> waits[C] = false; fired[C] = true :: else fi
  }
}

proctype holder() {
  lock1_free = true;
  wake_lock1()
}

proctype task_a() {
  do                       /* A checks as it runs, on thread Z */
  :: atomic { z_free && lock1_free -> lock1_free = false; break }
  :: atomic { z_free && !lock1_free -> waits[A] = true; a_first = !waits[C] };
    atomic { fired[A] && z_free -> fired[A] = false }
  od;
  lock1_free = true;
  wake_lock1()
}

proctype task_c() {
  do
  :: atomic { lock1_free -> lock1_free = false; break }
  :: atomic { !lock1_free -> waits[C] = true };
    atomic { fired[C] -> fired[C] = false }
  od;
  lock1_free = true;
  wake_lock1();
  lock2_free = true;
  wake_lock2()
}

proctype callback() {
  z_free = false;
#ifndef NO_SWEEP
  sweep();
#endif
  do
  :: atomic { lock2_free -> lock2_free = false; break }
  :: atomic { !lock2_free -> waits[Z] = true };
    atomic { fired[Z] -> fired[Z] = false }
  od;
  z_free = true
}

init {
  atomic { run holder(); run task_a(); run task_c(); run callback() }
}
