#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# by_clang.sh <folder of our libraries> <program by GCC> <the same by Clang>: under our libraries
# both must end with 0 and print the same. (Not under LLVM's library: it has bugs that these
# programs find.)
set -e
gcc=$(LD_LIBRARY_PATH=$1 "$2" 2>&1)
clang=$(LD_LIBRARY_PATH=$1 "$3" 2>&1)
preloaded=$(LD_PRELOAD=$1/libomp.so.5 "$3" 2>&1)
if [ "$gcc" != "$clang" ] || [ "$gcc" != "$preloaded" ]; then
  printf 'GCC:\n%s\nClang:\n%s\npreloaded:\n%s\n' "$gcc" "$clang" "$preloaded"
  exit 1
fi
