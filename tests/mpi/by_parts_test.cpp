// SPDX-License-Identifier: BSD-3-Clause
// Blocks of MPI's collectives that are cut into parts, and what the info of a communicator says of
// that (imbrex_partial, imbrex_partial_parts): against MPI's own, which PMPI calls. Here the
// options are as they are without any, so that nothing goes by blocks but what an info asks for.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <initializer_list>
#include <numeric>
#include <string>
#include <utility>

#include "imbrex/collective.hpp"
#include "imbrex/mpi.h"
#include "mpi_test.hpp"

namespace imbrex::test {
namespace {

using Hints = std::initializer_list<std::pair<const char*, std::string>>;

MPI_Info info_of(const Hints& hints) {
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  for (const auto& [key, value] : hints) MPI_Info_set(info, key, value.c_str());
  return info;
}

// A duplicate of the ring's communicator that was given these.
class Hinted {
 public:
  Hinted(MPI_Comm comm, const Hints& hints) {
    MPI_Info info = info_of(hints);
    MPI_Comm_dup_with_info(comm, info, &comm_);
    MPI_Info_free(&info);
  }
  ~Hinted() { MPI_Comm_free(&comm_); }
  Hinted(const Hinted&) = delete;
  Hinted& operator=(const Hinted&) = delete;
  [[nodiscard]] MPI_Comm get() const { return comm_; }
  void set(const Hints& hints) const {
    MPI_Info info = info_of(hints);
    MPI_Comm_set_info(comm_, info);
    MPI_Info_free(&info);
  }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

class Type {
 public:
  explicit Type(MPI_Datatype made) : type_(made) { MPI_Type_commit(&type_); }
  ~Type() { MPI_Type_free(&type_); }
  Type(const Type&) = delete;
  Type& operator=(const Type&) = delete;
  [[nodiscard]] MPI_Datatype get() const { return type_; }

