#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs the program as a user does, well and wrongly.
# Usage: cli_test.sh DATA RANKS COMMAND...   COMMAND starts cholesky on RANKS ranks.
set -u
data=$1
ranks=$2
shift 2
command=("$@")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0

complain() {
  failures=$((failures + 1))
  echo "FAILED: $1"
  sed 's/^/    /' "$scratch/out"
}

# refuse TEXT ARGUMENTS...: the run must end, fail, and say TEXT, once.
refuse() {
  local text=$1
  shift
  if timeout 60 "${command[@]}" "$@" >"$scratch/out" 2>&1; then
    complain "$*: succeeded"
  elif [ $? -eq 124 ]; then
    complain "$*: hangs"
  elif [ "$(grep -cF -- "$text" "$scratch/out")" -ne 1 ]; then
    complain "$*: does not say once: $text"
  fi
}

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
succeed --random 257 --tile 256 --variant tasks --lookahead 1 --priorities 0
succeed --locations "$scratch/sites.csv" --tile 48 --json "$scratch/out.json"
python3 - "$scratch/out.json" >"$scratch/out" 2>&1 <<'PY' || complain "the two variants"
import json, sys
runs = json.load(open(sys.argv[1]))["runs"]
a, b = runs
assert {a["variant"], b["variant"]} == {"fork-join", "tasks"}, runs
assert abs(a["log_likelihood"] - b["log_likelihood"]) < 1e-9 * abs(a["log_likelihood"]), runs
assert a["held_out"] == 20 and 0 < a["rmse"] < a["rmse_mean"], a
assert all(0 <= run["residual"] < 10 for run in runs), runs
PY

# What every rank reads from the same command line needs no more than one number of ranks.
if [ "$ranks" -eq 1 ]; then
  refuse "Exactly 1 option from [--locations,--random,--check-rate]" --tile 32
  refuse "not-an-option" --random 300 --not-an-option
  refuse "--random" --random ten
  refuse "--random" --random 0
  refuse "--random" --random -5
  refuse "--tile" --random 300 --tile 0
  refuse "--tile" --random 300 --tile 1.5
  refuse "--smoothness 1: valid are" --random 300 --smoothness 1
  refuse "no covariance on a sphere" --random 300 --distance great-circle
  refuse "--nugget -1: must not be negative" --random 300 --nugget -1
fi
refuse "more than this MPI has tags for" --random 100000000
refuse "GiB" --random 2000000 --tile 2000
refuse "--tile 301: larger than the matrix, which has 300 rows" --random 300 --tile 301
refuse "--grid 2: expected" --random 300 --grid 2
refuse "--grid 7x3: needs 21 ranks, but there are $ranks" --random 300 --grid 7x3
refuse "leading minor of order 17 is" --random 300 --tile 16 --bad-minor 17 --variant tasks
refuse "leading minor of order 300 is" --random 300 --tile 16 --bad-minor 300 --variant forkjoin
refuse "missing.csv: No such file or directory" --locations "$scratch/missing.csv"
refuse "empty.csv: the file is empty" --locations "$scratch/empty.csv"
refuse "hole.csv: line 17: lon is \"\", which is not a number" --locations "$scratch/hole.csv"
refuse "lines 10 and 11 have the same position" --locations "$scratch/twins.csv" --nugget 0
refuse "line 1: no column is called \"height\"" --locations "$scratch/sites.csv" --column height
refuse "--json $scratch: cannot be written" --random 300 --json "$scratch"

[ "$failures" -eq 0 ] && echo "all as expected"
exit "$((failures > 0))"
