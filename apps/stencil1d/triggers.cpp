// SPDX-License-Identifier: BSD-3-Clause
// The variant with a progress function and triggers. Also built with IMBREX_SERIAL: then
// noprogress() waits for the messages, and the tasks are plain calls.
#include <imbrex/imbrex.hpp>

#include <vector>

#include "variants.hpp"

namespace stencil1d {

namespace {

constexpr const char* event_of(const Side side) {
  return side == left ? "left ghosts are here" : "right ghosts are here";
}

// Tests the messages of one step, and triggers what they are waited for by.
class Watcher {
 public:
  explicit Watcher(Messages& messages) : messages_(messages) {}

  // The progress function: 0 once all are complete.
  int operator()() {
    int open = 0;
    for (const Side side : {left, right}) {
      if (test(messages_.receive[side])) imbrex::trigger(event_of(side));
      (void)test(messages_.send[side]);
      open += messages_.receive[side] != MPI_REQUEST_NULL;
      open += messages_.send[side] != MPI_REQUEST_NULL;
    }
    return open;
  }

 private:
  // True if it has completed now.
  static bool test(MPI_Request& request) {
    if (request == MPI_REQUEST_NULL) return false;
    int complete = 0;
    MPI_Test(&request, &complete, MPI_STATUS_IGNORE);
    return complete != 0;
  }

  Messages& messages_;
};

}  // namespace

void run_triggers(const Domain& domain, Field& field, const int steps) {
  const std::vector<Part> parts = parts_of(domain);
  for (int step = 0; step < steps; ++step) {
    const double* const from = field.cells(step);
    double* const to = field.cells(step + 1);
    Messages messages(domain, field, step);
    imbrex::finish([&] {  // in each, the names mean other events
      imbrex::progress(Watcher(messages));
      imbrex::noprogress([&] {
        MPI_Waitall(2, messages.receive, MPI_STATUSES_IGNORE);
        MPI_Waitall(2, messages.send, MPI_STATUSES_IGNORE);
      });
      for (const Side side : {left, right}) {
        const Part& border = side == left ? parts.front() : parts.back();
        const auto compute = [=, &border, &domain] { sweep(domain, from, to, border); };
        // A rank without a neighbour has nothing to wait for there.
        if (domain.has(side)) {
          imbrex::task("border").in(imbrex::named(event_of(side))).priority(100).launch(compute);
        } else {
          imbrex::task("border").launch(compute);
        }
      }
      for (std::size_t core = 1; core + 1 < parts.size(); ++core) {
        imbrex::task("core").priority(1).launch([=, &parts, &domain] {
          sweep(domain, from, to, parts[core]);
        });
      }
    });
  }
}

}  // namespace stencil1d
