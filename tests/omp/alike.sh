#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# alike.sh <folder of our libgomp.so.1> <program> [arguments]: under the stock library and under
# ours it must end with 0 and print the same, what the library says included. The stock library is
# not instrumented: what a sanitizer of the program says of it is no matter.
set -e
folder=$1
shift
stock=$(ASAN_OPTIONS=detect_leaks=0 TSAN_OPTIONS=report_bugs=0 "$@" 2>&1)
ours=$(LD_LIBRARY_PATH=$folder "$@" 2>&1)
preloaded=$(LD_PRELOAD=$folder/libgomp.so.1 "$@" 2>&1)
if [ "$stock" != "$ours" ] || [ "$stock" != "$preloaded" ]; then
  printf 'stock:\n%s\nours:\n%s\npreloaded:\n%s\n' "$stock" "$ours" "$preloaded"
  exit 1
fi
