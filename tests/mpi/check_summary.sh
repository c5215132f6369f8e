#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# check_summary.sh command...: the command prints one summary, with the MPI and a row for each of
# two ranks.
output=$("$@" 2>&1) || { echo "$output"; exit 1; }
headers=$(echo "$output" | grep -c 'rank workers')
rows=$(echo "$output" | grep -cE '^imbrex: +[01] ')
library=$(echo "$output" | grep -cE '^imbrex: MPI: .*[0-9]')
[ "$headers" -eq 1 ] && [ "$rows" -eq 2 ] && [ "$library" -eq 1 ] && exit 0
echo "$headers headers, $rows rows, $library names of an MPI instead of 1, 2, 1:"
echo "$output"
exit 1
