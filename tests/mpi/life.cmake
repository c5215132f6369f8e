# SPDX-License-Identifier: BSD-3-Clause
# How programs begin and end: imbrex_mpi_life(<case> <ranks> <end> <options of expect.sh>...)
imbrex_mpi_program(imbrex_mpi_life_cases life_cases.cpp)
function(imbrex_mpi_life name ranks end)
  imbrex_mpi_entry(life.${name}
    sh ${PROJECT_SOURCE_DIR}/tests/life/expect.sh ${end} -s 50 ${ARGN} --
    ${imbrex_mpirun} ${ranks} $<TARGET_FILE:imbrex_mpi_life_cases> ${name}
    WORKERS 1)
endfunction()
foreach(name plain finalize_completes_tasks finalize_calls_back runtime_around_mpi
        spare_threads errors_that_are_taken)
  imbrex_mpi_life(${name} 2 0 -n imbrex:)
endforeach()
imbrex_mpi_life(open_operation 1 0
  -e "MPI_Finalize: 1 operation is still in flight" -e "when\\(MPI_Request\\)")
imbrex_mpi_life(late_message 1 0 -e "MPI_Finalize waits for tasks" -e "MPI_Recv from 0, tag 7")
imbrex_mpi_life(exit_from_a_task 1 3)
imbrex_mpi_life(overlapping_masks 2 0 -c 2 "(a|one) processor for (each|both)")
# The end of a process waits for no other rank.
foreach(name exit_of_one_rank exit_of_one_rank_in_a_task exit_of_one_rank_on_a_thread
        abort_of_one_rank mpi_abort_of_one_rank)
  imbrex_mpi_life(${name} 2 failure)
endforeach()
imbrex_mpi_life(mpi_abort_in_a_task 1 failure)
set(end_without_finalize 0)
if(IMBREX_MPI_ABI STREQUAL openmpi)  # whose mpirun takes it for a failure
  set(end_without_finalize failure)
endif()
imbrex_mpi_life(return_without_finalize 2 ${end_without_finalize}
  -c 2 "served" -e "ends without MPI_Finalize.* tasks that wait in MPI" -e "MPI_Recv from [01]")
imbrex_mpi_life(finalize_at_exit 2 0 -c 2 "finalizes" -n "imbrex:")
imbrex_mpi_life(too_early 1 0 -e "call MPI_Init first")
imbrex_mpi_life(fatal_error 2 failure
  -e "imbrex: MPI_Recv in task .receive. .*life_cases.cpp:[0-9]+. failed: "
  -e "TRUNCATE|truncated" -n "error stack" -e "error handler is MPI_ERRORS_ARE_FATAL")
imbrex_mpi_life(fatal_errors_on_threads 2 failure -n "MPI_Test|MPI_Wait" -n "error stack"
  -e "imbrex: MPI_Bcast outside a task failed: .*error handler is MPI_ERRORS_ARE_FATAL")
imbrex_mpi_life(error_that_nobody_takes 2 failure
  -e "imbrex: .*an exception that neither get.. nor finish.. has rethrown:$"
  -c 1 "no such file .in task .load. .*life_cases.cpp:[0-9]+..$"
  -e "MPI_Finalize: a task has failed, .* all ranks are ended")

# One table for all ranks.
imbrex_mpi_entry(summary
  sh ${PROJECT_SOURCE_DIR}/tests/mpi/check_summary.sh
  ${imbrex_mpirun} 2 $<TARGET_FILE:imbrex_mpi_life_cases> messages
  WORKERS 1 ENVIRONMENT IMBREX_SUMMARY=1)
# The trace names sender and receiver of each message, in ranks of MPI_COMM_WORLD.
imbrex_mpi_entry(trace
  ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/check_trace.py
  ${CMAKE_CURRENT_BINARY_DIR}/trace
  ${imbrex_mpirun} 2 $<TARGET_FILE:imbrex_mpi_life_cases> messages
  WORKERS 1)
