// SPDX-License-Identifier: BSD-3-Clause
// Remote memory: its synchronisation has no non-blocking twin and runs on a spare thread; a request
// of MPI_Rput and so on is waited for as any other. Methodology: each rank writes to the next
// rank's window, reads the previous one's, and compares with what the standard says.
#include <algorithm>
#include <string>

#include "either_count.hpp"
#include "every_caller.hpp"

namespace imbrex::test {
namespace {

constexpr int slots = 4;

class Windows : public EveryCaller {
 protected:
  // A window of `slots` ints, all zero.
  struct Window {
    MPI_Win handle = MPI_WIN_NULL;
    int* memory = nullptr;
  };
  [[nodiscard]] Window allocate() const {
    Window window;
    EXPECT_EQ(MPI_Win_allocate(slots * sizeof(int), sizeof(int), MPI_INFO_NULL, ring_.comm,
                               static_cast<void*>(&window.memory), &window.handle),
              MPI_SUCCESS);
    clear(window);
    return window;
  }
  void clear(const Window& window) const {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, ring_.rank, 0, window.handle);
    std::fill_n(window.memory, slots, 0);
    MPI_Win_unlock(ring_.rank, window.handle);
    MPI_Barrier(ring_.comm);
  }
  // Returns the value in slot `place` of this rank's window, when all have written.
  [[nodiscard]] int read(const Window& window, int place) const {
    MPI_Barrier(ring_.comm);
    MPI_Win_lock(MPI_LOCK_SHARED, ring_.rank, 0, window.handle);
    const int value = window.memory[place];
    MPI_Win_unlock(ring_.rank, window.handle);
    MPI_Barrier(ring_.comm);
    return value;
  }
};

TEST_P(Windows, fences) {
  call([this] {
    const Window window = allocate();
    const int value = 10 + ring_.rank;
    EXPECT_EQ(MPI_Win_fence(0, window.handle), MPI_SUCCESS);
    come_late();
    MPI_Put(&value, 1, MPI_INT, ring_.next(), 1, 1, MPI_INT, window.handle);
    EXPECT_EQ(MPI_Win_fence(MPI_MODE_NOSUCCEED, window.handle), MPI_SUCCESS);
    EXPECT_EQ(window.memory[1], 10 + ring_.previous());
    MPI_Win handle = window.handle;
    EXPECT_EQ(MPI_Win_free(&handle), MPI_SUCCESS);
    EXPECT_EQ(handle, MPI_WIN_NULL);
  });
}

TEST_P(Windows, post_and_start) {
  call([this] {
    const Window window = allocate();
    MPI_Group all;
    MPI_Comm_group(ring_.comm, &all);
    const int next = ring_.next();
    const int previous = ring_.previous();
    MPI_Group to;
    MPI_Group from;
    MPI_Group_incl(all, 1, &next, &to);
    MPI_Group_incl(all, 1, &previous, &from);
    come_late();
    const int value = 20 + ring_.rank;
    EXPECT_EQ(MPI_Win_post(from, 0, window.handle), MPI_SUCCESS);
    EXPECT_EQ(MPI_Win_start(to, 0, window.handle), MPI_SUCCESS);
    MPI_Put(&value, 1, MPI_INT, next, 2, 1, MPI_INT, window.handle);
    EXPECT_EQ(MPI_Win_complete(window.handle), MPI_SUCCESS);
    EXPECT_EQ(MPI_Win_wait(window.handle), MPI_SUCCESS);
    EXPECT_EQ(window.memory[2], 20 + previous);
    MPI_Group_free(&to);
    MPI_Group_free(&from);
    MPI_Group_free(&all);
    MPI_Win handle = window.handle;
    MPI_Win_free(&handle);
  });
}

TEST_P(Windows, locks_and_flushes) {
  call([this] {
    const Window window = allocate();
    const int value = 30 + ring_.rank;
    EXPECT_EQ(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, ring_.next(), 0, window.handle), MPI_SUCCESS);
    MPI_Put(&value, 1, MPI_INT, ring_.next(), 0, 1, MPI_INT, window.handle);
    EXPECT_EQ(MPI_Win_flush_local(ring_.next(), window.handle), MPI_SUCCESS);
    EXPECT_EQ(MPI_Win_flush(ring_.next(), window.handle), MPI_SUCCESS);
    EXPECT_EQ(MPI_Win_unlock(ring_.next(), window.handle), MPI_SUCCESS);
    EXPECT_EQ(read(window, 0), 30 + ring_.previous());

    EXPECT_EQ(MPI_Win_lock_all(0, window.handle), MPI_SUCCESS);
    MPI_Accumulate(&value, 1, MPI_INT, ring_.next(), 3, 1, MPI_INT, MPI_SUM, window.handle);
    EXPECT_EQ(MPI_Win_flush_local_all(window.handle), MPI_SUCCESS);
    EXPECT_EQ(MPI_Win_flush_all(window.handle), MPI_SUCCESS);
    EXPECT_EQ(MPI_Win_unlock_all(window.handle), MPI_SUCCESS);
    EXPECT_EQ(read(window, 3), 30 + ring_.previous());
    MPI_Win handle = window.handle;
    MPI_Win_free(&handle);
  });
}

