# SPDX-License-Identifier: BSD-3-Clause
# Errors that nobody takes are printed, and the process fails; those that somebody takes are not.

imbrex_test_program(failure_cases failure_cases.cpp)

# imbrex_failure(<end> <case> [<option of expect.sh>...])
function(imbrex_failure end case)
  foreach(workers 1 2 8)
    imbrex_core_entry(failure.${case}_w${workers} 60 ${expect} ${end} ${ARGN} --
                      $<TARGET_FILE:imbrex_failure_cases> ${case})
    set_tests_properties(core.failure.${case}_w${workers} PROPERTIES
                         ENVIRONMENT "ASAN_OPTIONS=detect_leaks=0;IMBREX_WORKERS=${workers}")
  endforeach()
endfunction()

set(site "failure_cases.cpp:[0-9]+")
set(one -e "^imbrex: an error that nobody has taken, by get.. or finish..:$"
        -c 1 "^  no such file .in task \"load\" .*${site}..$")
foreach(case launched dropped_future living_future nested exit_in_a_task
             exit_within_finish exit_in_a_task_within_finish exit_in_a_parent)
  imbrex_failure(1 ${case} ${one})
endforeach()
imbrex_failure(1 after_exit_handlers ${one} -e "^an exit handler ran"
              -e "^a later exit handler ran")
imbrex_failure(3 own_exit_code ${one})
imbrex_failure(1 on_a_foreign_thread ${one})
imbrex_failure(1 with_a_runtime_object ${one} -e "^the runtime has ended")
imbrex_failure(1 many -e "^imbrex: 100 errors that nobody has taken"
               -c 16 "^  file [0-9]+ .in task \"load\"" -e "^  ... and 84 more")
imbrex_failure(1 promise_set -e "an error that nobody has taken"
               -c 1 "^  no such file .in promise \"config\" .*${site}")
imbrex_failure(1 odd_exception
               -e "^  task \"load\" .*${site}.: something that is no std::exception")
imbrex_failure(1 c_body -c 1 "^  the body of task \"load in C\" .*${site}. returned 7")
imbrex_failure(0 body_of_finish_fails_too -e "^caught: of the body"
               -e "^imbrex: the finish.. at .*${site} throws what its body threw. its tasks failed"
               -c 1 "^  no such file .in task \"load\"" -n "nobody has taken")
imbrex_failure(0 taken -n "nobody has taken"
               -e "^caught: no such file .in task \"get\" .*${site}..$"
               -e "^caught: no such file .in task \"finish\" .*${site}..$"
               -e "^caught: no such file .in task \"one of all\" .*${site}..$"
               -e "^caught: own class .in task \"inner\" .*${site}..$"
               -e "^caught with code 7: own class .in task \"own class\" .*${site}..$"
               -e "^caught: e .in task \"imbrex\" .*${site}..$"
               -e "^caught: far .in promise \"config\" .*${site}..$")
imbrex_failure(0 hundred_futures -e "^caught 100" -n "nobody has taken")
imbrex_failure(0 hundred_in_a_finish -e "^caught: no such file" -n "nobody has taken")
imbrex_failure(1 get_still_throws_later ${one} -e "^caught: no such file .in task \"load\"")
imbrex_failure(0 c_wait -e "^imbrex: the body of task \"load in C\" .*${site}. returned 7"
               -e "^again: imbrex: the body of task \"load in C\" .*${site}. returned 7"
               -n "nobody has taken")