 private:
  MPI_Datatype type_;
};

MPI_Datatype contiguous(const int count, MPI_Datatype type) {
  MPI_Datatype made = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(count, type, &made);
  return made;
}
// Column after column of a matrix of that many rows and columns of doubles, its lines `stride`
// apart; from one block to the next it is `extent` doubles.
MPI_Datatype columns(const int rows, const int count, const int stride, const int extent) {
  MPI_Datatype column = MPI_DATATYPE_NULL;
  MPI_Datatype one = MPI_DATATYPE_NULL;
  MPI_Datatype made = MPI_DATATYPE_NULL;
  MPI_Datatype whole = MPI_DATATYPE_NULL;
  MPI_Type_vector(rows, 1, stride, MPI_DOUBLE, &column);
  MPI_Type_create_resized(column, 0, sizeof(double), &one);
  MPI_Type_contiguous(count, one, &made);
  MPI_Type_create_resized(made, 0, static_cast<MPI_Aint>(sizeof(double)) * extent, &whole);
  MPI_Type_free(&column);
  MPI_Type_free(&one);
  MPI_Type_free(&made);
  return whole;
}

// One side of an all-to-all, in elements of one type.
struct Side {
  int count;
  MPI_Datatype type;
};

// MPI_Alltoall by blocks gives the bytes of MPI's own, all bytes of `doubles` for each rank.
void compare(const Hinted& comm, const Side& send, const Side& receive, const int doubles,
             const unsigned counted) {
  int rank = 0;
  int size = 1;
  MPI_Comm_rank(comm.get(), &rank);
  MPI_Comm_size(comm.get(), &size);
  std::vector<double> out(static_cast<std::size_t>(size) * doubles);
  std::iota(out.begin(), out.end(), 1e6 * (rank + 1));
  std::vector<double> ours(out.size(), -1);
  std::vector<double> theirs(out.size(), -1);
  const unsigned long long before = imbrex_decomposed_calls();
  EXPECT_EQ(MPI_Alltoall(out.data(), send.count, send.type, ours.data(), receive.count,
                         receive.type, comm.get()),
            MPI_SUCCESS);
  EXPECT_EQ(imbrex_decomposed_calls() - before, counted);
  EXPECT_EQ(PMPI_Alltoall(out.data(), send.count, send.type, theirs.data(), receive.count,
                          receive.type, comm.get()),
            MPI_SUCCESS);
  EXPECT_EQ(ours, theirs);
}

constexpr std::array parts_tried{1, 2, 3, 7, 16, 100'000};

// 12 x 20 doubles as one element, as columns, as lines of 20, of 7 and 3, and one by one: with
// some numbers of parts both sides are cut through elements, or one.
TEST(ByParts, sides_that_count_in_different_elements_are_cut_alike) {
  const Ring ring;
  constexpr int rows = 12;
  constexpr int lines = 20;
  constexpr int all = rows * lines;
  const Type whole(columns(rows, lines, lines, all));
  const Type column(contiguous(rows, MPI_DOUBLE));
  const Type line(contiguous(lines, MPI_DOUBLE));
  const Type bytes(contiguous(all / 16 * 8, MPI_BYTE));
  const Type most(contiguous(all - 1, MPI_DOUBLE));
  const std::array<Side, 5> sides{{{1, whole.get()},
                                   {lines, column.get()},
                                   {rows, line.get()},
                                   {all, MPI_DOUBLE},
                                   {16, bytes.get()}}};
  for (const int parts : parts_tried) {
    const Hinted comm(ring.comm, {{"imbrex_partial", "on"},
                                  {"imbrex_partial_parts", std::to_string(parts)}});
    for (const Side& send : sides) {
      for (const Side& receive : sides) compare(comm, send, receive, all, 1);
    }
    compare(comm, {1, most.get()}, {all - 1, MPI_DOUBLE}, all, 1);
  }
}

// Elements that begin behind or before their address, have gaps, and are not in order.
TEST(ByParts, elements_of_any_shape_are_cut) {
  const Ring ring;
  constexpr std::array lengths{3, 1, 5, 2};
  constexpr std::array places{9, 2, 14, 6};
  MPI_Datatype made = MPI_DATATYPE_NULL;
  MPI_Datatype resized = MPI_DATATYPE_NULL;
  MPI_Type_indexed(4, lengths.data(), places.data(), MPI_FLOAT, &made);
  MPI_Type_create_resized(made, 4, 24 * sizeof(float), &resized);
  MPI_Type_free(&made);
  const Type odd(resized);
  constexpr int count = 30;
  const Type flat(contiguous(11, MPI_FLOAT));
  for (const int parts : parts_tried) {
    const Hinted comm(ring.comm, {{"imbrex_partial", "all"},
                                  {"imbrex_partial_parts", std::to_string(parts)}});
    constexpr int doubles = 24 / 2 * (count + 1);
    compare(comm, {count, odd.get()}, {count, odd.get()}, doubles, 1);
    compare(comm, {count, odd.get()}, {count, flat.get()}, doubles, 1);
    compare(comm, {count * 11, MPI_FLOAT}, {count, odd.get()}, doubles, 1);
  }
}

TEST(ByParts, blocks_of_different_lengths_are_cut) {
  const Ring ring;
  const auto length = [](const int from, const int to) { return (3 * from + 5 * to) % 11; };
  const auto size = static_cast<std::size_t>(ring.size);
  std::vector<int> out_counts(size), out_places(size), in_counts(size), in_places(size);
  int out_sum = 0;
  int in_sum = 0;
  for (std::size_t i = 0; i < size; ++i) {
    out_counts[i] = length(ring.rank, static_cast<int>(i));
    in_counts[i] = length(static_cast<int>(i), ring.rank);
    out_places[i] = std::exchange(out_sum, out_sum + out_counts[i]);
    in_places[i] = std::exchange(in_sum, in_sum + in_counts[i]);
  }
  std::vector<int> out(static_cast<std::size_t>(out_sum) + 1);
  std::iota(out.begin(), out.end(), 1000 * ring.rank);
  for (const int parts : parts_tried) {
    const Hinted comm(ring.comm, {{"imbrex_partial", "on"},
                                  {"imbrex_partial_parts", std::to_string(parts)}});
    std::vector<int> ours(static_cast<std::size_t>(in_sum) + 1, -1);
    std::vector<int> theirs = ours;
    const unsigned long long before = imbrex_decomposed_calls();
    EXPECT_EQ(MPI_Alltoallv(out.data(), out_counts.data(), out_places.data(), MPI_INT, ours.data(),
                            in_counts.data(), in_places.data(), MPI_INT, comm.get()),
              MPI_SUCCESS);
    EXPECT_EQ(imbrex_decomposed_calls() - before, 1u);
    EXPECT_EQ(PMPI_Alltoallv(out.data(), out_counts.data(), out_places.data(), MPI_INT,
                             theirs.data(), in_counts.data(), in_places.data(), MPI_INT,
                             comm.get()),
              MPI_SUCCESS);
    EXPECT_EQ(ours, theirs);
  }
}

// A task uses a part of the last rank's data while the rest is still in flight: the last rank sends
// a part when the others have used the part before it.
TEST(ByParts, a_part_is_used_before_the_rest_of_its_block_is_here) {
  const Ring ring;
  if (ring.size < 2) GTEST_SKIP() << "nothing comes from elsewhere";
  constexpr int parts = 16;
  constexpr int length = 4096;  // numbers of a part
  constexpr int count = parts * length;
  constexpr int used = 5;  // the tag of what says so
  const Hinted comm(ring.comm, {{"imbrex_partial", "on"}, {"imbrex_partial_parts", "16"}});
  const int last = ring.size - 1;
  const std::vector<int> out(static_cast<std::size_t>(ring.size) * count, ring.rank);
  std::vector<int> in(out.size(), -1);
  if (ring.rank == last) {
    const Blocks<const void*> sent{out.data(), count, MPI_INT};
    const Blocks<void*> received{in.data(), count, MPI_INT};
    const Collective held = alltoall(sent, received, comm.get(), {.parts = parts, .hold = true});
    for (int part = 0; part < parts; ++part) {
      for (int rank = 0; rank < ring.size; ++rank) held.send(rank, part);
      for (int rank = 0; rank < last; ++rank) {
        MPI_Recv(nullptr, 0, MPI_INT, rank, used, ring.comm, MPI_STATUS_IGNORE);
      }
    }
    return held.all().get();
  }
  const auto part_of = [&](const int rank, const int part) {
    return range(in.data() + static_cast<std::size_t>(rank) * count +
                     static_cast<std::size_t>(part) * length,
                 length);
  };
  std::atomic<int> right = 0;
  finish([&] {
    auto exchange = task("exchange");
    for (int rank = 0; rank < ring.size; ++rank) {
      for (int part = 0; part < parts; ++part) {
        static_cast<void>(exchange.out(part_of(rank, part)));
      }
    }
    exchange.launch([&] {
      release_by_blocks();
      MPI_Alltoall(out.data(), count, MPI_INT, in.data(), count, MPI_INT, comm.get());
    });
    for (int part = 0; part < parts; ++part) {
      task("use").in(part_of(last, part)).launch([&, part] {
        const int* const first = in.data() + static_cast<std::size_t>(last) * count +
                                 static_cast<std::size_t>(part) * length;
        right += std::all_of(first, first + length, [&](int it) { return it == last; }) ? 1 : 0;
        MPI_Send(nullptr, 0, MPI_INT, last, used, ring.comm);
      });
    }
  });
  EXPECT_EQ(right, parts);
}

// An info speaks for its communicator alone, and the last one counts.
TEST(ByParts, infos_say_which_communicators_go_by_blocks) {
  const Ring ring;
  constexpr int doubles = 256;
  const Side side{doubles, MPI_DOUBLE};
  const Hinted plain(ring.comm, {});
  const Hinted on(ring.comm, {{"imbrex_partial", "on"}});
  compare(plain, side, side, doubles, 0);
  compare(on, side, side, doubles, 1);
  compare(on, {1, MPI_DOUBLE}, {1, MPI_DOUBLE}, doubles, 0);
  on.set({{"imbrex_partial", "all"}, {"imbrex_partial_parts", "3"}});
  compare(on, {1, MPI_DOUBLE}, {1, MPI_DOUBLE}, doubles, 1);
  on.set({{"imbrex_partial", "off"}});
  compare(on, side, side, doubles, 0);
  plain.set({{"imbrex_partial", "on"}});
  compare(plain, side, side, doubles, 1);
}

TEST(ByParts, a_wrong_info_is_an_error_of_the_call) {
  const Ring ring;
  MPI_Comm_set_errhandler(ring.comm, MPI_ERRORS_RETURN);
  const std::array<Hints, 4> wrong{{{{"imbrex_partial", "perhaps"}},
                                    {{"imbrex_partial_parts", "0"}},
                                    {{"imbrex_partial_parts", "3x"}},
                                    {{"imbrex_partial_parts", "2000000"}}}};
  for (const Hints& hints : wrong) {
    MPI_Info info = info_of(hints);
    EXPECT_EQ(MPI_Comm_set_info(ring.comm, info), MPI_ERR_INFO_VALUE);
    MPI_Comm made = MPI_COMM_NULL;
    EXPECT_EQ(MPI_Comm_dup_with_info(ring.comm, info, &made), MPI_ERR_INFO_VALUE);
    MPI_Info_free(&info);
  }
}

}  // namespace
}  // namespace imbrex::test
