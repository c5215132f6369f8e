# SPDX-License-Identifier: BSD-3-Clause
# IMBREX_CHECK, and what is refused without it: imbrex_mpi_check(<case> <options of expect.sh>...)
imbrex_mpi_program(imbrex_mpi_check_cases check_cases.cpp)
function(imbrex_mpi_check name)
  imbrex_mpi_entry(check.${name}
    sh ${PROJECT_SOURCE_DIR}/tests/life/expect.sh 0 -s 50 ${ARGN} --
    ${imbrex_mpirun} 2 $<TARGET_FILE:imbrex_mpi_check_cases> ${name}
    WORKERS 1 ENVIRONMENT IMBREX_CHECK=1)
endfunction()
set(place "check_cases.cpp:[0-9]+")
imbrex_mpi_check(receives_overlap
  -e "IMBREX_CHECK: two operations in flight use the byte at 0x"
  -e "MPI_Recv from 1, tag 1, 16 bytes, on MPI_COMM_WORLD: in .receive left. .*${place}"
  -e "MPI_Recv from 1, tag 2, 12 bytes, on MPI_COMM_WORLD: in .receive right. .*${place}")
imbrex_mpi_check(receive_into_what_is_sent -c 2 "IMBREX_CHECK"
  -e "MPI_Irecv from 1, tag 1, 8 bytes, .* .writes 0x.* to 0x"
  -e "MPI_Send to 1, tag 2, 1 bytes, .* .reads 0x.* to 0x")
imbrex_mpi_check(thread_sends_what_is_received -c 2 "IMBREX_CHECK"
  -e "MPI_Send to 1, tag 2, 1 bytes, .* .reads 0x.* to 0x")
imbrex_mpi_check(exchanges_overlap -c 4 "IMBREX_CHECK"
  -e "MPI_Sendrecv to 1, tag 2, 1 bytes, .* .reads 0x.* to 0x"
  -e "MPI_Sendrecv_replace from 1, tag 3, 1 bytes, .* .writes 0x.* to 0x")
imbrex_mpi_check(no_overlap -n "imbrex")
imbrex_mpi_check(columns_overlap -c 2 "IMBREX_CHECK")
imbrex_mpi_check(collective_overlaps -c 2 "IMBREX_CHECK"
  -e "MPI_Irecv from 1, tag 1, 4 bytes, .* .writes 0x.* to 0x"
  -e "MPI_Allreduce, on MPI_COMM_WORLD: in .main.* .writes 0x.* to 0x")
imbrex_mpi_check(collective_requests_overlap -c 2 "IMBREX_CHECK"
  -e "MPI_Ialltoallv, on MPI_COMM_WORLD: in .main.* .writes 0x.* to 0x"
  -e "MPI_Ibcast, on MPI_COMM_WORLD: in .main.* .reads 0x" -e "MPI_Ibcast.* .writes 0x")
imbrex_mpi_check(persistent_overlaps -c 4 "IMBREX_CHECK"
  -e "MPI_Send_init to 1, tag 1, 8 bytes, on MPI_COMM_WORLD: in .main.* .reads 0x"
  -e "MPI_Recv_init from 1, tag 1, 8 bytes, on MPI_COMM_WORLD: in .main.* .writes 0x")
if(NOT IMBREX_MPI_ABI STREQUAL openmpi)  # has none
  imbrex_mpi_check(persistent_collective_overlaps -c 2 "IMBREX_CHECK"
    -e "MPI_Allreduce_init, on MPI_COMM_WORLD: in .main.* .writes 0x"
    -e "MPI_Irecv from 1, tag 2, 4 bytes")
endif()
imbrex_mpi_check(remote_overlaps -c 8 "IMBREX_CHECK"
  -e "MPI_Rput to 1, 8 bytes: in .main.* .reads 0x"
  -e "MPI_Rget from 1, 8 bytes: in .main.* .writes"
  -e "MPI_Raccumulate to 1, 4 bytes: in .main.* .reads 0x"
  -e "MPI_Rget_accumulate to 1, 4 bytes: in .main.* .writes 0x")
imbrex_mpi_check(matched_receives_overlap -c 2 "IMBREX_CHECK"
  -e "MPI_Imrecv, 8 bytes: in .main.* .writes 0x" -e "MPI_Mrecv, 4 bytes: in .main.* .writes 0x")
foreach(name collectives neighbors remote_memory)
  imbrex_mpi_check(right_${name} -n "imbrex")
