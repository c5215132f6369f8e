/* SPDX-License-Identifier: BSD-3-Clause
 * Dynamic broadcasts between ranks that insert tasks within a window
 * (src/distributed/data/copies/broadcasts.hpp, docs/design/broadcasts.md). Checked for every
 * interleaving by spin (run_model.sh), and for every program of TASKS tasks.
 *
 * All ranks insert the same tasks in the same order. A task runs on one rank, may read one version
 * that an earlier task has written elsewhere, and writes a version of its own, perhaps over the
 * last one of its rank. A rank inserts a task of its own only while fewer than WINDOW of them are
 * not done. The source of a version learns of a reader when it inserts it; whenever it likes it
 * sends the version to all that it knows of by then, along any tree: whoever has a list picks a
 * child, and any part of the rest to go along.
 *
 * A rank that gets a header takes the copy, and asks its children, if its reader is inserted, or if
 * it has room for one copy that nobody has asked for yet (BUDGET). Otherwise it hands the list
 * back: its parent serves those ranks, and its own copy waits there for its reader. One copy at a
 * time may be asked for between two ranks (ASKED); one that waits for a reader does not count. The
 * data go once the parent has them. A task that writes over a version waits until all copies of it
 * have left its rank.
 *
 * Checked: all tasks run (spin's invalid end states), nobody gets a version that has been written
 * over. With the defect that MUTANT names, an error is found.
 */
#define RANKS 3
#define TASKS 4
#define WINDOW 1
#define NONE 15

#define AT(v, q) ((v) * RANKS + (q))
#define BIT(q) (1 << (q))

/* The program. */
byte executes[TASKS];
byte reads[TASKS];
byte over[TASKS];
byte budget;

/* Ranks. */
byte next[RANKS];                 /* to be inserted */
byte busy[RANKS];                 /* tasks of its own that are inserted and not done */
byte early[RANKS];                /* copies that nobody has asked for */

/* Versions: of task v. */
bool done[TASKS];
bool gone[TASKS];                 /* written over */
byte wanted[TASKS];               /* by whom, as its source knows */
byte sent[TASKS];

/* Copies: of version v to rank q. */
mtype = { none, waits, asked, postponed, accepted, here };
mtype copy[TASKS * RANKS];
byte parent[TASKS * RANKS];
byte list[TASKS * RANKS];         /* that goes along */
bool reader[TASKS * RANKS];       /* is inserted */
byte to_send[TASKS * RANKS];         /* copies that rank q has to send on */
byte between[RANKS * RANKS];      /* that count as asked for */

/* Rank p serves `ranks`: children, and what each of them gets to pass on. */
inline serve(v, p, ranks) {
  do
  :: ranks == 0 -> break
  :: ranks != 0 ->
    if
    :: ranks & BIT(0) -> child = 0
    :: ranks & BIT(1) -> child = 1
    :: ranks & BIT(2) -> child = 2
    fi;
    ranks = ranks & ~BIT(child);
    along = 0;
    if
    :: along = ranks
    :: along = ranks & ~BIT(0)
    :: along = ranks & ~BIT(1)
    :: along = ranks & ~BIT(2)
    :: along = 0
    fi;
    ranks = ranks & ~along;
    assert(copy[AT(v, child)] == none);
    copy[AT(v, child)] = waits;
    parent[AT(v, child)] = p;
    list[AT(v, child)] = along;
    to_send[AT(v, p)]++
  od;
  child = 0;
  along = 0
}

#define HAS(v, p) (executes[v] == (p) || copy[AT(v, p)] == here)
#define PAIR (parent[AT(v, q)] * RANKS + q)

