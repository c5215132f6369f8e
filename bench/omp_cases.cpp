// SPDX-License-Identifier: BSD-3-Clause
// The cases of bench/compare on OpenMP tasks: one source, built with GCC for libgomp and with Clang
// for LLVM's libomp. `suspend` is missing: no OpenMP task can give up its thread to any other.
#include <omp.h>

#include <string>
#include <string_view>

#include "cases.hpp"

namespace {

// While a thread is between `true` and `false` it is creating a task; a body that finds `true` runs
// inside that creation.
__thread bool creating = false;

template <bool watched>
long fib(long n) {
  if (n < 2) return n;
  long a;
  if constexpr (watched) creating = true;
#pragma omp task shared(a) firstprivate(n)
  {
    if constexpr (watched) {
      if (creating) count_body();
      creating = false;
    }
    a = fib<watched>(n - 1);
  }
  if constexpr (watched) creating = false;
  const long b = fib<watched>(n - 2);
#pragma omp taskwait
  return a + b;
}

struct System {
  template <class Create>
  void finish(Create&& create) {
#pragma omp taskgroup
    { create(); }
  }
  template <class Body>
  void launch(const Body& given) {
    const Body body = given;
#pragma omp task firstprivate(body)
    body();
  }
  template <class Body>
  void launch_chain(long& value, const Body& given) {
    const Body body = given;
    long* const address = &value;
#pragma omp task firstprivate(body) depend(inout : address[0])
    body();
  }
  template <class Body>
  void launch_stencil(const bench::Point& point, const Body& given) {
    const Body body = given;
    const bench::Cell* const left = point.left;
    const bench::Cell* const self = point.self;
    const bench::Cell* const right = point.right;
    bench::Cell* const next = point.next;
#pragma omp task firstprivate(body) depend(in : left[0], self[0], right[0]) depend(out : next[0])
    body();
  }
  long fib(long n) { return ::fib<false>(n); }
};

result run_fib(System& system, long n) {
  const long before = bodies_counted();
  require_equal("fib in the watched pass", ::fib<true>(n), bench::fib_in_sequence(n));
  const double inlined = static_cast<double>(bodies_counted() - before);
  result result = bench::run_fib(system, n);
  result.inline_share = inlined / static_cast<double>(bench::fib_in_sequence(n + 1) - 1);
  return result;
}

result run(const request& request) {
  const std::string_view benchmark = request.benchmark;
  System system;
  if (benchmark == "spawn") return bench::run_spawn(system, request.size);
  if (benchmark == "chain") return bench::run_chain(system, request.size);
  if (benchmark == "stencil") return bench::run_stencil(system, request.size);
  if (benchmark == "fib") return run_fib(system, request.size);
  std::fprintf(stderr, "omp_cases: no case '%s'\n", request.benchmark);
  std::exit(2);
}

// The runtime has the version of the compiler that it belongs to.
std::string system_name() {
#if defined(__clang__)
  return "libomp " + std::to_string(__clang_major__) + "." + std::to_string(__clang_minor__) + "." +
         std::to_string(__clang_patchlevel__);
#else
  return "libgomp " + std::to_string(__GNUC__) + "." + std::to_string(__GNUC_MINOR__) + "." +
         std::to_string(__GNUC_PATCHLEVEL__);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  const request request = parse_request(argc, argv, "spawn chain stencil fib");
  result measured{};
  int team = 0;
#pragma omp parallel num_threads(request.workers)
#pragma omp master
  {
    team = omp_get_num_threads();
    measured = run(request);
  }
  require_equal("threads of the team", team, request.workers);
  print_record(system_name().c_str(), request, measured);
}
