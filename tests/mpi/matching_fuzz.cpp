// SPDX-License-Identifier: BSD-3-Clause
// Random programs of messages, on any number of ranks: tasks and threads that send and receive by
// every call that does, with wildcards, on several communicators; each message says what it is, so
// that MPI's order is checked. Every receive is large enough.
//
//   matching_fuzz [--seed N] [--count N | --seconds N] [--scale N]
//
// A seed that fails is run again by the arguments that the program prints.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "imbrex/imbrex.hpp"
#include "random_programs.hpp"

namespace {

using Random = std::mt19937;
int below(Random& random, int end) {
  return static_cast<int>(random() % static_cast<unsigned>(end));
}

int rank = 0;
int ranks = 1;
std::atomic<int> failures{0};

void expect(bool condition, const char* what, int first, int second) {
  if (condition || failures.fetch_add(1) > 10) return;
  std::fprintf(stderr, "matching_fuzz: rank %d: %s (%d, %d)\n", rank, what, first, second);
}

// ---- messages ----------------------------------------------------------------------------------

struct Message {
  int source;
  int destination;
  int tag;
  int number;  // grows over all from this source on this communicator
  int ints;    // at least head_ints
};
constexpr int head_ints = 4;
constexpr int ints_max = 40'000;

int random_ints(Random& random) {
  switch (below(random, 8)) {
    case 0: return head_ints;
    case 1: return 1'000 + below(random, 200);  // around the limits of eager protocols
    case 2: return 15'000 + below(random, 2'000);
    case 3: return below(random, 6) == 0 ? ints_max : 500;
    default: return head_ints + below(random, 60);
  }
}

std::vector<int> contents(const Message& it) {
  std::vector<int> values(static_cast<std::size_t>(it.ints));
  for (int i = 0; i < it.ints; ++i) values[i] = it.number * 31 + it.tag + i;
  const std::array head{it.source, it.tag, it.number, it.ints};
  std::copy(head.begin(), head.end(), values.begin());
  return values;
}

// Returns its number.
int check(const int values[], const MPI_Status& status) {
  int count = -1;
  MPI_Get_count(&status, MPI_INT, &count);
  expect(count >= head_ints, "a message has no head", count, status.MPI_TAG);
  if (count < head_ints) return -1;
  const Message sent{values[0], -1, values[1], values[2], values[3]};
  expect(sent.source == status.MPI_SOURCE, "the status has another source", sent.source,
         status.MPI_SOURCE);
  expect(sent.tag == status.MPI_TAG, "the status has another tag", sent.tag, status.MPI_TAG);
  expect(sent.ints == count, "the message has another length", sent.ints, count);
  for (int i = head_ints; i < count; ++i) {
    if (values[i] == sent.number * 31 + sent.tag + i) continue;
    expect(false, "the message is damaged", sent.number, i);
    break;
  }
  return sent.number;
}

// ---- waiting -----------------------------------------------------------------------------------

// Waits for all by a call that the seed says. `ended(index, status)` is called for each.
template <class Ended>
void wait_for_all(Random& random, std::vector<MPI_Request>& requests, Ended ended) {
  const int count = static_cast<int>(requests.size());
  std::vector<MPI_Status> statuses(requests.size());
  std::vector<int> indices(requests.size());
  int left = count;
  const auto some = [&](int found) {
    for (int i = 0; i < found; ++i) ended(indices[i], statuses[i]);
    left -= std::max(found, 0);
    expect(found != MPI_UNDEFINED, "nothing is active", left, count);
    if (found == MPI_UNDEFINED) left = 0;
  };
  switch (below(random, 7)) {
    case 0:
      for (int i = 0; i < count; ++i) {
        MPI_Wait(&requests[i], &statuses[i]);
        ended(i, statuses[i]);
      }
      break;
    case 1:
      for (int i = count; i-- > 0;) {
        MPI_Wait(&requests[i], &statuses[i]);
        ended(i, statuses[i]);
      }
      break;
    case 2:
      while (left > 0) {
        int found = 0;
        MPI_Waitsome(count, requests.data(), &found, indices.data(), statuses.data());
        some(found);
      }
      break;
    case 3:
      while (left > 0) {
        int found = 0;
        MPI_Testsome(count, requests.data(), &found, indices.data(), statuses.data());
        some(found);
        if (found == 0) imbrex::yield();
      }
      break;
    case 4:
      while (left > 0) {
        MPI_Waitany(count, requests.data(), &indices[0], &statuses[0]);
        some(indices[0] == MPI_UNDEFINED ? MPI_UNDEFINED : 1);
      }
      break;
    default:
      MPI_Waitall(count, requests.data(), statuses.data());
      for (int i = 0; i < count; ++i) ended(i, statuses[i]);
  }
}

// ---- what one task or thread does --------------------------------------------------------------

