// SPDX-License-Identifier: BSD-3-Clause
// Measures many long messages that are received in another order than that of their sends. The
// times of all rounds are printed, the first included, in which a process does not know the order.
// The program is built twice: without imbrex (message_orders), and with a task for each blocking
// send and a task that receives (message_order_tasks). bench/compare_orders runs both.
//
//   mpirun -n 2 message_orders ORDER MESSAGES BYTES [ROUNDS]
//
// Orders: `forward`, `reverse`, `random`, `pairs` (1, 0, 3, 2, ...), and `forget` (reverse, and the
// requests of the sends are freed) are between each two ranks, the even one sends. In `all` each
// rank sends to all others, and receives from them at once.
#include <mpi.h>

#ifdef WITH_TASKS
#include <imbrex/imbrex.hpp>
#include <imbrex/mpi.hpp>
#endif

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace {

#ifdef WITH_TASKS
constexpr const char* program = "tasks";
template <class F>
void as_task(F body) {
  imbrex::task("message").launch(body);
}
template <class F>
void finish(F body) {
  imbrex::finish(body);
}
#else
constexpr const char* program = "calls";
#endif

struct Case {
  std::string order;
  int messages;
  int bytes;
  int rounds;
  int rank;
  int ranks;
};

// The numbers of the messages in the order in which they are received.
std::vector<int> order_of(const Case& it, const int round) {
  std::vector<int> order(static_cast<std::size_t>(it.messages));
  std::iota(order.begin(), order.end(), 0);
  if (it.order == "reverse" || it.order == "forget") std::reverse(order.begin(), order.end());
  if (it.order == "random") {
    std::mt19937 random(static_cast<unsigned>(4711 + round));
    std::shuffle(order.begin(), order.end(), random);
  }
  for (std::size_t i = 0; it.order == "pairs" && i + 1 < order.size(); i += 2) {
    std::swap(order[i], order[i + 1]);
  }
  return order;
}

// Returns the place of message `number` among the messages with one peer.
char* place(std::vector<char>& buffer, const Case& it, const int peer, const int number) {
  const auto index = static_cast<std::size_t>(peer) * static_cast<std::size_t>(it.messages) +
                     static_cast<std::size_t>(number);
  return buffer.data() + index * static_cast<std::size_t>(it.bytes);
}

// Each rank to all others.
void exchange(const Case& it, std::vector<char>& out, std::vector<char>& in) {
  std::vector<MPI_Request> requests;
  for (int i = 0; i < it.messages; ++i) {
    for (int peer = 0; peer < it.ranks; ++peer) {
      if (peer == it.rank) continue;
      MPI_Irecv(place(in, it, peer, i), it.bytes, MPI_BYTE, peer, i, MPI_COMM_WORLD,
                &requests.emplace_back());
      MPI_Isend(place(out, it, peer, i), it.bytes, MPI_BYTE, peer, i, MPI_COMM_WORLD,
                &requests.emplace_back());
    }
  }
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
}

void send(const Case& it, std::vector<char>& out) {
  const int peer = it.rank + 1;
#ifdef WITH_TASKS
  finish([&] {
    for (int i = 0; i < it.messages; ++i) {
      as_task([&, i] {
        MPI_Send(place(out, it, 0, i), it.bytes, MPI_BYTE, peer, i, MPI_COMM_WORLD);
      });
    }
  });
#else
  std::vector<MPI_Request> requests(static_cast<std::size_t>(it.messages));
  for (int i = 0; i < it.messages; ++i) {
    MPI_Request& request = requests[static_cast<std::size_t>(i)];
    MPI_Isend(place(out, it, 0, i), it.bytes, MPI_BYTE, peer, i, MPI_COMM_WORLD, &request);
    if (it.order == "forget") MPI_Request_free(&request);
  }
  MPI_Waitall(it.messages, requests.data(), MPI_STATUSES_IGNORE);
#endif
}

void receive(const Case& it, const int round, std::vector<char>& in) {
  const auto all = [&] {
    for (const int i : order_of(it, round)) {
      MPI_Recv(place(in, it, 0, i), it.bytes, MPI_BYTE, it.rank - 1, i, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
    }
  };
#ifdef WITH_TASKS
  finish([&] { as_task(all); });
#else
  all();
#endif
}

double measure(const Case& it, const int round, std::vector<char>& out, std::vector<char>& in) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  if (it.order == "all") {
    exchange(it, out, in);
  } else if (it.rank % 2 == 0 && it.rank + 1 < it.ranks) {
    send(it, out);
  } else if (it.rank % 2 == 1) {
    receive(it, round, in);
  }
  MPI_Barrier(MPI_COMM_WORLD);  // all sends that were started have arrived
  double seconds = MPI_Wtime() - begin;
  MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return seconds;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc < 4) {
    std::fprintf(stderr, "usage: %s ORDER MESSAGES BYTES [ROUNDS]\n", argv[0]);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  Case it{argv[1], std::max(1, std::atoi(argv[2])), std::max(1, std::atoi(argv[3])),
          argc > 4 ? std::max(1, std::atoi(argv[4])) : 1, 0, 1};
  MPI_Comm_rank(MPI_COMM_WORLD, &it.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &it.ranks);
  const auto whole = static_cast<std::size_t>(it.messages) * static_cast<std::size_t>(it.bytes) *
                     static_cast<std::size_t>(it.order == "all" ? it.ranks : 1);
  std::vector<char> out(whole, 1);  // the system has given the memory before the first round
  std::vector<char> in(whole, 0);
  std::string times;
  for (int round = 0; round < it.rounds; ++round) {
    char text[32];
    std::snprintf(text, sizeof text, "%s%.3f", round == 0 ? "" : ", ",
                  measure(it, round, out, in) * 1e3);
    times += text;
  }
  if (it.rank == 0) {
    std::printf("{\"benchmark\": \"orders\", \"program\": \"%s\", \"order\": \"%s\", "
                "\"ranks\": %d, \"messages\": %d, \"bytes\": %d, \"ms\": [%s]}\n",
                program, it.order.c_str(), it.ranks, it.messages, it.bytes, times.c_str());
  }
  MPI_Finalize();
  return 0;
}
