# SPDX-License-Identifier: BSD-3-Clause
# For tests that run a program as a user does: sourced once `command` is an array that starts it.
# Gives $scratch, a folder for files, and counts in $failures what complain() has said.
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

# succeed TEXT ARGUMENTS...: the run must end well and say TEXT, an extended regular expression.
succeed() {
  local text=$1
  shift
  timeout 120 "${command[@]}" "$@" >"$scratch/out" 2>&1 || complain "$*: code $?"
  grep -qE -- "$text" "$scratch/out" || complain "$*: does not say: $text"
}
