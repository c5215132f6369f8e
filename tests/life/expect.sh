#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# expect.sh <end> [-s SECONDS] [-l SECONDS] [-e REGEX]... [-n REGEX]... [-c COUNT REGEX] --
#   command...
# Runs the command and checks how it ends: <end> is an exit code, or "abort" (SIGABRT), "killed"
# (any signal), or "failure" (anything but 0), within -s seconds (default 50) and not before -l
# seconds; each -e must be found in a line of what it prints, no -n may be, and -c exactly COUNT
# times. (A launcher may print a line of one rank into that of another: what several ranks print has
# no "^" or "$" in it then.)
# The command finds what has been printed so far in the file that EXPECT_OUTPUT names.
end=$1
shift
longest=50
least=0
count=
output=$(mktemp)
wanted=$(mktemp)
unwanted=$(mktemp)
trap 'rm -f "$output" "$wanted" "$unwanted"' EXIT
while [ "$1" != "--" ]; do
  case $1 in
    -s) longest=$2 ;;
    -l) least=$2 ;;
    -e) printf '%s\n' "$2" >> "$wanted" ;;
    -n) printf '%s\n' "$2" >> "$unwanted" ;;
    -c) count=$2 counted=$3; shift ;;
    *) echo "expect.sh: unknown option $1"; exit 2 ;;
  esac
  shift 2
done
shift

export EXPECT_OUTPUT="$output"
ulimit -c 0
began=$(date +%s)
timeout -k 1 "$longest" "$@" > "$output" 2>&1
code=$?
took=$(($(date +%s) - began))

failed=0
fail() { echo "expect.sh: $1"; failed=1; }
case $end in
  abort) [ $code -eq 134 ] || fail "exit code $code instead of an abort (134)" ;;
  failure) [ $code -ne 0 ] && [ $code -ne 124 ] || fail "exit code $code instead of a failure" ;;
  killed) [ $code -gt 128 ] && [ $code -ne 137 ] || fail "exit code $code instead of a signal" ;;
  *) [ $code -eq "$end" ] || fail "exit code $code instead of $end" ;;
esac
[ $code -eq 124 ] && fail "still running after $longest s"
[ $took -ge "$least" ] || fail "ended after $took s, before $least s"
while IFS= read -r regex; do
  grep -Eq -e "$regex" "$output" || fail "nothing printed matches: $regex"
done < "$wanted"
while IFS= read -r regex; do
  ! grep -Eq -e "$regex" "$output" || fail "something printed matches: $regex"
done < "$unwanted"
if [ -n "$count" ]; then
  found=$(grep -Eo -e "$counted" "$output" | wc -l)
  [ "$found" -eq "$count" ] || fail "found $found times instead of $count: $counted"
fi
if [ $failed -ne 0 ]; then
  echo "---- what was printed:"
  cat "$output"
fi
exit $failed