endforeach()
imbrex_mpi_check(waited_for_twice -e "^first 0, second refused, value 7"
  -e "MPI_Wait in task .second. .*${place}. waits for a request that MPI_Wait in task .first. ")
foreach(above 0 32)
  imbrex_mpi_entry(waited_for_twice_above_${above}
    sh ${PROJECT_SOURCE_DIR}/tests/life/expect.sh 0 -s 50 -e "^first 0, second refused, value 7"
    -e "MPI_Wait in task .second. .*${place}. waits for a request that MPI_Wait in task .first. " --
    ${imbrex_mpirun} 2 $<TARGET_FILE:imbrex_mpi_check_cases> waited_for_twice
    WORKERS 1 ENVIRONMENT IMBREX_MATCH_ABOVE=${above})
endforeach()
imbrex_mpi_check(handle_given_again -n "imbrex"
  -e "^codes 0 0, received 7 and 16 times 8, one by the same handle")
imbrex_mpi_check(collectives_in_no_order -e "two tasks are in collectives on one communicator"
  -e "MPI_Barrier, on MPI_COMM_WORLD: in .one. " -e "MPI_Barrier, on MPI_COMM_WORLD: in .two. ")
imbrex_mpi_check(receive_into_a_block -c 2 "IMBREX_CHECK"
  -e "MPI_Ialltoall from 1, 16 bytes: in .main.* .writes 0x.* to 0x"
  -e "MPI_Irecv from 1, tag 1, 4 bytes, .* .writes 0x.* to 0x")
imbrex_mpi_check(blocks_that_are_over -n "imbrex")
imbrex_mpi_check(blocks_in_no_order -e "two tasks are in collectives on one communicator"
  -e "MPI_Alltoall, on .*: in .one. " -e "MPI_Alltoall, on .*: in .two. ")
imbrex_mpi_check(freed_while_waited_on -e "^refused, received 42 with code 0"
  -e "MPI_Comm_free in task .main.: another task still waits on this communicator: MPI_Recv from 1"
  -e "in .waits. .*${place}")
imbrex_mpi_check(disconnected_while_waited_on -e "^refused, received 42 with code 0"
  -e "MPI_Comm_disconnect in task .main.: another task still waits on this communicator: MPI_Recv "
  -e "in .waits. .*${place}")
imbrex_mpi_check(freed_with_requests -e "^received 42" -n "imbrex")

# Sends, and receives, of one envelope in no order: found whatever the schedule is.
# imbrex_mpi_unordered(<case> <options of expect.sh>...)
imbrex_mpi_program(imbrex_mpi_unordered_cases unordered_cases.cpp)
function(imbrex_mpi_unordered name)
  foreach(workers 1 2 3 8)
    imbrex_mpi_entry(check.${name}_w${workers}
      sh ${PROJECT_SOURCE_DIR}/tests/life/expect.sh 0 -s 50 ${ARGN} --
      ${imbrex_mpirun} 2 $<TARGET_FILE:imbrex_mpi_unordered_cases> ${name}
      WORKERS ${workers} ENVIRONMENT IMBREX_CHECK=1)
  endforeach()
endfunction()
set(place "unordered_cases.cpp:[0-9]+")
set(sums -c 1 "IMBREX_CHECK: "
  -e "IMBREX_CHECK: two tasks send with one tag to one rank, and nothing orders the tasks:"
  -e "MPI_Send to 0, tag 5, 4 bytes, on MPI_COMM_WORLD: in .left sum. .*${place}"
  -e "MPI_Send to 0, tag 5, 4 bytes, on MPI_COMM_WORLD: in .right sum. .*${place}")
foreach(name two_sums one_is_made_late behind_others both_wait_for_one_task other_sends
        one_at_a_time)
  imbrex_mpi_unordered(${name} ${sums})
endforeach()
imbrex_mpi_unordered(each_way -c 5 "IMBREX_CHECK: two tasks send with one tag to one rank"
  -e "MPI_Isend to 0, tag 5, .*: in .left Isend. " -e "MPI_Isend to 0, tag 5, .*: in .right Isend. "
  -e "MPI_Ssend to 0, tag 5, .*: in .left Ssend. " -e "MPI_Ssend to 0, tag 5, .*: in .right Ssend. "
  -e "MPI_Send_init to 0, tag 5, .*: in .left start. "
  -e "MPI_Send_init to 0, tag 5, .*: in .right start. "
  -e "MPI_Sendrecv to 0, tag 5, .*: in .left exchange. "
  -e "MPI_Sendrecv to 0, tag 5, .*: in .right exchange. "
  -e "MPI_Send to 0, tag 5, .*: in .grandchild. ")
