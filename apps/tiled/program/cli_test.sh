#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs the program as a user does, well and wrongly.
# Usage: cli_test.sh DATA RANKS COMMAND...   COMMAND starts tiled on RANKS ranks.
set -u
data=$1
ranks=$2
shift 2
program=("$@")
command=("${program[@]}" cholesky)
. "$(dirname "${BASH_SOURCE[0]}")/../cli_test.sh"

# succeed ARGUMENTS...
succeed() {
  timeout 120 "${command[@]}" --rate-seconds 0.01 --rate-size 64 "$@" >"$scratch/out" 2>&1 ||
    complain "$*: code $?"
}

head -n 401 "$data" >"$scratch/sites.csv"
sed '17s/.*/X,"no longitude",41.5,,12/' "$scratch/sites.csv" >"$scratch/hole.csv"
sed '5d' "$scratch/sites.csv" | sed '9a\A,twin,40.5,-100.25,7\nB,twin,40.5,-100.25,8' \
  >"$scratch/twins.csv"
: >"$scratch/empty.csv"

succeed --help
succeed --random 300 --tile 32
succeed --random 1
succeed --random 257 --tile 256 --variant tasks --lookahead 1 --priorities none
succeed --random 257 --tile 32 --variant tasks --priorities sends
succeed --random 257 --tile 32 --variant inserted
succeed --random 257 --tile 32 --trim --json "$scratch/all.json"
python3 - "$scratch/all.json" >"$scratch/out" 2>&1 <<'PY' || complain "the three variants"
import json, sys
runs = {run["variant"]: run for run in json.load(open(sys.argv[1]))["runs"]}
assert runs.keys() == {"forkjoin", "tasks", "inserted"}, runs
residuals = [run["residual"] for run in runs.values()]
assert max(residuals) - min(residuals) < 1e-6, runs  # of equal factors
assert runs["inserted"]["broadcasts_full"] <= runs["inserted"]["broadcasts"], runs
PY
succeed --random 257 --tile 32 --kernels timed
grep -q "measured on rank 0" "$scratch/out" || complain "timed: does not say whence its times are"
grep -q "no result is checked" "$scratch/out" || complain "timed: does not say so"
succeed --random 257 --tile 32 --kernels timed --kernel-us 10,20,30,5000 --slow 0:2
grep -q "gemm 5000 us" "$scratch/out" || complain "timed: does not print the times given"
grep -q "on rank 0 they take 2 times" "$scratch/out" || complain "timed: no slow rank is named"
succeed --locations "$scratch/sites.csv" --tile 48 --variant forkjoin,tasks \
  --json "$scratch/out.json"
python3 - "$scratch/out.json" >"$scratch/out" 2>&1 <<'PY' || complain "the two variants"
import json, sys
runs = json.load(open(sys.argv[1]))["runs"]
a, b = runs
assert {a["variant"], b["variant"]} == {"forkjoin", "tasks"}, runs
assert abs(a["log_likelihood"] - b["log_likelihood"]) < 1e-9 * abs(a["log_likelihood"]), runs
assert a["held_out"] == 20 and 0 < a["rmse"] < a["rmse_mean"], a
assert all(0 <= run["residual"] < 10 for run in runs), runs
PY

