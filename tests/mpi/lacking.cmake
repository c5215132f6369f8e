# SPDX-License-Identifier: BSD-3-Clause
# An MPI that lacks functions of the mpi.h that imbrex::mpi was built with, as Open MPI 6 lacks what
# MPI 4 has removed: a copy of this MPI's library under other names for these functions.
list(GET MPI_C_LIBRARIES 0 whole)
file(REAL_PATH ${whole} whole)
set(lacking ${CMAKE_CURRENT_BINARY_DIR}/lacking)
imbrex_mpi_program(imbrex_mpi_lacking lacking.cpp)
target_compile_options(imbrex_mpi_lacking PRIVATE -Wno-deprecated-declarations)
add_test(NAME mpi.lacking.copy
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/lacking.py ${whole} ${lacking}
    Attr_delete Attr_get Attr_put Keyval_create Keyval_free)
set_tests_properties(mpi.lacking.copy PROPERTIES LABELS "mpi;smoke" FIXTURES_SETUP lacking)
function(imbrex_mpi_lacking way end)
  imbrex_mpi_entry(lacking.${way}
    sh ${PROJECT_SOURCE_DIR}/tests/life/expect.sh ${end} -s 50 -e "received 41" ${ARGN} --
    ${imbrex_mpirun} 1 env LD_LIBRARY_PATH=${lacking} $<TARGET_FILE:imbrex_mpi_lacking> ${way}
    WORKERS 1)
  set_tests_properties(mpi.lacking.${way} PROPERTIES FIXTURES_REQUIRED lacking)
endfunction()
imbrex_mpi_lacking(nothing 0 -n "imbrex:")
imbrex_mpi_lacking(MPI failure
  -e "imbrex: the program has called MPI_Attr_get, which its MPI library lacks: .*(MPI|MPICH)")
imbrex_mpi_lacking(PMPI failure
  -e "imbrex: the program has called MPI_Keyval_free, which its MPI library lacks: .*MPI")
