# SPDX-License-Identifier: BSD-3-Clause
# Tests that a cross build leaves out, because qemu-user does not do what they ask of the system.
# tests/CMakeLists.txt copies this file to where ctest reads it. docs/design/tests.md says more.

# /proc/self/task/*/syscall shows the call of the emulator: no lock is seen as one.
set(CTEST_CUSTOM_TESTS_IGNORE
  Threads.a_wait_without_a_limit_is_for_good Threads.a_wait_with_a_limit_is_not
  Threads.a_join_waits_for_good Threads.a_wait_in_shared_memory_is_not_for_good)
foreach(policy default steal fifo seeded1)
  list(APPEND CTEST_CUSTOM_TESTS_IGNORE
    core.life.lock_across_a_wait_${policy}_1 core.life.lock_across_a_wait_${policy}_2)
endforeach()
list(APPEND CTEST_CUSTOM_TESTS_IGNORE core.life.view_of_a_lock core.life.blocks_for_a_time_1
  core.life.blocks_for_a_time_2)

# qemu-user 7.2 answers MADV_GUARD_INSTALL with success, and installs no guard.
list(APPEND CTEST_CUSTOM_TESTS_IGNORE StackPool.the_guard_of_each_stack_is_as_large_as_the_stack
  core.life.stack_overflow_small)
