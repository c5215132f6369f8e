// SPDX-License-Identifier: BSD-3-Clause
// The variants in which computation and communication overlap.
#include <mpi.h>

#include <imbrex/collective.hpp>
#include <imbrex/imbrex.hpp>
#include <imbrex/mpi.hpp>

#include <atomic>
#include <cstddef>

#include "variants.hpp"

namespace fft {
namespace {

bool meet(const Box& one, const Box& other) noexcept {
  return intersection(one, other).points() > 0;
}

// The collectives of one stage, in the order of its groups, the same on all ranks.
// Thread safety: test() may be called by any number of tasks at once, the other functions by main,
// while no task calls test().
class Collectives {
 public:
  explicit Collectives(std::size_t groups) : requests_(groups, MPI_REQUEST_NULL) {}

  // Begins those of the stage's groups that need no chunk from `chunks` on.
  void begin_what_is_ready(const Work& work, std::size_t s, std::size_t chunks) {
    const Stage& stage = work.pipeline.stages()[s];
    for (; begun_ < stage.groups.size(); ++begun_) {
      const Box& box = stage.groups[begun_].box;
      for (std::size_t k = chunks; k < stage.chunks.size(); ++k) {
        if (meet(box, stage.chunks[k].box)) return;
      }
      const Transposition& t = stage.transposition;
      const Types types = work.pipeline.types(t, box);
      MPI_Ialltoall(work.steps[s] + t.source(0, box), 1, types.send,
                    work.steps[s + 1] + t.target(0, box), 1, types.receive, t.comm,
                    &requests_[begun_]);
    }
  }
  // MPI_Test of the oldest collective that is not complete. Any computing task may call it; one
  // call at a time tests.
  void test() {
    if (testing_.test_and_set(std::memory_order_acquire)) return;
    if (tested_ < begun_) {
      int complete = 0;
      MPI_Test(&requests_[tested_], &complete, MPI_STATUS_IGNORE);
      if (complete != 0) ++tested_;
    }
    testing_.clear(std::memory_order_release);
  }
  void wait(std::size_t group) { MPI_Wait(&requests_[group], MPI_STATUS_IGNORE); }

 private:
  std::vector<MPI_Request> requests_;
  std::size_t begun_ = 0;
  std::size_t tested_ = 0;       // those before are complete; who holds `testing_` changes it
  std::atomic_flag testing_;
};

}  // namespace

void run_test(const Work& work) {
  const std::size_t stages = work.pipeline.stages().size();
  std::vector<std::unique_ptr<Collectives>> collectives;
  for (const Stage& stage : work.pipeline.stages()) {
    collectives.push_back(std::make_unique<Collectives>(stage.groups.size()));
  }
  for (std::size_t step = 0; step <= stages; ++step) {
    const std::vector<Part>& parts = work.pipeline.parts(static_cast<int>(step));
    for (std::size_t k = 0; k < parts.size(); ++k) {
      if (step > 0) collectives[step - 1]->wait(k);
      for_each_line(parts[k].lines, [&](std::int64_t line) {
        work.lines.transform(work.steps[step] + line * work.pipeline.n());
        for (const auto& each : collectives) each->test();
      });
      if (step < stages) collectives[step]->begin_what_is_ready(work, step, k + 1);
    }
  }
}

namespace {

// A partial collective of stage s, whose part p is what box_of(p) says, of each block. `options`
// says how many there are, and whether they are held.
template <class BoxOf>
imbrex::Collective begin_alltoall(const Work& work, std::size_t s,
                                  imbrex::CollectiveOptions options, BoxOf&& box_of) {
  const Transposition& t = work.pipeline.stages()[s].transposition;
  const Types whole = work.pipeline.types(t, t.whole());
  const auto piece = [](std::int64_t first, MPI_Datatype type) {
    return imbrex::Piece{first * static_cast<std::int64_t>(sizeof(Complex)), 1, type};
  };
  options.outgoing = [&](int rank, int part) {
    const Box box = box_of(static_cast<std::size_t>(part));
    if (box.points() == 0) return imbrex::Piece{};
    return piece(t.source(rank, box), work.pipeline.types(t, box).send);
  };
  options.incoming = [&](int rank, int part) {
    const Box box = box_of(static_cast<std::size_t>(part));
    if (box.points() == 0) return imbrex::Piece{};
    return piece(t.target(rank, box), work.pipeline.types(t, box).receive);
  };
  return imbrex::alltoall({work.steps[s], 1, whole.send}, {work.steps[s + 1], 1, whole.receive},
                          t.comm, options);
}

enum class Transport { messages, objects };

// The tasks of one run, and its messages, or objects of partial collectives, one for each
// group of lines.
class Messages {
 public:
  Messages(const Work& work, Transport transport)
      : work_(work), objects_(transport == Transport::objects), stages_(work.pipeline.stages()) {
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      arrivals_.emplace_back(stages_[s].groups.size());
      parts_.emplace_back(stages_[s].groups.size());
      collectives_.emplace_back();
      computed_.emplace_back(stages_[s].chunks.size());
    }
    computed_.emplace_back(stages_.back().groups.size());
  }

