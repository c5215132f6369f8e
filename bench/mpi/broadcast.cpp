// SPDX-License-Identifier: BSD-3-Clause
// One rank's data to all others, by turns in the same run: until the last of them has them.
//   one_copy   MPI_Send to rank 1 alone
//   loop       MPI_Isend to one after the other
//   bcast, ibcast   MPI_Bcast, MPI_Ibcast
//   star, binomial, chain, binary, auto   dynamic broadcasts, with each kind of tree
// Medians and best of the rounds; `copies` are those that the root has sent. All ranks must be on
// one machine, since they compare its clock; a rank for each link: tools/netlab --per-rank.
//
//   mpirun -n 4 broadcast [rounds] [bytes ...]
#include <imbrex/imbrex.hpp>
#include <imbrex/mpi.hpp>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "../measure.h"
#include "distributed/by_messages.hpp"
#include "distributed/data/copies/broadcasts.hpp"
#include "raw_mpi.hpp"

namespace {

using imbrex::distributed::BroadcastOptions;
using imbrex::distributed::Broadcasts;
using imbrex::distributed::Buffer;
using imbrex::distributed::Recipient;
using imbrex::distributed::TreeKind;

namespace active = imbrex::mpi::active;
[[maybe_unused]] const bool wanted = (active::want(), true);

constexpr std::uint64_t space = 1;

struct Place {
  int rank = 0;
  int ranks = 1;
};
Place place;
std::vector<std::byte> data;

// Waits for what handlers say, as programs do.
class Until {
 public:
  void set() { promise_.set(); }
  void wait() { promise_.future().wait(); }

