/* SPDX-License-Identifier: BSD-3-Clause
 * The advance of a phaser (src/task/phases.hpp) against registration in split phase, leaving, tasks
 * that sleep, and tasks that run ahead. Checked for every interleaving by spin (run_model.sh).
 *
 * Two tasks share one phaser; one of them may, after its signal, register a child, and each leaves
 * at the end. With AHEAD (phaser_ahead.pml) there is one more, which is signal_only and runs ahead,
 * so that all phases end under the lock. As in the source, a signal is one atomic
 * subtraction without the lock, and so are the mark that a task sleeps, and the quick end of a
 * phase by one that stays a party; all else has the lock. Whoever brings `unarrived` to zero has
 * the turn: it reads the count of parties, arms the event of the next phase, publishes the word,
 * and fires, in separate steps; or, where there is no mark, arms, swaps the word, and writes the
 * phase. One that finds that all others have signalled may have the turn before its signal, which
 * the swap gives.
 *
 * Checked: nobody passes a phase before all who were registered have signalled it; only one has the
 * turn; who has it knows the phase; a waiter is never left behind (no deadlock: spin's invalid end
 * states); an event is not armed again while somebody waits there; no phase that one has signalled
 * who has left is skipped when the last leaves; with the defect that MUTANT names, an error is
 * found.
 */
#define TASKS 4          /* the last may be registered late */
#define RUNNER 4         /* the signal_only one */
#ifdef QUICK_AFTER_SLEEP
#define PHASES 4         /* for what that leads to; there are three tasks from the start then */
#elif defined AHEAD
#define PHASES 2
#else
#define PHASES 3
#endif

/* The word. */
byte phase = 0;
byte parties = 0;
byte unarrived = 0;
bool sleeps = false;
bool marked = false;     /* `locked` in the source */

byte known = 0;          /* `phase` in the source */
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

/* Has the lock: from now on no phase ends quickly, and `known` is exact. */
inline pin() {
  atomic { marked = true; if :: known != phase -> known = phase :: else fi }
}

/* Whoever calls it has brought unarrived to zero. */
inline end_phase() {
  bool again = true;
  do
  :: again ->
    LOCK;
    assert(known == phase);
    if
    :: parties == 0 && gone_ahead <= phase + 1 ->
      assert(gone_most <= phase + 1);
      closed = true; again = false; turns--
    :: else ->
      check_over(phase);
      byte next_phase = phase + 1;
      bool slept = false;
#ifndef NOT_ARMED
      atomic { assert(waiting[next_phase % 2] == 0); fired[next_phase % 2] = 0 };
#endif
      known = next_phase;
      byte ahead = 0;
#ifndef NO_RUNNERS
      if
      :: runners > 0 && member[RUNNER] && s[RUNNER] > next_phase -> ahead = 1
      :: else
      fi;
#endif
      byte left = parties - ahead;
      /* The word is one swap: nobody else may have changed it meanwhile but to sleep. */
      atomic {
        assert(unarrived == 0);
        slept = sleeps;
        sleeps = false;
#ifdef QUICK_AFTER_SLEEP
        marked = runners > 0;
#else
        marked = runners > 0 || slept;
#endif
        turns--; phase = next_phase; unarrived = left;
        if :: left == 0 -> turns++ :: else fi
      };
      if :: slept -> fired[(next_phase + 1) % 2] = 1 :: else fi;
      again = (left == 0)
    fi;
    UNLOCK
  :: else -> break
  od
}

/* The same by a party that stays one, where it found no mark. */
inline end_quickly() {
  byte following = w[me] + 1;
  bool swapped = false;
  atomic { assert(waiting[following % 2] == 0); fired[following % 2] = 0 };
  atomic {
    if
#ifdef FORGETS_SLEEPERS
    :: !marked ->
#else
    :: !marked && !sleeps ->
#endif
      assert(unarrived == (owed -> 1 : 0) && parties > 0);
      check_over(phase);
      phase = following; unarrived = parties; turns--; swapped = true
    :: else
    fi
  };
  if
  :: swapped -> known = following
  :: else ->
    if
    :: owed -> atomic { unarrived--; assert(unarrived == 0) }
    :: else
    fi;
    end_phase()
  fi
}

inline signal(me) {
  bool last = false;
  bool quick = false;
  bool owed = false;
  s[me] = w[me] + 1;
  if
  :: atomic { unarrived == 1 && !marked && !sleeps ->
      owed = true; last = true; quick = true; turns++; assert(turns == 1) }
  :: atomic { true ->
      assert(unarrived > 0);
      unarrived--;
      last = (unarrived == 0);
      if :: last -> turns++; assert(turns == 1) :: else fi;
      quick = !marked && !sleeps }
  fi;
  if
  :: last && quick -> end_quickly()
  :: last && !quick -> end_phase()
  :: else
  fi
}

/* As is_over(), is_over_or_sleep(), and the wait at the event. */
inline wait(me) {
  if
  :: (phase & 1) != (w[me] & 1)
  :: else ->
    bool over = false;
    atomic {
      over = ((phase & 1) != (w[me] & 1));
#ifndef SLEEPS_UNMARKED
      sleeps = true
#endif
    };
    if
    :: over
    :: else ->
      atomic {
        if
        :: fired[w[me] % 2] -> skip
        :: else -> waiting[w[me] % 2]++;
          fired[w[me] % 2]; waiting[w[me] % 2]--
        fi
      }
    fi
  fi;
  assert(phase != w[me]);
  w[me] = w[me] + 1
}

inline leave(me) {
  bool ends = false;
  LOCK;
  if
  :: me == RUNNER && runners > 0 -> pin()
  :: else
  fi;
  /* The lowest bit of the phase in the word, and `known` for one that runs ahead. */
  atomic {
    member[me] = false;
    parties--;
#ifndef LEAVES_WRONG
    if
    :: me == RUNNER && runners > 0 && s[me] > known
    :: !(me == RUNNER && runners > 0) && (s[me] & 1) != (phase & 1)
    :: else ->
#endif
      unarrived--; ends = (unarrived == 0);
      if :: ends -> turns++; assert(turns == 1) :: else fi
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
  bool arrived = false;
#ifdef ADDS_IN_TWO_STEPS
  arrived = (s[child] & 1) != (phase & 1);
#endif
  atomic {
#ifndef ADDS_IN_TWO_STEPS
    arrived = (s[child] & 1) != (phase & 1);
#endif
    member[child] = true;
    parties++;
#ifdef CHILD_OWES
    unarrived++
#else
    if :: !arrived -> unarrived++ :: else fi
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
    pin();
    if
    :: s[RUNNER] == known + 1 ->
      atomic {
        unarrived--;
        last = (unarrived == 0);
        if :: last -> turns++; assert(turns == 1) :: else fi
      }
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
#ifdef QUICK_AFTER_SLEEP
    member[2] = true;
    parties = 3; unarrived = 3;
    run task(0, false);
    run task(2, false);
#else
    run task(0, true);
#endif
    run task(1, false);
#ifdef AHEAD
    parties = 3; unarrived = 3;
    member[RUNNER] = true; runners = 1; marked = true;
    run runner()
#elif !defined QUICK_AFTER_SLEEP
    parties = 2; unarrived = 2
#endif
  }
}
