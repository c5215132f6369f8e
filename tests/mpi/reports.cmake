# SPDX-License-Identifier: BSD-3-Clause
# Reports: imbrex_mpi_report(<test> <case> <end> [PROGRAM <target>] ENV A=b... EXPECT <options of
# expect.sh>...)
imbrex_mpi_program(imbrex_mpi_report_cases report_cases.cpp)
imbrex_mpi_program(imbrex_mpi_cause_cases cause_cases.cpp)
target_include_directories(imbrex_mpi_report_cases PRIVATE ${PROJECT_SOURCE_DIR}/src)
function(imbrex_mpi_report name case end)
  cmake_parse_arguments(PARSE_ARGV 3 arg "" "PROGRAM" "ENV;EXPECT")
  if(NOT arg_PROGRAM)
    set(arg_PROGRAM imbrex_mpi_report_cases)
  endif()
  if(end STREQUAL failure)  # a report ends the program: no backtrace of Open MPI's stands below it
    list(APPEND arg_EXPECT -n "Process received signal")
  endif()
  imbrex_mpi_entry(report.${name}
    sh ${PROJECT_SOURCE_DIR}/tests/life/expect.sh ${end} -s 50 ${arg_EXPECT} --
    ${imbrex_mpirun} 2 $<TARGET_FILE:${arg_PROGRAM}> ${case}
    WORKERS 1 ENVIRONMENT ${arg_ENV})
endfunction()
set(place "report_cases.cpp:[0-9]+")
# The first line has the cause and, in parentheses, the reason of the report.
set(stalled "no message has arrived and no task has run for [0-9]+ s.$")
imbrex_mpi_report(wrong_tag wrong_tag 0 ENV IMBREX_STALL_S=1 EXPECT
  -e "^imbrex: perhaps: rank 0 waits in MPI_Recv from 1, tag 7, on halo, in .receive h.*${stalled}"
  -e "${place}., but the message from rank 1 on halo that has come has tag 8 .every .*${stalled}"
  -e "^imbrex: Give the send and the receive the same tag"
  -e "every task of rank 0 waits, no message has arrived and no task has run for 1 s"
  -e "^imbrex: .0.   MPI_Recv from 1, tag 7, 64 bytes, on halo: in .receive halo. .*${place}"
  -e "receive block.*\\(and 59 more like this, in all tags 20-79\\)"
  -e "a message from 1 with tag 8, 64 bytes, on halo has arrived and no receive takes it; rank"
  -e "; rank 0 waits for tag 7 from 1 in .receive halo. .*${place}"
  -e "dependency on task .receive halo. .*: in .use halo."
  -e "finish \\(.*${place}\\): in .main."
  -e "^imbrex: \\[1\\] rank 1 of 2 .*: 1 of 2 tasks run"
  -e "^imbrex: \\[1\\]   runs or is ready: .compute. .*${place}"
  -e "^went on")
foreach(above 0 32)  # receives matched by imbrex, and by MPI
  imbrex_mpi_report(wait_for_requests_above_${above} wait_for_requests 0
    ENV IMBREX_STALL_S=1 IMBREX_MATCH_ABOVE=${above} EXPECT
    -e "MPI_(Wait|Irecv) from 1, tag 7.*, on MPI_COMM_WORLD: in .one. .*${place}"
    -e "from 1, tag 2[0-2].* on MPI_COMM_WORLD: in .all. .*and 2 more like this, in all tags 20-22"
    -e "^went on")
endforeach()
imbrex_mpi_report(wrong_communicator wrong_communicator failure
 ENV IMBREX_STALL_S=1 IMBREX_STALL=abort EXPECT
  -e "^imbrex: rank 0 waits in MPI_Recv from 1, tag 7, on right one, in .receive. .*${stalled}"
  -e "${place}., but the message from rank 1 with tag 7 has come on MPI_COMM_WORLD .*${stalled}"
  -e "rank [01] waits for tag 7 from [01] on right one" -e "rank 0 .*: all 2 tasks wait"
  -e "^imbrex: \\[0\\]   MPI_Recv" -e "^imbrex: \\[1\\]   MPI_Recv")
