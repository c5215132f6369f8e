// SPDX-License-Identifier: BSD-3-Clause
// Processes that do not share a communicator at first: spawn, accept and connect, join, names of
// ports. All in tasks, with one worker in each process. A test of a call that this MPI cannot do
// here is skipped.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <string>

#include "mpi_test.hpp"

namespace imbrex::test {
namespace {

class Processes : public testing::Test {
 protected:
  Processes() {
    for (MPI_Comm comm : {ring_.comm, MPI_COMM_WORLD, MPI_COMM_SELF}) {
      MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    }
  }
  ~Processes() override {
    for (MPI_Comm comm : {MPI_COMM_WORLD, MPI_COMM_SELF}) {
      MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL);
    }
  }

  // Sends a number to each child and gets it back, increased by the child's rank.
  void talk(MPI_Comm children, int count) const {
    for (int child = 0; ring_.rank == 0 && child < count; ++child) {
      int number = 100;
      MPI_Send(&number, 1, MPI_INT, child, 1, children);
      MPI_Recv(&number, 1, MPI_INT, child, 2, children, MPI_STATUS_IGNORE);
      EXPECT_EQ(number, 100 + child);
    }
  }

  // Exchanges ranks with the only process of another group.
  void greet(MPI_Comm other, int expected) const {
    int theirs = -1;
    MPI_Sendrecv(&ring_.rank, 1, MPI_INT, 0, 8, &theirs, 1, MPI_INT, 0, 8, other,
                 MPI_STATUS_IGNORE);
    EXPECT_EQ(theirs, expected);
  }

  const Ring ring_;
};

TEST_F(Processes, spawn) {
  MPI_Comm children = MPI_COMM_NULL;
  char program[] = IMBREX_CHILD;
  const int code = task("spawn").spawn([&] {
    const int spawned = MPI_Comm_spawn(program, MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, ring_.comm,
                                       &children, MPI_ERRCODES_IGNORE);
    if (spawned != MPI_SUCCESS) return spawned;
    talk(children, 1);
    return MPI_Comm_disconnect(&children);
  }).get();
  if (code != MPI_SUCCESS) GTEST_SKIP() << "this MPI spawns nothing here";
}

TEST_F(Processes, spawn_several_programs) {
  MPI_Comm children = MPI_COMM_NULL;
  char program[] = IMBREX_CHILD;
  char* programs[] = {program, program};
  const int counts[] = {1, 1};
  const MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
  const int code = task("spawn").spawn([&] {
    const int spawned =
        MPI_Comm_spawn_multiple(2, programs, MPI_ARGVS_NULL, counts, infos, 0, ring_.comm,
                                &children, MPI_ERRCODES_IGNORE);
    if (spawned != MPI_SUCCESS) return spawned;
    talk(children, 2);
    return MPI_Comm_disconnect(&children);
  }).get();
  if (code != MPI_SUCCESS) GTEST_SKIP() << "this MPI spawns nothing here";
}

// Ranks 0 and 1 meet as if they did not know each other, while another task of each works on.
TEST_F(Processes, accept_and_connect) {
  if (ring_.size < 2) GTEST_SKIP() << "needs two ranks";
  char port[MPI_MAX_PORT_NAME] = "";
  int opened = MPI_SUCCESS;
  if (ring_.rank == 0) opened = MPI_Open_port(MPI_INFO_NULL, port);
  MPI_Bcast(&opened, 1, MPI_INT, 0, ring_.comm);
  if (opened != MPI_SUCCESS) GTEST_SKIP() << "this MPI opens no port here";
  MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, ring_.comm);
  if (ring_.rank < 2) {
    auto met = task("meet").spawn([&] {
      if (ring_.rank == 1) sleep_ms(5);
      MPI_Comm other = MPI_COMM_NULL;
      const int code = ring_.rank == 0
                           ? MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other)
                           : MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
      if (code != MPI_SUCCESS) return code;
      greet(other, 1 - ring_.rank);
      return MPI_Comm_disconnect(&other);
    });
    task("beside").spawn([this] {
      int theirs = -1;
      MPI_Sendrecv(&ring_.rank, 1, MPI_INT, 1 - ring_.rank, 3, &theirs, 1, MPI_INT, 1 - ring_.rank,
                   3, ring_.comm, MPI_STATUS_IGNORE);
      EXPECT_EQ(theirs, 1 - ring_.rank);
    }).get();
    EXPECT_EQ(met.get(), MPI_SUCCESS);
  }
  if (ring_.rank == 0) MPI_Close_port(port);
  MPI_Barrier(ring_.comm);
}

TEST_F(Processes, names_of_ports) {
  if (ring_.rank != 0) return;
  const std::string service = "imbrex-" + std::to_string(getpid());
  task("name").spawn([&] {
    char found[MPI_MAX_PORT_NAME] = "";
    const char port[] = "a-port";
    if (MPI_Publish_name(service.c_str(), MPI_INFO_NULL, port) != MPI_SUCCESS) return;
    EXPECT_EQ(MPI_Lookup_name(service.c_str(), MPI_INFO_NULL, found), MPI_SUCCESS);
    EXPECT_STREQ(found, port);
    EXPECT_EQ(MPI_Unpublish_name(service.c_str(), MPI_INFO_NULL, port), MPI_SUCCESS);
  }).get();
}

// A connection between ranks 0 and 1, under a name that is no file's.
int connect_sockets(const Ring& ring) {
  int id = static_cast<int>(getpid());
  MPI_Bcast(&id, 1, MPI_INT, 0, ring.comm);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const int length = std::snprintf(address.sun_path + 1, sizeof address.sun_path - 1,
                                   "imbrex-join-%d", id);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 +
                                           static_cast<std::size_t>(length));
  const auto* const name = reinterpret_cast<const sockaddr*>(&address);
  int end = socket(AF_UNIX, SOCK_STREAM, 0);
  if (ring.rank == 0) {
    const int server = end;
    EXPECT_EQ(bind(server, name, size), 0);
    EXPECT_EQ(listen(server, 1), 0);
    MPI_Barrier(ring.comm);
    end = accept(server, nullptr, nullptr);
    close(server);
  } else {
    MPI_Barrier(ring.comm);
    const int wanted = ring.rank == 1 ? connect(end, name, size) : 0;
    EXPECT_EQ(wanted, 0);
  }
  return end;
}

TEST_F(Processes, join) {
  if (ring_.size < 2) GTEST_SKIP() << "needs two ranks";
  // MPI_Comm_join opens a port too.
  char port[MPI_MAX_PORT_NAME] = "";
  if (MPI_Open_port(MPI_INFO_NULL, port) != MPI_SUCCESS) {
    GTEST_SKIP() << "this MPI opens no port here";
  }
  MPI_Close_port(port);
  const int end = connect_sockets(ring_);
  if (ring_.rank < 2) {
    const int code = task("join").spawn([&] {
      MPI_Comm other = MPI_COMM_NULL;
      const int joined = MPI_Comm_join(end, &other);
      if (joined != MPI_SUCCESS || other == MPI_COMM_NULL) return joined;
      greet(other, 1 - ring_.rank);
      return MPI_Comm_disconnect(&other);
    }).get();
    EXPECT_EQ(code, MPI_SUCCESS);
  }
  close(end);
  MPI_Barrier(ring_.comm);
}

}  // namespace
}  // namespace imbrex::test
