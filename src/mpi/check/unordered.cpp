// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/check/unordered.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "base/guarded.hpp"
#include "imbrex/detail/observation.hpp"
#include "mpi/abi/inquiries.hpp"
#include "mpi/check/ranks/findings.hpp"

namespace imbrex::mpi::check {

namespace {

// A send or receive that has begun.
struct Post {
  report::Wait wait;  // read at once: the communicator may be freed later
  detail::TaskLabel task;
  detail::Moment moment;
};

// The kind of a task: its name and place.
using TaskKind = std::tuple<const char*, const char*, const char*, std::uint_least32_t>;
TaskKind kind_of(const detail::TaskLabel& task) noexcept {
  return {task.name, task.where.file_name(), task.where.function_name(), task.where.line()};
}

std::uintptr_t number_of(MPI_Comm comm) noexcept { return (std::uintptr_t)comm; }

// Thread safety: any thread.
class Posts {
 public:
  // Keeps `fresh` as the last one of its envelope. Returns the one before if nothing orders their
  // tasks, and if no two tasks of these kinds were found so far.
  std::optional<Post> replace(const Envelope& envelope, const Post& fresh) {
    const std::lock_guard guard(lock_);
    std::map<Key, Post>& all = last_[number_of(envelope.comm)];
    const auto [place, is_new] =
        all.try_emplace({envelope.peer, envelope.tag, envelope.receives}, fresh);
    if (is_new) return std::nullopt;
    Post earlier = std::exchange(place->second, fresh);
    if (earlier.task.id == fresh.task.id) return std::nullopt;
    const Pair pair{kind_of(earlier.task), kind_of(fresh.task), envelope.receives};
    if (found_.contains(pair) || detail::is_behind(earlier.moment)) return std::nullopt;
    found_.insert(pair);
    return earlier;
  }

  void forget(MPI_Comm comm) noexcept {
    const std::lock_guard guard(lock_);
    last_.erase(number_of(comm));
  }

 private:
  using Key = std::tuple<int, int, bool>;  // peer, tag, receives
  using Pair = std::tuple<TaskKind, TaskKind, bool>;

  std::mutex lock_;
  // Bounded by the number of envelopes that the program uses.
  std::map<std::uintptr_t, std::map<Key, Post>> last_ IMBREX_GUARDED_BY(lock_);
  std::set<Pair> found_ IMBREX_GUARDED_BY(lock_);
};

// The program has said that the order of messages does not matter.
bool allows_overtaking(MPI_Comm comm) noexcept {
  MPI_Info info = MPI_INFO_NULL;
  if (PMPI_Comm_get_info(comm, &info) != MPI_SUCCESS || info == MPI_INFO_NULL) return false;
  const bool result = asserts(info, "mpi_assert_allow_overtaking");
  PMPI_Info_free(&info);
  return result;
}

Posts& posts() {
  static Posts& the_posts = *new Posts;  // tasks may send after static objects are destroyed
  return the_posts;
}

}  // namespace

bool is_exact(const Envelope& envelope) noexcept {
  return envelope.comm != MPI_COMM_NULL && envelope.peer >= 0 && envelope.tag >= 0;
}

void post(const Envelope& envelope, const report::Wait& wait) {
  const Post fresh{wait, detail::current_task(), detail::this_moment()};
  if (fresh.moment.task == 0) return;  // its order is not known
  const std::optional<Post> earlier = posts().replace(envelope, fresh);
  if (!earlier || allows_overtaking(envelope.comm)) return;
  report_finding(fmt::format(
      "two tasks {} with one tag {} one rank, and nothing orders the tasks:\n"
      "imbrex:   {}\n"
      "imbrex:   {}\n"
      "imbrex:   {}. Give each message a tag of its own, or order the tasks by a dependency. If "
      "any order is right, say so by the info mpi_assert_allow_overtaking of the communicator",
      envelope.receives ? "receive" : "send", envelope.receives ? "from" : "to",
      describe(earlier->wait, earlier->task), describe(fresh.wait, fresh.task),
      envelope.receives ? "Each task may get the message that the other one waits for"
                        : "The receiver may get the two messages in either order"));
}

void forget_posts(MPI_Comm comm) noexcept {
  if (on()) posts().forget(comm);
}

}  // namespace imbrex::mpi::check
