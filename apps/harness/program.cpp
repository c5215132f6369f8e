// SPDX-License-Identifier: BSD-3-Clause
#include "program.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>

#include "command_line.hpp"

namespace apps {

int run_program(const char* const name, int argc, char** argv,
                void (*const start)(int&, char**&), int (*const run)(int, char**)) {
  start(argc, argv);
  const int rank = rank_of_all();
  int code = 1;
  try {
    code = run(argc, argv);
  } catch (const HelpAsked& help) {  // on every rank
    if (rank == 0) fmt::print("{}", help.text);
    code = 0;
  } catch (const InputError& error) {  // on every rank
    if (rank == 0) fmt::print(stderr, "{}: {}\n", name, error.what());
  } catch (const std::exception& error) {  // perhaps on this rank alone: others may wait for it
    fmt::print(stderr, "{}: rank {}: {}\n", name, rank, error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return code;
}

void become(const char* const program, char** const argv) {
  const std::string path =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / program;
  execv(path.c_str(), argv);
  fmt::print(stderr, "{}: cannot run {}, which has this variant: {}\n", argv[0], path,
             std::strerror(errno));
  std::exit(1);
}

void fail_together(const MPI_Comm communicator, const std::string& mine) {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(communicator, &rank);
  MPI_Comm_size(communicator, &size);
  const int candidate = mine.empty() ? size : rank;
  int first = size;
  MPI_Allreduce(&candidate, &first, 1, MPI_INT, MPI_MIN, communicator);
  if (first == size) return;
  std::string text = mine;
  int length = static_cast<int>(text.size());
  MPI_Bcast(&length, 1, MPI_INT, first, communicator);
  text.resize(static_cast<std::size_t>(length));
  MPI_Bcast(text.data(), length, MPI_CHAR, first, communicator);
  throw InputError(text);
}

void check_writable(const MPI_Comm communicator, const char* const option,
                    const std::string& path) {
  int rank = 0;
  MPI_Comm_rank(communicator, &rank);
  const bool fails = rank == 0 && !path.empty() && !std::ofstream(path, std::ios::app);
  fail_together(communicator,
                fails ? fmt::format("{} {}: cannot be written", option, path) : "");
}

int rank_of_all() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

int ranks_of_all() {
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  return ranks;
}

std::string counted(const int count, const char* const noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace apps
