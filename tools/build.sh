# SPDX-License-Identifier: BSD-3-Clause
# Shell functions that ./demo and ./test share. Sourced at the top of the source tree.

# Stock MPIs refuse to start as root, or with more ranks than cores, unless told.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1
export NINJA_STATUS="[%f/%t] "
# A new tree of a checkout that was built before takes its objects from ccache, where that is there.
if command -v ccache >/dev/null; then
  export CMAKE_C_COMPILER_LAUNCHER=${CMAKE_C_COMPILER_LAUNCHER-ccache}
  export CMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER-ccache}
fi

say() {
  printf '\n== %s\n' "$*"
}

# build_tree PRESET DIRECTORY [TARGET...]: configures if needed, and builds.
build_tree() {
  local preset=$1 tree=$2 generator=()
  shift 2
  # A tree that was configured by plain `cmake -B build` keeps its generator.
  if [ -f "$tree/CMakeCache.txt" ]; then
    generator=(-G "$(sed -n 's/^CMAKE_GENERATOR:INTERNAL=//p' "$tree/CMakeCache.txt")")
  fi
  cmake --preset "$preset" ${generator[@]+"${generator[@]}"} --log-level=WARNING </dev/null ||
    return 1
  cmake --build "$tree" --parallel "$(jobs_that_fit)" ${1+--target "$@"} </dev/null
}

# One compiler for each core, but not more than the memory holds at 1.5 GiB each.
jobs_that_fit() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/^MemAvailable:/ { print int($2 / 1572864) }' /proc/meminfo)
  [ "${memory:-0}" -ge 1 ] || memory=1
  echo $((cores < memory ? cores : memory))
}
