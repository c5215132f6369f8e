// SPDX-License-Identifier: BSD-3-Clause
// Distributed futures on a real MPI.
#include "imbrex/future_space.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "imbrex/continue.h"
#include "imbrex/events.h"
#include "imbrex/imbrex.hpp"
#include "mpi_test.hpp"

namespace imbrex::test {
namespace {

// The home of a guid is a rank in turn.
FutureSpaceOptions cyclic(const Ring& ring, std::string name) {
  FutureSpaceOptions options;
  options.home = [size = ring.size](const std::uint64_t guid) {
    return static_cast<int>(guid % static_cast<std::uint64_t>(size));
  };
  options.name = std::move(name);
  return options;
}

constexpr int scale = IMBREX_TEST_SCALE;

TEST(FutureSpaces, every_rank_reads_what_any_rank_has_put) {
  const Ring ring;
  FutureSpace<std::uint64_t> squares(ring.comm, cyclic(ring, "squares"));
  constexpr std::uint64_t guids = 1000 / scale;
  finish([&] {
    for (std::uint64_t guid = 0; guid < guids; ++guid) {
      // A third at home, the others elsewhere.
      if (static_cast<int>((guid / 3) % static_cast<std::uint64_t>(ring.size)) != ring.rank) {
        continue;
      }
      task("put").launch([&, guid] { squares.set(guid, guid * guid); });
    }
    for (std::uint64_t guid = 0; guid < guids; ++guid) {
      const auto future = squares[guid];
      task("get").in(future).launch([future, guid] { EXPECT_EQ(future.get(), guid * guid); });
    }
  });
  squares.close();
}

template <class T, class Make>
void put_everywhere(const char* name, const bool sizes, const Make& make) {
  const Ring ring;
  auto options = cyclic(ring, name);
  if (sizes) {
    options.size = [make](const std::uint64_t guid) {
      const T value = make(guid);
      return value.size() * sizeof(typename T::value_type);
    };
  }
  FutureSpace<T> space(ring.comm, options);
  const auto guids = static_cast<std::uint64_t>(4 * ring.size);
  finish([&] {
    std::vector<Future<T>> early;
    for (std::uint64_t guid = 0; guid < guids; guid += 2) early.push_back(space[guid]);
    for (std::uint64_t guid = 0; guid < guids; ++guid) {
      if (static_cast<int>((guid / 2) % static_cast<std::uint64_t>(ring.size)) == ring.rank) {
        space.set(guid, make(guid));
      }
    }
    for (std::uint64_t guid = 0; guid < guids; ++guid) {
      EXPECT_TRUE(space[guid].get() == make(guid)) << name << " " << guid;
    }
  });
}

TEST(FutureSpaces, values_have_any_size) {
  const auto vector = [](const std::uint64_t guid) {
    std::vector<int> value(guid % 3 == 0 ? guid : guid * 50'000);
    std::iota(value.begin(), value.end(), static_cast<int>(guid));
    return value;
  };
  put_everywhere<std::vector<int>>("vectors", false, vector);
  put_everywhere<std::vector<int>>("vectors of a known size", true, vector);
  put_everywhere<std::map<std::string, std::vector<int>>>("maps", false, [&](std::uint64_t guid) {
    return std::map<std::string, std::vector<int>>{{"one", vector(guid)}, {"two", {1, 2}}};
  });
}

struct Block {
  double values[4096];
};
TEST(FutureSpaces, a_long_value_of_one_size_lands_where_it_stays) {
  const Ring ring;
  FutureSpace<Block> blocks(ring.comm, cyclic(ring, "blocks"));
  const auto mine = static_cast<std::uint64_t>(ring.next());  // at another's home
  Block block{};
  block.values[4095] = ring.rank + 1;
  finish([&] { blocks.set(mine, block); });
  for (int rank = 0; rank < ring.size; ++rank) {
    const auto future = blocks[static_cast<std::uint64_t>((rank + 1) % ring.size)];
    EXPECT_EQ(future.get().values[4095], rank + 1);
  }
}

TEST(FutureSpaces, a_second_put_names_both_ranks_and_places) {
  const Ring ring;
  auto options = cyclic(ring, "once");
  options.home = [](std::uint64_t) { return 0; };
  FutureSpace<int> once(ring.comm, options);
  if (ring.rank == 0) once.set(3, 1);
  MPI_Barrier(ring.comm);
  try {
    finish([&] { once.set(3, 2); });
    FAIL() << "nothing thrown";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("a second put to future 3 of space \"once\""), std::string::npos) << text;
    EXPECT_NE(text.find("by rank " + std::to_string(ring.rank)), std::string::npos) << text;
    EXPECT_NE(text.find("put by rank 0 at "), std::string::npos) << text;
    EXPECT_NE(text.find("future_space_test.cpp:"), std::string::npos) << text;
    EXPECT_EQ(text.find("promise"), std::string::npos) << text;
  }
  EXPECT_EQ(once[3].get(), 1);
}

// An attempt to make a space, by a function that imbrex calls.
struct Attempt {
  std::string text;  // of its error
  std::atomic<bool> over{false};