imbrex_mpi_report(closes_too_early closes_too_early failure
  ENV IMBREX_STALL_S=1 IMBREX_STALL=abort EXPECT
  -e "end of the space of futures .sums.: future 7 of space .sums., whose home is rank 1 was asked"
  -e "end of the space of futures .sums.: other ranks have not closed it")
imbrex_mpi_report(asks_in_vain asks_in_vain 0 ENV IMBREX_STALL_S=1 EXPECT
  -e "every task of rank 0 waits, no message has arrived and no task has run for"
  -e "^imbrex: .0. rank 0 of 2 .*: all 4 tasks wait"
  -e "MPI_Test repeatedly, without success.*: in .tests. .*${place}"
  -e "MPI_Iprobe repeatedly, without success.*: in .probes. .*${place}"
  -e "MPI_Recv from 1, tag 9, .*: in .receives. .*${place}" -c 2 "went on")
imbrex_mpi_report(waits_for_large_type waits_for_large_type 0 ENV IMBREX_WORKERS=1 EXPECT
  -e "MPI_Recv from 1, tag 9, 4294967296 bytes, .*: in .large." -c 2 "went on")
imbrex_mpi_report(asks_in_vain_in_main asks_in_vain_in_main failure
  ENV IMBREX_STALL_S=1 IMBREX_STALL=abort EXPECT
  -e "MPI_Test repeatedly, without success for [0-9]+ s: in .main."
  -e "MPI_Recv from 0, tag 9, .*: in .main.")
imbrex_mpi_report(asks_in_vain_in_callback asks_in_vain_in_callback 0
  ENV IMBREX_STALL_S=1 EXPECT
  -e "^imbrex: .0.   MPI_Test repeatedly, without success for .* s, and keeps its thread from"
  -c 2 "went on")
imbrex_mpi_report(asks_and_computes asks_and_computes 0
  ENV IMBREX_STALL_S=1 IMBREX_STALL=abort EXPECT -c 2 "went on" -n "imbrex:")
# IMBREX_STALL=abort ends what can never go on, and nothing else.
foreach(case waits_for_main waits_for_task waits_for_thread waits_for_lock)
  imbrex_mpi_report(${case} ${case} 0 ENV IMBREX_STALL_S=1 IMBREX_STALL=abort EXPECT
    -e "every task of rank [01] waits, no message has arrived" -c 1 "went on" -n "ends the program")
endforeach()
set(ended "no rank makes progress: imbrex ends the program")
imbrex_mpi_report(computes_and_forgets computes_and_forgets failure
  ENV IMBREX_STALL_S=1 IMBREX_STALL=abort EXPECT -e "runs or is ready: .computes." -e "${ended}"
  -e "^imbrex: .1.   MPI_Finalize, which waits for the other ranks: in .main."
  -e "^imbrex: rank 0 waits in MPI_Recv from 1, tag 3, .*, and rank 1 does not send: it is in MPI_")
imbrex_mpi_report(lock_on_both_ranks lock_on_both_ranks failure
  ENV IMBREX_STALL_S=1 IMBREX_STALL=abort EXPECT -e "task .wants. .*has blocked the" -e "${ended}"
  -e "^imbrex: perhaps: a lock on rank 0 is held across a wait: .wants. .* sleeps in a lock"
  -e "^imbrex: .* the waiting tasks may hold it: .holds. .* waits in MPI_Recv from 1, tag 3"
  -e "^imbrex: Release locks before a wait")
imbrex_mpi_report(splits_alone splits_alone failure
  ENV IMBREX_STALL_S=1 IMBREX_STALL=abort EXPECT
  -e "^imbrex: .0.   MPI_Comm_split: in .main." -n "runs or is ready: " -e "${ended}")
imbrex_mpi_report(asks_and_sleeps asks_and_sleeps failure
  ENV IMBREX_STALL_S=1 IMBREX_STALL=abort EXPECT
  -e "MPI_Test repeatedly, without success for [0-9]+ s: in .asks." -e "${ended}")
