/* SPDX-License-Identifier: BSD-3-Clause
 * The advance of a phaser (src/task/phases.hpp) against registration in split phase, leaving, tasks
 * that sleep, and tasks that run ahead. Checked for every interleaving by spin (run_model.sh).
 *
 * Two tasks share one phaser; one of them may, after its signal, register a child, and each leaves
 * at the end. With AHEAD (phaser_ahead.pml) there is one more, which is signal_only and runs ahead.
 * As in the source, a signal is one atomic subtraction without the lock; all else has the lock.
 * Whoever brings `unarrived` to zero has the turn: it reads the count of parties, arms the event of
 * the next phase, publishes the word, then the phase, and fires, in separate steps.
 *
 * Checked: nobody passes a phase before all who were registered have signalled it; only one has the
 * turn; a waiter is never left behind (no deadlock: spin's invalid end states); an event is not
 * armed again while somebody waits there; no phase that one has signalled who has left is skipped
 * when the last leaves; with the defect that MUTANT names, an error is found.
 */
#define RUNNER 4         /* the signal_only task */
#ifdef AHEAD
#define PHASES 2
#else
#define PHASES 3
#endif

/* The word. */
byte parties = 0;
byte unarrived = 0;

byte phase = 0;
bool locked = false;
byte turns = 0;
bool closed = false;
byte runners = 0;
byte gone_ahead = 0;     /* the most signals of one who has left, as the source counts them */
byte gone_most = 0;      /* the same, of all */
bool fired[2] = false;   /* whether the event of a phase, by parity, has fired */
byte waiting[2] = 0;     /* tasks that wait there */
byte s[5] = 0;           /* signals of each */
byte w[5] = 0;           /* waits of each */
bool member[5] = false;

#define LOCK atomic { !locked -> locked = true }
#define UNLOCK locked = false

/* All who are registered have signalled `p`. */
inline check_over(p) {
  d_step {
    byte i = 0;
    do
    :: i < 5 -> assert(!member[i] || s[i] > p); i++
    :: else -> break
    od;
    i = 0
  }
}

/* Takes one from `unarrived`: `gives` says whether that gives the turn. */
inline arrive(gives) {
  assert(unarrived > 0);
  unarrived--;
  gives = (unarrived == 0);
  if :: gives -> turns++; assert(turns == 1) :: else fi
}

inline fire() {
  fired[(next_phase + 1) % 2] = 1
}

/* Whoever calls it has brought unarrived to zero. */
inline end_phase() {
  bool again = true;
  do
  :: again ->
    LOCK;
    if
    :: parties == 0 && gone_ahead <= phase + 1 ->
      assert(gone_most <= phase + 1);
      closed = true; again = false; turns--;
      UNLOCK
    :: else ->
      check_over(phase);
      byte next_phase = phase + 1;
      byte ahead = 0;
#ifndef NO_RUNNERS
      if
      :: runners > 0 && member[RUNNER] && s[RUNNER] > next_phase -> ahead = 1
      :: else
      fi;
#endif
      byte left = parties - ahead;
      again = (left == 0);
#ifndef NOT_ARMED
      atomic { assert(waiting[next_phase % 2] == 0); fired[next_phase % 2] = 0 };
#endif
#ifdef PHASE_BEFORE_WORD
      phase = next_phase;
#endif
      /* One store: nobody else may have changed the word meanwhile. */
      atomic {
        assert(unarrived == 0);
        unarrived = left;
        if :: !again -> turns-- :: else fi
      };
      phase = next_phase;
#ifdef FIRES_UNLOCKED
      UNLOCK;
      fire()
#else
      fire();
      UNLOCK
#endif
    fi
  :: else -> break
  od
}

inline signal(me) {
  bool last = false;
  s[me] = w[me] + 1;
  atomic { arrive(last) };
  if :: last -> end_phase() :: else fi
}

/* As is_over(), and the wait at the event. */
inline wait(me) {
  if
  :: phase > w[me]
  :: else ->
    atomic {
      if
      :: fired[w[me] % 2] -> skip
      :: else -> waiting[w[me] % 2]++;
        fired[w[me] % 2]; waiting[w[me] % 2]--
      fi
    }
  fi;
  assert(phase > w[me]);
  w[me] = w[me] + 1
}

inline leave(me) {
  bool ends = false;
  LOCK;
  atomic {
    member[me] = false;
    parties--;
#ifndef LEAVES_WRONG
    if
    :: s[me] > phase
    :: else ->
#endif
      arrive(ends)
#ifndef LEAVES_WRONG
    fi
#endif
  };
  if :: me == RUNNER && runners > 0 -> runners-- :: else fi;
  atomic {
    if :: s[me] > gone_most -> gone_most = s[me] :: else fi;
#ifndef FORGETS_AHEAD
    gone_ahead = gone_most
#endif
  };
  UNLOCK;
  if :: ends -> end_phase() :: else fi
}

/* A child of `parent`, which may have signalled. */
inline register(parent, child) {
  LOCK;
  s[child] = s[parent];
  w[child] = w[parent];
  atomic {
    member[child] = true;
    parties++;
#ifdef CHILD_OWES
    unarrived++
#else
    if :: s[child] <= phase -> unarrived++ :: else fi
#endif
  };
  UNLOCK
}

proctype task(byte me; bool registers) {
  do
  :: w[me] < PHASES ->
    if
    :: s[me] == w[me] -> signal(me)
    :: else
    fi;
    if
    :: registers ->
      registers = false;
      register(me, 3);
      run task(3, false)
    :: true
    fi;
    wait(me)
  :: true -> break
  od;
  leave(me)
}

/* signal_only: its signals take the lock. */
proctype runner() {
  do
  :: s[RUNNER] < PHASES ->
    bool last = false;
    LOCK;
    s[RUNNER]++;
    if
    :: s[RUNNER] == phase + 1 -> atomic { arrive(last) }
    :: else
    fi;
    UNLOCK;
    if :: last -> end_phase() :: else fi
  :: true -> break
  od;
  leave(RUNNER)
}

init {
  atomic {
    member[0] = true; member[1] = true;
    parties = 2; unarrived = 2;
#ifdef AHEAD
    parties = 3; unarrived = 3;
    member[RUNNER] = true; runners = 1;
    run runner();
#endif
    run task(0, true);
    run task(1, false)
  }
}