  // All receives are there before the first message is sent.
  void create() {
    for (std::size_t s = 0; s < stages_.size(); ++s) objects_ ? begin_all(s) : receive(s);
    for (std::size_t step = 0; step <= stages_.size(); ++step) {
      const std::vector<Part>& parts = work_.pipeline.parts(static_cast<int>(step));
      for (std::size_t k = 0; k < parts.size(); ++k) compute(step, k, parts[k].lines);
      if (step < stages_.size()) send(step);
    }
  }

  // Throws what went wrong in a collective.
  void finish() const {
    for (const auto& of_stage : collectives_) {
      for (const imbrex::Collective& collective : of_stage) collective.all().get();
    }
  }

 private:
  // The tag of chunk k of group l.
  [[nodiscard]] static int tag_of(const Stage& stage, std::size_t k, std::size_t l) noexcept {
    return static_cast<int>(l * stage.chunks.size() + k);
  }

  void receive(std::size_t s) {
    const Stage& stage = stages_[s];
    const Transposition& t = stage.transposition;
    for (std::size_t l = 0; l < stage.groups.size(); ++l) {
      for (std::size_t k = 0; k < stage.chunks.size(); ++k) {
        const Box box = intersection(stage.groups[l].box, stage.chunks[k].box);
        if (box.points() == 0) continue;
        const Types types = work_.pipeline.types(t, box);
        for (int from = 0; from < t.ranks; ++from) {
          MPI_Request request = MPI_REQUEST_NULL;
          MPI_Irecv(work_.steps[s + 1] + t.target(from, box), 1, types.receive, from,
                    tag_of(stage, k, l), t.comm, &request);
          arrivals_[s][l].push_back(imbrex::when(request));
        }
      }
    }
  }

  void begin_all(std::size_t s) {
    for (std::size_t l = 0; l < stages_[s].groups.size(); ++l) begin(s, l);
  }

  // The part of a chunk has its number.
  void begin(std::size_t s, std::size_t l) {
    const Stage& stage = stages_[s];
    collectives_[s].push_back(begin_alltoall(
        work_, s, {.parts = static_cast<int>(stage.chunks.size()), .hold = true},
        [&](std::size_t part) {
          return intersection(stage.groups[l].box, stage.chunks[part].box);
        }));
    for (std::size_t k = 0; k < stage.chunks.size(); ++k) {
      if (!meet(stage.groups[l].box, stage.chunks[k].box)) continue;
      for (int from = 0; from < stage.transposition.ranks; ++from) {
        parts_[s][l].push_back(collectives_[s][l].from(from, static_cast<int>(k)));
      }
    }
  }