// Sends in this order, since each receiver expects it.
void send_all(MPI_Comm comm, const std::vector<Message>& messages, Random random) {
  struct Flight {
    std::vector<int> values;
    bool persistent;
  };
  std::vector<Flight> flights;
  std::vector<MPI_Request> requests;
  const auto finish = [&] {
    std::vector<MPI_Request> waiting = requests;
    wait_for_all(random, waiting, [](int, const MPI_Status&) {});
    for (std::size_t i = 0; i < flights.size(); ++i) {
      if (flights[i].persistent) MPI_Request_free(&waiting[i]);
    }
    flights.clear();
    requests.clear();
  };
  const std::size_t window = static_cast<std::size_t>(1 + below(random, 50));
  for (const Message& it : messages) {
    std::vector<int> values = contents(it);
    const auto begin = [&](auto call, bool persistent) {
      MPI_Request request;
      call(values.data(), it.ints, MPI_INT, it.destination, it.tag, comm, &request);
      if (persistent) MPI_Start(&request);
      requests.push_back(request);
      flights.push_back({std::move(values), persistent});
    };
    switch (below(random, 7)) {
      case 0: MPI_Send(values.data(), it.ints, MPI_INT, it.destination, it.tag, comm); break;
      case 1: MPI_Ssend(values.data(), it.ints, MPI_INT, it.destination, it.tag, comm); break;
      case 2: begin(MPI_Issend, false); break;
      case 3: begin(MPI_Send_init, true); break;
      case 4: begin(MPI_Ssend_init, true); break;
      default: begin(MPI_Isend, false);
    }
    if (requests.size() > window) finish();
  }
  finish();
}

struct Wanted {
  int source;
  int tag;
};

// Receives one message for each entry of `list`, in its order, several at a time; or all at once,
// if a sender may wait for the last of them before it sends the first. If two entries could have
// taken two messages of a source, the first has the earlier one.
void receive_all(MPI_Comm comm, const std::vector<Wanted>& list, bool at_once, Random random) {
  std::map<std::array<int, 3>, int> latest;  // by what was wanted and the source: see above
  const auto note = [&](const Wanted& wanted, const MPI_Status& status, int number) {
    const std::array key{wanted.source, wanted.tag, status.MPI_SOURCE};
    const auto [place, fresh] = latest.try_emplace(key, number);
    expect(fresh || number > place->second, "a message has overtaken another", number,
           place->second);
    place->second = number;
  };
  for (std::size_t next = 0; next < list.size();) {
    const Wanted& wanted = list[next];
    const auto values = std::make_unique_for_overwrite<int[]>(ints_max);
    MPI_Status status;
    switch (at_once ? -1 : below(random, 6)) {
      case 0:
        MPI_Recv(values.get(), ints_max, MPI_INT, wanted.source, wanted.tag, comm, &status);
        note(wanted, status, check(values.get(), status));
        ++next;
        continue;
      case 1: {
        MPI_Message message;
        MPI_Mprobe(wanted.source, wanted.tag, comm, &message, &status);
        MPI_Mrecv(values.get(), ints_max, MPI_INT, &message, &status);
        note(wanted, status, check(values.get(), status));
        ++next;
        continue;
      }
      default:
        break;
    }
    const std::size_t some = at_once ? list.size() : 1 + static_cast<unsigned>(below(random, 40));
    const std::size_t count = std::min(list.size() - next, some);
    std::vector<std::unique_ptr<int[]>> buffers;
    std::vector<MPI_Request> requests(count);
    std::vector<char> persistent(count);
    for (std::size_t i = 0; i < count; ++i) {
      buffers.push_back(std::make_unique_for_overwrite<int[]>(ints_max));
      int* const buffer = buffers.back().get();
      const Wanted& it = list[next + i];
      persistent[i] = below(random, 5) == 0;
      if (persistent[i]) {
        MPI_Recv_init(buffer, ints_max, MPI_INT, it.source, it.tag, comm, &requests[i]);
        MPI_Start(&requests[i]);
      } else {
        MPI_Irecv(buffer, ints_max, MPI_INT, it.source, it.tag, comm, &requests[i]);
      }
    }
    std::vector<MPI_Status> statuses(count);
    std::vector<char> over(count);
    wait_for_all(random, requests, [&](int index, const MPI_Status& its_status) {
      expect(over[index] == 0, "a request has ended twice", index, its_status.MPI_TAG);
      over[index] = 1;
      statuses[index] = its_status;
    });
    for (std::size_t i = 0; i < count; ++i) {
      note(list[next + i], statuses[i], check(buffers[i].get(), statuses[i]));
      if (persistent[i]) {
        MPI_Request_free(&requests[i]);
      } else {
        expect(requests[i] == MPI_REQUEST_NULL, "a request is left", static_cast<int>(i), 0);
      }
    }
    next += count;
  }
}

// ---- programs ----------------------------------------------------------------------------------