  void make() {
    try {
      const FutureSpace<int> space(MPI_COMM_WORLD,
                                   {.home = [](std::uint64_t) { return 0; }, .name = "late"});
    } catch (const Error& error) {
      text = error.what();
    }
    over.store(true);
  }
  void expect_refused() {
    while (!over.load()) (void)imbrex_progress();
    EXPECT_NE(text.find("\"late\" is made inside an event handler, a continuation"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("make it in a task that waits"), std::string::npos) << text;
  }
};

TEST(FutureSpaces, cannot_be_made_in_an_event_handler) {
  const Ring ring;
  Attempt attempt;
  EXPECT_EQ(imbrex_mpi_events_begin(ring.comm), IMBREX_SUCCESS);
  imbrex_mpi_event_set_handler(
      [](const imbrex_mpi_event*, void* const argument) {
        auto& it = *static_cast<Attempt*>(argument);
        if (!it.over.load()) it.make();
      },
      &attempt);
  int value = ring.rank;
  MPI_Send(&value, 1, MPI_INT, ring.next(), 5, ring.comm);
  attempt.expect_refused();
  imbrex_mpi_event_set_handler(nullptr, nullptr);
  MPI_Recv(&value, 1, MPI_INT, ring.previous(), 5, ring.comm, MPI_STATUS_IGNORE);
  MPI_Barrier(ring.comm);
  EXPECT_EQ(imbrex_mpi_events_end(ring.comm), IMBREX_SUCCESS);
}

TEST(FutureSpaces, cannot_be_made_in_a_continuation) {
  const Ring ring;
  Attempt attempt;
  int value = -1;
  MPI_Request request;
  MPI_Irecv(&value, 1, MPI_INT, ring.previous(), 5, ring.comm, &request);
  EXPECT_EQ(imbrex_continue(
                &request,
                [](int, int, const MPI_Status*, void* const argument) {
                  static_cast<Attempt*>(argument)->make();
                },
                &attempt),
            IMBREX_SUCCESS);
  MPI_Send(&ring.rank, 1, MPI_INT, ring.next(), 5, ring.comm);
  attempt.expect_refused();
  EXPECT_EQ(value, ring.previous());
}

TEST(FutureSpaces, ranks_that_disagree_are_told) {
  const Ring ring;
  if (ring.size == 1) GTEST_SKIP() << "one rank agrees with itself";
  auto options = cyclic(ring, "disagreed");
  options.home = [&ring](std::uint64_t) {
    return ring.rank == 0 ? 0 : (ring.rank + 1) % ring.size;
  };
  FutureSpace<int> homes(ring.comm, options);
  if (ring.rank == 1 && ring.size > 2) {
    EXPECT_THROW((void)homes[5].get(), Error);
  }
  homes.close();

  auto sizes = cyclic(ring, "sizes");
  sizes.home = [](std::uint64_t) { return 0; };
  sizes.size = [&ring](std::uint64_t) { return std::size_t{ring.rank == 0 ? 40'000U : 80'000U}; };
  FutureSpace<std::vector<int>> vectors(ring.comm, sizes);
  if (ring.rank == 0) {
    EXPECT_NO_THROW(vectors.set(1, std::vector<int>(10'000)));
  } else {
    EXPECT_THROW((void)vectors[1].get(), Error);
  }
}

// `T` is what all ranks but the home take the values for, which are integers there.
template <class T>
void disagree_about_the_type(const T& value) {
  const Ring ring;
  auto options = cyclic(ring, "typed");
  options.home = [](std::uint64_t) { return 0; };
  if (ring.rank == 0) {
    FutureSpace<int> space(ring.comm, options);
    space.set(1, 5);
    EXPECT_EQ(space[1].get(), 5);
    return;
  }
  FutureSpace<T> space(ring.comm, options);
  const auto expect_error = [](const auto& act) {
    try {
      act();
      ADD_FAILURE() << "nothing thrown";
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("disagree about the type of future"), std::string::npos) << text;
      EXPECT_NE(text.find("rank 0, it is int"), std::string::npos) << text;
    }
  };
  const auto another = static_cast<std::uint64_t>(ring.rank + 1);
  expect_error([&] { (void)space[1].get(); });
  expect_error([&] { finish([&] { space.set(another, value); }); });
}
TEST(FutureSpaces, ranks_that_disagree_about_the_type_are_told) {
  disagree_about_the_type(1.5F);
  disagree_about_the_type(std::string("text"));
  disagree_about_the_type(Block{});  // which would land where it stays
}

// Its save() throws from the call with this number on; 0: at each.
struct Refuses {
  std::vector<int> values;
  int calls_well = 0;
  mutable int calls = 0;
};
void save(Saver& saver, const Refuses& one) {
  if (one.calls++ < one.calls_well) return saver(one.values);
  if (one.values.empty()) throw 42;
  throw std::runtime_error("this one stays here");
}
void load(Loader& loader, Refuses& one) { loader(one.values); }

// The error comes to those who have asked before the put and to those who ask after it, and the
// space can be closed.
void read_what_refuses(const Refuses& value, const std::string& text) {
  const Ring ring;
  auto options = cyclic(ring, "refused");
  options.home = [](std::uint64_t) { return 0; };
  options.readers = [&ring](std::uint64_t) { return static_cast<std::size_t>(ring.size); };
  FutureSpace<Refuses> space(ring.comm, options);
  const auto expect_error = [&] {
    try {
      (void)space[1].get();
      ADD_FAILURE() << "nothing thrown";
    } catch (const Error& error) {
      const std::string what = error.what();
      EXPECT_NE(what.find("save() of future 1 of space \"refused\""), std::string::npos) << what;
      EXPECT_NE(what.find("its home, rank 0: " + text), std::string::npos) << what;
    }
  };
  if (ring.rank == 1) expect_error();
  if (ring.rank == 0) {
    space.set(1, value);
    EXPECT_EQ(space[1].get().values, value.values);
  }
  if (ring.rank > 1) expect_error();
  space.close();
}
TEST(FutureSpaces, an_exception_of_save_reaches_the_readers) {
  const std::string text = "this one stays here";
  read_what_refuses({.values = {1}}, text);
  read_what_refuses({.values = {}}, "an exception that is no std::exception");
  // The value is long: the first call tells its length, the second one is to send it.
  const Ring ring;
  if (ring.size == 2) read_what_refuses({.values = std::vector<int>(5000), .calls_well = 1}, text);
}

TEST(FutureSpaces, home_gives_back_what_all_its_readers_have) {
  const Ring ring;
  auto options = cyclic(ring, "read once");
  options.home = [](std::uint64_t) { return 0; };
  options.readers = [&ring](std::uint64_t) { return static_cast<std::size_t>(ring.size); };
  FutureSpace<std::string> space(ring.comm, options);
  if (ring.rank == 0) space.set(1, "text");
  EXPECT_EQ(space[1].get(), "text");
  MPI_Barrier(ring.comm);
  if (ring.rank == 0) {
    EXPECT_THROW((void)space[1], Error);
  }
}

TEST(FutureSpaces, a_cache_ends_with_its_last_future_and_is_filled_again) {
  const Ring ring;
  FutureSpace<int> space(ring.comm, cyclic(ring, "cached"));
  space.set(static_cast<std::uint64_t>(ring.rank), ring.rank);
  for (int again = 0; again < 3; ++again) {
    EXPECT_EQ(space[static_cast<std::uint64_t>(ring.next())].get(), ring.next());
  }
  const Future<int> kept = space[static_cast<std::uint64_t>(ring.next())];
  space.close();
  EXPECT_EQ(kept.get(), ring.next());
  EXPECT_THROW((void)space[0], Error);
  EXPECT_THROW(space.set(99, 1), Error);
}

}  // namespace
}  // namespace imbrex::test
