/* SPDX-License-Identifier: BSD-3-Clause */
/* Constants of Task-Aware MPI for Fortran, by the preprocessor (a source file in .F or .F90): put
   #include "TAMPIf.h" before the program unit. TAMPI's calls are external subroutines, TAMPI_Iwait
   and so on, with the arguments of TAMPI.h and an integer for the code at the end. */
#ifndef TAMPIF_H
#define TAMPIF_H

#define TAMPI_VERSION_MAJOR 4
#define TAMPI_VERSION_MINOR 0

/* MPI_THREAD_MULTIPLE + 1. As a number: a line of the fixed source form must not grow. */
#define MPI_TASK_MULTIPLE 4

#define TAMPI_PROPERTY_BLOCKING_MODE 1
#define TAMPI_PROPERTY_NONBLOCKING_MODE 2
#define TAMPI_PROPERTY_AUTO_INIT 3
#define TAMPI_PROPERTY_THREAD_TASKAWARE 4

#endif
