/* SPDX-License-Identifier: BSD-3-Clause */
/* An event loop over MPI: completions arrive in a queue whose descriptor epoll waits for, beside a
   timer. */
#include <mpi.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "imbrex/continue.h"

enum { messages = 100 };

static int received[messages];
static int sent[messages];

static void start(imbrex_queue* queue, int peer) {
  for (int i = 0; i < messages; ++i) {
    MPI_Request request;
    MPI_Irecv(&received[i], 1, MPI_INT, peer, i, MPI_COMM_WORLD, &request);
    imbrex_continue_to(queue, &request, i);
    sent[i] = i * i;
    MPI_Isend(&sent[i], 1, MPI_INT, peer, i, MPI_COMM_WORLD, &request);
    imbrex_continue_to(queue, &request, messages + i);
  }
}

static void watch(int loop, int fd) {
  struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
  epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event);
}

int main(int argc, char** argv) {
  int rank;
  int fd;
  int left = 2 * messages;
  int sum = 0;
  imbrex_queue* queue;
  const struct itimerspec soon = {.it_value.tv_nsec = 1000000};

  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  imbrex_queue_open(&queue, &fd);
  const int timer = timerfd_create(CLOCK_MONOTONIC, 0);
  timerfd_settime(timer, 0, &soon, NULL);
  const int loop = epoll_create1(0);
  watch(loop, fd);
  watch(loop, timer);

  while (left > 0) {
    struct epoll_event event;
    imbrex_completion done[32];
    if (epoll_wait(loop, &event, 1, -1) != 1) continue;
    if (event.data.fd == timer) {  /* nothing is in flight before the timer fires */
      epoll_ctl(loop, EPOLL_CTL_DEL, timer, NULL);
      start(queue, 1 - rank);
      continue;
    }
    const int count = imbrex_queue_take(queue, 32, done);
    for (int i = 0; i < count; ++i) {
      if (done[i].code != MPI_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 1);
      if (done[i].tag < messages) sum += received[done[i].tag];
    }
    left -= count;
  }
  printf("rank %d: the sum is %d\n", rank, sum);
  imbrex_queue_close(queue);
  close(loop);
  close(timer);
  MPI_Finalize();
  return sum == 328350 ? 0 : 1;
}
