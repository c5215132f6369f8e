#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# run_model.sh MODEL [MUTANT...]: has spin look at every interleaving of MODEL, which must have no
# error; then at the model with each of its defects, which must have one. The results of spin are
# kept in the current directory, and printed again as long as the model and its defects stay
# unchanged.
set -e
model=$(realpath "$1")
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
kept="$PWD/$(basename "$model").found"
asked=$(spin -V; echo "$@"; cat "$model" "$0" | sha256sum)
if [ -f "$kept" ] && [ "$asked" = "$(sed '/^found:$/,$d' "$kept")" ]; then
  sed '1,/^found:$/d' "$kept"
  echo "(unchanged since spin found this)"
  exit
fi
cd "$folder"

# check [-DNAME]: the number of errors that spin finds.
check() {
  spin "$@" -a "$model" >spin.txt || { cat spin.txt >&2; exit 1; }
  cc -O2 -w -DSAFETY -DVECTORSZ=4096 -DCOLLAPSE -o pan pan.c
  ./pan -m200000 >pan.txt || { cat pan.txt >&2; exit 1; }
  if grep -q "max search depth too small\|Search not completed" pan.txt &&
     ! grep -q "errors: 1" pan.txt; then
    cat pan.txt >&2
    exit 1
  fi
  sed -n 's/.*errors: \([0-9]*\).*/\1/p' pan.txt
}

errors=$(check)
grep -E "states, stored|errors:" pan.txt | tee found.txt
[ "$errors" = 0 ] || { cat pan.txt; exit 1; }
for mutant in "$@"; do
  errors=$(check "-D$mutant")
  echo "with the defect $mutant: $errors errors" | tee -a found.txt
  [ "$errors" != 0 ] || { echo "spin does not find the defect $mutant" >&2; exit 1; }
done
{ echo "$asked"; echo found:; cat found.txt; } >"$kept"
