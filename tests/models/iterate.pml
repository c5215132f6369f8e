/* SPDX-License-Identifier: BSD-3-Clause
 * The graph of a loop whose tasks run once in each iteration (src/task/cycle/node.hpp): counts that are
 * set again before the followers are released, gates, a limit that falls meanwhile, and nodes that
 * retire. Checked for every interleaving by spin (run_model.sh).
 *
 * Two workers run ready nodes, and a third process starts the nodes that wait for nothing. The
 * graph is one of five: a writer and its reader; two cells and their reader, where the period is 2;
 * a task that decides in every second iteration, with a task in that or in the other iteration; and
 * three tasks of which the last follows the two others by ranges. In every graph one instance may
 * stop the loop, or fail.
 *
 * Checked: no instance begins before its predecessors, its own instance before, and the deciding
 * task have ended; none begins behind the iteration that a deciding task has made the last; all nodes
 * retire (spin's invalid end states); and no worker touches a node after all have retired. With the
 * defect that MUTANT names, spin finds an error.
 */
#define N 3
#define COUNT 3            /* iterations */
#define NONE 255

byte nodes;                /* of this graph */
byte period = 1;
byte in_round[N];          /* followers, one bit each */
byte next_round[N];
byte degree[N];
byte first[N];             /* arrivals in the first round */

byte needed[N];
byte iteration[N];
bool retired[N];
bool ready[N];
bool runs[N];
byte done[N];              /* instances that have ended */
byte limit = COUNT;
byte stop = NONE;          /* the iteration that a deciding task has made the last */
bool may_end = true;       /* one instance may still stop the loop, or fail */

byte decider = NONE;
bool gated[N];
short open;                /* the last iteration that has decided */
byte waiting = 0;          /* at the gate, one bit each */

byte all_retired = 0;
bool over = false;         /* the loop's memory is gone */

#define bit(node) (1 << (node))

/* Arrivals::all_arrived(), arrive_slowly() and make_ready() */
inline all_arrived(v) {
  assert(!over || starts);
  if
  :: retired[v]
  :: else ->
#ifdef LOOKS_AT_GATE_UNLOCKED
    if
    :: gated[v] && open < iteration[v] - period -> waiting = waiting | bit(v)
    :: else -> go_on(v)
    fi
#else
    waits = false;
    atomic {
      if
      :: gated[v] && open < iteration[v] - period -> waiting = waiting | bit(v); waits = true
      :: else
      fi
    };
    if :: !waits -> go_on(v) :: else fi
#endif
  fi
}

inline go_on(v) {
  if
  :: iteration[v] >= limit -> skipped = skipped | bit(v)
  :: else -> make_ready(v)
  fi
}

inline make_ready(v) {
#ifdef SETS_AFTER_READY
  ready[v] = true;
  needed[v] = degree[v]
#else
  needed[v] = degree[v];
  ready[v] = true
#endif
}

/* Arrivals::at() */
inline at(v) {
  last = false;
  assert(!over);
  if
  :: needed[v] == 1 -> needed[v] = 0; last = true
  :: else -> atomic { needed[v]--; last = (needed[v] == 0) }
  fi;
  if :: last -> last = false; all_arrived(v) :: else fi
}

inline at_all(set) {
  u = 0;
  do
  :: u < nodes && (set & bit(u)) -> at(u); u++
  :: u < nodes && !(set & bit(u)) -> u++
  :: u == nodes -> u = 0; break
  od
}

inline at_followers(v) {
  mine = in_round[v];
  at_all(mine);
  mine = next_round[v];
  at_all(mine)
}

/* Arrivals::decide() */
inline decide(v) {
  if
  :: v == decider ->
    atomic { open = open + period; mine = waiting; waiting = 0 };
    u = 0;
    do
    :: u < nodes && (mine & bit(u)) -> all_arrived(u); u++
    :: u < nodes && !(mine & bit(u)) -> u++
    :: u == nodes -> u = 0; break
    od
  :: else
  fi
}

inline count_retired() {
  atomic {
    all_retired = all_retired + retired_here;
    retired_here = 0;
    if :: all_retired == nodes -> over = true :: else fi
  }
}

/* Arrivals::retire() */
inline retire(v) {
  retired[v] = true;
  retired_here++;
#ifdef COUNTS_BEFORE_IT_ARRIVES
  count_retired();
#endif
#ifndef RETIRES_SILENTLY
  at_followers(v);
#endif
  decide(v)
}

