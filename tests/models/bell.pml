/* SPDX-License-Identifier: BSD-3-Clause
 * The bell of the progress thread (mpi/engine/threads/thread.hpp, invariant 1) under the memory model
 * of C++. Checked for every interleaving by spin (run_model.sh).
 *
 * A ringer leaves an errand, then reads and changes the bell. The thread changes the bell, looks for
 * errands, and sleeps while the bell is `asleep`; its first sleep may end by time. The bell's latest
 * value carries the errand if the change that wrote it belongs to the ringer's release sequence: a
 * read-modify-write carries what its predecessor did, a store does not. A thread that did not get
 * the errand that way may see it or not.
 *
 * Checked: the errand is run. With the defect WAKES_BY_STORE, the thread's own store ends the
 * sequence, and spin finds an errand that is never run.
 */
#define awake 0
#define asleep 1

byte bell = awake;
bool carries = false;      /* who reads the bell with acquire sees the errand */
bool left = false;         /* the errand, in the ringer's view */
bool woken = false;        /* the system call of the ringer came while the thread slept, or after */

proctype ringer() {
  bool was_asleep;
  left = true;
  atomic { carries = true; was_asleep = (bell == asleep) };
  if
  :: was_asleep ->
    atomic { was_asleep = (bell == asleep); bell = awake; carries = true };
    if :: was_asleep -> woken = true :: else fi
  :: else
  fi
}

proctype thread() {
  bool sees = false;
  byte round = 0;
  do
  :: if
     :: left -> break      /* a relaxed read may see the errand early */
     :: !sees
     :: sees -> break
     fi;
     atomic { sees = sees || carries; bell = asleep; carries = sees };
     if
     :: sees
     :: !sees && left -> sees = true
     :: !sees ->
       if
       :: bell != asleep || woken
       :: round == 0       /* the time is over */
       fi
     fi;
     round = 1;
#ifdef WAKES_BY_STORE
     atomic { bell = awake; carries = false };
#else
     atomic { sees = sees || carries; bell = awake; carries = sees };
#endif
     woken = false
  od
}

init {
  atomic { run ringer(); run thread() }
}