  void compute(std::size_t step, std::size_t k, const Range& lines) {
    auto task = imbrex::task("lines").out(computed_[step][k]);
    if (step > 0 && objects_) static_cast<void>(task.in(imbrex::when_all(parts_[step - 1][k])));
    if (step > 0 && !objects_) static_cast<void>(task.in(imbrex::when_all(arrivals_[step - 1][k])));
    task.launch([this, step, lines] {
      for (std::int64_t line = lines.first; line < lines.last; ++line) {
        work_.lines.transform(work_.steps[step] + line * work_.pipeline.n());
      }
    });
  }

  // Sends in the order of need: the first group of lines comes first; each rank begins with another
  // peer.
  void send(std::size_t s) {
    const Stage& stage = stages_[s];
    const Transposition& t = stage.transposition;
    const auto groups = static_cast<int>(stage.groups.size());
    for (std::size_t l = 0; l < stage.groups.size(); ++l) {
      for (std::size_t k = 0; k < stage.chunks.size(); ++k) {
        const Box box = intersection(stage.groups[l].box, stage.chunks[k].box);
        if (box.points() == 0) continue;
        const MPI_Datatype type = work_.pipeline.types(t, box).send;
        for (int step = 1; step <= t.ranks; ++step) {
          const int to = (t.rank + step) % t.ranks;
          imbrex::task("leave")
              .in(computed_[s][k])
              .priority(groups - static_cast<int>(l))
              .launch([=, this, &t, tag = tag_of(stage, k, l),
                       from = work_.steps[s] + t.source(to, box)] {
                if (objects_) {
                  collectives_[s][l].send(to, static_cast<int>(k));
                } else {
                  MPI_Send(from, 1, type, to, tag, t.comm);
                }
              });
        }
      }
    }
  }

  const Work& work_;
  const bool objects_;
  const std::vector<Stage>& stages_;
  std::vector<std::vector<imbrex::Collective>> collectives_;  // by stage, group; of objects
  // Indexed by stage and group.
  std::vector<std::vector<std::vector<imbrex::Future<MPI_Status>>>> arrivals_;
  std::vector<std::vector<std::vector<imbrex::Future<void>>>> parts_;
  std::vector<std::vector<char>> computed_;  // by step and part: names what a task computes
};

}  // namespace

void run_messages(const Work& work) {
  Messages messages(work, Transport::messages);
  imbrex::finish([&] { messages.create(); });
}

void run_partial_receive(const Work& work) {
  const auto transform = [&work](std::size_t step, std::int64_t line) {
    work.lines.transform(work.steps[step] + line * work.pipeline.n());
  };
  for_each_line({0, work.pipeline.lines()}, [&](std::int64_t line) { transform(0, line); });
  for (std::size_t s = 0; s < work.pipeline.stages().size(); ++s) {
    const Stage& stage = work.pipeline.stages()[s];
    const auto parts = static_cast<int>(stage.groups.size());
    const imbrex::Collective moves = begin_alltoall(
        work, s, {.parts = parts}, [&](std::size_t part) { return stage.groups[part].box; });
    imbrex::finish([&] {
      for (int part = 0; part < parts; ++part) {
        std::vector<imbrex::Future<void>> here;
        for (int from = 0; from < stage.transposition.ranks; ++from) {
          here.push_back(moves.from(from, part));
        }
        imbrex::task("lines").in(imbrex::when_all(here)).launch([&, part] {
          const Range& lines = stage.groups[static_cast<std::size_t>(part)].lines;
          for (std::int64_t line = lines.first; line < lines.last; ++line) {
            transform(s + 1, line);
          }
        });
      }
    });
    moves.all().get();
  }
}

void run_partial(const Work& work) {
  Messages messages(work, Transport::objects);
  imbrex::finish([&] { messages.create(); });
  messages.finish();
}

}  // namespace fft
