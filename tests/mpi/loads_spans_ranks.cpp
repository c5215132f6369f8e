// SPDX-License-Identifier: BSD-3-Clause
// loads_spans_ranks <when> <library>: a program without messages between its ranks loads a library
// that needs them. "early": before MPI_Init; "late": after it; "one": rank 0 before, others after.
#include <dlfcn.h>
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {

// MPI_Init has not been called: only the launcher's variables know.
bool is_rank_0() {
  for (const char* const variable : {"OMPI_COMM_WORLD_RANK", "PMI_RANK"}) {
    if (const char* const rank = std::getenv(variable)) return std::string_view(rank) == "0";
  }
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view when = argc == 3 ? argv[1] : "";
  void* library = nullptr;
  if (when == "early" || (when == "one" && is_rank_0())) library = dlopen(argv[2], RTLD_NOW);
  MPI_Init(&argc, &argv);
  if (library == nullptr) library = dlopen(argv[2], RTLD_NOW);
  using Span = int(bool);
  auto* const span = library == nullptr ? nullptr
                                        : reinterpret_cast<Span*>(dlsym(library, "span_ranks"));
  if (span == nullptr) std::fprintf(stderr, "loads_spans_ranks: %s\n", dlerror());
  const int wrong = span == nullptr ? 1 : span(when != "late");
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
