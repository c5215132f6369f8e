// SPDX-License-Identifier: BSD-3-Clause
// Each collective of TAMPI's: bound to a task, its result is there when a dependent runs.
#include <TAMPI.h>

#include <numeric>

#include "mpi_test.hpp"

namespace imbrex::test {
namespace {

// The data of every collective here: lists as long as there are ranks. Each rank gives 10 * rank
// plus the position.
class Collective : public testing::Test {
 protected:
  void SetUp() override {
    for (std::size_t i = 0; i < from_.size(); ++i) from_[i] = 10 * ring_.rank + static_cast<int>(i);
    std::iota(places_.begin(), places_.end(), 0);
  }

  // Runs `start(&request)` in a task, and `check()` in a task that depends on it.
  template <class Start, class Check>
  void expect(Start start, Check check) {
    bool checked = false;
    finish([&] {
      task("collective").out(to_).launch([&] {
        MPI_Request request = MPI_REQUEST_NULL;
        EXPECT_EQ(start(&request), MPI_SUCCESS);
        EXPECT_EQ(request, MPI_REQUEST_NULL);
      });
      task("check").in(to_).launch([&] {
        check();
        checked = true;
      });
    });
    EXPECT_TRUE(checked);
  }

  // to_[i] is what rank i gave at position `at(i)`.
  template <class At>
  void expect_from_each(At at) {
    for (int i = 0; i < ring_.size; ++i) {
      EXPECT_EQ(to_[static_cast<std::size_t>(i)], 10 * i + at(i)) << i;
    }
  }
  // The sum of the values that all ranks up to `last` gave at one position.
  [[nodiscard]] static int sum(int last, int position) {
    return 10 * (last * (last + 1) / 2) + (last + 1) * position;
  }

