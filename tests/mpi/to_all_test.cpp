// SPDX-License-Identifier: BSD-3-Clause
// IMBREX_Send_to_all, matched by every call that receives: without trees, with trees, and with
// trees on which no rank keeps anything (IMBREX_TREE_MEMORY, see CMakeLists.txt).
#include <algorithm>
#include <array>
#include <numeric>
#include <string>

#include "imbrex/mpi.h"
#include "mpi_test.hpp"

namespace imbrex::test {
namespace {

MPI_Comm make(const char* trees) {
  MPI_Info info;
  MPI_Info_create(&info);
  if (trees != nullptr) MPI_Info_set(info, "imbrex_trees", trees);
  MPI_Comm comm = MPI_COMM_NULL;
  EXPECT_EQ(MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm), MPI_SUCCESS);
  MPI_Info_free(&info);
  return comm;
}

std::vector<int> numbers(const int count, const int first) {
  std::vector<int> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), first);
  return values;
}

void expect_from(const int source, const int tag, const int count, const MPI_Status& status) {
  int got = -1;
  MPI_Get_count(&status, MPI_INT, &got);
  EXPECT_EQ(status.MPI_SOURCE, source);
  EXPECT_EQ(status.MPI_TAG, tag);
  EXPECT_EQ(got, count);
}

// Below and above what is sent eagerly, what goes in segments, and what is none.
constexpr std::array sizes{0, 1, 1000, 40'000, 300'001};
constexpr int tag = 7;

// The parameter: imbrex_trees, or null.
class ToAll : public testing::TestWithParam<const char*> {
 protected:
  ToAll() : comm_(make(GetParam())) {
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
  }
  ~ToAll() override {
    if (comm_ != MPI_COMM_NULL) MPI_Comm_free(&comm_);
  }

  // All ranks but `root`.
  [[nodiscard]] std::vector<int> others(const int root) const {
    std::vector<int> all;
    for (int other = 0; other < size_; ++other) {
      if (other != root) all.push_back(other);
    }
    return all;
  }
  void send(const int root, const std::vector<int>& values, const int its_tag) const {
    const std::vector<int> to = others(root);
    EXPECT_EQ(IMBREX_Send_to_all(values.data(), static_cast<int>(values.size()), MPI_INT,
                                 to.data(), static_cast<int>(to.size()), its_tag, comm_),
              MPI_SUCCESS);
  }
  // Every rank is the root once, with every size; `receive(root, count)` runs on the others.
  template <class Receive>
  void with_every_root(Receive receive) {
    for (int root = 0; root < size_; ++root) {
      for (const int count : sizes) {
        if (rank_ == root) {
          send(root, numbers(count, root), tag);
        } else {
          receive(root, count);
        }
      }
      MPI_Barrier(comm_);  // wildcards shall not see the next root yet
    }
  }

  MPI_Comm comm_;
  int rank_ = 0;
  int size_ = 1;
};

TEST_P(ToAll, is_received_by_recv) {
  with_every_root([&](int root, int count) {
    std::vector<int> got(static_cast<std::size_t>(count) + 5);
    MPI_Status status;
    ASSERT_EQ(MPI_Recv(got.data(), count + 5, MPI_INT, root, tag, comm_, &status), MPI_SUCCESS);
    expect_from(root, tag, count, status);
    got.resize(static_cast<std::size_t>(count));
    EXPECT_EQ(got, numbers(count, root));
  });
}

