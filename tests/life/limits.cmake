# SPDX-License-Identifier: BSD-3-Clause
# No further thread, or no further memory.

imbrex_test_program(limits_cases limits_cases.cpp)
target_link_libraries(imbrex_limits_cases PRIVATE ${CMAKE_DL_LIBS})
set_target_properties(imbrex_limits_cases PROPERTIES ENABLE_EXPORTS TRUE)

# imbrex_limits(<name> <end> <case> [<policy>] [EXPECT <option of expect.sh>...])
function(imbrex_limits name end case)
  cmake_parse_arguments(PARSE_ARGV 3 limits "" "" "EXPECT")
  imbrex_core_entry(life.limits.${name} 60 ${expect} ${end} ${limits_EXPECT} --
                    $<TARGET_FILE:imbrex_limits_cases> ${case} ${limits_UNPARSED_ARGUMENTS})
  set_tests_properties(core.life.limits.${name} PROPERTIES ENVIRONMENT "IMBREX_WORKERS=8")
endfunction()

set(no_thread "^Error: imbrex: the system gives no thread for 8 workers .*ulimit -u.*pids.max")
foreach(policy default fifo seeded:7)
  string(REPLACE ":" "_" suffix ${policy})
  imbrex_limits(no_thread.${suffix} 0 no_thread ${policy} EXPECT -c 7 ${no_thread} -s 40)
  imbrex_limits(no_memory_at_start.${suffix} 0 no_memory_at_start ${policy}
                EXPECT -e "^Error: imbrex: no memory for the stacks of 4 workers.*ulimit -v")
endforeach()
imbrex_limits(no_thread_by_first_use 0 no_thread_by_first_use EXPECT -c 2 ${no_thread})
string(REPLACE "^Error: " "^" said_at_once ${no_thread})
imbrex_limits(no_thread_in_c 0 no_thread_in_c EXPECT -c 1 ${said_at_once} -e "^Error: imbrex: ")
imbrex_limits(no_thread_beside_the_workers 0 no_thread_beside_the_workers EXPECT -n "imbrex:")
set(small_stack "^Error: imbrex: the stack of the thread that starts the runtime is too small")
imbrex_limits(small_stacks_of_threads 0 small_stacks_of_threads
              EXPECT -c 3 "${small_stack}: .*ulimit -s")
# Without the environment, which is on the stack.
foreach(setting 16:3 64:0)
  string(REGEX REPLACE ":.*" "" kib ${setting})
  string(REGEX REPLACE ".*:" "" end ${setting})
  imbrex_core_entry(life.limits.small_stack_of_main_${kib} 60 ${expect} ${end} -- env -i sh -c
    "ulimit -s ${kib} && IMBREX_WORKERS=2 $<TARGET_FILE:imbrex_limits_cases> small_stack_of_main")
endforeach()
imbrex_limits(no_stack_later abort no_stack_later
              EXPECT -e "^imbrex: no memory for another stack.* [0-9]+ stacks exist"
                     -e "ulimit -v.*max_map_count.*IMBREX_STACK_SIZE")
