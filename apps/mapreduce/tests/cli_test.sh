#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs the program as a user does, well and wrongly; counts words by the system's tools too.
# Usage: cli_test.sh TEXT_FOLDER COMMAND...   COMMAND starts mapreduce on some ranks.
set -u
texts=$1
shift
command=("$@")
. "$(dirname "${BASH_SOURCE[0]}")/../../tiled/cli_test.sh"

# count FILE...: as `number word` lines, by others.
count() {
  for file in "$@"; do
    cat "$file"
    echo
  done | LC_ALL=C tr -s '[:space:]' '\n' | LC_ALL=C grep -v '^$' | LC_ALL=C sort |
    LC_ALL=C uniq -c | sed 's/^ *//' | LC_ALL=C sort -k1,1nr -k2
}

files=("$texts/CHANGELOG.md" "$texts/docs/user/mpi.md" "$texts/LICENSE")
count "${files[@]}" "${files[@]}" >"$scratch/expected"
for variant in blocking test blocks partial-receive messages partial library; do
  succeed "as counted alone" wordcount "${files[@]}" --repeat 2 --variant $variant --chunks 5 \
    --top 3 --output "$scratch/words"
  cmp -s "$scratch/expected" "$scratch/words" || complain "$variant: other words than sort | uniq"
done
succeed "words" wordcount --variant messages,partial "${files[0]}"
refuse "messages: No such file" wordcount \
  --variant blocking messages "${files[0]}"
succeed "takes .* time than blocking" wordcount --random 300000 --repetitions 2 --json "$scratch/j"
grep -q '"distinct"' "$scratch/j" || complain "no figures in the JSON file"
succeed "error 0\.[0-9]+" matvec --n 200
succeed "% of this rank's chunks after" matvec --n 64 --kernels timed --kernel-us 50000,10 \
  --variant messages --progress 0.1
succeed "Kernels sleep: the map of a chunk 300 us, .* 100 us, 100000 bytes" wordcount \
  --random 50000 --kernels timed --kernel-us 300,100 --tuple-bytes 100000
succeed "--vocabulary" wordcount --help

: >"$scratch/empty"
printf 'text\0text' >"$scratch/binary"
refuse "wordcount: needs files" wordcount
refuse "/no/such/file: No such file or directory" wordcount "${files[0]}" /no/such/file
refuse "$scratch: is no ordinary file" wordcount "$scratch"
refuse "$scratch/empty: is empty" wordcount "$scratch/empty" "${files[0]}"
refuse "$scratch/binary: is not text: byte 4 is zero" wordcount "${files[0]}" "$scratch/binary"
refuse "--random: needs no files" wordcount --random 10 "${files[0]}"
refuse "--seed: needs --random" wordcount --seed 3 "${files[0]}"
refuse "--output: --kernels timed counts nothing" wordcount "${files[0]}" --kernels timed --output x
refuse "--output /no/such/folder/x: cannot be written" wordcount "${files[0]}" \
  --output /no/such/folder/x
refuse "--tuple-bytes: needs --kernels timed" matvec --tuple-bytes 3
refuse "--kernel-us: needs 2 times" matvec --kernels timed --kernel-us 3
refuse "--help lists the options" matvec --n 0
refuse "--help lists the options" matvec --variant nonsense
refuse "--help lists the options"

[ $failures -eq 0 ] || { echo "$failures failures"; exit 1; }
