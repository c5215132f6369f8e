/* SPDX-License-Identifier: BSD-3-Clause
 * How a space of futures closes (src/distributed/futures.hpp), and what its messages meet
 * meanwhile. Checked for every interleaving by spin (run_model.sh).
 *
 * There are two futures, a short one with its home on rank 0, and a long one on rank 1; each is put
 * once, by any rank. A rank opens the space at any time; then it may ask for each future, and
 * closes when it has put its own. Messages arrive after any time, and in any order. A rank joins
 * the wave when it closes and nothing of its own is unanswered: its requests, its puts elsewhere,
 * and futures of its own home that it awaits. It answers others until the wave has ended, which is
 * when all have joined; it hears of that after any time, and then forgets the space.
 *
 * Checked: no message meets a space that is gone, but one that says "no longer needed", and is
 * thrown away; what a rank has asked for is there when its space goes; every rank comes to the end,
 * and no message is left over (spin's invalid end states). With the defect that MUTANT names, an
 * error is found.
 */
#define RANKS 3
#define FUTURES 2
#define HERE (me * FUTURES + f)
#define OF(rank) ((rank) * FUTURES + f)
#define HOME f

byte putter[FUTURES];
bool is_long[FUTURES];

/* Ranks. */
bool opened[RANKS];
bool closing[RANKS];
bool gone[RANKS];
byte unanswered[RANKS];
byte came = 0;

/* Futures at home, and on a rank. */
bool was_put[FUTURES];
bool there[FUTURES];
bool waits[RANKS * FUTURES];     /* in the list at home */
bool asked[RANKS * FUTURES];
bool ready[RANKS * FUTURES];

/* Messages that are under way: the names of FutureMessage, and values that land. */
bool ask[RANKS * FUTURES];
bool data[RANKS * FUTURES];
bool size[RANKS * FUTURES];
bool go[RANKS * FUTURES];
bool lands[RANKS * FUTURES];
bool not_now[RANKS * FUTURES];
bool put[FUTURES];
bool announce[FUTURES];
bool land[FUTURES];
bool lands_at_home[FUTURES];
bool taken[FUTURES];

inline meets() { assert(opened[me] && !gone[me]) }

inline serve(rank) {
  if
  :: is_long[f] -> size[OF(rank)] = true
  :: else -> data[OF(rank)] = true
  fi
}

/* At home. */
inline settle() {
  assert(!there[f]);
  there[f] = true;
  ready[HERE] = true;
  if
  :: waits[OF(0)] -> waits[OF(0)] = false; serve(0)
  :: else
  fi;
  if
  :: waits[OF(1)] -> waits[OF(1)] = false; serve(1)
  :: else
  fi;
  if
  :: waits[OF(2)] -> waits[OF(2)] = false; serve(2)
  :: else
  fi;
  if
  :: asked[HERE] -> unanswered[me]--
  :: else
  fi
}

