// SPDX-License-Identifier: BSD-3-Clause
// The variants with collectives of blocks that were packed, or typed, as a whole.
#include <mpi.h>

#include <imbrex/collective.hpp>
#include <imbrex/mpi.hpp>

#include <algorithm>
#include <span>

#include "variants.hpp"

namespace fft {
namespace {

void transform_all(const Work& work, int step) {
  Complex* const points = work.steps[static_cast<std::size_t>(step)];
  for_each_line({0, work.pipeline.lines()}, [&](std::int64_t line) {
    work.lines.transform(points + line * work.pipeline.n());
  });
}

// A plane, for each of the ranks that it goes to: a share of packing.
struct Strip {
  int rank;
  std::int64_t plane;
};
Strip strip(const Transposition& t, std::int64_t index) noexcept {
  return {static_cast<int>(index / t.planes), index % t.planes};
}

// Copies the data for all ranks into `to`, in the order of ranks, each part line by line of the
// target.
void pack(const Transposition& t, const Complex* const from, Complex* const to) {
  constexpr std::int64_t tile = 16;  // of both: what is read stays in the nearest cache
  for_each_line({0, t.ranks * t.planes}, [&](std::int64_t index) {
    const auto [rank, plane] = strip(t, index);
    const Complex* const source =
        from + t.source(rank, {{plane, plane}, {0, 0}, {0, 0}});
    Complex* const target = to + (rank * t.planes + plane) * t.rows * t.columns;
    for (std::int64_t row = 0; row < t.rows; row += tile) {
      const std::int64_t rows = std::min(row + tile, t.rows);
      for (std::int64_t c = 0; c < t.columns; ++c) {
        for (std::int64_t r = row; r < rows; ++r) {
          target[c * t.rows + r] = source[r * t.row_stride + c];
        }
      }
    }
  });
}

// Copies the block that came from `rank` to its place in the target.
void unpack(const Transposition& t, int rank, const Complex* const from, Complex* const to) {
  const Complex* const block = from + rank * t.planes * t.columns * t.rows;
  for (std::int64_t line = 0; line < t.planes * t.columns; ++line) {
    std::copy_n(block + line * t.rows, t.rows, to + line * t.n + rank * t.rows);
  }
}

// A type of a whole line, so that a count of lines fits into an int, whatever the size of a block.
class LineType {
 public:
  explicit LineType(const Transposition& t) : count_(static_cast<int>(t.planes * t.columns)) {
    MPI_Type_contiguous(static_cast<int>(t.rows), MPI_C_DOUBLE_COMPLEX, &type_);
    MPI_Type_commit(&type_);
  }
  ~LineType() { MPI_Type_free(&type_); }
  LineType(const LineType&) = delete;
  LineType& operator=(const LineType&) = delete;

  [[nodiscard]] MPI_Datatype get() const noexcept { return type_; }
  [[nodiscard]] int count() const noexcept { return count_; }  // of a block

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
  int count_;
};

void transpose_packed(const Transposition& t, const Complex* from, Complex* to,
                      const Work::Packed& packed) {
  const LineType line(t);
  pack(t, from, packed.leaves);
  MPI_Alltoall(packed.leaves, line.count(), line.get(), packed.arrives, line.count(),
               line.get(), t.comm);
  for_each_line({0, t.ranks}, [&](std::int64_t rank) {
    unpack(t, static_cast<int>(rank), packed.arrives, to);
  });
}

}  // namespace

double run_blocking(const Work& work) {
  double seconds = 0;
  transform_all(work, 0);
  for (std::size_t s = 0; s < work.pipeline.stages().size(); ++s) {
    const Transposition& t = work.pipeline.stages()[s].transposition;
    const double start = MPI_Wtime();
    if (work.pack) {
      transpose_packed(t, work.steps[s], work.steps[s + 1], work.packed);
    } else {
      const Types types = work.pipeline.types(t, t.whole());
      MPI_Alltoall(work.steps[s], 1, types.send, work.steps[s + 1], 1, types.receive, t.comm);
    }
    seconds += MPI_Wtime() - start;
    transform_all(work, static_cast<int>(s) + 1);
  }
  return seconds;
}

void run_partial_blocks(const Work& work, const Pieces& pieces) {
  const Stage& stage = work.pipeline.stages().front();
  const Transposition& t = stage.transposition;
  const LineType line_type(t);
  Complex* const arrives = work.packed.arrives;
  // The pieces of `lines` that arrive from `rank`, one behind the other.
  const auto piece_of = [&](std::int64_t rank, const Range& lines) {
    return std::span(arrives + (rank * t.columns + lines.first) * pieces.length(),
                     static_cast<std::size_t>(lines.size() * pieces.length()));
  };
  transform_all(work, 0);
  pack(t, work.steps[0], work.packed.leaves);
  imbrex::finish([&] {
    auto exchange = imbrex::task("exchange");
    for (const Part& group : stage.groups) {
      for (int rank = 0; rank < t.ranks; ++rank) {
        static_cast<void>(exchange.out(imbrex::range(piece_of(rank, group.lines))));
      }
    }
    exchange.launch([&] {
      imbrex::release_by_blocks();
      MPI_Alltoall(work.packed.leaves, line_type.count(), line_type.get(), arrives,
                   line_type.count(), line_type.get(), t.comm);
    });
    for (const Part& group : stage.groups) {
      auto join = imbrex::task("join");
      for (int rank = 0; rank < t.ranks; ++rank) {
        const std::span<Complex> piece = piece_of(rank, group.lines);
        imbrex::task("piece").inout(imbrex::range(piece)).launch([&pieces, piece] {
          const auto length = static_cast<std::size_t>(pieces.length());
          for (std::size_t i = 0; i < piece.size(); i += length) pieces.transform(&piece[i]);
        });
        static_cast<void>(join.in(imbrex::range(piece)));
      }
      join.priority(1).launch([&] {
        for (std::int64_t line = group.lines.first; line < group.lines.last; ++line) {
          Complex* const target = work.steps[1] + line * t.n;
          for (int rank = 0; rank < t.ranks; ++rank) {
            std::copy_n(piece_of(rank, {line, line + 1}).data(), t.rows, target + rank * t.rows);
          }
          pieces.join(target);
        }
      });
    }
  });
}

void run_scatters(const Work& work) {
  const Work::Packed packed = work.packed;
  transform_all(work, 0);
  for (std::size_t s = 0; s < work.pipeline.stages().size(); ++s) {
    const Transposition& t = work.pipeline.stages()[s].transposition;
    const LineType line(t);
    pack(t, work.steps[s], packed.leaves);
    imbrex::finish([&] {
      for (int root = 0; root < t.ranks; ++root) {
        MPI_Request request = MPI_REQUEST_NULL;
        Complex* const block = packed.arrives + root * t.planes * t.columns * t.rows;
        MPI_Iscatter(packed.leaves, line.count(), line.get(), block, line.count(),
                     line.get(), root, t.comm, &request);
        imbrex::task("put in place").in(imbrex::when(request)).launch([&, s, root] {
          unpack(t, root, packed.arrives, work.steps[s + 1]);
        });
      }
    });
    transform_all(work, static_cast<int>(s) + 1);
  }
}

}  // namespace fft
