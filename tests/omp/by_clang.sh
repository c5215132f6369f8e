#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# by_clang.sh <folder of our libraries> <program by GCC> <the same by Clang> [arguments]: under our
# libraries both must end with 0 and print the same. (Not under LLVM's library: it has bugs that
# these programs find.)
set -e
folder=$1
by_gcc=$2
by_clang=$3
shift 3
gcc=$(LD_LIBRARY_PATH=$folder "$by_gcc" "$@" 2>&1)
clang=$(LD_LIBRARY_PATH=$folder "$by_clang" "$@" 2>&1)
preloaded=$(LD_PRELOAD=$folder/libomp.so.5 "$by_clang" "$@" 2>&1)
if [ "$gcc" != "$clang" ] || [ "$gcc" != "$preloaded" ]; then
  printf 'GCC:\n%s\nClang:\n%s\npreloaded:\n%s\n' "$gcc" "$clang" "$preloaded"
  exit 1
fi
