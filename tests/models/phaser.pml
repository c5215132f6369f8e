/* SPDX-License-Identifier: BSD-3-Clause
 * The advance of a phaser (src/task/phaser.hpp) against registration in split phase, leaving, and
 * tasks that run ahead. Checked for every interleaving by spin (run_model.sh).
 *
 * Three tasks, of mode signal_wait, share one phaser; a task may, after its signal, register one
 * child more, and each leaves at the end. A fourth one is signal_only and runs ahead. As in the
 * source, a signal is one atomic subtraction without the lock, all else has the lock, and whoever
 * brings `unarrived` to zero has the turn: it reads the count of parties, arms the event of the next
 * phase, publishes the word, and fires, in separate steps.
 *
 * Checked: nobody passes a phase before all who were registered have signalled it; only one has the
 * turn; a waiter is never left behind (no deadlock: spin's invalid end states); an event is not
 * armed again while somebody waits there; no phase that one has signalled who has left is skipped
 * when the last leaves; with the defect that MUTANT names, an error is found.
 */
#define TASKS 4          /* the last may be registered late */
#define RUNNER 4         /* the signal_only one */
#define PHASES 3

byte phase = 0;          /* of the word */
byte parties = 0;
byte unarrived = 0;
bool locked = false;
byte turns = 0;
bool closed = false;
byte gone_ahead = 0;     /* the most signals of one who has left, as the source counts them */
byte gone_most = 0;      /* the same, of all */
byte fired[2] = 0;       /* whether the event of a phase, by parity, has fired */
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

/* Whoever calls it has brought unarrived to zero. */
inline end_phase() {
  bool again = true;
  do
  :: again ->
    atomic { turns++; assert(turns == 1) };
    LOCK;
    if
    :: parties == 0 && gone_ahead <= phase + 1 ->
      assert(gone_most <= phase + 1);
      closed = true; again = false; turns--
    :: else ->
      check_over(phase);
      byte next_phase = phase + 1;
#ifndef NOT_ARMED
      atomic { assert(waiting[next_phase % 2] == 0); fired[next_phase % 2] = 0 };
#endif
      byte ahead = 0;
#ifndef NO_RUNNERS
      if
      :: member[RUNNER] && s[RUNNER] > next_phase -> ahead = 1
      :: else
      fi;
#endif
      byte left = parties - ahead;
      /* The word is one store: nobody else may have changed it meanwhile. */
      atomic { assert(unarrived == 0); turns--; phase = next_phase; unarrived = left };
      atomic { fired[(next_phase + 1) % 2] = 1 };
      again = (left == 0)
    fi;
    UNLOCK
  :: else -> break
  od
}

inline signal(me) {
  bool last = false;
  s[me] = w[me] + 1;
  atomic { assert(unarrived > 0); unarrived--; last = (unarrived == 0) };
  if :: last -> end_phase() :: else fi
}

/* As is_over() and the wait at the event. */
inline wait(me) {
  if
  :: (phase & 1) != (w[me] & 1)
  :: else ->
    atomic {
      if
      :: fired[w[me] % 2] -> skip
      :: else -> waiting[w[me] % 2]++;
        fired[w[me] % 2]; waiting[w[me] % 2]--
      fi
    }
  fi;
  assert(phase != w[me]);
  w[me] = w[me] + 1
}

inline leave(me) {
  bool ends = false;
  LOCK;
  if
#ifdef LEAVES_WRONG
  :: atomic { true -> member[me] = false; parties--; unarrived--; ends = (unarrived == 0) }
#else
  :: s[me] > phase -> atomic { member[me] = false; parties-- }
  :: else -> atomic { member[me] = false; parties--; unarrived--; ends = (unarrived == 0) }
#endif
  fi;
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
  if
#ifdef CHILD_OWES
  :: atomic { true -> member[child] = true; parties++; unarrived++ }
#else
  :: s[child] > phase -> atomic { member[child] = true; parties++ }
  :: else -> atomic { member[child] = true; parties++; unarrived++ }
#endif
  fi;
  UNLOCK
}

bool started = false;

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
    :: s[RUNNER] == phase + 1 -> atomic { unarrived--; last = (unarrived == 0) }
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
    parties = 3; unarrived = 3;
    member[0] = true; member[1] = true; member[RUNNER] = true;
    run task(0, true);
    run task(1, false);
    run runner()
  }
}