 private:
  imbrex::Promise<void> promise_{"a broadcast"};
};

// ---- systems: each returns when this rank has its data, or has sent them ---------------------

void one_copy() {
  const int bytes = static_cast<int>(data.size());
  if (place.rank == 0) RAW_MPI(Send)(data.data(), bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
  if (place.rank == 1) {
    RAW_MPI(Recv)(data.data(), bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

void loop() {
  const int bytes = static_cast<int>(data.size());
  if (place.rank != 0) {
    RAW_MPI(Recv)(data.data(), bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return;
  }
  std::vector<MPI_Request> requests(static_cast<std::size_t>(place.ranks - 1));
  for (int to = 1; to < place.ranks; ++to) {
    RAW_MPI(Isend)(data.data(), bytes, MPI_BYTE, to, 0, MPI_COMM_WORLD,
                   &requests[static_cast<std::size_t>(to - 1)]);
  }
  RAW_MPI(Waitall)(place.ranks - 1, requests.data(), MPI_STATUSES_IGNORE);
}

void bcast() {
  RAW_MPI(Bcast)(data.data(), static_cast<int>(data.size()), MPI_BYTE, 0, MPI_COMM_WORLD);
}

void ibcast() {
  MPI_Request request = MPI_REQUEST_NULL;
  RAW_MPI(Ibcast)(data.data(), static_cast<int>(data.size()), MPI_BYTE, 0, MPI_COMM_WORLD,
                  &request);
  RAW_MPI(Wait)(&request, MPI_STATUS_IGNORE);
}

struct Tree {
  imbrex::distributed::OnMessages<Broadcasts> on_messages;
  std::uint64_t next = 0;  // datum

  Tree(const active::Id id, const BroadcastOptions& options) : on_messages(id, options) {}
};

struct Reader {
  Until passed_on;
  double at = 0;
};

double broadcast(Broadcasts& own, const std::uint64_t datum) {
  if (place.rank == 0) {
    std::vector<Recipient> to;
    for (int rank = 1; rank < place.ranks; ++rank) to.push_back({rank, 0, 0});
    Until ended;
    own.send({space, datum}, to, data,
             [](void* const context, std::exception_ptr) noexcept {
               static_cast<Until*>(context)->set();
             },
             &ended);
    ended.wait();
    return now_ns();
  }
  Reader reader;
  own.expect({space, datum}, 0, 0, data.size(),
             {[](void* const context, Buffer* const buffer, std::exception_ptr) noexcept {
                static_cast<Reader*>(context)->at = now_ns();
                if (buffer != nullptr) buffer->release();
              },
              [](void* const context) noexcept {
                static_cast<Reader*>(context)->passed_on.set();
              },
              &reader});
  reader.passed_on.wait();
  return reader.at;
}

// ---- measuring -------------------------------------------------------------------------------

// Returns the time from the start of rank 0 to the last arrival, on rank 0.
template <class System>
double measure(System system) {
  RAW_MPI(Barrier)(MPI_COMM_WORLD);
  double start = now_ns();
  double end = system();
  if (place.rank == 0) end = start;  // what the root sees is not when others have it
  double last = 0;
  RAW_MPI(Reduce)(&end, &last, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  return last - start;
}

void print(const char* system, const std::size_t bytes, std::vector<double> times,
           const std::uint64_t copies) {
  if (place.rank != 0) return;
  std::sort(times.begin(), times.end());
  std::printf("{\"benchmark\": \"broadcast\", \"system\": \"%s\", \"ranks\": %d, \"bytes\": %zu, "
              "\"ms\": %.4g, \"best_ms\": %.4g, \"copies\": %llu}\n",
              system, place.ranks, bytes, times[times.size() / 2] * 1e-6, times.front() * 1e-6,
              static_cast<unsigned long long>(copies));
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  setenv("IMBREX_WORKERS", "1", 0);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &place.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &place.ranks);
  if (place.ranks < 2) fail("ranks (mpirun -n 2 or more)", place.ranks, 2);
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 7;
  std::vector<std::size_t> sizes;
  for (int i = 2; i < argc; ++i) sizes.push_back(std::strtoull(argv[i], nullptr, 10));
  if (sizes.empty()) sizes = {8, 4096, 65536, 262144, 2097152, 8388608};

  const std::map<std::string, void (*)()> plain{
      {"one_copy", one_copy}, {"loop", loop}, {"bcast", bcast}, {"ibcast", ibcast}};
  const std::map<std::string, TreeKind> kinds{
      {"star", TreeKind::star}, {"binomial", TreeKind::binomial}, {"chain", TreeKind::chain},
      {"binary", TreeKind::binary}, {"auto", TreeKind::automatic}};
  std::map<std::string, std::unique_ptr<Tree>> trees;
  int number = static_cast<int>(active::Id::first_free);
  for (const auto& [name, kind] : kinds) {
    BroadcastOptions options;
    options.kind = kind;
    trees[name] = std::make_unique<Tree>(static_cast<active::Id>(number++), options);
    trees[name]->on_messages.protocol.open_space(space, name);
  }
  for (const std::size_t bytes : sizes) {
    data.assign(bytes, std::byte{1});
    std::map<std::string, std::vector<double>> times;
    std::map<std::string, std::uint64_t> copies;
    for (int round = 0; round < rounds; ++round) {
      for (const auto& [name, system] : plain) {
        times[name].push_back(measure([&, run = system] {
          run();
          return now_ns();
        }));
      }
      for (const auto& [name, tree] : trees) {
        Broadcasts& own = tree->on_messages.protocol;
        const std::uint64_t before = own.counters().copies_as_root;
        times[name].push_back(measure([&] { return broadcast(own, tree->next++); }));
        copies[name] = own.counters().copies_as_root - before;
      }
    }
    for (const auto& [name, some] : times) print(name.c_str(), bytes, some, copies[name]);
  }
  RAW_MPI(Barrier)(MPI_COMM_WORLD);
  for (const auto& [name, tree] : trees) (void)tree->on_messages.protocol.close_space(space);
  MPI_Finalize();
  for (auto& [name, tree] : trees) (void)tree.release();  // a worker may be in a handler still
}
