/* SPDX-License-Identifier: BSD-3-Clause */
/* A library that compiles unless BROKEN is defined. */
#ifdef BROKEN
#error "broken"
#endif
int answer(void);
int answer(void) {
  return 42;
}