TEST_P(Windows, requests) {
  call([this] {
    const Window window = allocate();
    const int target = ring_.next();
    MPI_Win_lock_all(0, window.handle);
    MPI_Request request;
    const int value = 40 + ring_.rank;
    MPI_Rput(&value, 1, MPI_INT, target, 0, 1, MPI_INT, window.handle, &request);
    EXPECT_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
    MPI_Raccumulate(&value, 1, MPI_INT, target, 1, 1, MPI_INT, MPI_SUM, window.handle, &request);
    EXPECT_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
    MPI_Win_flush_all(window.handle);

    MPI_Request both[2];
    int got = -1;
    int before = -1;
    MPI_Rget(&got, 1, MPI_INT, target, 0, 1, MPI_INT, window.handle, &both[0]);
    MPI_Rget_accumulate(&value, 1, MPI_INT, &before, 1, MPI_INT, target, 1, 1, MPI_INT, MPI_SUM,
                        window.handle, &both[1]);
    EXPECT_EQ(MPI_Waitall(2, both, MPI_STATUSES_IGNORE), MPI_SUCCESS);
    EXPECT_EQ(got, value);
    EXPECT_EQ(before, value);
    MPI_Win_unlock_all(window.handle);
    EXPECT_EQ(read(window, 1), 2 * (40 + ring_.previous()));
    MPI_Win handle = window.handle;
    MPI_Win_free(&handle);
  });
}

TEST_P(Windows, await_and_release_after) {
  if (GetParam() == Caller::in_main || GetParam() == Caller::unknown_thread) {
    GTEST_SKIP() << "release_after is for tasks";
  }
  int before = -1;
  MPI_Win handle = MPI_WIN_NULL;
  call([&] {
    const Window window = allocate();
    handle = window.handle;
    window.memory[0] = ring_.rank;
    MPI_Barrier(ring_.comm);
    MPI_Win_lock_all(0, window.handle);
    MPI_Request request;
    MPI_Rget(&before, 1, MPI_INT, ring_.next(), 0, 1, MPI_INT, window.handle, &request);
    release_after(request);
  });
  EXPECT_EQ(before, ring_.next());
  MPI_Win_unlock_all(handle);
  MPI_Barrier(ring_.comm);
  MPI_Win_free(&handle);
}

template <class Count>
void check_kinds(const Ring& ring) {
  int memory[slots] = {};
  MPI_Win window;
  MPI_Comm_set_errhandler(ring.comm, MPI_ERRORS_RETURN);
  // Open MPI 4.1 has no such windows for one process with threads.
  const int code = either::Win_create(memory, MPI_Aint{sizeof memory}, PlaceOf<Count>{sizeof(int)},
                                      MPI_INFO_NULL, ring.comm, &window);
  EXPECT_TRUE(code == MPI_SUCCESS || ring.size == 1);
  if (code == MPI_SUCCESS) {
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "no_locks", "false");
    EXPECT_EQ(MPI_Win_set_info(window, info), MPI_SUCCESS);
    MPI_Info_free(&info);
    EXPECT_EQ(MPI_Win_free(&window), MPI_SUCCESS);
  }

  int* mine = nullptr;
  EXPECT_EQ(either::Win_allocate(MPI_Aint{sizeof memory}, PlaceOf<Count>{sizeof(int)},
                                 MPI_INFO_NULL, ring.comm, static_cast<void*>(&mine), &window),
            MPI_SUCCESS);
  EXPECT_EQ(MPI_Win_free(&window), MPI_SUCCESS);

  EXPECT_EQ(either::Win_allocate_shared(MPI_Aint{sizeof memory}, PlaceOf<Count>{sizeof(int)},
                                        MPI_INFO_NULL, ring.comm, static_cast<void*>(&mine),
                                        &window),
            MPI_SUCCESS);
  EXPECT_EQ(MPI_Win_free(&window), MPI_SUCCESS);
}

TEST_P(Windows, every_way_to_make_one) {
  call([this] {
    come_late();
    check_kinds<int>(ring_);
#if MPI_VERSION >= 4
    check_kinds<MPI_Count>(ring_);
#endif
    MPI_Win window;
    const int code = MPI_Win_create_dynamic(MPI_INFO_NULL, ring_.comm, &window);
    EXPECT_TRUE(code == MPI_SUCCESS || ring_.size == 1);
    if (code == MPI_SUCCESS) MPI_Win_free(&window);
  });
}

TEST(Locks, tasks_of_all_ranks_take_turns) {
  const Ring ring;
  const Ring second;
  int* memory = nullptr;
  MPI_Win window;
  MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, ring.comm,
                   static_cast<void*>(&memory), &window);
  *memory = 0;
  MPI_Barrier(ring.comm);
  task("increment").spawn([&] {
    for (int i = 0; i < 5; ++i) {
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
      int value = 0;
      MPI_Get(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, window);
      MPI_Win_flush(0, window);
      ++value;
      MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, window);
      MPI_Win_unlock(0, window);
    }
  }).get();
  MPI_Barrier(second.comm);
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
  int value = -1;
  MPI_Get(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, window);
  MPI_Win_unlock(0, window);
  EXPECT_EQ(value, 5 * ring.size);
  MPI_Win_free(&window);
}

EVERY_CALLER(Windows);

}  // namespace
}  // namespace imbrex::test
