// SPDX-License-Identifier: BSD-3-Clause
// The variants in which computation and communication overlap.
#include <mpi.h>

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
// Thread safety: test() may be called by any number of tasks at once, the others by main, when
// nobody calls test().
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
  // MPI_Test of the oldest that is not complete: whoever computes calls it, one at a time.
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

// The tasks and messages of one run.
class Messages {
 public:
  explicit Messages(const Work& work) : work_(work), stages_(work.pipeline.stages()) {
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      arrivals_.emplace_back(stages_[s].groups.size());
      computed_.emplace_back(stages_[s].chunks.size());
    }
    computed_.emplace_back(stages_.back().groups.size());
  }

  // All receives are there before the first message is sent.
  void create() {
    for (std::size_t s = 0; s < stages_.size(); ++s) receive(s);
    for (std::size_t step = 0; step <= stages_.size(); ++step) {
      const std::vector<Part>& parts = work_.pipeline.parts(static_cast<int>(step));
      for (std::size_t k = 0; k < parts.size(); ++k) compute(step, k, parts[k].lines);
      if (step < stages_.size()) send(step);
    }
  }

 private:
  // Of chunk k of group l.
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

  void compute(std::size_t step, std::size_t k, const Range& lines) {
    auto task = imbrex::task("lines").out(computed_[step][k]);
    if (step > 0) static_cast<void>(task.await_all(arrivals_[step - 1][k]));
    task.launch([this, step, lines] {
      for (std::int64_t line = lines.first; line < lines.last; ++line) {
        work_.lines.transform(work_.steps[step] + line * work_.pipeline.n());
      }
    });
  }

  // In the order of need: of the first group of lines first; each rank begins with another.
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
                MPI_Send(from, 1, type, to, tag, t.comm);
              });
        }
      }
    }
  }

  const Work& work_;
  const std::vector<Stage>& stages_;
  // By stage and group.
  std::vector<std::vector<std::vector<imbrex::Future<MPI_Status>>>> arrivals_;
  std::vector<std::vector<char>> computed_;  // by step and part: names what a task computes
};

}  // namespace

void run_messages(const Work& work) {
  Messages messages(work);
  imbrex::finish([&] { messages.create(); });
}

}  // namespace fft
