/* SPDX-License-Identifier: BSD-3-Clause
 * base::Bell (base/sleep/bell.hpp) under the memory model of C++. Checked for every interleaving by spin
 * (run_model.sh).
 *
 * Two notifiers leave an errand each, then notify. The owner consumes the notification, looks for
 * errands, and waits while the bell is `awaited`; its first wait may end by time. The bell's latest
 * value carries an errand if the change that wrote it belongs to the notifier's release sequence: a
 * read-modify-write carries what its predecessor did, a store does not. An owner that did not get an
 * errand that way may see it or not.
 *
 * Checked: both errands are run. With the defect CONSUMES_BY_STORE, the owner's own store ends the
 * sequences, and spin finds an errand that is never run.
 */
#define quiet 0
#define notified 1
#define awaited 2

byte bell = quiet;
bool carries[2];           /* who reads the bell with acquire sees the errand */
bool left[2];              /* the errand, in the notifier's view */

proctype notifier(byte me) {
  left[me] = true;
  atomic { bell = notified; carries[me] = true }  /* the system call only ends a wait, see below */
}

bool sees[2];
inline acquire() {
  sees[0] = sees[0] || carries[0];
  sees[1] = sees[1] || carries[1]
}
inline consume() {
#ifdef CONSUMES_BY_STORE
  atomic { acquire() };
  atomic { bell = quiet; carries[0] = false; carries[1] = false }
#else
  atomic { acquire(); bell = quiet; carries[0] = sees[0]; carries[1] = sees[1] }
#endif
}

proctype owner() {
  bool ran[2];
  bool late = false;
  do
  :: if
     :: bell == notified -> consume()
     :: true               /* the first read may be old */
     fi;
     if :: sees[0] || left[0] -> ran[0] = true :: !sees[0] fi;
     if :: sees[1] || left[1] -> ran[1] = true :: !sees[1] fi;
     if :: ran[0] && ran[1] -> break :: else fi;
     atomic { if :: bell == quiet -> bell = awaited; acquire() :: else fi };
     if
     :: bell != awaited    /* or it became so while the owner slept */
     :: atomic { !late && bell == awaited -> bell = quiet; acquire(); late = true }
     fi
  od
}

init {
  atomic { run notifier(0); run notifier(1); run owner() }
}