imbrex_mpi_unordered(parent_and_child -c 1 "IMBREX_CHECK: "
  -e "MPI_Send to 0, tag 5, 4 bytes, on MPI_COMM_WORLD: in .left sum. .*${place}"
  -e "MPI_Send to 0, tag 5, 4 bytes, on MPI_COMM_WORLD: in .main")
imbrex_mpi_unordered(two_receives -c 1 "IMBREX_CHECK: "
  -e "IMBREX_CHECK: two tasks receive with one tag from one rank, and nothing orders the tasks:"
  -e "MPI_Recv from 0, tag 5, 4 bytes, on MPI_COMM_WORLD: in .take left. .*${place}"
  -e "MPI_Irecv from 0, tag 5, 4 bytes, on MPI_COMM_WORLD: in .take right. .*${place}")
foreach(name in_one_task by_dependencies by_early_release by_futures by_waits by_a_phaser
        by_a_flag_and_yield by_another_rank by_a_synchronous_send by_a_barrier by_release_after
        in_different_envelopes as_the_program_allows from_any_source)
  imbrex_mpi_unordered(${name} -n "imbrex")
endforeach()
imbrex_mpi_program(imbrex_mpi_unordered_in_c unordered_in_c.c)
foreach(workers 1 3)
  imbrex_mpi_entry(check.unordered_in_c_w${workers}
    sh ${PROJECT_SOURCE_DIR}/tests/life/expect.sh 0 -s 50 -c 1 "IMBREX_CHECK: "
    -e "IMBREX_CHECK: two tasks send with one tag to one rank, and nothing orders the tasks:"
    -e "MPI_Send to 0, tag 5, 4 bytes, on MPI_COMM_WORLD: in .left sum. .*unordered_in_c.c:[0-9]+"
    -e "MPI_Send to 0, tag 5, 4 bytes, on MPI_COMM_WORLD: in .right sum. .*unordered_in_c.c:[0-9]+"
    -- ${imbrex_mpirun} 2 $<TARGET_FILE:imbrex_mpi_unordered_in_c>
    WORKERS ${workers} ENVIRONMENT IMBREX_CHECK=1)
  foreach(order access future)
    imbrex_mpi_entry(check.ordered_in_c_by_${order}_w${workers}
      sh ${PROJECT_SOURCE_DIR}/tests/life/expect.sh 0 -s 50 -n "imbrex" --
      ${imbrex_mpirun} 2 $<TARGET_FILE:imbrex_mpi_unordered_in_c> ${order}
      WORKERS ${workers} ENVIRONMENT IMBREX_CHECK=1)
  endforeach()
endforeach()

# Ranks that disagree: imbrex_mpi_agree(<case> <ranks> <end> <options of expect.sh>... [ENV A=b...])
imbrex_mpi_program(imbrex_mpi_agree_cases agree_cases.cpp)
function(imbrex_mpi_agree name ranks end)
  cmake_parse_arguments(PARSE_ARGV 3 arg "" "AS" "ENV")
  if(ranks GREATER imbrex_ranks_max)
    return()
  endif()
  imbrex_mpi_entry(agree.${name}.r${ranks}${arg_AS}
    sh ${PROJECT_SOURCE_DIR}/tests/life/expect.sh ${end} -s 50 ${arg_UNPARSED_ARGUMENTS} --
    ${imbrex_mpirun} ${ranks} $<TARGET_FILE:imbrex_mpi_agree_cases> ${name}
    WORKERS 1 ENVIRONMENT IMBREX_CHECK=1 ${arg_ENV})
endfunction()
set(disagree "IMBREX_CHECK: ranks disagree on collective")
set(tasks_differ -c 1 "${disagree}" -e "${disagree} 1 of MPI_COMM_WORLD:"
  -e "They differ in: the task. All ranks must begin the collectives of a communicator in the same")
foreach(ranks 2 4)
  imbrex_mpi_agree(sums_mixed ${ranks} 0 ${tasks_differ} -n "not mixed"
    -e "rank [0-9]: MPI_Allreduce, MPI_SUM, 4 bytes: in .one. .*agree_cases.cpp:[0-9]+"
    -e "rank [0-9]: MPI_Allreduce, MPI_SUM, 4 bytes: in .two. .*agree_cases.cpp:[0-9]+")