TEST_P(ToAll, has_a_face_for_cpp) {
  for (int root = 0; root < size_; ++root) {
    const std::vector<int> values = numbers(40'000, root);
    if (rank_ == root) {
      std::vector<int> to = others(root);
      Future<MPI_Status> sent = start_send_to_all(values.data(), 40'000, MPI_INT, to, tag, comm_);
      send_to_all(values.data(), 40'000, MPI_INT, to, tag, comm_);
      std::ranges::fill(to, -7);  // the list may change at once
      (void)sent.get();
      (void)start_send_to_all(values.data(), 1, MPI_INT, {}, tag, comm_).get();  // to nobody
    } else {
      for (int i = 0; i < 2; ++i) {
        std::vector<int> got(40'000);
        MPI_Recv(got.data(), 40'000, MPI_INT, root, tag, comm_, MPI_STATUS_IGNORE);
        EXPECT_EQ(got, values);
      }
    }
  }
  MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  const std::vector<int> nobody{size_};
  EXPECT_THROW(send_to_all(nullptr, 0, MPI_INT, nobody, tag, comm_), MpiError);
  EXPECT_THROW((void)start_send_to_all(nullptr, 0, MPI_INT, nobody, tag, comm_), MpiError);
  MPI_Barrier(comm_);
}

TEST_P(ToAll, is_received_by_wildcards_in_a_task) {
  with_every_root([&](int root, int count) {
    task("receive").spawn([&] {
      std::vector<int> got(static_cast<std::size_t>(count));
      MPI_Status status;
      MPI_Recv(got.data(), count, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &status);
      expect_from(root, tag, count, status);
      EXPECT_EQ(got, numbers(count, root));
    }).wait();
  });
}

TEST_P(ToAll, is_received_by_probes) {
  int way = 0;
  with_every_root([&](int root, int count) {
    std::vector<int> got(static_cast<std::size_t>(count));
    MPI_Status found;
    MPI_Status status;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Request request = MPI_REQUEST_NULL;
    int there = 0;
    switch (way++ % 4) {
      case 0:
        MPI_Probe(root, MPI_ANY_TAG, comm_, &found);
        MPI_Recv(got.data(), count, MPI_INT, root, tag, comm_, &status);
        break;
      case 1:
        MPI_Mprobe(root, MPI_ANY_TAG, comm_, &message, &found);
        MPI_Mrecv(got.data(), count, MPI_INT, &message, &status);
        break;
      case 2:
        while (there == 0) MPI_Improbe(root, tag, comm_, &there, &message, &found);
        MPI_Imrecv(got.data(), count, MPI_INT, &message, &request);
        MPI_Wait(&request, &status);
        break;
      default:
        while (there == 0) MPI_Iprobe(root, tag, comm_, &there, &found);
        MPI_Irecv(got.data(), count, MPI_INT, root, MPI_ANY_TAG, comm_, &request);
        MPI_Wait(&request, &status);
    }
    EXPECT_EQ(message, MPI_MESSAGE_NULL);
    expect_from(root, tag, count, found);
    expect_from(root, tag, count, status);
    EXPECT_EQ(got, numbers(count, root));
  });
}

TEST_P(ToAll, is_received_by_when_arrived) {
  with_every_root([&](int root, int count) {
    std::vector<int> got(static_cast<std::size_t>(count));
    const Future<ArrivedMessage> arrived = when_arrived(root, tag, comm_);
    const MPI_Status status = arrived.get().receive(got.data(), count, MPI_INT);
    expect_from(root, tag, count, status);
    EXPECT_EQ(got, numbers(count, root));
  });
}

TEST_P(ToAll, is_received_by_persistent_receives) {
  for (int root = 0; root < size_; ++root) {
    const int count = 50'000;
    if (rank_ == root) {
      for (int i = 0; i < 6; ++i) send(root, numbers(count, i), tag);
      continue;
    }
    std::vector<int> got(count);
    MPI_Request request;
    MPI_Recv_init(got.data(), count, MPI_INT, root, tag, comm_, &request);
    for (int i = 0; i < 6; ++i) {
      if (i % 2 == 0) sleep_ms(2);
      MPI_Status status;
      MPI_Start(&request);
      MPI_Wait(&request, &status);
      expect_from(root, tag, count, status);
      EXPECT_EQ(got, numbers(count, i));
    }
    MPI_Request_free(&request);
  }
}

TEST_P(ToAll, is_received_by_sendrecv) {
  with_every_root([&](int root, int count) {
    std::vector<int> got(static_cast<std::size_t>(count));
    MPI_Status status;
    MPI_Sendrecv(&root, 1, MPI_INT, MPI_PROC_NULL, 0, got.data(), count, MPI_INT, root, tag, comm_,
                 &status);
    expect_from(root, tag, count, status);
    EXPECT_EQ(got, numbers(count, root));
  });
}

// Receives that are there before the messages, and more of them than one round takes.
TEST_P(ToAll, finds_receives_that_were_posted_early) {
  constexpr int many = 30;
  constexpr int count = 20'000;
  for (int root = 0; root < size_; ++root) {
    MPI_Barrier(comm_);
    if (rank_ == root) {
      sleep_ms(5);
      for (int i = 0; i < many; ++i) send(root, numbers(count, i), i);
      continue;
    }
    std::vector<std::vector<int>> got(many, std::vector<int>(count));
    std::vector<MPI_Request> requests(many);
    for (int i = 0; i < many; ++i) {
      MPI_Irecv(got[i].data(), count, MPI_INT, i % 3 == 0 ? MPI_ANY_SOURCE : root, i, comm_,
                &requests[i]);
    }
    std::vector<MPI_Status> statuses(many);
    MPI_Waitall(many, requests.data(), statuses.data());
    for (int i = 0; i < many; ++i) {
      expect_from(root, i, count, statuses[i]);
      EXPECT_EQ(got[i], numbers(count, i));
    }
  }
}

// Ranks that receive late, and in another order than was sent, pass on what they get all the same.
TEST_P(ToAll, does_not_wait_for_who_receives_late) {
  constexpr int many = 12;
  constexpr int count = 30'000;
  std::vector<MPI_Request> sends;
  std::vector<std::vector<int>> values;
  for (int i = 0; i < many; ++i) values.push_back(numbers(count, 1000 * rank_ + i));
  const std::vector<int> to = others(rank_);
  for (int i = 0; i < many; ++i) {
    sends.emplace_back();
    IMBREX_Isend_to_all(values[i].data(), count, MPI_INT, to.data(), static_cast<int>(to.size()),
                        i, comm_, &sends.back());
  }
  for (int i = many; i-- > 0;) {
    for (const int source : to) {
      std::vector<int> got(count);
      MPI_Status status;
      MPI_Recv(got.data(), count, MPI_INT, source, i, comm_, &status);
      expect_from(source, i, count, status);
      EXPECT_EQ(got, numbers(count, 1000 * source + i));
    }
  }
  MPI_Waitall(many, sends.data(), MPI_STATUSES_IGNORE);
  for (const MPI_Request request : sends) EXPECT_EQ(request, MPI_REQUEST_NULL);
}

// Plain sends before and after, from the root and from those that pass its message on.
TEST_P(ToAll, keeps_its_place_among_other_messages) {
  constexpr int rounds = 20;
  for (int root = 0; root < size_; ++root) {
    const std::vector<int> to = others(root);
    if (rank_ == root) {
      for (int i = 0; i < rounds; ++i) {
        const int before = 3 * i;
        const int after = 3 * i + 2;
        for (const int other : to) MPI_Send(&before, 1, MPI_INT, other, i % 3, comm_);
        send(root, numbers(i % 2 == 0 ? 70'000 : 9'000, 3 * i + 1), (i + 1) % 3);
        for (const int other : to) MPI_Send(&after, 1, MPI_INT, other, (i + 2) % 3, comm_);
      }
    } else {
      std::vector<int> got(70'000);
      for (int i = 0; i < 3 * rounds; ++i) {
        MPI_Status status;
        MPI_Recv(got.data(), 70'000, MPI_INT, root, MPI_ANY_TAG, comm_, &status);
        EXPECT_EQ(got[0], i);
        EXPECT_EQ(status.MPI_SOURCE, root);
        for (const int other : to) {
          if (i % 3 == 1 && other != rank_) MPI_Send(&i, 1, MPI_INT, other, 100, comm_);
        }
      }
      for (int i = 0; i < rounds * (static_cast<int>(to.size()) - 1); ++i) {
        int value = -1;
        MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 100, comm_, MPI_STATUS_IGNORE);
        EXPECT_EQ(value % 3, 1);
      }
    }
    MPI_Barrier(comm_);
  }
}

TEST_P(ToAll, leaves_a_receive_that_was_cancelled) {
  constexpr int count = 20'000;
  std::vector<int> never(count, -1);
  std::vector<int> got(count);
  if (rank_ != 0) {
    MPI_Request request;
    MPI_Status status;
    int cancelled = 0;
    MPI_Irecv(never.data(), count, MPI_INT, 0, tag, comm_, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    EXPECT_EQ(cancelled, 1);
  }
  MPI_Barrier(comm_);
  if (rank_ == 0) {
    send(0, numbers(count, 5), tag);
  } else {
    MPI_Recv(got.data(), count, MPI_INT, 0, tag, comm_, MPI_STATUS_IGNORE);
    EXPECT_EQ(got, numbers(count, 5));
    EXPECT_EQ(never, std::vector<int>(count, -1));
  }
}

// Open MPI 4 writes past the buffer of longer ones that are truncated (docs/design/mpi-facts.md).
TEST_P(ToAll, is_truncated_as_any_message) {
  constexpr int count = 300;
  MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  if (rank_ == 0) {
    for (int i = 0; i < 4; ++i) send(0, numbers(count, 0), tag);
  } else {
    int error_class = 0;
    std::vector<int> got(count);
    const auto expect_truncated = [&](const int code) {
      MPI_Error_class(code, &error_class);
      EXPECT_EQ(error_class, MPI_ERR_TRUNCATE);
    };
    expect_truncated(MPI_Recv(got.data(), 100, MPI_INT, 0, tag, comm_, MPI_STATUS_IGNORE));
    MPI_Request request;
    MPI_Irecv(got.data(), 100, MPI_INT, 0, tag, comm_, &request);
    expect_truncated(MPI_Wait(&request, MPI_STATUS_IGNORE));
    MPI_Message message;
    MPI_Mprobe(0, tag, comm_, &message, MPI_STATUS_IGNORE);
    expect_truncated(MPI_Mrecv(got.data(), 100, MPI_INT, &message, MPI_STATUS_IGNORE));
    EXPECT_EQ(MPI_Recv(got.data(), count, MPI_INT, 0, tag, comm_, MPI_STATUS_IGNORE), MPI_SUCCESS);
    EXPECT_EQ(got, numbers(count, 0));
  }
}

std::atomic<int> handler_calls{0};
std::atomic<bool> handler_of_program{false};
MPI_Comm handled = MPI_COMM_NULL;
void count_error(MPI_Comm* comm, int*, ...) {
  handler_calls.fetch_add(1);
  handler_of_program.store(*comm == handled);
}

TEST_P(ToAll, calls_the_handler_of_the_programs_communicator) {
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(&count_error, &handler);
  MPI_Comm_set_errhandler(comm_, handler);
  MPI_Errhandler_free(&handler);
  handled = comm_;
  handler_calls.store(0);
  constexpr int count = 300;
  if (rank_ == 0) {
    send(0, numbers(count, 0), tag);
  } else {
    std::vector<int> got(count);
    EXPECT_NE(MPI_Recv(got.data(), 100, MPI_INT, 0, tag, comm_, MPI_STATUS_IGNORE), MPI_SUCCESS);
    EXPECT_EQ(handler_calls.load(), 1);
    EXPECT_TRUE(handler_of_program.load());
  }
}

TEST_P(ToAll, sends_to_itself_twice_to_one_and_to_nobody) {
  constexpr int count = 25'000;
  if (rank_ == 0) {
    std::vector<int> to{MPI_PROC_NULL, 0};
    for (const int other : others(0)) {
      to.push_back(other);
      to.push_back(other);
    }
    to.push_back(MPI_PROC_NULL);
    const std::vector<int> values = numbers(count, 3);
    std::vector<int> got(count);
    MPI_Request request;
    EXPECT_EQ(IMBREX_Isend_to_all(values.data(), count, MPI_INT, to.data(),
                                  static_cast<int>(to.size()), tag, comm_, &request),
              MPI_SUCCESS);
    std::fill(to.begin(), to.end(), -7);  // the call has read it
    MPI_Recv(got.data(), count, MPI_INT, 0, tag, comm_, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT_EQ(got, values);
  } else {
    for (int i = 0; i < 2; ++i) {
      std::vector<int> got(count);
      MPI_Recv(got.data(), count, MPI_INT, 0, tag, comm_, MPI_STATUS_IGNORE);
      EXPECT_EQ(got, numbers(count, 3));
    }
  }
  MPI_Barrier(comm_);
  int there = 1;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &there, MPI_STATUS_IGNORE);
  EXPECT_EQ(there, 0);
}

TEST_P(ToAll, to_no_rank_is_complete) {
  const int value = 1;
  const int nobody = MPI_PROC_NULL;
  EXPECT_EQ(IMBREX_Send_to_all(&value, 1, MPI_INT, nullptr, 0, tag, comm_), MPI_SUCCESS);
  EXPECT_EQ(IMBREX_Send_to_all(&value, 1, MPI_INT, &nobody, 1, tag, comm_), MPI_SUCCESS);
  MPI_Request request;
  EXPECT_EQ(IMBREX_Isend_to_all(&value, 1, MPI_INT, nullptr, 0, tag, comm_, &request), MPI_SUCCESS);
  EXPECT_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
}

TEST_P(ToAll, refuses_what_mpi_refuses) {
  MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  const int value = 1;
  MPI_Request request = MPI_REQUEST_NULL;
  const auto class_of = [](const int code) {
    int error_class = 0;
    MPI_Error_class(code, &error_class);
    return error_class;
  };
  const std::vector<int> wrong{0, size_};
  EXPECT_EQ(class_of(IMBREX_Send_to_all(&value, 1, MPI_INT, wrong.data(), 2, tag, comm_)),
            MPI_ERR_RANK);
  const std::vector<int> right{0};
  EXPECT_EQ(class_of(IMBREX_Send_to_all(&value, 1, MPI_INT, right.data(), 1, -5, comm_)),
            MPI_ERR_TAG);
  EXPECT_EQ(class_of(IMBREX_Isend_to_all(&value, -1, MPI_INT, right.data(), 1, tag, comm_,
                                         &request)),
            MPI_ERR_COUNT);
  EXPECT_EQ(class_of(IMBREX_Send_to_all(&value, 1, MPI_INT, right.data(), -1, tag, comm_)),
            MPI_ERR_ARG);
  EXPECT_EQ(class_of(IMBREX_Send_to_all(&value, 1, MPI_INT, nullptr, 1, tag, comm_)), MPI_ERR_ARG);
  int there = 1;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &there, MPI_STATUS_IGNORE);
  EXPECT_EQ(there, 0);
}

TEST_P(ToAll, takes_and_fills_derived_types) {
  constexpr int count = 6'000;
  MPI_Datatype every_other;
  MPI_Type_vector(count, 1, 2, MPI_INT, &every_other);
  MPI_Type_commit(&every_other);
  if (rank_ == 0) {
    const std::vector<int> values = numbers(2 * count, 0);
    const std::vector<int> to = others(0);
    MPI_Request request;
    IMBREX_Isend_to_all(values.data(), 1, every_other, to.data(), static_cast<int>(to.size()), tag,
                        comm_, &request);
    MPI_Type_free(&every_other);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    std::vector<int> got(2 * count, -1);
    MPI_Request request;
    MPI_Status status;
    MPI_Irecv(got.data(), 1, every_other, 0, tag, comm_, &request);
    MPI_Type_free(&every_other);
    MPI_Wait(&request, &status);
    expect_from(0, tag, count, status);
    for (int i = 0; i < 2 * count; ++i) EXPECT_EQ(got[i], i % 2 == 0 ? i : -1);
  }
}

TEST_P(ToAll, gives_a_request_like_others) {
  constexpr int count = 40'000;
  const std::vector<int> values = numbers(count, 2);
  if (rank_ == 0) {
    const std::vector<int> to = others(0);
    const int n = static_cast<int>(to.size());
    std::array<MPI_Request, 6> requests;
    for (MPI_Request& request : requests) {
      IMBREX_Isend_to_all(values.data(), count, MPI_INT, to.data(), n, tag, comm_, &request);
      EXPECT_EQ(request == MPI_REQUEST_NULL, n == 0);
    }
    if (n != 0) MPI_Cancel(&requests[0]);  // does nothing
    int done = 0;
    while (done == 0) MPI_Test(&requests[0], &done, MPI_STATUS_IGNORE);
    done = 0;
    while (done == 0) MPI_Request_get_status(requests[1], &done, MPI_STATUS_IGNORE);
    await(requests[1]);
    when(requests[2]).wait();
    if (requests[3] != MPI_REQUEST_NULL) MPI_Request_free(&requests[3]);
    int index = 0;
    MPI_Waitany(6, requests.data(), &index, MPI_STATUS_IGNORE);
    MPI_Waitall(6, requests.data(), MPI_STATUSES_IGNORE);
    for (const MPI_Request request : requests) EXPECT_EQ(request, MPI_REQUEST_NULL);
  } else {
    for (int i = 0; i < 6; ++i) {
      std::vector<int> got(count);
      MPI_Recv(got.data(), count, MPI_INT, 0, tag, comm_, MPI_STATUS_IGNORE);
      EXPECT_EQ(got, values);
    }
  }
  MPI_Barrier(comm_);  // `values` of the request that was freed
}

// The last to see the communicator need not be those that send.
TEST_P(ToAll, goes_on_while_the_communicator_is_freed) {
  constexpr int count = 200'000;
  const std::vector<int> values = numbers(count, rank_);
  const std::vector<int> to = others(rank_);
  std::vector<std::vector<int>> got;
  std::vector<MPI_Request> requests;
  for (const int source : to) {
    got.emplace_back(count);
    requests.emplace_back();
    MPI_Irecv(got.back().data(), count, MPI_INT, source, tag, comm_, &requests.back());
  }
  requests.emplace_back();
  IMBREX_Isend_to_all(values.data(), count, MPI_INT, to.data(), static_cast<int>(to.size()), tag,
                      comm_, &requests.back());
  MPI_Comm_free(&comm_);
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  for (std::size_t i = 0; i < to.size(); ++i) EXPECT_EQ(got[i], numbers(count, to[i]));
}

TEST_P(ToAll, comes_from_many_tasks_at_a_time) {
  constexpr int count = 12'000;
  constexpr int many = 8;
  const std::vector<int> to = others(rank_);
  finish([&] {
    for (int i = 0; i < many; ++i) {
      task("send").launch([&, i] {
        const std::vector<int> values = numbers(count, 100 * rank_ + i);
        IMBREX_Send_to_all(values.data(), count, MPI_INT, to.data(), static_cast<int>(to.size()),
                           i, comm_);
      });
      for (const int source : to) {
        task("receive").launch([&, i, source] {
          std::vector<int> got(count);
          MPI_Status status;
          MPI_Recv(got.data(), count, MPI_INT, source, i, comm_, &status);
          expect_from(source, i, count, status);
          EXPECT_EQ(got, numbers(count, 100 * source + i));
        });
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(, ToAll, testing::Values(nullptr, "1", "true"),
                         [](const auto& of) {
                           return of.param == nullptr ? "plain"
                                                      : "trees_" + std::string(of.param);
                         });

TEST(Trees, are_not_for_intercommunicators) {
  int rank = 0;
  int size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size < 2) GTEST_SKIP();
  MPI_Comm half;
  MPI_Comm between;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 3, &between);
  const int value = 40 + rank % 2;
  int remote = 0;
  MPI_Comm_remote_size(between, &remote);
  std::vector<int> to(static_cast<std::size_t>(remote));
  std::iota(to.begin(), to.end(), 0);
  int here = 0;
  MPI_Comm_rank(half, &here);
  MPI_Request request = MPI_REQUEST_NULL;
  if (here == 0) {
    IMBREX_Isend_to_all(&value, 1, MPI_INT, to.data(), remote, tag, between, &request);
  }
  int got = 0;
  MPI_Recv(&got, 1, MPI_INT, 0, tag, between, MPI_STATUS_IGNORE);
  EXPECT_EQ(got, 41 - rank % 2);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_free(&between);
  MPI_Comm_free(&half);
}

void give_trees(MPI_Comm comm) {
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "imbrex_trees", "1");
  EXPECT_EQ(MPI_Comm_set_info(comm, info), MPI_SUCCESS);
  MPI_Info_free(&info);
}

// A receive that MPI has already would take an announcement for its message.
TEST(Trees, are_not_begun_where_receives_are_open) {
  const Ring ring;
  std::vector<int> got(20'000);
  MPI_Request request = MPI_REQUEST_NULL;
  if (ring.rank == ring.size - 1 && ring.size > 1) {
    MPI_Irecv(got.data(), 20'000, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, ring.comm, &request);
  }
  give_trees(ring.comm);
  std::vector<int> to;
  for (int other = 1; other < ring.size; ++other) to.push_back(other);
  if (ring.rank == 0) {
    const std::vector<int> values = numbers(20'000, 1);
    IMBREX_Send_to_all(values.data(), 20'000, MPI_INT, to.data(), static_cast<int>(to.size()), tag,
                       ring.comm);
  } else {
    if (request == MPI_REQUEST_NULL) {
      MPI_Irecv(got.data(), 20'000, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, ring.comm, &request);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT_EQ(got, numbers(20'000, 1));
  }
}

TEST(Trees, may_be_begun_on_a_communicator_that_was_used) {
  const Ring ring;
  int value = ring.rank;
  MPI_Sendrecv_replace(&value, 1, MPI_INT, ring.next(), 1, ring.previous(), 1, ring.comm,
                       MPI_STATUS_IGNORE);
  give_trees(ring.comm);
  give_trees(ring.comm);  // once more changes nothing
  std::vector<int> to;
  for (int other = 1; other < ring.size; ++other) to.push_back(other);
  if (ring.rank == 0) {
    const std::vector<int> values = numbers(20'000, 1);
    IMBREX_Send_to_all(values.data(), 20'000, MPI_INT, to.data(), static_cast<int>(to.size()), tag,
                       ring.comm);
  } else {
    std::vector<int> got(20'000);
    MPI_Recv(got.data(), 20'000, MPI_INT, 0, tag, ring.comm, MPI_STATUS_IGNORE);
    EXPECT_EQ(got, numbers(20'000, 1));
  }
}

}  // namespace
}  // namespace imbrex::test
