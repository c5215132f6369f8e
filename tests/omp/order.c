// SPDX-License-Identifier: BSD-3-Clause
// The order in which a thread alone in its team runs tasks: as created if each is a call of its
// creator, and by a policy if the policy sees them. A task with dependences that waits for an event
// holds back the tasks that depend on it.
#include <omp.h>
#include <stdio.h>

static int order[3], begun;

static void creates(int number, int priority) {
#pragma omp task firstprivate(number) priority(priority)
  order[begun++] = number;
}

int main(void) {
  int after = 0, place = 0;
#pragma omp parallel num_threads(1)
  {
    creates(1, 1);
    creates(2, 9);
    creates(3, 5);
#pragma omp taskwait
    omp_event_handle_t event = (omp_event_handle_t)0;
#pragma omp task detach(event) depend(out : place)
    place = 1;
#pragma omp task depend(in : place)
    after = 1;
    const int early = after;
    omp_fulfill_event(event);
#pragma omp taskwait
    printf("%d %d %d, %d then %d\n", order[0], order[1], order[2], early, after);
  }
  return 0;
}
