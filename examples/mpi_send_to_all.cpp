// SPDX-License-Identifier: BSD-3-Clause
// Shortest paths between all towns (Floyd and Warshall), whose rows are dealt out to the ranks. In
// step k all ranks need row k: its owner sends it to all others, who receive it as any message.
#include <imbrex/imbrex.hpp>
#include <imbrex/mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

constexpr int towns = 192;
using Row = std::vector<int>;

// Roads from each town to the next one, and to another one.
Row roads_from(int town) {
  Row row(towns, 1'000'000);
  row[town] = 0;
  row[(town + 1) % towns] = 5 + town % 3;
  row[(7 * town + 4) % towns] = 20;
  return row;
}

void improve(Row& row, int over, const Row& from_there) {
  for (int to = 0; to < towns; ++to) {
    row[to] = std::min(row[to], row[over] + from_there[to]);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);

  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "imbrex_trees", "512");  // for messages from 512 bytes on
  MPI_Comm rows;
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &rows);
  MPI_Info_free(&info);

  std::vector<Row> mine;  // rows rank, rank + ranks, ...
  for (int town = rank; town < towns; town += ranks) mine.push_back(roads_from(town));
  std::vector<int> others;
  for (int other = 0; other < ranks; ++other) {
    if (other != rank) others.push_back(other);
  }

  for (int k = 0; k < towns; ++k) {
    const int owner = k % ranks;
    Row row(towns);
    MPI_Request sent = MPI_REQUEST_NULL;
    if (owner == rank) {
      row = mine[k / ranks];
      IMBREX_Isend_to_all(row.data(), towns, MPI_INT, others.data(), ranks - 1, k, rows, &sent);
    } else {
      MPI_Recv(row.data(), towns, MPI_INT, owner, k, rows, MPI_STATUS_IGNORE);
    }
    for (Row& it : mine) improve(it, k, row);
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
  }

  long sum = 0, all = 0;
  for (const Row& row : mine) {
    for (const int distance : row) sum += distance;
  }
  MPI_Allreduce(&sum, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::printf("all distances together: %ld\n", all);
  MPI_Comm_free(&rows);

  // The same without messages.
  std::vector<Row> whole;
  for (int town = 0; town < towns; ++town) whole.push_back(roads_from(town));
  for (int k = 0; k < towns; ++k) {
    const Row row = whole[k];
    for (Row& it : whole) improve(it, k, row);
  }
  for (const Row& row : whole) {
    for (const int distance : row) all -= distance;
  }
  MPI_Finalize();
  return all == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
