// SPDX-License-Identifier: BSD-3-Clause
// What the tests of receives share. Methodology: the build runs them with IMBREX_MATCH_ABOVE at 0,
// 1, 2 and its default, so that receives are matched by imbrex, by MPI, and by both in turn. Every
// rank sends to the next one, or to itself if it is alone.
#pragma once

#include "mpi_test.hpp"

namespace imbrex::test {

inline int class_of(int code) {
  int error_class = -1;
  MPI_Error_class(code, &error_class);
  return error_class;
}

inline void send(const Ring& ring, int tag, int value) {
  MPI_Send(&value, 1, MPI_INT, ring.next(), tag, ring.comm);
}

inline MPI_Request irecv(const Ring& ring, int source, int tag, int* value) {
  MPI_Request request;
  EXPECT_EQ(MPI_Irecv(value, 1, MPI_INT, source, tag, ring.comm, &request), MPI_SUCCESS);
  return request;
}

// Receives that nothing comes for: with any threshold of these tests, imbrex matches from now on.
class Crowd {
 public:
  explicit Crowd(const Ring& ring) {
    for (MPI_Request& request : requests_) request = irecv(ring, ring.previous(), 9999, &value_);
  }
  ~Crowd() {
    for (MPI_Request& request : requests_) {
      MPI_Cancel(&request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
  }
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

 private:
  int value_ = 0;
  MPI_Request requests_[40];
};

}  // namespace imbrex::test