/* Arrivals::finish(), and the count in the scope */
inline finish() {
  do
  :: skipped != 0 ->
    me = 0;
    do
    :: !(skipped & bit(me)) -> me++
    :: else -> break
    od;
    skipped = skipped & ~bit(me);
    retire(me)
  :: else -> break
  od;
  count_retired()
}

/* All that the instance follows has ended. */
inline check_begin() {
  d_step {
    assert(!runs[me]);
    assert(done[me] == iteration[me] / period);
    assert(iteration[me] <= stop);
    if
    :: decider != NONE && gated[me] ->
      assert(iteration[me] == 0 || done[decider] * period >= iteration[me])
    :: else
    fi;
    u = 0;
    do
    :: u < nodes ->
      assert(!(in_round[u] & bit(me)) || done[u] > iteration[me] / period);
      assert(!(next_round[u] & bit(me)) || done[u] >= iteration[me] / period);
      u++
    :: else -> u = 0; break
    od;
    runs[me] = true
  }
}

/* A task fails; or a task that decides stops the loop. Both end it behind this iteration. */
inline run_task() {
  check_begin();
  if
  :: atomic { may_end -> may_end = false };
    atomic {
      if :: me == decider -> stop = iteration[me] :: else fi;
      if :: iteration[me] + 1 < limit -> limit = iteration[me] + 1 :: else fi
    }
  :: true
  fi;
  d_step { runs[me] = false; done[me]++ }
}

proctype worker() {
  byte me = 0;
  byte u = 0;
  byte mine = 0;
  byte skipped = 0;
  byte retired_here = 0;
  bool starts = false;
  bool last = false;
  bool waits = false;
again:
  do
  :: atomic { ready[0] -> ready[0] = false; me = 0 }; goto begins
  :: atomic { ready[1] -> ready[1] = false; me = 1 }; goto begins
  :: atomic { ready[2] -> ready[2] = false; me = 2 }; goto begins
  :: over -> break
  od;
  goto end;
begins:
  assert(!over);
  if
  :: iteration[me] >= limit -> retire(me)  /* it was ready before the limit fell */
  :: else ->
    run_task();
    byte node = me;
    at_followers(node);
    decide(node);
    iteration[node] = iteration[node] + period;
    at(node)
  fi;
  finish();
  me = 0;
  goto again;
end: skip
}

/* start_nodes() */
proctype starter() {
  byte me = 0;
  byte u = 0;
  byte mine = 0;
  byte skipped = 0;
  byte retired_here = 0;
  byte node = 0;
  bool starts = true;
  bool last = false;
  bool waits = false;
  do
  :: node < nodes && first[node] == 0 -> all_arrived(node); node++
  :: node < nodes && first[node] != 0 -> node++
  :: node == nodes -> break
  od;
  finish()
}

init {
  byte u = 0;
  byte v = 0;
  atomic {
    if
    :: nodes = 2;          /* write, read */
      in_round[0] = bit(1);
      next_round[1] = bit(0)
    :: nodes = 3; period = 2;  /* 0 and 1 write two cells, and 2 reads both in the next iteration */
      in_round[0] = bit(2);
      in_round[1] = bit(2);
      next_round[2] = bit(0) | bit(1);
      iteration[2] = 1
    :: nodes = 2; period = 2; decider = 0;  /* 1 is in the iteration without a deciding task */
      open = -2;
      gated[0] = true; gated[1] = true;
      iteration[1] = 1
    :: nodes = 2; period = 2; decider = 0;  /* 1 is in the iteration with the deciding task */
      open = -2;
      gated[0] = true;
#ifndef GATES_ONE_ITERATION
      gated[1] = true
#endif
    :: nodes = 3;          /* a range, an object in it, and the object again */
      in_round[0] = bit(1) | bit(2);
      in_round[1] = bit(2);
      next_round[2] = bit(0) | bit(1);
#ifdef FOLLOWS_OVER_A_ROUND
      next_round[0] = bit(2)
#endif
    fi;
    u = 0;
    do
    :: u < nodes ->
      degree[u] = 1;
      v = 0;
      do
      :: v < nodes ->
        if :: in_round[v] & bit(u) -> degree[u]++; first[u]++ :: else fi;
        if :: next_round[v] & bit(u) -> degree[u]++ :: else fi;
        v++
      :: else -> break
      od;
      needed[u] = first[u];
      u++
    :: else -> break
    od;
    u = 0; v = 0;
    run starter();
    run worker();
    run worker()
  }
}