using Job = std::function<void()>;

// One sender on each rank for all others, one receiver on each, which wants all from any, each
// source's or each tag's in the order in which they are sent.
void plan_crowd(MPI_Comm comm, int scale, Random& plan, std::vector<Job>& jobs) {
  int me = 0;
  MPI_Comm_rank(comm, &me);
  const int tags = 1 + below(plan, 5);
  const int kind = below(plan, 3);
  std::vector<std::vector<Wanted>> wanted(static_cast<std::size_t>(ranks));
  for (int source = 0; source < ranks; ++source) {
    std::vector<Message> messages;
    int number = 0;
    const int count = scale * (5 + below(plan, 40));
    for (int i = 0; i < count; ++i) {
      const int to = below(plan, ranks);
      // A standard send to oneself may wait for its receive, which is another task's.
      messages.push_back({source, to, below(plan, tags), number++, random_ints(plan)});
      const Message& it = messages.back();
      const Wanted fits{kind == 1 ? source : MPI_ANY_SOURCE, kind == 2 ? it.tag : MPI_ANY_TAG};
      wanted[to].push_back(fits);
    }
    const Random seed(plan());
    if (source == me) jobs.push_back([=] { send_all(comm, messages, seed); });
  }
  for (int to = 0; to < ranks; ++to) {
    std::shuffle(wanted[to].begin(), wanted[to].end(), plan);
    const Random seed(plan());
    const std::vector<Wanted>& list = wanted[to];
    if (to == me) jobs.push_back([=] { receive_all(comm, list, kind != 0, seed); });
  }
}

// Many pairs of tasks, each with a tag of its own.
void plan_pairs(MPI_Comm comm, int scale, Random& plan, std::vector<Job>& jobs) {
  int me = 0;
  MPI_Comm_rank(comm, &me);
  const int pairs = scale * (5 + below(plan, below(plan, 4) == 0 ? 120 : 30));
  for (int tag = 0; tag < pairs; ++tag) {
    const int source = below(plan, ranks);
    const int to = below(plan, ranks);
    const bool from_any = below(plan, 3) == 0;
    const int count = 1 + below(plan, 12);
    std::vector<Message> messages;
    for (int i = 0; i < count; ++i) {
      messages.push_back({source, to, tag, i, random_ints(plan)});
    }
    const std::vector<Wanted> wanted(static_cast<std::size_t>(count),
                                     {from_any ? MPI_ANY_SOURCE : source, tag});
    const Random send_seed(plan());
    const Random receive_seed(plan());
    if (me == source) jobs.push_back([=] { send_all(comm, messages, send_seed); });
    if (me == to) jobs.push_back([=] { receive_all(comm, wanted, false, receive_seed); });
  }
}

// Every fifth on a thread that imbrex does not know.
void run(std::vector<Job> jobs, Random random) {
  std::shuffle(jobs.begin(), jobs.end(), random);
  std::vector<std::thread> threads;
  std::atomic<int> on_threads{0};
  imbrex::finish([&] {
    for (const Job& job : jobs) {
      if (below(random, 5) == 0 && threads.size() < 6) {
        on_threads.fetch_add(1);
        threads.emplace_back([&on_threads, job] {
          job();
          on_threads.fetch_sub(1);
        });
      } else {
        imbrex::task("messages").launch(job);
      }
    }
  });
  while (on_threads.load() > 0) {
    imbrex::yield();
    std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
}

void run_program(unsigned seed, int scale) {
  Random plan(seed);  // the same on all ranks
  std::array<MPI_Comm, 3> comms;
  MPI_Comm reversed;
  MPI_Comm_split(MPI_COMM_WORLD, 0, ranks - rank, &reversed);
  MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
  MPI_Comm_dup(reversed, &comms[1]);
  MPI_Comm_dup(reversed, &comms[2]);
  MPI_Comm_free(&reversed);
  std::vector<Job> jobs;
  plan_crowd(comms[0], scale, plan, jobs);
  plan_crowd(comms[1], scale, plan, jobs);
  plan_pairs(comms[2], scale, plan, jobs);
  run(std::move(jobs), Random(seed * 977 + static_cast<unsigned>(rank)));
  MPI_Barrier(MPI_COMM_WORLD);
  for (MPI_Comm& comm : comms) {
    int flag = 0;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &flag, &status);
    expect(flag == 0, "a message is left", status.MPI_SOURCE, status.MPI_TAG);
    MPI_Comm_free(&comm);
  }
}

}  // namespace

int main(int argc, char** argv) {
  imbrex::test::RandomPrograms programs({{"--scale", 1}});
  if (!programs.read(argc, argv)) return 2;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int scale = static_cast<int>(programs["--scale"]);
  const int code = programs.run([&](unsigned seed) { run_program(seed, scale); },
                                [] { return failures.load(); });
  MPI_Finalize();
  return code;
}
