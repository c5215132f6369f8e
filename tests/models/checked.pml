/* SPDX-License-Identifier: BSD-3-Clause
 * How a rank tells the first rank of a communicator which collectives it begins, under IMBREX_CHECK
 * (src/mpi/check/ranks/). Checked for every interleaving by spin (run_model.sh).
 *
 * Two tasks begin a collective each and write a letter about it. The number of the communicator
 * comes by a broadcast, or with that of its parent, and letters written before wait for it. Who has
 * written, and who polls, may look: sends what is there, unless another one does so at the moment,
 * or somebody has done so a short time ago. MPI_Finalize, once no task is left, writes the last
 * letter, waits for the number, looks in any case, and then says how many letters this rank has
 * sent: the other waits for as many.
 *
 * Checked: letters leave in their order; what is counted is all that was written. With the defect
 * that MUTANT names, an error is found.
 */
#define LETTERS 3

bool has_come = false;    /* the number, in MPI */
bool knows = false;
byte written = 0;         /* letters; they are numbers, from 1 */
byte unsent[LETTERS];     /* until the number is known */
byte unsents = 0;
byte outbox[LETTERS];
byte boxed = 0;
bool busy = false;        /* somebody looks */
byte sent = 0;            /* so many letters are with MPI */
byte last = 0;            /* the last of them */
byte ended = 0;           /* tasks, and the one who brings the number */

inline put(letter) {
  outbox[boxed] = letter;
  boxed++
}

/* begin() or end() of a communicator, under its lock. */
inline write_letter(known, mine) {
#ifdef ASKS_BEFORE_IT_LOCKS
  known = knows;
  d_step {
#else
  d_step {
    known = knows;
#endif
    written++;
    mine = written;
    if
    :: known -> put(mine)
    :: else -> unsent[unsents] = mine; unsents++
    fi
  }
}

/* What is done by who has set `busy`. */
inline look(i) {
  if
  :: has_come && !knows ->
    d_step {
      knows = true;
      i = 0;
      do
      :: i < unsents -> put(unsent[i]); i++
      :: else -> break
      od;
      unsents = 0; i = 0
    }
  :: else
  fi;
  /* Takes the box. MPI keeps the order in which it gets letters. */
  d_step {
    i = 0;
    do
    :: i < boxed -> assert(outbox[i] == last + 1); last = outbox[i]; sent++; i++
    :: else -> break
    od;
    boxed = 0; i = 0
  }
}

inline poll(i) {
  if
  :: skip                  /* somebody has looked a short time ago */
  :: d_step { busy -> skip }
  :: d_step { !busy -> busy = true };
    look(i);
    busy = false
  fi
}

proctype task() {
  byte i;
  byte mine;
  bool known;
  write_letter(known, mine);
  poll(i);
  d_step { ended++ }
}

/* A worker that polls, after the number has come. */
proctype worker() {
  byte i;
  has_come = true;
  poll(i);
  d_step { ended++ }
}

/* Another one, which MPI_Finalize may find in the middle. */
proctype late_worker() {
  byte i;
  poll(i)
}

proctype finalize() {
  byte i;
  byte mine;
  bool known;
  ended == 3;
  write_letter(known, mine);
  poll(i);
  do
  :: knows -> break
  :: !knows -> poll(i)
  od;
  skip;                    /* spin lets nobody break into a d_step */
#ifdef COUNTS_AFTER_A_POLL
  poll(i);
  d_step { !busy -> busy = true };
#else
  d_step { !busy -> busy = true };
  look(i);
#endif
  assert(sent == LETTERS && boxed == 0 && unsents == 0);
  busy = false
}

init {
  atomic { run task(); run task(); run worker(); run late_worker(); run finalize() }
}
