# SPDX-License-Identifier: BSD-3-Clause
# imbrex_omp_tools: the folder of omp-tools.h, OpenMP's interface for tools, which comes with LLVM's
# library and not with GCC. Give it to a compiler by -idirafter: other headers in it are LLVM's own.
find_path(imbrex_omp_tools NAMES omp-tools.h NO_CACHE PATHS
  /usr/lib/llvm-19/lib/clang/19/include /usr/lib/llvm-14/lib/clang/14/include)