imbrex_mpi_entry(trace_kinds
  ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/check_trace_kinds.py
  ${CMAKE_CURRENT_BINARY_DIR}/trace_kinds
  ${imbrex_mpirun} 2 $<TARGET_FILE:imbrex_mpi_life_cases> all_kinds
  WORKERS 1)

# Programs that must be refused.
foreach(way level order)
  add_executable(imbrex_mpi_bypass_${way} bypass.cpp)
  # Kept although nothing of it is used: that is the mistake.
  target_link_options(imbrex_mpi_bypass_${way} PRIVATE -Wl,--no-as-needed)
  target_link_libraries(imbrex_mpi_bypass_${way} PRIVATE imbrex_flags)
endforeach()
target_link_libraries(imbrex_mpi_bypass_level PRIVATE imbrex::mpi imbrex_capped_serialized)
# The files are named, since CMake would put imbrex::mpi first among targets.
target_link_libraries(imbrex_mpi_bypass_order PRIVATE ${MPI_C_LIBRARIES}
  $<TARGET_FILE:imbrex_mpi> $<TARGET_FILE:imbrex::imbrex> ${CMAKE_DL_LIBS})
target_include_directories(imbrex_mpi_bypass_order PRIVATE ${MPI_C_INCLUDE_DIRS})
target_compile_definitions(imbrex_mpi_bypass_order PRIVATE OMPI_SKIP_MPICXX=1 MPICH_SKIP_MPICXX=1)
add_dependencies(imbrex_mpi_bypass_order imbrex_mpi)
function(imbrex_mpi_refused name)
  imbrex_mpi_entry(refused.${name}
    sh ${PROJECT_SOURCE_DIR}/tests/life/expect.sh 1 -n "ran to its end" ${ARGN} --
    ${imbrex_mpirun} 2 $<TARGET_FILE:imbrex_mpi_bypass_${name}>
    WORKERS 1)
endfunction()
imbrex_mpi_refused(level -e "this MPI gives only MPI_THREAD_SERIALIZED")
# A malformed option, on one rank of two: both end.
imbrex_mpi_entry(refused.option
  sh ${PROJECT_SOURCE_DIR}/tests/life/expect.sh 2
  -e "^imbrex: MPI_Init: IMBREX_WORKERS=many: " -e "MPI_Init failed on another rank" --
  ${imbrex_mpirun} 1 env IMBREX_WORKERS=many $<TARGET_FILE:imbrex_mpi_life_cases> plain
  : ${MPIEXEC_NUMPROC_FLAG} 1 $<TARGET_FILE:imbrex_mpi_life_cases> plain
  WORKERS 1)
# On all: said once.
imbrex_mpi_entry(refused.option_everywhere
  sh ${PROJECT_SOURCE_DIR}/tests/life/expect.sh 2 -n "MPI_Init failed on another rank"
  -c 1 "imbrex: MPI_Init: IMBREX_WORKERS=many: valid: 0 to 4096" --
  ${imbrex_mpirun} 2 env IMBREX_WORKERS=many $<TARGET_FILE:imbrex_mpi_life_cases> plain
  WORKERS 1)
# Two that differ: both.
imbrex_mpi_entry(refused.two_options
  sh ${PROJECT_SOURCE_DIR}/tests/life/expect.sh 2
  -e "imbrex: MPI_Init: IMBREX_WORKERS=many" -e "imbrex: MPI_Init: IMBREX_BIND=perhaps" --
  ${imbrex_mpirun} 1 env IMBREX_WORKERS=many $<TARGET_FILE:imbrex_mpi_life_cases> plain
  : ${MPIEXEC_NUMPROC_FLAG} 1 env IMBREX_BIND=perhaps $<TARGET_FILE:imbrex_mpi_life_cases> plain
  WORKERS 1)
# An unknown option stops no program.
imbrex_mpi_entry(life.unknown_option
  sh ${PROJECT_SOURCE_DIR}/tests/life/expect.sh 0
  -c 1 "imbrex: there is no option IMBREX_WORKER .did you mean IMBREX_WORKERS" --
  ${imbrex_mpirun} 2 env IMBREX_WORKER=3 $<TARGET_FILE:imbrex_mpi_life_cases> plain
  WORKERS 1)