/* One copy on its way: what its two ends do. */
proctype travels(byte v; byte q) {
  byte child;
  byte along;
  byte ranks;
  byte from;
end:
  do
  :: atomic { copy[AT(v, q)] == waits && between[PAIR] == 0 ->
      between[PAIR]++;
      copy[AT(v, q)] = asked }
#ifdef PASSES_ON_WHEN_READ
  /* Without budget, and without lists that are handed back. */
  :: atomic { copy[AT(v, q)] == asked && reader[AT(v, q)] ->
#else
  :: atomic { copy[AT(v, q)] == asked && (reader[AT(v, q)] || early[q] < budget) ->
#endif
      if
      :: reader[AT(v, q)]
      :: else -> early[q]++
      fi;
      copy[AT(v, q)] = accepted;
      ranks = list[AT(v, q)];
      list[AT(v, q)] = 0;
      serve(v, q, ranks) }
#ifndef PASSES_ON_WHEN_READ
  :: atomic { copy[AT(v, q)] == asked && !reader[AT(v, q)] && early[q] >= budget ->
      copy[AT(v, q)] = postponed;
#ifndef COUNTS_POSTPONED
      between[PAIR]--;
#endif
#ifndef KEEPS_ITS_LIST
      from = parent[AT(v, q)];
      ranks = list[AT(v, q)];
      list[AT(v, q)] = 0;
      serve(v, from, ranks);
      from = 0
#endif
    }
  :: atomic { copy[AT(v, q)] == postponed && reader[AT(v, q)] ->
      copy[AT(v, q)] = accepted;
#ifndef COUNTS_POSTPONED
      between[PAIR]++;
#endif
      ranks = list[AT(v, q)];     /* nothing, without a defect */
      list[AT(v, q)] = 0;
      serve(v, q, ranks) }
#endif
  :: atomic { copy[AT(v, q)] == accepted && HAS(v, parent[AT(v, q)]) ->
      assert(executes[v] != parent[AT(v, q)] || !gone[v]);
      copy[AT(v, q)] = here;
      between[PAIR]--;
      to_send[AT(v, parent[AT(v, q)])]-- }
  od
}

/* A source sends to all who are known to it by now. */
proctype source(byte v) {
  byte child;
  byte along;
  byte ranks;
end:
  do
  :: atomic { done[v] && wanted[v] != sent[v] ->
      ranks = wanted[v] & ~sent[v];
      sent[v] = wanted[v];
      serve(v, executes[v], ranks) }
  od
}

/* A rank inserts. */
proctype inserts(byte r) {
  byte t;
  byte v;
  do
  :: next[r] == TASKS -> break
  :: atomic { next[r] < TASKS && (executes[next[r]] != r || busy[r] < WINDOW) ->
      t = next[r];
      v = reads[t];
      if
      :: v != NONE && executes[v] == r -> wanted[v] = wanted[v] | BIT(executes[t])
      :: else
      fi;
      if
      :: executes[t] == r ->
        busy[r]++;
        if
        :: v != NONE && !reader[AT(v, r)] ->
          if
          :: copy[AT(v, r)] == accepted || copy[AT(v, r)] == here -> early[r]--
          :: else
          fi;
          reader[AT(v, r)] = true
        :: else
        fi
      :: else
      fi;
      next[r]++;
      t = 0;
      v = 0 }
  od
}

#define HERE(t) (reads[t] == NONE || copy[AT(reads[t], executes[t])] == here)
#ifdef WRITES_OVER_AT_ONCE
#define FREE(t) (over[t] == NONE || done[over[t]])
#else
#define FREE(t) (over[t] == NONE || (done[over[t]] && wanted[over[t]] == sent[over[t]] && \
                                     to_send[AT(over[t], executes[t])] == 0))
#endif

/* A task runs. */
proctype task(byte t) {
  atomic { next[executes[t]] > t && HERE(t) && FREE(t) ->
    done[t] = true;
    busy[executes[t]]--;
    if
    :: over[t] != NONE -> gone[over[t]] = true
    :: else
    fi }
}

/* Draws task t: its rank is one that has had a task, or the next one; all others are alike. */
inline draw(t) {
  select(value : 0 .. most);
  executes[t] = value;
  if
  :: value == most && most < RANKS - 1 -> most++
  :: else
  fi;
  reads[t] = NONE;
  over[t] = NONE;
  if
  :: t > 0 ->
    select(value : 0 .. t - 1);
    if
    :: executes[value] != executes[t] && !gone[value] -> reads[t] = value
    :: true
    fi;
    select(value : 0 .. t - 1);
    if
    :: executes[value] == executes[t] && !gone[value] -> over[t] = value; gone[value] = true
    :: true
    fi
  :: else
  fi
}

init {
  byte value;
  byte most;
  byte v;
  byte q;
  atomic {
    draw(0); draw(1); draw(2); draw(3);
    select(value : 0 .. 1);
    budget = value;
    for (v : 0 .. TASKS - 1) {
      gone[v] = false;
      for (q : 0 .. RANKS - 1) { copy[AT(v, q)] = none }
    }
    value = 0; most = 0; v = 0; q = 0;
    run inserts(0); run inserts(1); run inserts(2);
    run task(0); run task(1); run task(2); run task(3);
    run source(0); run source(1); run source(2); run source(3);
    run travels(0, 0); run travels(0, 1); run travels(0, 2);
    run travels(1, 0); run travels(1, 1); run travels(1, 2);
    run travels(2, 0); run travels(2, 1); run travels(2, 2);
    run travels(3, 0); run travels(3, 1); run travels(3, 2)
  }
}
