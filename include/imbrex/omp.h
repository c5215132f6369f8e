/* SPDX-License-Identifier: BSD-3-Clause */
/* imbrex inside the tasks of an OpenMP program, which runs under the libgomp.so.1 of imbrex and
   links imbrex. The calls of imbrex.h work there: `task` means an OpenMP task, `finish` a
   taskgroup. <imbrex/mpi.h> and <TAMPI.h> work, too. This header adds shorter calls for pragmas and
   loops. For C and C++.

   Other OpenMP runtimes do not wait for an event in a depend clause. */
#ifndef IMBREX_OMP_H
#define IMBREX_OMP_H

#include <imbrex/imbrex.h>

/* The macros below take a name and, where iterations overlap, a number. To call the function of
   imbrex.h of that name, put its name in brackets: (imbrex_named)(...). */
#define IMBREX_NAME_AND_NUMBER(name, number, ...) (name), (number)

/* #pragma omp task depend(in: *imbrex_named("ghost_done")): the task begins after the trigger. */
#define imbrex_named(...) imbrex_named_address(IMBREX_NAME_AND_NUMBER(__VA_ARGS__, 0, 0))
#define imbrex_trigger(...) imbrex_trigger(IMBREX_NAME_AND_NUMBER(__VA_ARGS__, 0, 0))
/* The runtime calls `function`, of int (void*), until it returns 0; the taskgroup ends no sooner.
   (imbrex_progress() of continue.h polls once.) */
#define imbrex_progress_function(function) imbrex_progress_register((function), 0, IMBREX_HERE)

#endif
