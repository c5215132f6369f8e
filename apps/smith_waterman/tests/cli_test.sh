#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs the program as a user does, well and wrongly.
# Usage: cli_test.sh VARIANT COMMAND...   COMMAND starts smith_waterman.
set -u
variant=$1
shift
command=("$@" --variant "$variant")
. "$(dirname "${BASH_SOURCE[0]}")/../../tiled/cli_test.sh"

printf '>one of two\nACGTTTACGTNN\n>two\nA\n' >"$scratch/a.fa"
printf '>other\r\nacgt\r\nacgt\r\n' | gzip >"$scratch/b.fa.gz"
printf 'no header\n' >"$scratch/text.fa"
: >"$scratch/empty.fa"
head -c 3000 /dev/urandom >"$scratch/junk"
a=$scratch/a.fa
b=$scratch/b.fa.gz

succeed 'Score +14$' --local "$a" "$b"
grep -qF 'End       letter 10 of A, 8 of B' "$scratch/out" || complain "the end"
grep -qF '2 letters that are not A, C, G, T are dropped' "$scratch/out" || complain "dropped"
grep -qF 'the first record' "$scratch/out" || complain "which record"
succeed '^Score +14$' --global "$a" "$b"
succeed '"score":14,"seconds":' --global "$a" "$b" --json
succeed '2 records' "$a" "$b" --records all
succeed 'Score +6$' --match 1 --gap -1 --transition -1 --transversion -1 "$a" "$b" \
  --outer 3 3 --inner 2 2 --distribution cyclic
succeed 'End +none' --random 1 1 --seed 2
succeed 'sleeps 50.0 us .* as given; there is no score' --random 2000 2000 --kernels timed \
  --kernel-us 50 --outer 600 700
succeed 'as measured' --random 900 900 --kernels timed
succeed 'Score' --random 1500 1700 --progress 0.000001 --outer 300 300
grep -q "of this rank's cells after" "$scratch/out" || complain "says nothing of how far it is"
succeed 'cyclic the columns' --help

refuse "smith_waterman: two files are needed, or --random LENGTH_A LENGTH_B; there are 0" --local
refuse "there is 1 (--help" "$a"
refuse "$scratch/none.fa: No such file or directory" "$scratch/none.fa" "$b"
refuse "$scratch: is a directory" "$a" "$scratch"
refuse "$scratch/empty.fa: is empty" "$scratch/empty.fa" "$b"
refuse "$scratch/text.fa: is not FASTA: line 1 begins with 'n'" "$scratch/text.fa" "$b"
refuse "$scratch/junk: is not FASTA" "$scratch/junk" "$b"
refuse "line 2 has 'N', which is none of A, C, G, T" "$a" "$b" --others refuse
refuse "--random 0 5: each is from 1 to" --random 0 5
refuse "--local and --global: choose one" --local --global "$a" "$b"
refuse "a gap counts less than 0" "$a" "$b" --gap 0
refuse "each is at least -100 and at most 100" "$a" "$b" --match 1000
refuse "--outer 0 1: each is from 1 to" "$a" "$b" --outer 0 1
refuse "--kernel-us: needs --kernels timed" "$a" "$b" --kernel-us 5
refuse "would exceed 32 bits" --random 900000000 900000000 --match 3
refuse "--help lists the options" --nonsense

[ "$failures" -eq 0 ] || exit 1
echo "all as expected"
