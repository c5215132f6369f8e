/* SPDX-License-Identifier: BSD-3-Clause
 * How the ranks of a work pool find out that no items are left anywhere
 * (src/distributed/pool/rank_pool.hpp). Checked for every interleaving by spin (run_model.sh).
 *
 * A rank with items may send some to any other, TRANSFERS times in all, and may run out of them.
 * One without may ask another, REQUESTS times in all, which answers with items or without. Messages
 * arrive after any time, and in any order. A rank that is passive joins a wave, and asks no more;
 * it may get items before that is over, which is when all have joined, and then it may ask again.
 * It hears of the result after any time.
 *
 * Checked: when a rank hears that the round is over, no rank has items and no message is under way;
 * and every rank hears it (spin's invalid end states). With the defect that MUTANT names, an error
 * is found.
 */
#define RANKS 3
#define TRANSFERS 3
#define REQUESTS 2
#define NOTHING 0         /* answers that are under way to a rank */
#define NONE 1
#define ITEMS 2

bool busy[RANKS];         /* has items */
bool quiescent[RANKS];    /* asks no more */
bool asks[RANKS];         /* a request of it waits for its answer */
byte pushed[RANKS];       /* messages of items that are under way to it, and no answers */
byte answer[RANKS];
byte asked[RANKS];        /* requests that are under way to it: a bit for each sender */
byte sent[RANKS];
byte received[RANKS];
byte transfers = 0;
byte requests = 0;

/* Waves: this one and the next may be open at the same time. */
byte came[2];
byte sum_sent[2];
byte sum_received[2];

inline check_end() {
  d_step {
    byte i = 0;
    do
    :: i < RANKS ->
      assert(!busy[i] && pushed[i] == 0 && answer[i] == NOTHING && asked[i] == 0);
      i++
    :: else -> break
    od;
    i = 0
  }
}

proctype rank(byte me) {
  bool in_wave = false;
  byte wave = 0;          /* the one that it is in, or joins next: its lowest bit */
  byte before = 255;      /* received, said the last wave */
  byte other;
  do
  /* Items. */
  :: atomic { busy[me] && transfers < TRANSFERS ->
      select(other : 0 .. RANKS - 1);
      if
      :: other != me -> transfers++; sent[me]++; pushed[other]++
      :: else
      fi; other = 0 }
  :: atomic { busy[me] -> busy[me] = false }
  :: atomic { pushed[me] > 0 ->
      pushed[me]--; received[me]++; busy[me] = true;
      quiescent[me] = false }
  /* Requests. */
  :: atomic { !busy[me] && !asks[me] && !quiescent[me] && requests < REQUESTS ->
      select(other : 0 .. RANKS - 1);
      if
      :: other != me -> requests++; asks[me] = true; asked[other] = asked[other] | (1 << me)
      :: else
      fi; other = 0 }
  :: atomic { asked[me] != 0 ->
      select(other : 0 .. RANKS - 1);
      if
      :: asked[me] & (1 << other) ->
        asked[me] = asked[me] & ~(1 << other);
        if
        :: busy[me] && transfers < TRANSFERS -> transfers++; sent[me]++; answer[other] = ITEMS
        :: answer[other] = NONE
        fi
      :: else
      fi; other = 0 }
  :: atomic { answer[me] == NONE -> answer[me] = NOTHING; asks[me] = false }
  :: atomic { answer[me] == ITEMS ->
      answer[me] = NOTHING; asks[me] = false; received[me]++; busy[me] = true;
      quiescent[me] = false }
  /* Waves. */
#if defined(JOINS_ACTIVE)
  :: atomic { !asks[me] && !in_wave ->
#elif defined(JOINS_WHILE_IT_ASKS)
  :: atomic { !busy[me] && !in_wave ->
#else
  :: atomic { !busy[me] && !asks[me] && !in_wave ->
#endif
      in_wave = true;
      quiescent[me] = true;
      came[wave]++;
      sum_sent[wave] = sum_sent[wave] + sent[me];
      sum_received[wave] = sum_received[wave] + received[me];
      if
      :: came[wave] == RANKS ->   /* all have heard of the wave before */
        came[1 - wave] = 0; sum_sent[1 - wave] = 0; sum_received[1 - wave] = 0
      :: else
      fi }
  :: atomic { in_wave && came[wave] == RANKS ->
      in_wave = false;
#ifdef ONE_WAVE
      before = sum_received[wave];
#endif
      if
      :: sum_sent[wave] == before -> check_end(); break
      :: else -> before = sum_received[wave]; wave = 1 - wave
      fi }
  od
}

init {
  atomic { busy[0] = true; run rank(0); run rank(1); run rank(2) }
}
