# SPDX-License-Identifier: BSD-3-Clause
# Errors that no call takes are printed, and the process fails; errors that a call takes are not.

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
set(one -e "^imbrex: an exception that neither get.. nor finish.. has rethrown:$"
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
imbrex_failure(1 many -e "^imbrex: 100 exceptions that neither get.. nor finish"
               -c 16 "^  file [0-9]+ .in task \"load\"" -e "^  ... and 84 more")
imbrex_failure(1 promise_set -e "an exception that neither get.. nor finish"
               -c 1 "^  no such file .in promise \"config\" .*${site}")
imbrex_failure(1 odd_exception
               -e "^  task \"load\" .*${site}.: an exception that is no std::exception")
imbrex_failure(1 c_body -c 1 "^  the body of task \"load in C\" .*${site}. returned 7")
imbrex_failure(0 body_of_finish_fails_too -e "^caught: of the body"
               -e "^imbrex: the finish.. at .*${site} rethrows .* of its body. its tasks failed"
               -c 1 "^  no such file .in task \"load\"" -n "nor finish.. has rethrown")
imbrex_failure(0 body_of_finish_fails_with_many -e "^caught: of the body" -e "^  ... and 34 more"
               -e "^caught: of the second" -e "^  ... and 24 more" -n "nor finish.. has rethrown"
               -c 32 "^  no such file .in task \"(load|deep)\"")
imbrex_failure(0 taken -n "nor finish.. has rethrown"
               -e "^caught: no such file .in task \"get\" .*${site}..$"
               -e "^caught: no such file .in task \"finish\" .*${site}..$"
               -e "^caught: no such file .in task \"one of all\" .*${site}..$"
               -e "^caught: own class$" -e "^caught with code 7: own class$"
               -e "^caught: e .in task \"imbrex\" .*${site}..$"
               -e "^caught: far .in promise \"config\" .*${site}..$")
imbrex_failure(0 hundred_futures -e "^caught 100" -n "nor finish.. has rethrown")
imbrex_failure(0 hundred_in_a_finish -e "^caught: no such file" -n "nor finish.. has rethrown")
imbrex_failure(1 get_still_throws_later ${one} -e "^caught: no such file .in task \"load\"")
imbrex_failure(0 c_wait -e "^imbrex: the body of task \"load in C\" .*${site}. returned 7"
               -e "^again: imbrex: the body of task \"load in C\" .*${site}. returned 7"
               -n "nor finish.. has rethrown")

# The runtime never writes to an exception object; the label stands beside it, in reports.
imbrex_failure(1 own_class -c 1 "^  task \"load\" .*${site}.: no such file$")
imbrex_failure(abort uncaught -e "what.. *no such file|what..: +no such file"
               -e "the exception that ends the program was thrown .in task \"load\" .*${site}..$")
imbrex_failure(0 own_class_in_c -e "^C: no such file .in task \"load\" .*${site}..$")
imbrex_failure(0 own_object_stays -e "^the same object, with the same text: 1")
imbrex_failure(0 standard_classes -e "^caught: std::bad_alloc .in task \"hungry\" .*${site}..$"
               -e "^io_error: 1. reading: .*error .in task \"system\" .*${site}..$"
               -e "^caught: bad optional access .in task \"empty\""
               -e "^of memory: std::bad_alloc .in task \"in finish\""
               -e "^C: std::bad_alloc .in task \"for C\"")
imbrex_failure(0 null_text -e "^caught it"
               -e "^caught: imbrex: task \"reads\" .*task \"load\" .*${site}.: a std::.*a text"
               -n "silent")
imbrex_failure(1 destructors_throw -e "^caught: of a closure .in task \"closure\" .*${site}..$"
               -e "^results left: 0" -e "^caught: no such file .in task \"both\""
               -e "^caught: imbrex: task \"not run\" .* did not run"
               -e "^imbrex: 4 exceptions that neither get.. nor finish"
               -e "^  a destructor has thrown in .*of the closure of both"
               -e "^  a destructor has thrown in .*of what never ran"
               -e "^  a destructor has thrown in .*of a value"
               -e "^  a destructor has thrown in .*of a function")
imbrex_failure(0 no_exception_is_set
               -e "^caught: imbrex: set_exception.. of promise \"config\" .*${site}., in "
               -e "^got 7")
set(open "without imbrex_finish_end.. for 1 imbrex_finish_begin.., the last of them at solver.c:12")
imbrex_failure(0 c_finish_left_open
               -e "^caught: imbrex: the finish.. at .*${site} in task \"main\" ends ${open}"
               -e "^late ran: 1" -e "^caught: of the body" -e "^late ran: 2"
               -e "^  no such file .in task \"load\"" -e "^late ran: 3")
imbrex_failure(0 c_finish_left_open_in_a_task
               -e "^caught: imbrex: the body of task \"opens\" .*${site}. returned ${open}"
               -e "^late ran: 1" -e "^caught: of the body .in task \"opens\"" -e "^late ran: 2"
               -e "^caught: .*${open}.*and 1 other tasks .* failed" -e "^late ran: 3")
set(left -e "^imbrex: an exception that neither get.. nor finish")
imbrex_failure(1 c_finish_left_open_in_main ${left} -e "^  \"main\" ended ${open}"
               -e "^late ran: 1")
imbrex_failure(1 c_finish_left_open_in_a_thread ${left} -e "^  \"foreign thread\" ended ${open}")
imbrex_failure(1 c_finish_left_open_in_a_runtime ${left} -e "^  \"main\" ended ${open}"
               -e "^late ran: 1")
imbrex_failure(0 exit_within_finish_in_a_c_finish -n "ended without")
imbrex_failure(0 c_finish_at_no_place -e "^caught: .*, the last of them at an unknown place: "
               -e "^  no such file .in task \"load\"" -n ":0[^0-9]")

# The object of a class that was compiled without run-time type information.
imbrex_test_program(no_rtti no_rtti.cpp)
target_compile_options(imbrex_no_rtti PRIVATE -fno-rtti)
foreach(workers 1 2)
  imbrex_core_entry(failure.no_rtti_w${workers} 60 ${expect} 1
                    -e "^caught: own" -e "^caught: derived from Error" -e "^caught: of the standard"
                    -e "^caught: code 7" -e "^  task \"load\" .*no_rtti.cpp:[0-9]+.: own"
                    -- $<TARGET_FILE:imbrex_no_rtti>)
  set_tests_properties(core.failure.no_rtti_w${workers} PROPERTIES
                       ENVIRONMENT "ASAN_OPTIONS=detect_leaks=0;IMBREX_WORKERS=${workers}")
endforeach()