endforeach()
# (Where processors are few the others are shared-thread.)
foreach(mode callback shared-thread dedicated-thread)
  imbrex_mpi_agree(sums_mixed 2 0 ${tasks_differ} AS "_${mode}"
    ENV IMBREX_PROGRESS=${mode} OMPI_MCA_hwloc_base_binding_policy=none)
endforeach()
imbrex_mpi_agree(right_communicators 2 0 -n "IMBREX_CHECK|wrong" AS "_dedicated-thread"
  ENV IMBREX_PROGRESS=dedicated-thread OMPI_MCA_hwloc_base_binding_policy=none)
imbrex_mpi_agree(requests_mixed 2 0 ${tasks_differ}
  -e "rank [01]: MPI_Iallreduce, MPI_SUM, 4 bytes: in .two. ")
imbrex_mpi_agree(objects_mixed 2 0 ${tasks_differ} -e "rank [01]: imbrex::alltoall: in .two. ")
imbrex_mpi_agree(other_calls 2 failure -c 1 "${disagree}" -e "They differ in: the call"
  -e "rank 0: MPI_Bcast, root 0, 4 bytes: in .one. " -e "rank 1: MPI_Barrier: in .two. ")
imbrex_mpi_agree(other_roots 2 failure -e "${disagree} 4 of MPI_COMM_WORLD:"
  -e "rank 0: MPI_Bcast, root 1, 32 bytes: in .share. "
  -e "rank 1: MPI_Bcast, root 0, 32 bytes: in .share. " -e "They differ in: the root. ")
imbrex_mpi_agree(other_operations 2 0 -e "They differ in: the operation. "
  -e "rank 1: MPI_Allreduce, MPI_MAX, 4 bytes: in .main.")
imbrex_mpi_agree(spawned_in_other_orders 4 0 -e "${disagree} 1 of MPI_COMM_WORLD:"
  -e "rank [02]: MPI_Allreduce, MPI_SUM, 4 bytes, as spawned: in .one. "
  -e "rank [13]: MPI_Allreduce, MPI_SUM, 4 bytes, as spawned: in .two. "
  -e "They differ in: the task. Spawn the tasks of imbrex::order_collectives_as_spawned")
imbrex_mpi_agree(fewer_in_world 4 0
  -e "a rank has begun fewer collectives than another rank on MPI_COMM_WORLD:"
  -e "rank 0: MPI_Bcast, root 0, 4 bytes: in .share. .*, its collective 1"
  -e "rank 1: 0 in all, and it is in MPI_Finalize")
imbrex_mpi_agree(fewer_when_freed 2 0
  -e "a rank has begun fewer collectives than another rank on halves:"
  -e "rank 0: MPI_Bcast, root 0, 4 bytes: in .main., its collective 2"
  -e "rank 1: 1 in all, and it has freed the communicator")
if(IMBREX_MPI_ABI STREQUAL openmpi)  # in the others the root waits
  imbrex_mpi_agree(none_begun 2 0
    -e "a rank has begun fewer collectives than another rank on communicator #"
    -e "rank 1: MPI_Bcast, root 1, 4 bytes: in .main., its collective 1"
    -e "rank 0: 0 in all, and it is in MPI_Finalize")
  imbrex_mpi_agree(none_begun_nor_known 2 0
    -e "a rank has begun no collective on a communicator, but"
    -e "rank 1: MPI_Bcast, root 1, 4 bytes: in .main., the first of 1")
endif()
foreach(name branches keys accesses alike communicators ahead)
  imbrex_mpi_agree(right_${name} 4 0 -n "imbrex|wrong")
endforeach()
imbrex_mpi_agree(right_objects 4 0 -n "imbrex" AS "_by_blocks" ENV IMBREX_PARTIAL=all)
imbrex_mpi_agree(right_communicators 8 0 -n "imbrex|wrong")
foreach(ranks 2 5)
  imbrex_mpi_agree(right_freed ${ranks} 0 -n "imbrex|rror")
endforeach()
imbrex_mpi_entry(ordered_checked
  sh ${PROJECT_SOURCE_DIR}/tests/life/expect.sh 0 -s 100 -n "IMBREX_CHECK: (ranks|a rank)" --
  ${imbrex_mpirun} 4 $<TARGET_FILE:imbrex_mpi_ordered_test> --gtest_brief=1
  WORKERS 2 ENVIRONMENT IMBREX_CHECK=1)
