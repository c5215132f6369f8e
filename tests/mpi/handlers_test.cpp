// SPDX-License-Identifier: BSD-3-Clause
// These tests check which communicator's error handler is called, and in which call. Methodology:
// rank 0 gives more than rank 1 takes, so that a call of rank 1 fails; each case in main, in a task
// that runs in place, in a suspended task, and on a thread that imbrex does not know. A failed
// collective may leave parts behind, so each has a communicator of its own, which is not freed.
#include <array>
#include <atomic>
#include <functional>
#include <stdexcept>
#include <string>

#include "mpi_test.hpp"

namespace imbrex::test {
namespace {

struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The calls that handlers got. `right`: with this communicator.
struct Told {
  std::atomic<MPI_Comm> right_comm{MPI_COMM_NULL};
  std::atomic<bool> throws{false};
  std::atomic<int> right{0};
  std::atomic<int> wrong{0};
} told;

void tell(MPI_Comm* comm, int*, ...) {
  (*comm == told.right_comm.load() ? told.right : told.wrong).fetch_add(1);
  if (told.throws.load()) throw Refused("by the handler");
}

// Rank 1 takes one of so many.
constexpr int too_many = 64;

int broadcast(MPI_Comm comm) {
  std::array<int, too_many> data{};
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  return MPI_Bcast(data.data(), rank == 0 ? too_many : 1, MPI_INT, 0, comm);
}

class HandlersTest : public testing::Test {
 protected:
  HandlersTest() {
    told.throws.store(false);
    forget();
    MPI_Comm_create_errhandler(&tell, &handler_);
  }
  ~HandlersTest() override {
    set_for_world(MPI_ERRORS_ARE_FATAL);
    MPI_Errhandler_free(&handler_);
  }
  void SetUp() override {
    if (ring_.size != 2) GTEST_SKIP() << "needs two ranks";
  }

  static void forget() {
    told.right.store(0);
    told.wrong.store(0);
  }
  static void set_for_world(MPI_Errhandler handler) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
  }
  // Makes a communicator with `handler` as its own; each rank is a neighbour of the other.
  [[nodiscard]] static MPI_Comm make_comm(MPI_Errhandler handler) {
    const int size = 2;
    const int periodic = 1;
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &comm);
    MPI_Comm_set_errhandler(comm, handler);
    told.right_comm.store(comm);
    return comm;
  }
  [[nodiscard]] bool fails_here() const { return ring_.rank == 1; }

  // Calls `check(comm)`, with another communicator each time.
  template <class F>
  void in_each_place(MPI_Errhandler handler, F check) const {
    const auto run = [&](const char* place, const auto& how) {
      SCOPED_TRACE(place);
      forget();
      const MPI_Comm comm = make_comm(handler);
      how([&] { check(comm); });
      MPI_Barrier(ring_.comm);
    };
    run("main", [](const auto& body) { body(); });
    run("in place", [](const auto& body) { task("in place").spawn(body).get(); });
    run("suspended", [](const auto& body) {
      const Bustle bustle;
      task("suspended").spawn(body).get();
    });
    run("unknown thread", [](const auto& body) { on_unknown_thread(body); });
  }

  const Ring ring_;
  MPI_Errhandler handler_ = MPI_ERRHANDLER_NULL;
};

// ---- collectives that fail ---------------------------------------------------------------------

TEST_F(HandlersTest, the_communicators_handler_is_called_once_for_a_failed_collective) {
  set_for_world(handler_);
  in_each_place(handler_, [this](MPI_Comm comm) {
    const int code = broadcast(comm);
    EXPECT_EQ(code != MPI_SUCCESS, fails_here());
    EXPECT_EQ(told.right.load(), fails_here() ? 1 : 0);
    EXPECT_EQ(told.wrong.load(), 0);
  });
}

// MPI_COMM_WORLD keeps the handler that ends the program.
TEST_F(HandlersTest, a_collective_that_fails_ends_nothing_where_errors_are_returned) {
  in_each_place(MPI_ERRORS_RETURN, [this](MPI_Comm comm) {
    EXPECT_EQ(broadcast(comm) != MPI_SUCCESS, fails_here());
  });
}

