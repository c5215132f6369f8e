/* SPDX-License-Identifier: BSD-3-Clause
 * How ranks learn that one of them has left a phaser (src/mpi/phasers/rank_phaser.hpp). Checked for
 * every interleaving by spin (run_model.sh).
 *
 * Each rank takes part in as many phases as it likes, of PHASES, and leaves. A phase is a barrier,
 * complete when all have joined it. While it waits for one it may find that it is late, at any
 * time, and joins a round; a rank that has left joins rounds until one says that all have. A round
 * is an MPI_Iallreduce: complete when all have joined it, with what each said then.
 *
 * Checked: a rank passes a phase only if all have signalled it; it gives a phase up only if some
 * rank has left before it; every rank comes to its end (spin's invalid end states); and then no
 * barrier and no round is open. With the defect that MUTANT names, an error is found.
 */
#define RANKS 3
#define PHASES 2
#define ROUNDS 8          /* more are never joined: asserted */
#define NONE 9

byte signalled[RANKS];    /* phases that the tasks of a rank have signalled */
byte begun[RANKS];        /* barriers that it has joined */
bool left[RANKS];
byte joined[4];           /* ranks, of each barrier */
byte finished = 0;

/* Rounds. */
byte came[ROUNDS];        /* ranks that have joined */
byte lefts[ROUNDS];       /* of these, how many said that they have left */
byte least[ROUNDS];       /* the fewest phases that one of those took part in; NONE: no one */
byte most[ROUNDS];        /* the most barriers that one of those has joined */

inline join_round(me) {
  d_step {
    assert(mine < ROUNDS);
    came[mine]++;
    if
    :: left[me] ->
      lefts[mine]++;
      if :: signalled[me] < least[mine] -> least[mine] = signalled[me] :: else fi;
      if :: begun[me] > most[mine] -> most[mine] = begun[me] :: else fi
    :: else
    fi;
    open = true
  }
}

inline join_barrier(me) {
  d_step { joined[begun[me]]++; begun[me]++ }
}

proctype rank(byte me) {
  byte mine = 0;          /* the round that it joins next, or has joined if `open` */
  bool open = false;
  bool gave_up = false;
  byte phase;
  do
  :: begun[me] < PHASES && !gave_up ->
    phase = begun[me];
    atomic { signalled[me]++; join_barrier(me) };
    do
    :: joined[phase] == RANKS ->
      d_step {
        byte i = 0;
        do
        :: i < RANKS -> assert(signalled[i] > phase); i++
        :: else -> break
        od;
        i = 0
      };
      break
#ifndef NEVER_LATE
    :: joined[phase] < RANKS && !open -> join_round(me)
    :: open && came[mine] == RANKS ->
      open = false;
      mine++;
      if
#ifdef HASTY
      :: least[mine - 1] <= phase + 1 ->
#else
      :: least[mine - 1] <= phase ->
#endif
        d_step {
          bool someone = false;
          byte j = 0;
          do
          :: j < RANKS -> someone = someone || (left[j] && signalled[j] <= phase); j++
          :: else -> break
          od;
          assert(someone);
          j = 0; someone = false
        };
        gave_up = true;
        break
      :: else
      fi
#endif
    od
  :: true -> break
  od;
  left[me] = true;
#ifdef MAKES_UP_AT_ONCE
  if :: begun[me] < PHASES -> join_barrier(me) :: else fi;
#endif
  do
  :: !open -> join_round(me)
  :: open && came[mine] == RANKS ->
    open = false;
    mine++;
    if
    :: lefts[mine - 1] == RANKS -> break
    :: else
    fi
  od;
#ifndef NO_MAKING_UP
  do
  :: begun[me] < most[mine - 1] -> join_barrier(me)
  :: else -> break
  od;
#endif
  begun[me] == 0 || joined[begun[me] - 1] == RANKS;   /* its last barrier is complete */
  finished++;
  if
  :: finished == RANKS ->
    d_step {
      byte k = 0;
      do
      :: k < 4 -> assert(joined[k] == 0 || joined[k] == RANKS); k++
      :: else -> break
      od;
      k = 0;
      do
      :: k < ROUNDS -> assert(came[k] == 0 || came[k] == RANKS); k++
      :: else -> break
      od
    }
  :: else
  fi
}

init {
  d_step {
    byte n = 0;
    do
    :: n < ROUNDS -> least[n] = NONE; n++
    :: else -> break
    od
  };
  atomic { run rank(0); run rank(1); run rank(2) }
}
