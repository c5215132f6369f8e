# SPDX-License-Identifier: BSD-3-Clause
# Tests that a cross build leaves out, because qemu-user does not do what they ask of the system.
# tests/CMakeLists.txt copies this file to where ctest reads it. docs/design/tests.md says more.

# /proc/self/task/*/syscall shows the call of the emulator.
set(CTEST_CUSTOM_TESTS_IGNORE
  Threads.a_wait_without_a_limit_is_for_good Threads.a_wait_with_a_limit_is_not
  Threads.a_join_waits_for_good Threads.a_wait_in_shared_memory_is_not_for_good)

# qemu-user 7.2 answers MADV_GUARD_INSTALL with success, and installs no guard.
list(APPEND CTEST_CUSTOM_TESTS_IGNORE StackPool.the_guard_of_each_stack_is_as_large_as_the_stack)

# They compare times, or take a minute.
list(APPEND CTEST_CUSTOM_TESTS_IGNORE core.poll.default core.poll.seeded
  core.memory.windows.100_million)