imbrex_mpi_report(computes_and_sleeps computes_and_sleeps 0
  ENV IMBREX_STALL_S=1 IMBREX_STALL=abort EXPECT -c 2 "went on" -n "imbrex:")
imbrex_mpi_report(asks_with_a_lock asks_with_a_lock 0 ENV IMBREX_STALL_S=1 EXPECT
  -e "a task of rank 0 tests repeatedly and lets no other task run, no message has arrived and no"
  -n "every task of rank 0" -e "MPI_Test repeatedly, without.*: it holds a lock" -c 2 "went on")
imbrex_mpi_report(probes_in_turn probes_in_turn 0 EXPECT
  -e "MPI_Iprobe repeatedly, without success" -n "no receive takes" -c 2 "went on")
imbrex_mpi_report(other_order other_order failure ENV IMBREX_STALL_S=1 IMBREX_STALL=abort EXPECT
  -e "^imbrex: on MPI_COMM_WORLD ranks wait in different collectives: rank 1 in MPI_Bcast "
  -e "; rank 0 in MPI_Reduce .*${stalled}"
  -e "^imbrex: All ranks.*the same order.*IMBREX_CHECK=1")
imbrex_mpi_report(turns turns failure ENV IMBREX_STALL_S=1 IMBREX_STALL=abort EXPECT
  -e "^imbrex: rank 1 has not come to the MPI_Barrier on MPI_COMM_WORLD in which rank 0 waits: it "
  -e "in which rank 0 waits: it .*turn by key .*${stalled}"
  -e "^imbrex: .1.   MPI_Barrier on MPI_COMM_WORLD waits for its turn by key .other. .rank 0 has n"
  -e "by key .second. .rank 0 has not begun it; rank 0 has begun 1 collectives, the last with key "
  -e "with key [0-9]+ .the number of a name .*, and for key .* no task has come on this rank")
imbrex_mpi_report(failed_sender failed_sender failure ENV IMBREX_STALL_S=1 IMBREX_STALL=abort EXPECT
  -e "^imbrex: ranks 0, 1 receive from each other before they send: rank 0 waits in MPI_Recv from 1"
  -e "; on rank 1 task .load. .*has failed: no such file .*${stalled}"
  -e "^imbrex: Look first at what has failed"
  -e "^imbrex: .1.   task .load. .*${place}. has failed: no such file$"
  -e "^imbrex: .1.   task .sends. .* did not run, since task .load. .* has failed")
set(not_arrived "^imbrex: .1.   imbrex::alltoall, begun by .*: part 2 from rank 0 has not arrived")
imbrex_mpi_report(thrown_before_send_held thrown_before_send_held 0 ENV IMBREX_STALL_S=1 EXPECT
  -e ${not_arrived} -e "^imbrex: .0.   task .compute. .*${place}. has failed: no such file$"
  -e "^imbrex: .0.   imbrex::alltoall, .*: part 2 for rank 1 is held: no task has called send"
  -e "^went on")
imbrex_mpi_report(thrown_before_send_gone thrown_before_send_gone failure
  ENV IMBREX_STALL_S=5 IMBREX_STALL=abort EXPECT -n "every task of rank"
  -e "not sent: part 2 for rank 1; no handle of the collective is left .*, so they fail, also on"
  -e "all.. throws: imbrex: imbrex::alltoall, .* not sent: part 2 for rank 1; "
  -e "all.. throws: imbrex: imbrex::alltoall, .*: part 2 from rank 0 failed: .* rank 0 holds")
imbrex_mpi_report(thrown_in_finish thrown_in_finish failure
  ENV IMBREX_STALL_S=1 IMBREX_STALL=abort EXPECT
  -e "^imbrex: .1.   the body of finish.. .*${place}. has thrown: the mesh is empty")
# The end leaves the trace of every rank: mpirun ends the other rank, by a signal that can be
# caught, but MPICH's uses SIGKILL.
set(traced_ranks "2 ranks")
if(NOT IMBREX_MPI_ABI STREQUAL openmpi)
  set(traced_ranks "ended by signal 6")
