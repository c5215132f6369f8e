// SPDX-License-Identifier: BSD-3-Clause
// The affinity format of LLVM's runtime: its default, where it is displayed, and malformed fields.
// The word "undefined" stands in the place of a malformed field.
#include <omp.h>
#include <stdio.h>

int main(void) {
  char text[100];
  (void)omp_get_affinity_format(text, sizeof text);
  (void)printf("%s\n", text);
  (void)fclose(stderr);
  omp_display_affinity("shown %n");
  (void)omp_capture_affinity(text, sizeof text, "%q %{nothing} %{open");
  (void)printf("%s\n", text);
  (void)omp_capture_affinity(text, sizeof text, "%05n %");
  return printf("%s\n", text) < 0;
}