/* One future on one rank: what the program does with it, and the handlers of its messages. */
proctype future(byte me; byte f) {
  byte from;
end:
  do
  /* The program. */
  :: atomic { opened[me] && !closing[me] && !asked[HERE] ->
      asked[HERE] = true;
      if
      :: me != HOME ->
        ask[HERE] = true;
#ifndef JOINS_UNANSWERED
        unanswered[me]++
#endif
      :: me == HOME && !there[f] -> unanswered[me]++
      :: else
      fi }
  :: atomic { opened[me] && !closing[me] && putter[f] == me && !was_put[f] ->
      was_put[f] = true;
      if
      :: me == HOME -> settle()
      :: else ->
        ready[HERE] = true;       /* for those who wait here */
#ifndef JOINS_BEFORE_ACK
        unanswered[me]++;
#endif
        if
        :: is_long[f] -> announce[f] = true
        :: else -> put[f] = true
        fi
      fi }

  /* The home, to readers. */
  :: atomic { me == HOME && opened[me] && (ask[OF(0)] || ask[OF(1)] || ask[OF(2)]) ->
      meets();
      if
      :: ask[OF(0)] -> from = 0
      :: ask[OF(1)] -> from = 1
      :: ask[OF(2)] -> from = 2
      fi;
      ask[OF(from)] = false;
      if
      :: there[f] -> serve(from)
      :: else -> waits[OF(from)] = true
      fi;
      from = 0 }
  :: atomic { me == HOME && (go[OF(0)] || go[OF(1)] || go[OF(2)]) ->
      meets();
      if
      :: go[OF(0)] -> from = 0
      :: go[OF(1)] -> from = 1
      :: go[OF(2)] -> from = 2
      fi;
      go[OF(from)] = false;
      lands[OF(from)] = true;
      from = 0 }
  :: atomic { me == HOME && not_now[OF(0)] -> not_now[OF(0)] = false }
  :: atomic { me == HOME && not_now[OF(1)] -> not_now[OF(1)] = false }
  :: atomic { me == HOME && not_now[OF(2)] -> not_now[OF(2)] = false }

  /* A reader. */
  :: atomic { data[HERE] ->
      meets(); data[HERE] = false; ready[HERE] = true;
#ifndef JOINS_UNANSWERED
      unanswered[me]--
#endif
    }
  :: atomic { size[HERE] ->
      meets(); size[HERE] = false;
      if
      :: ready[HERE] ->           /* by a put of this rank */
        not_now[HERE] = true;
#ifndef JOINS_UNANSWERED
        unanswered[me]--
#endif
      :: else -> go[HERE] = true
      fi }
  :: atomic { lands[HERE] ->
      meets(); lands[HERE] = false; ready[HERE] = true;
#ifndef JOINS_UNANSWERED
      unanswered[me]--
#endif
    }

  /* Puts elsewhere: the home, and who has put. */
#ifdef NOT_KEPT                   /* what comes before the space is open */
  :: atomic { me == HOME && !opened[me] && ask[OF(2)] -> ask[OF(2)] = false }
#endif
  :: atomic { me == HOME && opened[me] && put[f] ->
      meets(); put[f] = false; settle(); taken[f] = true }
  :: atomic { me == HOME && opened[me] && announce[f] ->
      meets(); announce[f] = false; land[f] = true }
  :: atomic { me == HOME && lands_at_home[f] ->
      meets(); lands_at_home[f] = false; settle(); taken[f] = true }
  :: atomic { me == putter[f] && land[f] ->
      meets(); land[f] = false; lands_at_home[f] = true }
  :: atomic { me == putter[f] && taken[f] ->
      meets(); taken[f] = false;
#ifndef JOINS_BEFORE_ACK
      unanswered[me]--
#endif
    }
  od
}

#define PUT_ITS_OWN(future) (putter[future] != me || was_put[future])

/* The life of the space on one rank. */
proctype space(byte me) {
  opened[me] = true;
  atomic { PUT_ITS_OWN(0) && PUT_ITS_OWN(1) -> closing[me] = true }
  atomic { unanswered[me] == 0 -> came++ }
#ifndef LEAVES_WHEN_IT_HAS_JOINED
  came == RANKS;
#endif
  d_step {
    gone[me] = true;
    assert(!asked[me * FUTURES] || ready[me * FUTURES]);
    assert(!asked[me * FUTURES + 1] || ready[me * FUTURES + 1])
  }
}

init {
  byte rank;
  atomic {
    select(rank : 0 .. RANKS - 1);
    putter[0] = rank;
    select(rank : 0 .. RANKS - 1);
    putter[1] = rank;
    is_long[1] = true;
    rank = 0;
    run space(0); run space(1); run space(2);
    run future(0, 0); run future(1, 0); run future(2, 0);
    run future(0, 1); run future(1, 1); run future(2, 1)
  }
}
