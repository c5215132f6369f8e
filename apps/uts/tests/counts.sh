#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# counts.sh COMMAND...: searches the small trees with the command, its own letters as the paper's
# reference takes them, and looks for their nodes, depth and leaves.
run() {
  expected=$1
  shift
  if ! output=$("$@"); then
    echo "failed: $*"
    exit 1
  fi
  case $output in
    *"$expected"*) ;;
    *) printf 'expected: %s\nby: %s\ngot:\n%s\n' "$expected" "$*" "$output"; exit 1 ;;
  esac
}

run "Nodes 4130071  depth 10  leaves 3305118 " "$@" -t 1 -a 3 -d 10 -b 4 -r 19
run "Nodes 4117769  depth 81  leaves 2342762 " "$@" -t 1 -a 2 -d 16 -b 6 -r 502
run "Nodes 4112897  depth 1572  leaves 3599034 " "$@" -t 0 -b 2000 -q 0.124875 -m 8 -r 42
run "Nodes 4132453  depth 134  leaves 3108986 " "$@" -t 2 -a 0 -d 16 -b 6 -r 1 -q 0.234375 -m 4
run "Nodes 4147582  depth 20  leaves 2181318 " "$@" -t 1 -a 0 -d 20 -b 4 -r 34