  const Ring ring_;
  const std::size_t length_ = static_cast<std::size_t>(ring_.size);
  std::vector<int> from_ = std::vector<int>(length_);
  std::vector<int> to_ = std::vector<int>(length_, -1);
  std::vector<int> ones_ = std::vector<int>(length_, 1);
  std::vector<int> places_ = std::vector<int>(length_);
  std::vector<MPI_Datatype> types_ = std::vector<MPI_Datatype>(length_, MPI_INT);
  const int root_ = ring_.size - 1;
  MPI_Comm comm_ = ring_.comm;
};

// Methodology: rank 0 enters when all others have said that their bodies are over, and they say so
// after a look at the dependent.
TEST_F(Collective, Ibarrier) {
  std::atomic<bool> entered{false};
  std::atomic<bool> passed{false};
  finish([&] {
    for (int i = 1; i < ring_.size && ring_.rank == 0; ++i) {
      MPI_Recv(&to_[0], 1, MPI_INT, i, 1, comm_, MPI_STATUS_IGNORE);
    }
    task("barrier").out(to_).launch([&] {
      MPI_Request request = MPI_REQUEST_NULL;
      EXPECT_EQ(TAMPI_Ibarrier(comm_, &request), MPI_SUCCESS);
      EXPECT_EQ(request, MPI_REQUEST_NULL);
      entered.store(true);
    });
    task("after").in(to_).launch([&] { passed.store(true); });
    if (ring_.rank == 0) return;
    while (!entered.load()) yield();
    EXPECT_FALSE(passed.load());
    MPI_Send(&ring_.rank, 1, MPI_INT, 0, 1, comm_);
  });
  EXPECT_TRUE(passed.load());
}

TEST_F(Collective, Ibcast) {
  if (ring_.rank == root_) to_ = from_;
  expect([&](auto* request) {
    return TAMPI_Ibcast(to_.data(), ring_.size, MPI_INT, root_, comm_, request);
  }, [&] { EXPECT_EQ(to_[0], 10 * root_); });
}

TEST_F(Collective, Igather) {
  expect([&](auto* request) {
    return TAMPI_Igather(from_.data(), 1, MPI_INT, to_.data(), 1, MPI_INT, root_, comm_, request);
  }, [&] {
    if (ring_.rank == root_) expect_from_each([](int) { return 0; });
  });
}

TEST_F(Collective, Igatherv) {
  expect([&](auto* request) {
    return TAMPI_Igatherv(from_.data(), 1, MPI_INT, to_.data(), ones_.data(), places_.data(),
                          MPI_INT, root_, comm_, request);
  }, [&] {
    if (ring_.rank == root_) expect_from_each([](int) { return 0; });
  });
}

TEST_F(Collective, Iscatter) {
  expect([&](auto* request) {
    return TAMPI_Iscatter(from_.data(), 1, MPI_INT, to_.data(), 1, MPI_INT, root_, comm_, request);
  }, [&] { EXPECT_EQ(to_[0], 10 * root_ + ring_.rank); });
}

TEST_F(Collective, Iscatterv) {
  expect([&](auto* request) {
    return TAMPI_Iscatterv(from_.data(), ones_.data(), places_.data(), MPI_INT, to_.data(), 1,
                           MPI_INT, root_, comm_, request);
  }, [&] { EXPECT_EQ(to_[0], 10 * root_ + ring_.rank); });
}

TEST_F(Collective, Iallgather) {
  expect([&](auto* request) {
    return TAMPI_Iallgather(from_.data(), 1, MPI_INT, to_.data(), 1, MPI_INT, comm_, request);
  }, [&] { expect_from_each([](int) { return 0; }); });
}

TEST_F(Collective, Iallgatherv) {
  expect([&](auto* request) {
    return TAMPI_Iallgatherv(from_.data(), 1, MPI_INT, to_.data(), ones_.data(), places_.data(),
                             MPI_INT, comm_, request);
  }, [&] { expect_from_each([](int) { return 0; }); });
}

TEST_F(Collective, Ialltoall) {
  expect([&](auto* request) {
    return TAMPI_Ialltoall(from_.data(), 1, MPI_INT, to_.data(), 1, MPI_INT, comm_, request);
  }, [&] { expect_from_each([this](int) { return ring_.rank; }); });
}

TEST_F(Collective, Ialltoallv) {
  expect([&](auto* request) {
    return TAMPI_Ialltoallv(from_.data(), ones_.data(), places_.data(), MPI_INT, to_.data(),
                            ones_.data(), places_.data(), MPI_INT, comm_, request);
  }, [&] { expect_from_each([this](int) { return ring_.rank; }); });
}

TEST_F(Collective, Ialltoallw) {
  for (int& place : places_) place *= static_cast<int>(sizeof(int));
  expect([&](auto* request) {
    return TAMPI_Ialltoallw(from_.data(), ones_.data(), places_.data(), types_.data(), to_.data(),
                            ones_.data(), places_.data(), types_.data(), comm_, request);
  }, [&] { expect_from_each([this](int) { return ring_.rank; }); });
}

TEST_F(Collective, Ireduce) {
  expect([&](auto* request) {
    return TAMPI_Ireduce(from_.data(), to_.data(), ring_.size, MPI_INT, MPI_SUM, root_, comm_,
                         request);
  }, [&] {
    if (ring_.rank == root_) {
      EXPECT_EQ(to_.back(), sum(root_, root_));
    }
  });
}

TEST_F(Collective, Iallreduce_and_in_place) {
  expect([&](auto* request) {
    return TAMPI_Iallreduce(from_.data(), to_.data(), ring_.size, MPI_INT, MPI_SUM, comm_,
                            request);
  }, [&] { EXPECT_EQ(to_.back(), sum(root_, root_)); });
  to_ = from_;
  expect([&](auto* request) {
    return TAMPI_Iallreduce(MPI_IN_PLACE, to_.data(), ring_.size, MPI_INT, MPI_SUM, comm_,
                            request);
  }, [&] { EXPECT_EQ(to_.back(), sum(root_, root_)); });
}

TEST_F(Collective, Ireduce_scatter) {
  expect([&](auto* request) {
    return TAMPI_Ireduce_scatter(from_.data(), to_.data(), ones_.data(), MPI_INT, MPI_SUM, comm_,
                                 request);
  }, [&] { EXPECT_EQ(to_[0], sum(root_, ring_.rank)); });
}

TEST_F(Collective, Ireduce_scatter_block) {
  expect([&](auto* request) {
    return TAMPI_Ireduce_scatter_block(from_.data(), to_.data(), 1, MPI_INT, MPI_SUM, comm_,
                                       request);
  }, [&] { EXPECT_EQ(to_[0], sum(root_, ring_.rank)); });
}

TEST_F(Collective, Iscan) {
  expect([&](auto* request) {
    return TAMPI_Iscan(from_.data(), to_.data(), 1, MPI_INT, MPI_SUM, comm_, request);
  }, [&] { EXPECT_EQ(to_[0], sum(ring_.rank, 0)); });
}

TEST_F(Collective, Iexscan) {
  expect([&](auto* request) {
    return TAMPI_Iexscan(from_.data(), to_.data(), 1, MPI_INT, MPI_SUM, comm_, request);
  }, [&] {
    if (ring_.rank > 0) {
      EXPECT_EQ(to_[0], sum(ring_.rank - 1, 0));
    }
  });
}

}  // namespace
}  // namespace imbrex::test