TEST_F(HandlersTest, a_communicators_handler_is_called_though_others_return_errors) {
  set_for_world(MPI_ERRORS_RETURN);
  in_each_place(handler_, [this](MPI_Comm comm) {
    EXPECT_EQ(broadcast(comm) != MPI_SUCCESS, fails_here());
    EXPECT_EQ(told.right.load(), fails_here() ? 1 : 0);
  });
}

TEST_F(HandlersTest, an_exception_of_a_handler_leaves_a_collective) {
  set_for_world(handler_);
  in_each_place(handler_, [this](MPI_Comm comm) {
    told.throws.store(true);
    if (fails_here()) {
      EXPECT_THROW((void)broadcast(comm), Refused);
    } else {
      EXPECT_EQ(broadcast(comm), MPI_SUCCESS);
    }
    told.throws.store(false);
    EXPECT_EQ(told.right.load(), fails_here() ? 1 : 0);
    EXPECT_EQ(told.wrong.load(), 0);
  });
}

TEST_F(HandlersTest, each_of_several_collectives_that_fail_at_once_calls_its_own) {
  constexpr std::size_t count = 8;
  std::array<MPI_Comm, count> comms{};
  for (MPI_Comm& comm : comms) comm = make_comm(MPI_ERRORS_RETURN);
  std::array<int, count> codes{};
  finish([&] {
    for (std::size_t i = 0; i < count; ++i) {
      task("broadcast").launch([&, i] { codes[i] = broadcast(comms[i]); });
    }
  });
  for (const int code : codes) EXPECT_EQ(code != MPI_SUCCESS, fails_here());
}

#ifdef OPEN_MPI  // MPICH's non-blocking collectives notice fewer mistakes

using Collective = std::function<int(MPI_Comm comm, int count)>;
std::array<int, 2 * too_many> in;
std::array<int, 2 * too_many> out;

struct Named {
  const char* name;
  bool fails_at_root;  // rank 0 takes one, of too many
  Collective call;
};

const std::array<int, 2> places{0, too_many};
const std::array<int, 2> places_in_bytes{0, too_many * static_cast<int>(sizeof(int))};
const std::array<MPI_Datatype, 2> types{MPI_INT, MPI_INT};

const Named collectives[] = {
    {"MPI_Scatter", false,
     [](MPI_Comm comm, int count) {
       return MPI_Scatter(out.data(), count, MPI_INT, in.data(), count, MPI_INT, 0, comm);
     }},
    {"MPI_Gather", true,
     [](MPI_Comm comm, int count) {
       return MPI_Gather(out.data(), count, MPI_INT, in.data(), count, MPI_INT, 0, comm);
     }},
    {"MPI_Scan", false,
     [](MPI_Comm comm, int count) {
       return MPI_Scan(out.data(), in.data(), count, MPI_INT, MPI_SUM, comm);
     }},
    {"MPI_Reduce", true,
     [](MPI_Comm comm, int count) {
       return MPI_Reduce(out.data(), in.data(), count, MPI_INT, MPI_SUM, 0, comm);
     }},
    {"MPI_Alltoallw", true,
     [](MPI_Comm comm, int count) {
       const std::array<int, 2> counts{count, count};
       return MPI_Alltoallw(out.data(), counts.data(), places_in_bytes.data(), types.data(),
                            in.data(), counts.data(), places_in_bytes.data(), types.data(), comm);
     }},
    {"MPI_Alltoallv", true,
     [](MPI_Comm comm, int count) {
       const std::array<int, 2> counts{count, count};
       return MPI_Alltoallv(out.data(), counts.data(), places.data(), MPI_INT, in.data(),
                            counts.data(), places.data(), MPI_INT, comm);
     }},
    {"MPI_Neighbor_allgather", true,
     [](MPI_Comm comm, int count) {
       return MPI_Neighbor_allgather(out.data(), count, MPI_INT, in.data(), count, MPI_INT, comm);
     }},
};

