#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# named.sh <folder of our libraries> <program> <imbrex> <folder for the trace> GNU|LLVM: what
# `imbrex summary` calls the tasks of named.c. LLVM's compilers pass each construct's function and
# line. (Of a task that a sanitizer has added to, the first line is that of its construct.)
set -e
rm -rf "$4"
LD_LIBRARY_PATH=$1 IMBREX_TRACE=$4 "$2"
text=$("$3" summary "$4")
relax=relax show=show
if [ "$5" = LLVM ]; then
  relax=relax:9 show=show:15
fi
for regex in "^$relax +64 .*named\\.c:(9|10)\$" "^$show +1 .*named\\.c:1[5-7]\$" \
    '^main:(28|29) +3 .*named\.c:(28|29)$' '^main:3[1-2] +1 .*named\.c:3[1-2]$' '^main +1 '; do
  printf '%s\n' "$text" | grep -Eq "$regex" || {
    printf 'nothing matches %s in:\n%s\n' "$regex" "$text"
    exit 1
  }
done
