// SPDX-License-Identifier: BSD-3-Clause
// Mistakes with MPI in tasks, and what looks like one and is none; CMakeLists.txt says what each
// must print.
#include <mpi.h>

#include <array>
#include <cstdio>
#include <vector>

#include "cases.hpp"
#include "imbrex/imbrex.hpp"
#include "imbrex/mpi.hpp"

namespace {

using imbrex::task;

int rank = 0;
int other = 0;

// Lets all tasks run until each waits in MPI.
void settle() {
  for (int round = 0; round < 20; ++round) imbrex::yield();
}

// A task that is always ready, so that the others do not wait in place.
struct Bustle {
  bool stop = false;
  imbrex::Future<void> done = task("bustle").spawn([this] {
    while (!stop) imbrex::yield();
  });
  ~Bustle() {
    stop = true;
    done.wait();
  }
};

// Two receives into one array; their messages come afterwards.
void receives_overlap() {
  static std::array<int, 6> values{};
  task("receive left").launch([] {
    MPI_Recv(&values[0], 4, MPI_INT, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  });
  task("receive right").launch([] {
    MPI_Recv(&values[3], 3, MPI_INT, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  });
  settle();
  MPI_Barrier(MPI_COMM_WORLD);  // both receives of each rank are under way
  const std::array<int, 4> out{};
  MPI_Send(out.data(), 4, MPI_INT, other, 1, MPI_COMM_WORLD);
  MPI_Send(out.data(), 3, MPI_INT, other, 2, MPI_COMM_WORLD);
  imbrex::taskwait();
}

// A request of the program's, and a call that blocks.
void receive_into_what_is_sent() {
  static std::vector<char> block(1 << 20);
  MPI_Request request;
  MPI_Irecv(block.data() + 100, 8, MPI_BYTE, other, 1, MPI_COMM_WORLD, &request);
  MPI_Send(block.data() + 104, 1, MPI_BYTE, other, 2, MPI_COMM_WORLD);
  MPI_Recv(block.data() + 500, 1, MPI_BYTE, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Send(block.data(), 8, MPI_BYTE, other, 1, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  // The request has completed: its memory is free for others.
  MPI_Request again;
  MPI_Irecv(block.data() + 100, 8, MPI_BYTE, other, 3, MPI_COMM_WORLD, &again);
  MPI_Send(block.data(), 8, MPI_BYTE, other, 3, MPI_COMM_WORLD);
  MPI_Waitall(1, &again, MPI_STATUSES_IGNORE);
}

// Two sends may read the same; and columns of a matrix lie between each other without meeting.
void no_overlap() {
  constexpr int size = 8;
  static std::array<double, size * size> matrix{};
  MPI_Datatype column;
  MPI_Type_vector(size, 1, size, MPI_DOUBLE, &column);
  MPI_Type_commit(&column);
  MPI_Request requests[5];
  MPI_Irecv(&matrix[0], 1, column, other, 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(&matrix[size - 1], 1, column, other, 2, MPI_COMM_WORLD, &requests[1]);
  MPI_Isend(&matrix[1], 1, column, other, 1, MPI_COMM_WORLD, &requests[2]);
  MPI_Isend(&matrix[size - 2], 1, column, other, 2, MPI_COMM_WORLD, &requests[3]);
  MPI_Isend(&matrix[1], 1, column, other, 3, MPI_COMM_WORLD, &requests[4]);
  MPI_Recv(&matrix[3], 1, column, other, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Waitall(5, requests, MPI_STATUSES_IGNORE);
  MPI_Type_free(&column);
}

// The same columns, one of them twice.
void columns_overlap() {
  constexpr int size = 8;
  static std::array<double, size * size> matrix{};
  MPI_Datatype column;
  MPI_Type_vector(size, 1, size, MPI_DOUBLE, &column);
  MPI_Type_commit(&column);
  MPI_Request requests[2];
  MPI_Irecv(&matrix[2], 1, column, other, 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Type_free(&column);
  MPI_Irecv(&matrix[3 * size], 3, MPI_DOUBLE, other, 2, MPI_COMM_WORLD, &requests[1]);
  const std::array<double, size> out{};
  MPI_Send(out.data(), size, MPI_DOUBLE, other, 1, MPI_COMM_WORLD);
  MPI_Send(out.data(), 3, MPI_DOUBLE, other, 2, MPI_COMM_WORLD);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

void waited_for_twice() {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  static int value = 0;
  static MPI_Request request;
  MPI_Irecv(&value, 1, MPI_INT, other, 1, MPI_COMM_WORLD, &request);
  static MPI_Request copy = request;
  const Bustle bustle;
  const auto first = task("first").spawn([] { return MPI_Wait(&request, MPI_STATUS_IGNORE); });
  settle();
  MPI_Barrier(MPI_COMM_WORLD);
  const auto second = task("second").spawn([] { return MPI_Wait(&copy, MPI_STATUS_IGNORE); });
  settle();
  MPI_Barrier(MPI_COMM_WORLD);
  const int out = 7;
  MPI_Send(&out, 1, MPI_INT, other, 1, MPI_COMM_WORLD);
  const bool refused = second.get() != MPI_SUCCESS;
  const int code = first.get();
  std::printf("first %d, second %s, value %d\n", code, refused ? "refused" : "waits", value);
}

void collectives_in_no_order() {
  int word = 0;
  if (rank == 1) MPI_Recv(&word, 1, MPI_INT, other, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  task("one").launch([] { MPI_Barrier(MPI_COMM_WORLD); });
  task("two").launch([] { MPI_Barrier(MPI_COMM_WORLD); });
  if (rank == 0) {
    settle();  // both are in the barrier: rank 1 is not
    MPI_Send(&word, 1, MPI_INT, other, 7, MPI_COMM_WORLD);
  }
  imbrex::taskwait();
}

// `end` is the call that takes the handle away.
void ended_while_waited_on(int (*end)(MPI_Comm*)) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  int value = 0;
  const Bustle bustle;
  const auto waits = task("waits").spawn([&] {
    return MPI_Recv(&value, 1, MPI_INT, other, 7, comm, MPI_STATUS_IGNORE);
  });
  settle();
  const bool refused = end(&comm) != MPI_SUCCESS;
  MPI_Barrier(MPI_COMM_WORLD);
  const int out = 42;
  MPI_Send(&out, 1, MPI_INT, other, 7, comm);
  const int code = waits.get();
  std::printf("%s, received %d with code %d\n", refused ? "refused" : "ended", value, code);
  end(&comm);
}

void freed_while_waited_on() { ended_while_waited_on(&MPI_Comm_free); }
void disconnected_while_waited_on() { ended_while_waited_on(&MPI_Comm_disconnect); }

// MPI completes requests of a communicator that is freed.
void freed_with_requests() {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  int value = 0;
  const int out = 42;
  MPI_Request requests[2];
  MPI_Irecv(&value, 1, MPI_INT, other, 7, comm, &requests[0]);
  MPI_Isend(&out, 1, MPI_INT, other, 7, comm, &requests[1]);
  MPI_Comm_free(&comm);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  std::printf("received %d\n", value);
}

const imbrex::test::Cases cases{
    {"receives_overlap", receives_overlap},
    {"receive_into_what_is_sent", receive_into_what_is_sent},
    {"no_overlap", no_overlap},
    {"columns_overlap", columns_overlap},
    {"waited_for_twice", waited_for_twice},
    {"collectives_in_no_order", collectives_in_no_order},
    {"freed_while_waited_on", freed_while_waited_on},
    {"disconnected_while_waited_on", disconnected_while_waited_on},
    {"freed_with_requests", freed_with_requests},
};

}  // namespace

int main(int argc, char** argv) {
  const auto& run = imbrex::test::chosen(cases, argc, argv).second;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  other = 1 - rank;
  run();
  MPI_Finalize();
}
