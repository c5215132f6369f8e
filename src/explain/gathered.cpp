// SPDX-License-Identifier: BSD-3-Clause
#include "explain/gathered.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "imbrex/error.hpp"

namespace imbrex::explain {

namespace {

using diagnosis::RankFacts;
using diagnosis::RankState;

// A file's clock moves ten times a second, late where processors are busy; those of nodes differ.
constexpr std::uint64_t clock_ns = 500'000'000;
constexpr std::uint64_t clocks_ns = 2'000'000'000;

diagnosis::WaitKind kind_of(const ShownWait& wait) {
  const std::string_view call = wait.call;
  const auto is = [call](const auto... names) { return (call.starts_with(names) || ...); };
  switch (wait.kind) {
    case detail::WaitKind::mpi: break;
    case detail::WaitKind::completion: return diagnosis::WaitKind::dependency;
    case detail::WaitKind::children:
    case detail::WaitKind::finish:
    case detail::WaitKind::end: return diagnosis::WaitKind::finish;
    case detail::WaitKind::members: return diagnosis::WaitKind::phaser;
    case detail::WaitKind::event: return diagnosis::WaitKind::promise;
    case detail::WaitKind::turn: return diagnosis::WaitKind::other;
  }
  if (is("MPI_Finalize")) return diagnosis::WaitKind::finalize;
  if (is("MPI_Recv", "MPI_Irecv", "MPI_Mrecv", "MPI_Sendrecv")) return diagnosis::WaitKind::receive;
  if (is("MPI_Probe", "MPI_Mprobe")) return diagnosis::WaitKind::probe;
  if (is("MPI_Send", "MPI_Ssend", "MPI_Bsend", "MPI_Rsend", "MPI_Isend", "MPI_Issend")) {
    return diagnosis::WaitKind::send;
  }
  if (is("MPI_Wait")) return diagnosis::WaitKind::request;
  if (is("MPI_Win")) return diagnosis::WaitKind::window;
  if (is("MPI_All", "MPI_Barrier", "MPI_Bcast", "MPI_Exscan", "MPI_Gather", "MPI_Reduce",
         "MPI_Scan", "MPI_Scatter", "MPI_Neighbor")) {
    return diagnosis::WaitKind::collective;
  }
  return diagnosis::WaitKind::other;
}

// From what the file shows, where the process itself has not said more. Only MPI_COMM_WORLD is
// known here, so a wait on another communicator names no rank.
diagnosis::Wait wait_of(const ShownWait& shown, const int ranks) {
  diagnosis::Wait wait;
  wait.task = shown.task.id;
  wait.task_text = shown.task.text;
  wait.kind = kind_of(shown);
  wait.call = shown.call;
  if (shown.on_world) {
    wait.comm.name = "MPI_COMM_WORLD";
    for (int rank = 0; rank < ranks; ++rank) wait.comm.members.push_back(rank);
    wait.peer = shown.peer >= 0 ? shown.peer : diagnosis::none;
  }
  if (shown.peer >= 0) wait.peer_in_comm = shown.peer;
  if (shown.tag >= 0) wait.tag = shown.tag;
  if (shown.kind == detail::WaitKind::mpi) wait.bytes = static_cast<std::int64_t>(shown.bytes);
  return wait;
}

RankFacts facts_of(const Recording& it) {
  RankFacts facts;
  std::uint64_t last = 0;
  for (const ShownWait& wait : it.waits) {
    facts.waits.push_back(wait_of(wait, it.ranks));
    last = std::max(last, wait.since);
  }
  for (const ShownWorker& worker : it.workers) {
    const bool waits = std::ranges::any_of(it.waits, [&](const ShownWait& wait) {
      return wait.task.id == worker.task.id;
    });
    if (worker.task.id != 0 && !waits) facts.running.push_back(worker.task.text);
    if (!worker.events.empty()) last = std::max(last, worker.events.back().at);
  }
  facts.may_continue = !facts.running.empty() || it.ready != 0 || facts.waits.empty();
  facts.still_ms = static_cast<std::int64_t>(it.ago(last)) * 100;
  return facts;
}

// A rank that has died before the others is the cause of what they wait for. One that has died with
// all others, as when a batch system ends a job, is not. A launcher ends the other ranks within a
// second or so on the same host; a rank that stood still itself is not named so soon.
bool has_died_first(const Recording& it, const std::vector<Recording>& all) {
  if (it.life == Life::failed) return true;
  if (it.life != Life::gone) return false;
  return std::ranges::any_of(all, [&it](const Recording& other) {
    const bool is_sure = other.host != it.host || !it.facts.empty();
    return other.life == Life::runs ||
           other.last_ns() > it.last_ns() + (is_sure ? clocks_ns : clock_ns);
  });
}

std::vector<Recording> read_all(const std::vector<std::string>& files,
                                std::vector<std::string>& left_out) {
  std::vector<Recording> all;
  for (const std::string& file : files) {
    try {
      all.push_back(read_recording(file));
    } catch (const Error& error) {
      left_out.emplace_back(error.what());
    }
  }
  if (all.empty()) throw Error(left_out.empty() ? "no file" : left_out.front());
  return all;
}

std::string job_of(const Recording& it) {
  return it.ranks == 0 ? it.job + "/" + std::to_string(it.process) : it.job;
}

// Only the job that lived last stays, and of each of its ranks the file that lived last.
void keep_newest(std::vector<Recording>& all) {
  const auto newest = std::ranges::max_element(all, {}, &Recording::last_ns);
  const std::string job = job_of(*newest);
  std::erase_if(all, [&](const Recording& it) { return job_of(it) != job; });
  std::ranges::sort(all, [](const Recording& one, const Recording& other) {
    return one.rank != other.rank ? one.rank < other.rank : one.last_ns() > other.last_ns();
  });
  const auto rest = std::ranges::unique(all, {}, &Recording::rank);
  all.erase(rest.begin(), rest.end());
}

}  // namespace

Gathered gather(const std::vector<std::string>& files) {
  Gathered it;
  it.all = read_all(files, it.left_out);
  keep_newest(it.all);
  int ranks = 0;
  for (const Recording& one : it.all) {
    ranks = std::max(ranks, one.ranks);
    const auto kept = diagnosis::read(one.facts);
    RankFacts facts = kept ? *kept : facts_of(one);
    facts.rank = one.rank;
    facts.ranks = one.ranks;
    facts.host = one.host;
    facts.process = one.process;
    if (has_died_first(one, it.all)) facts.state = RankState::dead;
    it.facts.push_back(std::move(facts));
  }
  for (int rank = 0, at = 0; rank < ranks; ++rank) {
    if (at < std::ssize(it.all) && it.all[static_cast<std::size_t>(at)].rank == rank) {
      ++at;
    } else {
      it.missing.push_back(rank);
    }
  }
  it.findings = diagnosis::find_causes(it.facts);
  return it;
}

}  // namespace imbrex::explain
