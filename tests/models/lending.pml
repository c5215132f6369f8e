/* SPDX-License-Identifier: BSD-3-Clause
 * The life of one processor in the table of lent processors (sched/lend/word.hpp, table.cpp). Checked
 * for every interleaving by spin (run_model.sh).
 *
 * The owner lends the processor until a task of its own comes; then it takes the processor back, runs
 * the task, and lends again. Two borrowers want the processor for one task each. Borrower 3 may be
 * killed, at any step. A move of the word is one compare-and-swap, so an atomic step; the choice of
 * the next holder is made by earlier reads.
 *
 * Checked: never two run on the processor; the owner gets it back; each living borrower gets it, since
 * the owner sleeps in the end. (A process that waits for ever is an invalid end.)
 */
#define nobody 0
#define owner_ 1

byte holder = owner_;
bool wanted = false;
bool bell[4];
bool wants[4];
bool dead = false;      /* borrower 3 */
bool runs[4];           /* whose task runs on the processor */

inline ring(who) {
#ifdef FORGETS_TO_RING
  skip
#else
  bell[who] = true
#endif
}

/* neediest(): reads one process after the other. */
inline choose(to) {
  to = nobody;
  if :: wants[2] -> to = 2 :: else fi;
  if :: to == nobody && wants[3] -> to = 3 :: else fi
}

/* Table::grant(), after `becomes_free`. */
inline grant(to) {
#ifndef LOOKS_BEFORE_IT_IS_FREE
  choose(to);
#endif
  atomic {
    if
    :: to != nobody && holder == nobody -> holder = to; wants[to] = false; ring(to)
    :: else
    fi
  }
}

inline use(me) {
  atomic { runs[me] = true; assert(runs[1] + runs[2] + runs[3] == 1) };
  runs[me] = false
}

inline lend(to) {
#ifdef LOOKS_BEFORE_IT_IS_FREE
  choose(to);
#endif
  atomic { if :: holder == owner_ -> holder = nobody :: else fi; wanted = false };
  grant(to)
}

inline bury() {
  atomic {
    wants[3] = false;
    if
#ifdef BURIES_SILENTLY
    :: holder == 3 -> holder = nobody
#else
    :: holder == 3 && wanted -> holder = owner_; wanted = false; ring(owner_)
    :: holder == 3 && !wanted -> holder = nobody
#endif
    :: else
    fi
  }
}

proctype owner() {
  byte to;
  lend(to);
  do               /* a task has come */
  :: atomic {
       if
       :: holder == nobody || holder == owner_ -> holder = owner_; wanted = false
       :: else -> wanted = true
       fi
     };
     if
     :: holder == owner_ -> break
     :: else
     fi;
     bell[owner_];
     bell[owner_] = false
  od;
  use(owner_);
  lend(to)
}

/* The spare worker of a process that has one ready task. A grant may come late, after the task has
 * run on a processor that the process took itself: the worker then gives the processor back. */
inline live(me) {
#ifdef LOOKS_BEFORE_IT_WANTS
  atomic { if :: holder == nobody -> holder = me; bell[me] = true :: else fi };
  wants[me] = true;
#else
  wants[me] = true;
  atomic { if :: holder == nobody -> holder = me; bell[me] = true :: else fi };
#endif
  do
  :: bell[me] ->
     bell[me] = false;
     if
     :: holder != me
     :: else ->
        if :: wants[me] || !ran -> wants[me] = false; ran = true; use(me) :: else fi;
#ifdef LOOKS_BEFORE_IT_IS_FREE
        choose(to);
#endif
        atomic {
          assert(holder == me);
          if
#ifdef IGNORES_WANTED
          :: holder = nobody
#else
          :: wanted -> holder = owner_; wanted = false; ring(owner_)
          :: !wanted -> holder = nobody
#endif
          fi
        };
        grant(to)
     fi
  :: ran && !bell[me] -> break
  od
}

/* A late grant goes back. */
inline give_late_one_back(me) {
  bell[me] = false;
  atomic {
    if
    :: wanted -> holder = owner_; wanted = false; ring(owner_)
    :: !wanted -> holder = nobody
    fi
  };
  grant(to)
}

proctype borrower() {
  byte to;
  bool ran = false;
  live(2);
end:
  (holder == 2 && bell[2]);
  give_late_one_back(2);
  goto end
}

proctype victim() {
  byte to;
  bool ran = false;
  {
    live(3);
end:
    (holder == 3 && bell[3]);
    give_late_one_back(3);
    goto end
  } unless {
    dead
  }
}

/* Kills the victim at any time. A process that wants a processor finds the victim dead when it looks
 * again, and then takes the processor if it is free; here the killer does that for it. */
proctype killer() {
  byte to;
  if
  :: true
  :: dead = true;
     runs[3] = false;
     bury();
     grant(to);
end:
     (holder == 3 || wants[3]);
     bury();
     grant(to);
     goto end
  fi
}

init {
  atomic { run owner(); run borrower(); run victim(); run killer() }
}
