// SPDX-License-Identifier: BSD-3-Clause
// Which calls count as sends under policy fa: a task of a kind that has made one goes before what
// was created earlier, one of another kind does not. One rank, one worker, IMBREX_POLICY=fa.
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "TAMPI.h"
#include "mpi_test.hpp"

namespace imbrex::test {
namespace {

struct Way {
  const char* name;
  bool sends;
  std::function<void()> call;  // the message, if any, goes to this rank, which has posted receives
};

constexpr int tag = 3;
int value = 7;
int result[8];

void wait(MPI_Request request) { MPI_Wait(&request, MPI_STATUS_IGNORE); }

// A persistent send or receive, or MPI_Startall of one.
void persist(const bool send, const bool all) {
  MPI_Request request;
  if (send) {
    MPI_Send_init(&value, 1, MPI_INT, 0, tag, MPI_COMM_SELF, &request);
  } else {
    MPI_Recv_init(&result[7], 1, MPI_INT, MPI_PROC_NULL, tag, MPI_COMM_SELF, &request);
  }
  all ? MPI_Startall(1, &request) : MPI_Start(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Request_free(&request);
}

template <class Start>
Way started(const char* name, Start start) {
  return {name, true, [start] {
            MPI_Request request;
            start(&value, 1, MPI_INT, 0, tag, MPI_COMM_SELF, &request);
            wait(request);
          }};
}

template <class Send>
Way blocking(const char* name, Send send) {
  return {name, true, [send] { send(&value, 1, MPI_INT, 0, tag, MPI_COMM_SELF); }};
}

std::vector<Way> ways() {
  const auto world = MPI_COMM_WORLD;
  return {
      blocking("Send", &MPI_Send), blocking("Ssend", &MPI_Ssend), blocking("Rsend", &MPI_Rsend),
      started("Isend", &MPI_Isend), started("Issend", &MPI_Issend),
      started("Irsend", &MPI_Irsend), blocking("PMPI_Send", &PMPI_Send),
      {"Start", true, [] { persist(true, false); }},
      {"Startall", true, [] { persist(true, true); }},
      {"Start of a receive", false, [] { persist(false, false); }},
      {"Sendrecv", true, [] {
         MPI_Sendrecv(&value, 1, MPI_INT, 0, tag, &result[6], 1, MPI_INT, MPI_PROC_NULL, tag,
                      MPI_COMM_SELF, MPI_STATUS_IGNORE);
       }},
      {"TAMPI_Isend", true, [] { TAMPI_Isend(&value, 1, MPI_INT, 0, tag, MPI_COMM_SELF); }},
      {"Send to nobody", false, [] {
         MPI_Send(&value, 1, MPI_INT, MPI_PROC_NULL, tag, MPI_COMM_SELF);
       }},
      {"Recv", false, [] {
         MPI_Recv(&result[6], 1, MPI_INT, MPI_PROC_NULL, tag, MPI_COMM_SELF, MPI_STATUS_IGNORE);
       }},
      {"Allreduce", true, [world] {
         MPI_Allreduce(&value, &result[6], 1, MPI_INT, MPI_SUM, world);
       }},
      {"Ialltoall", true, [world] {
         MPI_Request request;
         MPI_Ialltoall(&value, 1, MPI_INT, &result[6], 1, MPI_INT, world, &request);
         wait(request);
       }},
      {"Bcast from here", true, [world] { MPI_Bcast(&value, 1, MPI_INT, 0, world); }},
      {"Gather to here", false, [world] {
         MPI_Gather(&value, 1, MPI_INT, &result[6], 1, MPI_INT, 0, world);
       }},
      {"Barrier", false, [world] { MPI_Barrier(world); }},
  };
}

// Two rounds of a task that makes the call, after another: the order of the second. A function for
// each way, so that its tasks are of a kind of their own.
template <std::size_t>
std::vector<int> order_of(const Way& way) {
  std::vector<int> order;
  for (int round = 0; round < 2; ++round) {
    order.clear();
    MPI_Request receive;
    MPI_Irecv(&result[0], 1, MPI_INT, 0, tag, MPI_COMM_SELF, &receive);
    finish([&] {
      task("other").launch([&order] { order.push_back(0); });
      task("call").launch([&order, &way] {
        order.push_back(1);
        way.call();
      });
    });
    int done = 0;
    MPI_Test(&receive, &done, MPI_STATUS_IGNORE);
    if (done != 0) continue;
    MPI_Cancel(&receive);
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
  }
  return order;
}

template <std::size_t... Index>
void check_all(std::index_sequence<Index...>) {
  const std::vector<Way> all = ways();
  ASSERT_EQ(all.size(), sizeof...(Index));
  const auto check = [](const Way& way, const std::vector<int>& order) {
    EXPECT_EQ(order, way.sends ? std::vector<int>({1, 0}) : std::vector<int>({0, 1})) << way.name;
  };
  (check(all[Index], order_of<Index>(all[Index])), ...);
}

TEST(SendsTest, a_kind_that_has_sent_goes_first) { check_all(std::make_index_sequence<19>()); }

}  // namespace
}  // namespace imbrex::test