TEST_F(HandlersTest, the_communicators_handler_is_called_for_all_collectives) {
  set_for_world(handler_);
  for (const Named& it : collectives) {
    SCOPED_TRACE(it.name);
    in_each_place(handler_, [&](MPI_Comm comm) {
      const bool takes_one = ring_.rank == (it.fails_at_root ? 0 : 1);
      const int code = it.call(comm, takes_one ? 1 : too_many);
      EXPECT_EQ(code != MPI_SUCCESS, takes_one);
      EXPECT_EQ(told.right.load(), takes_one ? 1 : 0);
      EXPECT_EQ(told.wrong.load(), 0);
    });
  }
}

#endif

// A request that the program has made belongs to the wait: as with the MPI alone, and once.
TEST_F(HandlersTest, a_handler_is_called_once_for_a_collective_with_the_programs_request) {
  set_for_world(handler_);
  in_each_place(handler_, [this](MPI_Comm comm) {
    std::array<int, too_many> data{};
    MPI_Request request;
    MPI_Ibcast(data.data(), fails_here() ? 1 : too_many, MPI_INT, 0, comm, &request);
    const int code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT_EQ(code != MPI_SUCCESS, fails_here());
    EXPECT_EQ(told.right.load() + told.wrong.load(), fails_here() ? 1 : 0);
  });
}

// ---- calls that are none of MPI's --------------------------------------------------------------

// Rank 1 begins a receive of one, and rank 0 has sent too many.
MPI_Request begin_failing(MPI_Comm comm, int* value) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Request request = MPI_REQUEST_NULL;
  if (rank == 1) MPI_Irecv(value, 1, MPI_INT, 0, 1, comm, &request);
  if (rank == 0) {
    const std::array<int, too_many> data{};
    MPI_Send(data.data(), too_many, MPI_INT, 1, 1, comm);
  }
  MPI_Barrier(comm);
  return request;
}

// A message that is right, between the same two.
void expect_nothing_more(MPI_Comm comm) {
  const int before = told.right.load();
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  int value = 7;
  MPI_Request request;
  if (rank == 0) {
    MPI_Isend(&value, 1, MPI_INT, 1, 2, comm, &request);
  } else {
    EXPECT_EQ(MPI_Irecv(&value, 1, MPI_INT, 0, 2, comm, &request), MPI_SUCCESS);
  }
  EXPECT_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
  EXPECT_EQ(value, 7);
  EXPECT_EQ(told.right.load(), before);
}

// `hand_over(request)` is a call of imbrex's that must throw `Thrown`.
template <class Thrown, class F>
void expect_once(MPI_Comm comm, const F& hand_over) {
  int value = 0;
  MPI_Request request = begin_failing(comm, &value);
  if (request != MPI_REQUEST_NULL) {
    EXPECT_THROW(hand_over(request), Thrown);
    EXPECT_EQ(told.right.load(), 1);
  }
  expect_nothing_more(comm);
}

TEST_F(HandlersTest, a_handler_is_called_by_when_and_in_no_later_call) {
  const auto hand_over = [](MPI_Request& request) { (void)when(request).get(); };
  in_each_place(handler_, [&](MPI_Comm comm) { expect_once<MpiError>(comm, hand_over); });
  told.throws.store(true);
  in_each_place(handler_, [&](MPI_Comm comm) { expect_once<Refused>(comm, hand_over); });
}

TEST_F(HandlersTest, a_handler_is_called_by_release_after_and_in_no_later_call) {
  const auto hand_over = [](MPI_Request& request) {
    finish([&] { task("releases").launch([&] { release_after(request); }); });
  };
  in_each_place(handler_, [&](MPI_Comm comm) { expect_once<MpiError>(comm, hand_over); });
  told.throws.store(true);
  in_each_place(handler_, [&](MPI_Comm comm) { expect_once<Refused>(comm, hand_over); });
}

TEST_F(HandlersTest, a_handler_is_called_by_finish_owns_and_await_and_in_no_later_call) {
  const auto own = [](MPI_Request& request) { finish([&] { finish_owns(request); }); };
  in_each_place(handler_, [&](MPI_Comm comm) { expect_once<MpiError>(comm, own); });
  const auto wait = [](MPI_Request& request) { (void)await(request); };
  in_each_place(handler_, [&](MPI_Comm comm) { expect_once<MpiError>(comm, wait); });
}

}  // namespace
}  // namespace imbrex::test
