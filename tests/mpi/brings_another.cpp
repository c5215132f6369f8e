// SPDX-License-Identifier: BSD-3-Clause
// A library that was linked with another MPI than the program, and is not called.
int brings_another();
int brings_another() { return 0; }
