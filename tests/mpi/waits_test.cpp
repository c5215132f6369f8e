// SPDX-License-Identifier: BSD-3-Clause
// Every kind of request that an MPI has, waited for in suspended tasks by every call that waits:
// persistent collectives, partitioned messages, files, remote memory, generalised requests. Some
// MPIs make mistakes with several of them in one call, so imbrex tests these one by one.
#include <unistd.h>

#include <array>
#include <functional>
#include <map>
#include <string>

#include "mpi_test.hpp"

namespace imbrex::test {
namespace {

using Requests = std::vector<MPI_Request>;

int size_of(const Requests& requests) { return static_cast<int>(requests.size()); }

// Each returns when all are complete.
const std::map<std::string, std::function<void(Requests&)>> ways{
    {"waitall",
     [](Requests& requests) {
       std::vector<MPI_Status> statuses(requests.size());
       EXPECT_EQ(MPI_Waitall(size_of(requests), requests.data(), statuses.data()), MPI_SUCCESS);
     }},
    {"waitany",
     [](Requests& requests) {
       for (std::size_t left = requests.size(); left > 0; --left) {
         int index = -1;
         MPI_Status status;
         ASSERT_EQ(MPI_Waitany(size_of(requests), requests.data(), &index, &status), MPI_SUCCESS);
         ASSERT_TRUE(index >= 0 && index < size_of(requests)) << index;
       }
     }},
    {"waitsome",
     [](Requests& requests) {
       for (int left = size_of(requests); left > 0;) {
         int found = 0;
         std::vector<int> indices(requests.size());
         ASSERT_EQ(MPI_Waitsome(size_of(requests), requests.data(), &found, indices.data(),
                                MPI_STATUSES_IGNORE),
                   MPI_SUCCESS);
         ASSERT_GT(found, 0);
         left -= found;
       }
     }},
    {"wait",
     [](Requests& requests) {
       for (MPI_Request& request : requests) {
         EXPECT_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
       }
     }},
};

// Runs `body(wait)` in a task for each way, while another task is always ready.
template <class F>
void by_each_way(F body) {
  for (const auto& [name, wait] : ways) {
    SCOPED_TRACE(name);
    const Bustle bustle;
    task("waits").spawn([&] { body(wait); }).get();
  }
}

TEST(Waits, generalised_requests_beside_messages) {
  const Ring ring;
  by_each_way([&](const auto& wait) {
    int in = -1;
    Requests requests(2);
    MPI_Grequest_start(
        [](void*, MPI_Status* status) {
          MPI_Status_set_elements(status, MPI_BYTE, 0);
          MPI_Status_set_cancelled(status, 0);
          status->MPI_SOURCE = MPI_UNDEFINED;
          status->MPI_TAG = MPI_UNDEFINED;
          return MPI_SUCCESS;
        },
        [](void*) { return MPI_SUCCESS; }, [](void*, int) { return MPI_SUCCESS; }, nullptr,
        &requests[0]);
    MPI_Irecv(&in, 1, MPI_INT, ring.previous(), 1, ring.comm, &requests[1]);
    const MPI_Request generalised = requests[0];
    task("complete").launch([&] {
      sleep_ms(1);
      MPI_Send(&ring.rank, 1, MPI_INT, ring.next(), 1, ring.comm);
      MPI_Grequest_complete(generalised);
    });
    wait(requests);
    EXPECT_EQ(in, ring.previous());
    taskwait();
  });
}

TEST(Waits, remote_memory) {
  const Ring ring;
  int* memory = nullptr;
  MPI_Win window;
  MPI_Win_allocate(4 * sizeof(int), sizeof(int), MPI_INFO_NULL, ring.comm, &memory, &window);
  by_each_way([&](const auto& wait) {
    MPI_Win_lock_all(0, window);
    std::array<int, 4> out{ring.rank, 1, 2, 3};
    std::array<int, 2> in{-1, -1};
    Requests requests(3);
    MPI_Rput(out.data(), 2, MPI_INT, ring.next(), 0, 2, MPI_INT, window, &requests[0]);
    MPI_Rput(&out[2], 2, MPI_INT, ring.next(), 2, 2, MPI_INT, window, &requests[1]);
    MPI_Irecv(in.data(), 1, MPI_INT, ring.previous(), 1, ring.comm, &requests[2]);
    MPI_Send(&ring.rank, 1, MPI_INT, ring.next(), 1, ring.comm);
    wait(requests);
    EXPECT_EQ(in[0], ring.previous());
    MPI_Win_unlock_all(window);
    MPI_Barrier(ring.comm);
    EXPECT_EQ(memory[0], ring.previous());
    EXPECT_EQ(memory[3], 3);
    MPI_Barrier(ring.comm);
  });
  MPI_Win_free(&window);
}

#ifndef OPEN_MPI  // crashes as soon as a second thread is in MPI: docs/design/mpi-facts.md
// An empty file of all ranks, deleted when it is closed; MPI_FILE_NULL where that failed.
MPI_File open_file(const Ring& ring) {
  int process = static_cast<int>(getpid());
  MPI_Bcast(&process, 1, MPI_INT, 0, ring.comm);
  const std::string name = "/tmp/imbrex_waits_" + std::to_string(process);
  MPI_File file = MPI_FILE_NULL;
  EXPECT_EQ(MPI_File_open(ring.comm, name.c_str(),
                          MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                          &file),
            MPI_SUCCESS);
  return file;
}

TEST(Waits, files) {
  const Ring ring;
  constexpr int blocks = 6;
  constexpr int block = 5000;
  MPI_File file = open_file(ring);
  ASSERT_NE(file, MPI_FILE_NULL);
  by_each_way([&](const auto& wait) {
    std::vector<int> out(blocks * block);
    std::vector<int> in(blocks * block, -1);
    const MPI_Offset mine = static_cast<MPI_Offset>(ring.rank) * blocks * block * sizeof(int);
    Requests requests(blocks);
    for (int i = 0; i < blocks; ++i) {
      for (int k = 0; k < block; ++k) out[i * block + k] = 1000 * ring.rank + i + k;
      MPI_File_iwrite_at(file, mine + i * block * MPI_Offset{sizeof(int)}, &out[i * block], block,
                         MPI_INT, &requests[i]);
    }
    wait(requests);
    for (int i = 0; i < blocks; ++i) {
      MPI_File_iread_at(file, mine + i * block * MPI_Offset{sizeof(int)}, &in[i * block], block,
                        MPI_INT, &requests[i]);
    }
    wait(requests);
    EXPECT_EQ(in, out);
  });
  MPI_File_close(&file);
}

TEST(Waits, collective_files) {
  const Ring ring;
  constexpr int block = 5000;
  MPI_File file = open_file(ring);
  ASSERT_NE(file, MPI_FILE_NULL);
  by_each_way([&](const auto& wait) {
    const std::vector<int> out(block, ring.rank);
    std::vector<int> in(block, -1);
    const MPI_Offset mine = static_cast<MPI_Offset>(ring.rank) * block * sizeof(int);
    Requests requests(1);
    MPI_File_iwrite_at_all(file, mine, out.data(), block, MPI_INT, &requests[0]);
    wait(requests);
    MPI_File_iread_at_all(file, mine, in.data(), block, MPI_INT, &requests[0]);
    wait(requests);
    EXPECT_EQ(in, out);
  });
  MPI_File_close(&file);
}
#endif

#if MPI_VERSION >= 4
// MPICH 4.0.2's own MPI_Waitany names one of them twice, and does not end it.
constexpr bool names_persistent_collectives =
#if defined(MPICH_NUMVERSION) && MPICH_NUMVERSION < 40200000
    false;
#else
    true;
#endif

TEST(Waits, persistent_collectives) {
  const Ring ring;
  by_each_way([&](const auto& wait) {
    const bool names = &wait == &ways.at("waitany") || &wait == &ways.at("waitsome");
    if (names && !names_persistent_collectives) return;
    std::array<int, 3> in{};
    std::array<int, 3> out{};
    Requests requests(3);
    MPI_Allreduce_init(&in[0], &out[0], 1, MPI_INT, MPI_SUM, ring.comm, MPI_INFO_NULL,
                       &requests[0]);
    MPI_Bcast_init(&out[1], 1, MPI_INT, 0, ring.comm, MPI_INFO_NULL, &requests[1]);
    MPI_Barrier_init(ring.comm, MPI_INFO_NULL, &requests[2]);
    for (int round = 0; round < 5; ++round) {
      in[0] = round;
      out[1] = ring.rank == 0 ? round : -1;
      for (MPI_Request& request : requests) MPI_Start(&request);
      wait(requests);
      EXPECT_EQ(out[0], round * ring.size);
      EXPECT_EQ(out[1], round);
    }
    for (MPI_Request& request : requests) MPI_Request_free(&request);
  });
}

TEST(Waits, partitioned_messages) {
  const Ring ring;
  if (ring.size == 1) GTEST_SKIP() << "needs two ranks";
  constexpr int parts = 8;
  constexpr int count = 100;
  by_each_way([&](const auto& wait) {
    std::vector<int> in(parts * count, -1);
    std::vector<int> out(parts * count);
    Requests requests(2);
    MPI_Psend_init(out.data(), parts, count, MPI_INT, ring.next(), 5, ring.comm, MPI_INFO_NULL,
                   &requests[0]);
    MPI_Precv_init(in.data(), parts, count, MPI_INT, ring.previous(), 5, ring.comm, MPI_INFO_NULL,
                   &requests[1]);
    for (int round = 0; round < 5; ++round) {
      MPI_Startall(2, requests.data());
      for (int part = 0; part < parts; ++part) {
        for (int k = 0; k < count; ++k) out[part * count + k] = round + ring.rank + part;
        MPI_Pready(part, requests[0]);
      }
      wait(requests);
      EXPECT_EQ(in[0], round + ring.previous());
      EXPECT_EQ(in.back(), round + ring.previous() + parts - 1);
    }
    for (MPI_Request& request : requests) MPI_Request_free(&request);
  });
}
#endif

}  // namespace
}  // namespace imbrex::test