endif()
set(tools_folder ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
if(IMBREX_CORE)
  set(tools_folder ${IMBREX_CORE}/bin)
endif()
imbrex_mpi_entry(report.cut_trace ${Python3_EXECUTABLE} -B
  ${PROJECT_SOURCE_DIR}/tests/life/cut_trace.py ${tools_folder}/imbrex
  ${CMAKE_CURRENT_BINARY_DIR}/cut_trace -e "incomplete: .*ended by signal 6" -e "${traced_ranks}" --
  ${imbrex_mpirun} 2 $<TARGET_FILE:imbrex_mpi_report_cases> wrong_communicator
  WORKERS 1 ENVIRONMENT IMBREX_STALL_S=1 IMBREX_STALL=abort
  OMPI_MCA_odls_base_sigkill_timeout=5 PRTE_MCA_odls_base_sigkill_timeout=5)
imbrex_mpi_report(held_part held_part 0 ENV IMBREX_STALL_S=1 EXPECT
  -e "imbrex::alltoall, begun by .main.*: part 2 from rank 0 has not arrived$"
  -e "imbrex::alltoall, begun by .main.*: part 2 for rank 1 is held: no task has called send"
  -c 2 "went on")
set(held_by_root "imbrex::scatter, begun by .main.*: part 0 for rank 0 is held: .*and 1 more")
set(cores_report "a thread outside of imbrex")
imbrex_mpi_report(held_by_root held_by_root 0 ENV IMBREX_STALL_S=1 EXPECT
  -e "every task of rank 0 waits, no message has arrived" -e "^imbrex: .0.   ${held_by_root}"
  -n ${cores_report} -c 2 "went on")
imbrex_mpi_report(held_for_good held_for_good failure
  ENV IMBREX_STALL_S=1 IMBREX_STALL=abort EXPECT
  -e "and rank 0 does not send: it waits: ${held_by_root}.*${stalled}"
  -e "^imbrex: .0.   ${held_by_root}" -e "^imbrex: .1. rank 1 of 2" -n ${cores_report})
imbrex_mpi_report(held_in_finalize held_in_finalize 1 EXPECT
  -e "not sent: part 0 for rank 0 and 7 more; MPI_Finalize has been called"
  -e "MPI_Finalize: parts of a collective were not sent, .*: all ranks are ended")
imbrex_mpi_report(messages_in_turn messages_in_turn 0
  ENV IMBREX_STALL_S=1 EXPECT
  -e "was asked by SIGUSR1" -n "every task of rank"
  -e "MPI_Send .not sent yet: in imbrex.s queue, see IMBREX_SENDS. to 1, tag 2, 1048576 bytes"
  -e "^went on")
imbrex_mpi_report(off wrong_tag 0 ENV IMBREX_STALL_S=0 EXPECT -n "imbrex:" -e "^went on")
imbrex_mpi_report(slow_messages slow_messages 0 ENV IMBREX_STALL_S=1 EXPECT -n "imbrex:")
imbrex_mpi_report(asked_while_busy asked_while_busy 0 EXPECT
  -e "rank 0 was asked by SIGUSR1" -e "MPI_Recv from 1, tag 7, .*: in .waiting."
  -e "runs or is ready: .endless." -e "^imbrex: \\[1\\] ")
imbrex_mpi_report(polled_while_busy polled_while_busy 0 EXPECT
  -e "rank 0 was asked by SIGUSR1" -e "^imbrex: .0. rank 0 of 2 .* of 3 tasks run or are ready"
  -e "runs or is ready: .endless." -n "foreign thread")
imbrex_mpi_report(all_asked all_asked 0 EXPECT -e "was asked by SIGUSR1" -c 2 "rank . of 2")
imbrex_mpi_report(own_handler own_handler 0 EXPECT -e "own handler ran 1 times" -n "imbrex:")
imbrex_mpi_report(silent_rank silent_rank 0 EXPECT
  -e "no answer within 3 s from rank 1" -e "by SIGUSR1 for a report, and rank 0 does not answer"
  -e "^imbrex: \\[1\\] rank 1 of 2")
imbrex_mpi_report(asked_in_finalize asked_in_finalize 0 EXPECT
  -e "^imbrex: \\[0\\] rank 0 of 2" -e "^imbrex: \\[1\\]   runs or is ready: .late."
  -e "^imbrex: \\[0\\]   MPI_Finalize, which waits for the other ranks: in .main.")
# One rank is missing in a receive, and has gone on to the end.
imbrex_mpi_report(one_in_finalize one_in_finalize failure
  ENV IMBREX_STALL_S=1 IMBREX_STALL=abort EXPECT
  -e "^imbrex: rank 0 waits in MPI_Recv from 1, tag 3, on MPI_COMM_WORLD, in .main., and rank 1"
  -e "and rank 1 does not send: it is in MPI_Finalize .*${stalled}"
  -e "^imbrex: .0.   MPI_Recv from 1, tag 3, .*: in .main."
  -e "^imbrex: .1.   MPI_Finalize, which waits for the other ranks: in .main."
  -n "runs or is ready: " -n "a lock, or something like it")
# Both ranks wait, in place first: each says so.
imbrex_mpi_report(both_receive both_receive failure
  ENV IMBREX_STALL_S=1 IMBREX_STALL=abort EXPECT
  -e "^imbrex: ranks 0, 1 receive from each other before they send: rank 0 waits in MPI_Recv from 1"
  -e "^imbrex: ranks .* rank 1 waits in MPI_Recv from 0, tag 3, .*${stalled}"
  -e "^imbrex: .0.   MPI_Recv from 1, tag 3, .*: in .exchange."
  -e "^imbrex: .1.   MPI_Recv from 0, tag 3, .*: in .exchange." -n "runs or is ready: ")
imbrex_mpi_report(both_send both_send failure PROGRAM imbrex_mpi_cause_cases
  ENV IMBREX_STALL_S=1 IMBREX_STALL=abort EXPECT
  -e "^imbrex: ranks 0, 1 send long messages to each other and none receives: .*${stalled}"
  -e "rank 0 waits in MPI_Send to 1, tag 3, 1048576 bytes, .*${stalled}")
imbrex_mpi_report(send_follows_receive send_follows_receive failure PROGRAM imbrex_mpi_cause_cases
  ENV IMBREX_STALL_S=1 IMBREX_STALL=abort EXPECT
  -e "^imbrex: ranks 0, 1 receive from each other before they send: .*${stalled}"
  -e "; on rank 0 .pass on. .* has not begun, since it follows task .fill. .*${stalled}")
imbrex_mpi_report(missing_in_collective missing_in_collective failure PROGRAM imbrex_mpi_cause_cases
  ENV IMBREX_STALL_S=1 IMBREX_STALL=abort EXPECT
  -e "^imbrex: rank 1 has not come to the MPI_Allreduce on MPI_COMM_WORLD in which rank 0 waits: it"
  -e "in which rank 0 waits: it waits in MPI_Recv from 0, tag 5, .*in .sum. .*${stalled}")
imbrex_mpi_report(missing_at_the_end missing_at_the_end failure PROGRAM imbrex_mpi_cause_cases
  ENV IMBREX_STALL_S=1 IMBREX_STALL=abort EXPECT
  -e "^imbrex: rank 1 has not come to the MPI_Barrier on MPI_COMM_WORLD in which rank 0 waits"
  -e "in which rank 0 waits: it is in MPI_Finalize .*${stalled}")
imbrex_mpi_report(wrong_source wrong_source failure PROGRAM imbrex_mpi_cause_cases
  ENV IMBREX_STALL_S=1 IMBREX_STALL=abort EXPECT
  -e "^imbrex: rank 0 waits in MPI_Recv from 1, tag 7, .* and rank 1 does not send: .*${stalled}"
  -e "^imbrex: also: perhaps: rank 0 waits in MPI_Recv from 1, tag 7, .*but the message with tag 7"
  -e "but the message with tag 7 on MPI_COMM_WORLD that has come is from rank 0[.]")
imbrex_mpi_report(futures_crosswise futures_crosswise failure PROGRAM imbrex_mpi_cause_cases
  ENV IMBREX_STALL_S=1 IMBREX_STALL=abort EXPECT
  -e "^imbrex: ranks 0, 1 await futures of each other: rank 0 waits for future 1 of space .sums."
  -e "; rank 1 waits for future 0 of space .sums., whose home is rank 0.*${stalled}")
imbrex_mpi_report(rank_phasers_crosswise rank_phasers_crosswise failure
  PROGRAM imbrex_mpi_cause_cases ENV IMBREX_STALL_S=1 IMBREX_STALL=abort EXPECT
  -e "^imbrex: ranks begin collectives of several communicators in different orders: rank 0 in a"
  -e "on MpiPhaser .first. .*; rank 1 in a phase of an MpiPhaser on MpiPhaser .second.*${stalled}")
imbrex_mpi_report(window_locked window_locked failure PROGRAM imbrex_mpi_cause_cases
  ENV IMBREX_STALL_S=1 IMBREX_STALL=abort EXPECT
  -e "^imbrex: rank 1 waits in MPI_Win_.* needs the lock of rank 0's part of a window of 2 ranks, "
  -e "which rank 0 keeps since its MPI_Win_lock in .main.: it waits in MPI_Recv from 1.*${stalled}")
# No backtrace below a report also where a trace is written first. A handler of the program's for
# SIGABRT is called.
imbrex_mpi_report(both_receive_traced both_receive failure ENV IMBREX_STALL_S=1 IMBREX_STALL=abort
  IMBREX_TRACE=${CMAKE_CURRENT_BINARY_DIR}/both_receive_traced EXPECT
  -e "^imbrex: .0.   MPI_Recv from 1, tag 3, .*: in .exchange.")
imbrex_mpi_report(own_abort_handler own_abort_handler failure
  ENV IMBREX_STALL_S=1 IMBREX_STALL=abort EXPECT -e "^own handler of SIGABRT")

# The cause from the files of the flight recorder alone, after all ranks were killed.
# imbrex_mpi_explain(<case> <program> <pattern> [<rank that is killed first>])
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
function(imbrex_mpi_explain case program pattern)
  set(first ${ARGN})
  if(NOT ARGN)
    set(first -)
  endif()
  imbrex_mpi_entry(explain.${case}
    ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/explain_killed.py
    ${imbrex_explain_program} 2 ${first} "cause: ${pattern}" ${imbrex_mpirun} 2
    $<TARGET_FILE:imbrex_mpi_${program}_cases> ${case} WORKERS 2)
endfunction()
set(imbrex_explain_program "")
if(TARGET imbrex-explain)
  set(imbrex_explain_program $<TARGET_FILE:imbrex-explain>)
elseif(IMBREX_CORE)
  set(imbrex_explain_program ${IMBREX_CORE}/bin/imbrex-explain)
endif()
if(imbrex_explain_program)
  imbrex_mpi_explain(tag_for_good cause "rank 0 waits in MPI_Recv from 1, tag 7, .* has tag 8")
  imbrex_mpi_explain(missing_in_collective cause ".*MPI_Allreduce")
  imbrex_mpi_explain(other_order report ".*collectives")
  imbrex_mpi_explain(lock_on_both_ranks report ".*lock")
  imbrex_mpi_explain(futures_crosswise cause ".*futures")
  imbrex_mpi_explain(freed_communicator cause "rank 0 waits in MPI_Recv from 1, tag 7, on halo")
  imbrex_mpi_explain(dies cause "the process of rank 1 has died" 1)
  imbrex_mpi_explain(never_received cause "rank 0 waits in MPI_Ssend to 1, tag 3")
  imbrex_mpi_explain(phasers_crosswise cause ".*phaser")
  imbrex_mpi_explain(window_locked cause "rank 1 .* needs the lock of rank 0's part(.|\\n)*\
operations of MPI that were waited for(.|\\n)* completed MPI_Recv from 0, tag 4")
  imbrex_mpi_explain(send_follows_receive cause ".*rank")
endif()