imbrex_mpi_entry(refused.partial_differs
  sh ${PROJECT_SOURCE_DIR}/tests/life/expect.sh 1
  -c 1 "imbrex: MPI_Init: IMBREX_PARTIAL differs between ranks" --
  ${imbrex_mpirun} 1 env IMBREX_PARTIAL=on $<TARGET_FILE:imbrex_mpi_life_cases> plain
  : ${MPIEXEC_NUMPROC_FLAG} 1 env IMBREX_PARTIAL=off $<TARGET_FILE:imbrex_mpi_life_cases> plain
  WORKERS 1)
imbrex_mpi_entry(refused.partial_parts_differ
  sh ${PROJECT_SOURCE_DIR}/tests/life/expect.sh 1
  -c 1 "imbrex: MPI_Init: IMBREX_PARTIAL_PARTS differs between ranks" --
  ${imbrex_mpirun} 1 env IMBREX_PARTIAL_PARTS=2 $<TARGET_FILE:imbrex_mpi_life_cases> plain
  : ${MPIEXEC_NUMPROC_FLAG} 1 $<TARGET_FILE:imbrex_mpi_life_cases> plain
  WORKERS 1)
# One rank knows that it is wrong; the others must not wait for it.
imbrex_mpi_entry(refused.partial_parts_malformed
  sh ${PROJECT_SOURCE_DIR}/tests/life/expect.sh 2
  -c 1 "imbrex: MPI_Init: IMBREX_PARTIAL_PARTS=none" --
  ${imbrex_mpirun} 1 env IMBREX_PARTIAL_PARTS=none $<TARGET_FILE:imbrex_mpi_life_cases> plain
  : ${MPIEXEC_NUMPROC_FLAG} 1 $<TARGET_FILE:imbrex_mpi_life_cases> plain
  WORKERS 1)
imbrex_mpi_refused(order -e "MPI_Init comes from .*libmpi" -e "-limbrex_mpi -limbrex -lmpi")
# A library of the program brings another MPI, to which nothing is bound.
get_filename_component(other_mpi ${MPI_C_LIBRARIES} REALPATH)
string(REGEX REPLACE "/libmpi_abi\\.so[^;]*" "/libmpi.so.12" other_mpi "${other_mpi}")
if(IMBREX_MPI_ABI STREQUAL abi AND EXISTS "${other_mpi}")
  add_library(imbrex_mpi_brings_another SHARED brings_another.cpp)
  target_link_libraries(imbrex_mpi_brings_another
    PRIVATE -Wl,--no-as-needed ${other_mpi} imbrex_flags)
  imbrex_mpi_program(imbrex_mpi_beside_another life_cases.cpp)
  target_link_options(imbrex_mpi_beside_another PRIVATE -Wl,--no-as-needed)
  target_link_libraries(imbrex_mpi_beside_another PRIVATE imbrex_mpi_brings_another)
  add_dependencies(imbrex_smoke imbrex_mpi_beside_another)
  imbrex_mpi_entry(beside_another_mpi
    sh ${PROJECT_SOURCE_DIR}/tests/life/expect.sh 0 -s 50 -n imbrex: --
    ${imbrex_mpirun} 2 $<TARGET_FILE:imbrex_mpi_beside_another> plain WORKERS 1)
endif()
# The library of the core's tree, preloaded into a program of another MPI.
if(IMBREX_CORE AND NOT EXISTS ${IMBREX_CORE}/lib/libimbrex_mpi_${IMBREX_MPI_ABI}.so)
  imbrex_mpi_entry(refused.two_mpis
    sh ${PROJECT_SOURCE_DIR}/tests/life/expect.sh 1
    -e "2 MPI libraries: .*libmpi.*is bound to .*libmpi" -e "cmake -DIMBREX_MPI=" --
    env LD_PRELOAD=${IMBREX_CORE}/lib/libimbrex_mpi.so $<TARGET_FILE:imbrex_mpi_life_cases> plain
    WORKERS 1)
endif()
