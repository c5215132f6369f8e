/* SPDX-License-Identifier: BSD-3-Clause
 * How ranks agree on the order in which collectives start (src/mpi/collectives/order/). Checked for
 * every interleaving by spin (run_model.sh).
 *
 * Each rank has TASKS tasks, which come in any order, each with a key; two of them share one. Rank
 * 0 decides by arrival, and starts in that order. Who arrives there sends the decisions that are
 * not sent yet, one sender at a time. On the others a start that rank 0 has not decided, as far as
 * is known, waits for it, and sees to it that a receive is posted, one at a time; whoever has
 * received looks whether another start still waits, and receives again or ends.
 *
 * Checked: ranks start the same keys in the same order; all tasks end, and no
 * receive is left (spin's invalid end states). With the defect that MUTANT names, an error is
 * found.
 */
#define TASKS 3
#define KEY(task) ((task) == 2 -> 0 : (task))

byte decided[TASKS];      /* on rank 0: keys, in their order */
byte decisions = 0;
byte sent = 0;            /* of these */
bool sending = false;
chan wire = [TASKS] of { byte };   /* to rank 1; MPI keeps what nobody has received yet */

byte learnt[TASKS];       /* on rank 1 */
byte known = 0;
bool receiving = false;
bool wants[TASKS];        /* starts that wait for a decision */
byte without = 0;         /* so many */
byte place_of[TASKS];     /* of each task, once it has one */

byte taken[TASKS];        /* on rank 1, a place in the order: the task that has it,
    and one; 0: none */
byte over = 0;            /* starts */
byte begun[TASKS];        /* keys, as they have been started */

/* The first place of this key without a task; TASKS: there is none. */
inline find_place(key, place) {
  place = 0;
  do
  :: place == known -> place = TASKS; break
  :: place < known && learnt[place] == key && taken[place] == 0 -> break
  :: else -> place++
  od
}

inline start(task, place) {
  d_step {
#ifdef ANY_TURN
    true;
#else
    over == place;
#endif
    begun[over] = KEY(task);
    over++
  }
}

proctype task_0(byte task) {
  byte place;
  byte next;
  d_step {
    place = decisions;
    decided[place] = KEY(task);
    decisions++
  };
#ifdef ANYBODY_SENDS
  /* Whoever arrives sends what is not sent: nobody keeps two from overtaking each other. */
  do
  :: d_step { sent < decisions -> next = decided[sent]; sent++ };
    wire ! next
  :: sent == decisions -> break
  od
#else
  if
  :: d_step { sending -> skip }
  :: d_step { !sending -> sending = true };
    do
    :: d_step { sent < decisions -> next = decided[sent]; sent++ };
      wire ! next
#ifdef LOOKS_BEFORE_IT_ENDS
    :: sent == decisions -> sending = false; break
#else
    :: d_step { sent == decisions -> sending = false }; break
#endif
    od
  fi
#endif
}

/* Whoever posts a receive, and whoever is called when its message is there. */
proctype receiver() {
  byte key;
  byte it;
  do
  :: wire ? key;
    d_step {
      learnt[known] = key;
      it = 0;
      do
      :: it < TASKS && wants[it] && KEY(it) == key ->
        wants[it] = false;
        without--;
        taken[known] = it + 1;
        place_of[it] = known;
        break
      :: it < TASKS && !(wants[it] && KEY(it) == key) -> it++
      :: it == TASKS -> break
      od;
      known++
    };
    /* Another start may wait that left it to this one. */
    if
#ifdef ENDS_AFTER_ONE
    :: d_step { receiving = false }; break
#else
    :: d_step { receiving = false };
      if
      :: d_step { receiving || without == 0 -> skip }; break
      :: d_step { !receiving && without > 0 -> receiving = true }
      fi
#endif
    fi
  od
}

proctype task_1(byte task) {
  byte place;
  d_step {
    find_place(KEY(task), place);
    if
    :: place < TASKS -> taken[place] = task + 1
    :: else -> wants[task] = true; without++
    fi
  };
  if
  :: place < TASKS
  :: else ->
    if
#ifdef POSTS_IN_VAIN
    :: d_step { receiving -> skip }
    :: d_step { !receiving -> receiving = true }; run receiver()
#else
    :: d_step { receiving || without == 0 -> skip }
    :: d_step { !receiving && without > 0 -> receiving = true }; run receiver()
#endif
    fi;
    !wants[task];
    place = place_of[task]
  fi;
  start(task, place);
  if
  :: over == TASKS ->
    d_step {
      byte i = 0;
      do
      :: i < TASKS -> assert(begun[i] == decided[i]); i++
      :: else -> break
      od
    }
  :: else
  fi
}

init {
  atomic {
    run task_0(0); run task_0(1); run task_0(2);
    run task_1(0); run task_1(1); run task_1(2)
  }
}
