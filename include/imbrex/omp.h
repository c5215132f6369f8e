/* SPDX-License-Identifier: BSD-3-Clause */
/* imbrex inside the tasks of an OpenMP program, which runs under our libgomp.so.1 and links imbrex:
   the calls of imbrex.h, where `task` is an OpenMP task and `finish` a taskgroup, and, shorter,
   those that pragmas and loops use. With <imbrex/mpi.h> and <TAMPI.h> the same. For C and C++.

   Under another OpenMP runtime an event in a depend clause is not waited for. */
#ifndef IMBREX_OMP_H
#define IMBREX_OMP_H

#include <imbrex/imbrex.h>

/* What follows takes a name and, where iterations overlap, a number. To call the function of
   imbrex.h that has the same name, put its name in brackets: (imbrex_named)(...). */
#define IMBREX_NAME_AND_NUMBER(name, number, ...) (name), (number)

/* #pragma omp task depend(in: *imbrex_named("ghost_done")): the task begins after the trigger. */
#define imbrex_named(...) imbrex_named_place(IMBREX_NAME_AND_NUMBER(__VA_ARGS__, 0, 0))
#define imbrex_trigger(...) imbrex_trigger(IMBREX_NAME_AND_NUMBER(__VA_ARGS__, 0, 0))
/* `function`, of int (void*), is called until it returns 0; the taskgroup ends no sooner. */
#define imbrex_progress(function) imbrex_progress_register((function), 0, IMBREX_HERE)

#endif
