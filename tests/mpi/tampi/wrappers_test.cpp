// SPDX-License-Identifier: BSD-3-Clause
// The wrappers of TAMPI 4, which name no request: they bind it to the task.
#include <TAMPI.h>

#include <array>

#include "mpi_test.hpp"

namespace imbrex::test {
namespace {

TEST(Wrappers, hold_their_tasks_until_the_messages_are_there) {
  constexpr int count = 40;
  const Ring ring;
  std::array<int, count> in;
  std::array<int, count> out{};
  std::array<MPI_Status, count> statuses;
  in.fill(-1);
  std::atomic<int> right{0};
  finish([&] {
    for (int tag = 0; tag < count; ++tag) {
      task("receive").out(in[tag]).launch([&, tag] {
        EXPECT_EQ(TAMPI_Irecv(&in[tag], 1, MPI_INT, ring.previous(), tag, ring.comm,
                              &statuses[tag]),
                  MPI_SUCCESS);
      });
      task("use").in(in[tag]).launch([&, tag] {
        if (in[tag] == 100 * ring.previous() + tag && statuses[tag].MPI_TAG == tag) {
          right.fetch_add(1);
        }
      });
    }
    for (int tag = 0; tag < count; ++tag) {
      task("send").out(out[tag]).launch([&, tag] {
        out[tag] = 100 * ring.rank + tag;
        const auto send = tag % 2 == 0 ? &TAMPI_Isend : &TAMPI_Issend;
        EXPECT_EQ(send(&out[tag], 1, MPI_INT, ring.next(), tag, ring.comm), MPI_SUCCESS);
      });
      // The send's buffer may be written again.
      task("overwrite").out(out[tag]).launch([&, tag] { out[tag] = -1; });
    }
  });
  EXPECT_EQ(right.load(), count);
}

TEST(Wrappers, hold_their_tasks_until_a_collective_is_over) {
  const Ring ring;
  for (int round = 0; round < 10; ++round) {
    int sum = -1;
    int seen = -1;
    int word = ring.rank == 0 ? round : -1;
    finish([&] {
      task("sum").out(sum).launch([&] {
        EXPECT_EQ(TAMPI_Iallreduce(&ring.rank, &sum, 1, MPI_INT, MPI_SUM, ring.comm), MPI_SUCCESS);
      });
      task("see").in(sum).out(seen).launch([&] { seen = sum; });
      task("barrier").inout(seen).launch([&] {
        EXPECT_EQ(TAMPI_Ibarrier(ring.comm), MPI_SUCCESS);
      });
      task("word").inout(seen).launch([&] {
        EXPECT_EQ(TAMPI_Ibcast(&word, 1, MPI_INT, 0, ring.comm), MPI_SUCCESS);
      });
    });
    EXPECT_EQ(seen, ring.size * (ring.size - 1) / 2);
    EXPECT_EQ(word, round);
  }
}

}  // namespace
}  // namespace imbrex::test
