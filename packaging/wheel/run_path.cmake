# SPDX-License-Identifier: BSD-3-Clause
# cmake -D "files=<file>;..." -D run_path=<path> -P this: replaces the run paths. The wrapper of an
# MPI has added the folder of that MPI on the machine that builds.
foreach(file IN LISTS files)
  file(RPATH_SET FILE ${file} NEW_RPATH "${run_path}")
endforeach()
