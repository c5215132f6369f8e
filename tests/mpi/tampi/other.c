/* SPDX-License-Identifier: BSD-3-Clause */
/* Stands for TAMPI's own library, of which the name says enough. */
int imbrex_test_other_tampi(void) { return 0; }