# Options that every rank reads from its command line are tested with one number of ranks.
if [ "$ranks" -eq 1 ]; then
  refuse "Exactly 1 option from [--random,--locations,--check-rate,--count-only]" --tile 32
  refuse "not-an-option" --random 300 --not-an-option
  refuse "--random" --random ten
  refuse "--random" --random 0
  refuse "--random" --random -5
  refuse "--tile" --random 300 --tile 0
  refuse "--tile" --random 300 --tile 1.5
  refuse "--smoothness 1: valid are" --random 300 --smoothness 1
  refuse "no covariance on a sphere" --random 300 --distance great-circle
  refuse "--nugget -1: must not be negative" --random 300 --nugget -1
  refuse "--priorities" --random 300 --priorities some
  refuse "--trim: needs --variant inserted" --random 300 --trim --variant forkjoin,tasks
  refuse "--kernel-us: needs --kernels timed" --random 300 --kernel-us 1,2,3,4
  refuse "--kernel-us: needs 4 times" --random 300 --kernels timed --kernel-us 1,2,3
  refuse "--slow 0:0: expected RANK:FACTOR" --random 300 --kernels timed --slow 0:0
  refuse "--slow 1:2: there are 1 ranks" --random 300 --kernels timed --slow 1:2
  refuse "--kernels timed: makes no factor" --check-rate --kernels timed
  refuse "--count-only: needs --n too" --count-only --ranks 4
  refuse "--count-only: needs --ranks too" --count-only --n 4096
  refuse "--n: needs --count-only" --random 300 --n 300
  refuse "--count-only: --variant means nothing to it" --count-only --n 9 --ranks 1 --variant all
  refuse "--n" --count-only --n 0 --ranks 1
  refuse "--ranks" --count-only --n 4096 --ranks 0
  refuse "--ranks" --count-only --n 4096 --ranks 1000000
  refuse "511 rows make 0 whole tiles of 512" --count-only --n 511 --ranks 1 --tile 512
  refuse "131072 whole tiles of 1 a side; 1 to 4096" --count-only --n 131072 --ranks 1 --tile 1
  refuse "--grid 2x3: needs 6 ranks" --count-only --n 4096 --ranks 4 --grid 2x3

  # Pereira et al. 2021: Table 4, first and last column; Table 2.
  while read n count_ranks grid computation communication; do
    timeout 60 "${command[@]}" --count-only --n "$n" --tile 512 --ranks "$count_ranks" \
      >"$scratch/out" 2>&1 || complain "--count-only --n $n: code $?"
    for line in "ranks $count_ranks in a grid of $grid" "computation $computation" \
      "communication $communication"; do
      grep -qxF -- "$line" "$scratch/out" || complain "--count-only --n $n: no \"$line\""
    done
  done <<'TABLE'
41286 1 1\ x\ 1 88560 0
131072 32 4\ x\ 8 2829056 640632
131072 16 4\ x\ 4 2829056 388624
131072 64 8\ x\ 8 2829056 892640
131072 128 8\ x\ 16 2829056 1372880
TABLE
fi
refuse "more than this MPI has tags for" --random 100000000
refuse "GiB" --random 2000000 --tile 2000
refuse "--tile 301: larger than the matrix, which has 300 rows" --random 300 --tile 301
refuse "--grid 2: expected" --random 300 --grid 2
refuse "--grid 7x3: needs 21 ranks, but there are $ranks" --random 300 --grid 7x3
refuse "leading minor of order 17 is" --random 300 --tile 16 --bad-minor 17 --variant tasks
refuse "leading minor of order 300 is" --random 300 --tile 16 --bad-minor 300 --variant forkjoin
refuse "leading minor of order 40 is" --random 300 --tile 16 --bad-minor 40 --variant inserted
refuse "missing.csv: No such file or directory" --locations "$scratch/missing.csv"
refuse "empty.csv: the file is empty" --locations "$scratch/empty.csv"
refuse "hole.csv: line 17: lon is \"\", which is not a number" --locations "$scratch/hole.csv"
refuse "lines 10 and 11 have the same position" --locations "$scratch/twins.csv" --nugget 0
refuse "line 1: no column is called \"height\"" --locations "$scratch/sites.csv" --column height
refuse "--json $scratch: cannot be written" --random 300 --json "$scratch"

command=("${program[@]}" lu)
succeed --random 257 --tile 32 --repeat 2 --priorities sends
[ "$(grep -cE '^run [1-4] .*residual 0[.][0-9]+$' "$scratch/out")" -eq 4 ] || complain "lu: 4 runs"
command=("${program[@]}" matmul)
succeed --random 257 --tile 32 --slices "$ranks"
[ "$(grep -cE '^run [12] .*residual 0[.][0-9]+$' "$scratch/out")" -eq 2 ] ||
  complain "matmul: 2 runs"
if [ "$ranks" -eq 1 ]; then
  refuse "--slices 2: must divide the number of ranks, which is 1" --random 64 --slices 2
  refuse "--trim: not with --slices" --random 64 --slices 2 --trim
  refuse "--slices: needs --variant inserted" --random 64 --slices 2 --variant tasks
  refuse "--variant forkjoin: matmul has tasks and inserted" --random 64 --variant forkjoin
  refuse "--priorities: matmul does not take it, but cholesky or lu does" --random 64 \
    --priorities sends
  refuse "--count-only: matmul does not take it, but cholesky does" --count-only --n 9 --ranks 1
  command=("${program[@]}" lu)
  refuse "--slices: lu does not take it, but matmul does" --random 64 --slices 2
  refuse "--priorities panel: lu has none and sends" --random 64 --priorities panel
  refuse "tiled: --kernel-us: needs --kernels timed" --random 257 --kernel-us 1,2,3
  command=("${program[@]}")
  refuse "algorithm" --random 64
  refuse "qr" qr --random 64
fi

[ "$failures" -eq 0 ] && echo "all as expected"
exit "$((failures > 0))"
