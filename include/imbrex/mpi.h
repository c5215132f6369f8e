/* SPDX-License-Identifier: BSD-3-Clause */
/* What imbrex adds to MPI for C programs: requests, for tasks. Plain blocking calls need nothing of
   this: in a task they suspend the task. Codes and messages as in imbrex.h. */
#ifndef IMBREX_MPI_H
#define IMBREX_MPI_H

#include <mpi.h>

#include "imbrex/imbrex.h"

#ifndef IMBREX_SERIAL
#ifdef __cplusplus
extern "C" {
#endif

/* Suspends the running task until the request is complete, as MPI_Wait. `status` may be
   MPI_STATUS_IGNORE. */
int imbrex_await_request(MPI_Request* request, MPI_Status* status);
/* Takes the request over, which becomes MPI_REQUEST_NULL, and returns at once: a future of one
   MPI_Status. Not for persistent requests. */
int imbrex_when_request(MPI_Request* request, imbrex_future_t* future);
/* The same without a future: the running task, once its body has ended, keeps its dependents
   waiting for the request too. */
int imbrex_release_after_request(MPI_Request* request);

#ifdef __cplusplus
}
#endif
#endif
#endif
