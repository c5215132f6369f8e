// SPDX-License-Identifier: BSD-3-Clause
// Every public header, and a use of every template in them, as a program with strict warnings
// compiles them: no header may warn there.
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "imbrex/compat/habanero.hpp"
#include "imbrex/accumulator.hpp"
#include "imbrex/imbrex.h"
#include "imbrex/imbrex.hpp"
#include "imbrex/parallel.hpp"
#include "imbrex/serialise.hpp"
#ifdef WITH_MPI
#include <mpi.h>

#include "imbrex/collective.hpp"
#include "imbrex/compat/hcmpi.h"
#include "imbrex/continue.h"
#include "imbrex/data.h"
#include "imbrex/data.hpp"
#include "imbrex/remote.hpp"
#include "imbrex/events.h"
#include "imbrex/future_space.hpp"
#include "imbrex/mpi.h"
#include "imbrex/mpi.hpp"
#include "imbrex/mpi_phaser.hpp"
#include "imbrex/work_pool.hpp"
#endif

namespace {

template <class T>
void use_future(const T& value) {
  const imbrex::Promise<T> promise("value");
  promise.set(value);
  auto future = promise.future();
  static_cast<void>(future.get());
  static_cast<void>(future.try_get());
  imbrex::when_all(future, promise.future()).get();
  static_cast<void>(imbrex::when_any(std::vector{future}).get());
  imbrex::task("uses").in(future).launch([] {});
  static_cast<void>(std::move(future).get());
}

template <class T>
void use_accumulator(const T& value) {
  const imbrex::Phaser phaser(imbrex::signal_wait, {.ahead = 2});
  for (const auto how : {imbrex::Accumulation::lazy, imbrex::Accumulation::shared,
                         imbrex::Accumulation::reproducible}) {
    const imbrex::Accumulator<T> sum(phaser, imbrex::op::sum, how);
    sum.put(value);
    static_cast<void>(sum.get());
  }
  phaser.next(imbrex::single, [] {});
}

void use_tasks() {
  std::vector<short> values(8);
  float numbers[3] = {};
  imbrex::TaskBuilder named = imbrex::task("named").priority(1).tied().untied();
  named.in(values[1]).out(imbrex::range(values)).inout(numbers).spawn([] {}).get();
  imbrex::task(std::string("made")).mutexinoutset(values).at(imbrex::place(0)).launch([&] {
    imbrex::release(values);
  });
  imbrex::finish([&] { imbrex::parallel_for(values, [](short& value) { value = 1; }); });
  static_cast<void>(imbrex::reduce(values, short{0}, std::plus()));
  static_cast<void>(imbrex::reduce(values, 0.0F, imbrex::op::max));
  static_cast<void>(imbrex::reduce(std::vector<bool>(3), true, std::logical_and()));
  imbrex::progress([] { return 0; });
  imbrex::trigger("name", 3);
  use_future(std::string("text"));
  use_future(short{1});
  use_future(std::variant<int, std::vector<std::string>>(1));
  use_accumulator(char{1});
  use_accumulator(std::string("text"));
}

void use_bytes() {
  std::map<std::string, std::vector<std::optional<std::array<short, 2>>>> value;
  std::vector<std::byte> bytes;
  imbrex::Saver saver(bytes);
  saver(value, std::string(), std::vector<bool>(2));
  imbrex::Loader loader(bytes);
  loader(value);
}

void use_habanero() {
  const imbrex::habanero::ddf<float> value("value");
  imbrex::habanero::async([value] { value.put(1.0F); });
  imbrex::habanero::async_await([] {}, value);
}

#ifdef WITH_MPI
float twice(const float value) { return 2 * value; }

void use_ranks() {
  imbrex::Space space(MPI_COMM_WORLD);
  const auto a = space.data<short>(0, 3);
  space.task("adds").in(a).reduce(a, imbrex::op::sum).priority(2).on(0).launch([](auto, auto) {});
  imbrex::FutureSpace<std::vector<short>> futures(
      MPI_COMM_WORLD, {.home = [](const std::uint64_t guid) { return static_cast<int>(guid); }});
  futures.set(3, std::vector<short>(3));
  static_cast<void>(futures[3].get());
  imbrex::WorkPool<short> pool(MPI_COMM_WORLD);
  pool.push(1);
  pool.process([](const short item, imbrex::Emit<short>& emit) { emit(item); });
  static_cast<void>(imbrex::call(0, twice, 1.0F).get());
}
#endif

}  // namespace

int main() {
  use_tasks();
  use_bytes();
  use_habanero();
#ifdef WITH_MPI
  use_ranks();
#endif
}
