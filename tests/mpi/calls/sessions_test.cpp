// SPDX-License-Identifier: BSD-3-Clause
// Sessions beside MPI_Init: their communicators suspend tasks as others do.
#include "either_count.hpp"
#include "every_caller.hpp"

#if IMBREX_MPI_4

namespace imbrex::test {
namespace {

class Sessions : public EveryCaller {
 protected:
  // The communicator of all processes, made from `session`.
  static MPI_Comm all_of(MPI_Session session) {
    MPI_Group group;
    EXPECT_EQ(MPI_Group_from_session_pset(session, "mpi://WORLD", &group), MPI_SUCCESS);
    MPI_Comm comm = MPI_COMM_NULL;
    EXPECT_EQ(MPI_Comm_create_from_group(group, "imbrex.all", MPI_INFO_NULL, MPI_ERRORS_RETURN,
                                         &comm),
              MPI_SUCCESS);
    MPI_Group_free(&group);
    return comm;
  }

  void expect_ring(MPI_Comm comm) const {
    come_late();
    int value = -1;
    EXPECT_EQ(MPI_Sendrecv(&ring_.rank, 1, MPI_INT, ring_.next(), 1, &value, 1, MPI_INT,
                           ring_.previous(), 1, comm, MPI_STATUS_IGNORE),
              MPI_SUCCESS);
    EXPECT_EQ(value, ring_.previous());
    int sum = -1;
    EXPECT_EQ(MPI_Allreduce(&ring_.rank, &sum, 1, MPI_INT, MPI_SUM, comm), MPI_SUCCESS);
    EXPECT_EQ(sum, ring_.size * (ring_.size - 1) / 2);
  }
};

TEST_P(Sessions, communicators_of_groups) {
  call([this] {
    MPI_Session session;
    EXPECT_EQ(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session), MPI_SUCCESS);
    MPI_Comm comm = all_of(session);
    expect_ring(comm);
    MPI_Comm_free(&comm);
    EXPECT_EQ(MPI_Session_finalize(&session), MPI_SUCCESS);
    EXPECT_EQ(session, MPI_SESSION_NULL);
  });
}

TEST_P(Sessions, intercommunicators_of_groups) {
  if (ring_.size == 1) GTEST_SKIP() << "needs two groups";
  call([this] {
    MPI_Session session;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    MPI_Group all;
    MPI_Group_from_session_pset(session, "mpi://WORLD", &all);
    const int first = 0;
    MPI_Group alone;
    MPI_Group others;
    MPI_Group_incl(all, 1, &first, &alone);
    MPI_Group_excl(all, 1, &first, &others);
    const bool mine = ring_.rank == 0;
    come_late();
    MPI_Comm both = MPI_COMM_NULL;
    EXPECT_EQ(MPI_Intercomm_create_from_groups(mine ? alone : others, 0, mine ? others : alone, 0,
                                               "imbrex.both", MPI_INFO_NULL, MPI_ERRORS_RETURN,
                                               &both),
              MPI_SUCCESS);
    int size = 0;
    MPI_Comm_remote_size(both, &size);
    EXPECT_EQ(size, mine ? ring_.size - 1 : 1);
    MPI_Comm_free(&both);
    for (MPI_Group* group : {&alone, &others, &all}) MPI_Group_free(group);
    EXPECT_EQ(MPI_Session_finalize(&session), MPI_SUCCESS);
  });
}

// Libraries may be content with less; the workers are not.
TEST_F(Sessions, a_session_has_thread_multiple) {
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "thread_level", "MPI_THREAD_SINGLE");
  MPI_Session session;
  EXPECT_EQ(MPI_Session_init(info, MPI_ERRORS_RETURN, &session), MPI_SUCCESS);
  MPI_Info_free(&info);
  MPI_Session_get_info(session, &info);
  char level[64] = "";
  int found = 0;
  int length = sizeof level;
  MPI_Info_get_string(info, "thread_level", &length, level, &found);
  EXPECT_STREQ(level, "MPI_THREAD_MULTIPLE");
  MPI_Info_free(&info);
  MPI_Session_finalize(&session);
}

#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
TEST_P(Sessions, buffers) {
  call([this] {
    MPI_Session session;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    MPI_Comm comm = all_of(session);
    static char memory[10000];
    MPI_Session_attach_buffer(session, memory, sizeof memory);
    int value = -1;
    MPI_Request request;
    MPI_Irecv(&value, 1, MPI_INT, ring_.previous(), 2, comm, &request);
    MPI_Bsend(&ring_.rank, 1, MPI_INT, ring_.next(), 2, comm);
    EXPECT_EQ(MPI_Session_flush_buffer(session), MPI_SUCCESS);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT_EQ(value, ring_.previous());
    void* detached = nullptr;
    int bytes = 0;
    EXPECT_EQ(either::Session_detach_buffer(session, static_cast<void*>(&detached), &bytes),
              MPI_SUCCESS);
    EXPECT_EQ(detached, memory);
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
  });
}
#endif

EVERY_CALLER(Sessions);

}  // namespace
}  // namespace imbrex::test

#endif
