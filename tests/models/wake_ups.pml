/* SPDX-License-Identifier: BSD-3-Clause
 * How idle workers sleep, and how a thread that makes a task ready wakes one of them (base/parking,
 * sched/run/idle.cpp, docs/design/wake-ups.md). Checked for every interleaving by spin
 * (run_model.sh). The fences of Parking make the order of this model: a waker's task is visible
 * before it reads the words, and a sleeper's word before it looks for tasks.
 *
 * A free task goes into the queue of all workers, another into the queue of a place (workers 0 and
 * 1), and a tied task into the inbox of one worker. A push wakes the first sleeper that may run the
 * task. A polling worker may find a free task, which it keeps without waking anybody, and may run a
 * function of the program. The tied task, the place's task and the function block their worker for
 * ever. One worker at least is left.
 *
 * Checked, when nothing can happen any more: no free task is ready, and no task of the place while a
 * worker of the place sleeps; the number of sleepers is right. With the defect that MUTANT names, spin finds a
 * task that never begins.
 */
#define WORKERS 3
#define BLOCKING 2         /* of the tied task, the place's task and the function: at most so many */

bool drowsy[WORKERS];      /* Parking::Place::word */
byte asleep = 0;           /* Parking::asleep_ */
bool inbox[WORKERS];
byte all = 0;              /* ready tasks in the queue of all workers */
byte place = 0;            /* in the queue of the place of workers 0 and 1 */
byte blocking = 0;         /* tasks and functions that block, or will */
bool places = true;        /* main pushes tasks of the place */
bool polled = true;        /* false: one poll finds a task */
bool called = true;        /* false: one poll runs a function of the program */

#define may_block (blocking < BLOCKING)
#define may_poll (me == 0 && (!polled || !called))  /* the worker that is woken first */

/* Wakes the first sleeper below `end`, if the count says that there is any. */
inline wake_first(i, end) {
  if
  :: asleep == 0
  :: else ->
    do
    :: atomic { i < end && drowsy[i] -> drowsy[i] = false; asleep--; i = 0; break }
    :: atomic { i < end && !drowsy[i] -> i++ }
    :: atomic { i == end -> i = 0; break }
    od
  fi
}

/* pass_wake_up_on(), if one is owed */
inline pay(i) {
  if
  :: owes ->
    owes = false;
#ifndef SWALLOWS
    if :: all > 0 -> wake_first(i, WORKERS) :: else fi;
#ifndef LOOKS_IN_ONE_GROUP
    if :: place > 0 && me < 2 -> wake_first(i, 2) :: else fi
#endif
#endif
  :: else
  fi
}

/* stay_awake() */
inline stay_awake() {
  atomic {
    if
    :: announced && drowsy[me] -> drowsy[me] = false; asleep--
#ifndef IGNORES_CANCEL
    :: announced && !drowsy[me] -> owes = true
#endif
    :: else
    fi;
    announced = false
  }
}

/* find_claimed(): the inbox first, then the place, then the queue of all. */
inline find() {
  atomic {
    if
    :: inbox[me] -> inbox[me] = false; blocks = true; goto found
    :: !inbox[me] && place > 0 && me < 2 -> place--; blocks = true; goto found
    :: !inbox[me] && (place == 0 || me >= 2) && all > 0 -> all--; goto found
    :: else
    fi
  }
}

/* One poll, of an awake or of a drowsy worker. */
inline poll() {
  if
  :: atomic { !polled -> polled = true; all++ };
    owes = true            /* it keeps the task, and wakes nobody */
  :: true
  fi;
  if
  :: atomic { !called && may_block -> called = true; blocking++ };
#ifndef CALLS_DROWSY
    stay_awake();
#endif
#ifndef CALLS_OWING
    pay(i);
#endif
    goto blocked
  :: true
  fi
}

proctype worker(byte me) {
  byte i = 0;
  bool blocks = false;
  bool owes = false;
  bool announced = false;
again:
  find();
  if
  :: may_poll -> poll(); goto again
  :: true
  fi;
#ifdef COUNTS_LATE
  drowsy[me] = true;
  asleep++;
#else
  asleep++;
  drowsy[me] = true;
#endif
  atomic { announced = true; owes = false };
  find();
  if                       /* a nap, whose poll may run a function of the program */
  :: may_poll -> poll()
  :: true
  fi;
  if
  :: owes -> stay_awake(); goto again
  :: else
  fi;
end_asleep:
  atomic { !drowsy[me] -> announced = false; owes = true };
  goto again;
found:
  stay_awake();
  pay(i);
  if :: atomic { !blocks -> goto again } :: blocks fi;
blocked:
end_blocked: false
}

proctype main_thread() {
  byte i = 0;
  bool pushed = false;
  do
  :: !pushed -> pushed = true; all++; wake_first(i, WORKERS)
  :: atomic { may_block -> blocking++ };
    if
    :: atomic { !inbox[0] -> inbox[0] = true }; i = 0
    :: atomic { !inbox[1] -> inbox[1] = true }; i = 1
    :: atomic { !inbox[2] -> inbox[2] = true }; i = 2
    :: atomic { places -> place++ }; wake_first(i, 2); i = WORKERS
    fi;
    atomic {
      if :: i < WORKERS && drowsy[i] -> drowsy[i] = false; asleep-- :: else fi;
      i = 0
    }
  :: break
  od
}

proctype watch() {
  timeout ->
  assert(all == 0 && (place == 0 || !drowsy[0] && !drowsy[1]));
  assert(asleep == drowsy[0] + drowsy[1] + drowsy[2])
}

init {
  if                       /* three runs, since one of everything has too many states */
  :: skip
  :: atomic { polled = false; places = false; blocking = 1 }
  :: atomic { called = false; polled = false; places = false; blocking = 1 }
  fi;
  atomic { run worker(0); run worker(1); run worker(2); run main_thread(); run watch() }
}
