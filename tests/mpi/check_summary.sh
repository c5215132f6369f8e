#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# check_summary.sh command...: the command prints one summary, with a row for each of two ranks.
output=$("$@" 2>&1) || { echo "$output"; exit 1; }
headers=$(echo "$output" | grep -c 'rank workers')
rows=$(echo "$output" | grep -cE '^imbrex: +[01] ')
[ "$headers" -eq 1 ] && [ "$rows" -eq 2 ] && exit 0
echo "$headers headers and $rows rows instead of 1 and 2:"
echo "$output"
exit 1
