// SPDX-License-Identifier: BSD-3-Clause
// The messages of collectives.
#include <algorithm>
#include <bit>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "imbrex/error.hpp"
#include "simulate/recorded/recorded_rank.hpp"

namespace imbrex::simulate {

namespace {

using Operation = RecordedOperation;

// A rank and one of its operations.
struct Place {
  std::uint32_t rank;
  std::uint32_t operation;
};

class Builder {
 public:
  explicit Builder(RecordedRun& run) : run_(run), messages_(run.messages) {}
  void build_all();

 private:
  // One collective call on all of its ranks.
  struct Call {
    std::vector<Place> members;  // by rank
    int root = -1;               // position in `members`
    std::int64_t bytes = 0;      // of the root, or of the first member
  };

  [[nodiscard]] Operation& at(const Place& place) {
    return run_.ranks[place.rank].operations[place.operation];
  }
  [[nodiscard]] std::uint32_t new_message();
  void build(Call& call);

  // ---- the parts of one call: each function adds what one pair of ranks exchanges ----
  struct Sent {
    std::uint32_t sent, received;  // signals of the two ranks
  };
  Sent exchange(const Call& call, std::size_t from, std::size_t to, std::int64_t bytes,
                std::uint32_t after);
  void send_in_turn();
  void disseminate(const Call& call, bool grows, std::int64_t bytes);
  void spread(const Call& call, bool divides);
  void collect(const Call& call, bool joins);
  void exchange_all(const Call& call);

  RecordedRun& run_;
  std::uint32_t messages_;  // numbers given
  // For the present call, by member: the signals that its end follows, and its parts.
  std::vector<std::vector<std::uint32_t>> ends_;
  std::vector<std::vector<RecordedPart>> parts_;
};

std::uint32_t Builder::new_message() {
  if (messages_ >= INT32_MAX) throw Error("the trace has more than 2^31 messages");
  return ++messages_;
}

void Builder::build_all() {
  std::map<std::uint32_t, Call> calls;  // by number
  for (std::uint32_t rank = 0; rank < run_.ranks.size(); ++rank) {
    const auto& operations = run_.ranks[rank].operations;
    for (std::uint32_t number = 0; number < operations.size(); ++number) {
      if (operations[number].kind != Operation::Kind::collective) continue;
      calls[operations[number].call].members.push_back({rank, number});
    }
  }
  for (auto& [number, call] : calls) build(call);
}

[[nodiscard]] std::string plain(std::string_view name) {
  if (name.starts_with("MPI_")) name.remove_prefix(4);
  if (name.starts_with("I")) name.remove_prefix(1);
  std::string text(name);
  for (char& letter : text) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return text;
}

// The algorithms are those that libraries use for short data, except for the exchange of all with
// all.
void Builder::build(Call& call) {
  const Operation& first = at(call.members.front());
  for (std::size_t i = 0; i < call.members.size(); ++i) {
    if (static_cast<int>(call.members[i].rank) == first.peer) call.root = static_cast<int>(i);
  }
  call.bytes = at(call.members[static_cast<std::size_t>(std::max(call.root, 0))]).bytes;
  ends_.assign(call.members.size(), {});
  parts_.assign(call.members.size(), {});
  const std::string name = plain(run_.names.at(first.name));
  const auto is = [&name](const std::string_view other) { return name.starts_with(other); };
  if (call.root >= 0 && (is("bcast") || is("scatter"))) {
    spread(call, is("scatter"));
  } else if (call.root >= 0 && (is("reduce") || is("gather"))) {
    collect(call, is("gather"));
  } else if (is("alltoall") || is("neighbor_")) {
    exchange_all(call);
  } else {
    disseminate(call, is("allgather"), call.bytes);
  }
  for (std::size_t i = 0; i < call.members.size(); ++i) {
    Operation& operation = at(call.members[i]);
    std::vector<RecordedPart>& all = run_.ranks[call.members[i].rank].parts;
    operation.first_part = all.size();
    operation.parts = static_cast<std::uint32_t>(parts_[i].size() + 1);
    std::ranges::move(parts_[i], std::back_inserter(all));
    all.push_back({.plan = {.role = Role::compute, .by_library = true, .signal = operation.signal},
                   .after = std::move(ends_[i])});
  }
}

// A message between two members, sent after a signal of the sender.
Builder::Sent Builder::exchange(const Call& call, const std::size_t from, const std::size_t to,
                                const std::int64_t bytes, const std::uint32_t after) {
  const std::uint32_t message = new_message();
  const Sent signals{++run_.ranks[call.members[from].rank].signals,
                     ++run_.ranks[call.members[to].rank].signals};
  TaskPlan plan{.role = Role::send,
                .by_library = true,
                .peer = static_cast<int>(call.members[to].rank),
                .message = message,
                .signal = signals.sent,
                .bytes = bytes};
  parts_[from].push_back({.plan = plan, .after = {}});
  if (after != 0) parts_[from].back().after.push_back(after);
  plan.role = Role::receive;
  plan.peer = static_cast<int>(call.members[from].rank);
  plan.signal = signals.received;
  parts_[to].push_back({.plan = plan, .after = {}});
  ends_[from].push_back(signals.sent);
  ends_[to].push_back(signals.received);
  return signals;
}

// In round k each member sends to the member 2^k behind it; what it sends `grows` by what it has.
void Builder::disseminate(const Call& call, const bool grows, const std::int64_t bytes) {
  const std::size_t count = call.members.size();
  std::vector<std::uint32_t> last(count, 0), next(count, 0);
  for (std::size_t step = 1; step < count; step *= 2) {
    const auto times = static_cast<std::int64_t>(grows ? std::min(step, count - step) : 1);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t to = (i + step) % count;
      next[to] = exchange(call, i, to, bytes * times, last[i]).received;
    }
    last = next;
  }
}

// The number of members below member `i`, itself included, in a binomial tree of `count`.
[[nodiscard]] std::size_t subtree(const std::size_t i, const std::size_t count) noexcept {
  return i == 0 ? count : std::min(i & (~i + 1), count - i);
}

// The data of each member leave one message after the other, as with MPI_Send in a loop. If they
// shared its NIC, the longest path of a tree would wait for all of them.
void Builder::send_in_turn() {
  for (std::vector<RecordedPart>& parts : parts_) {
    TaskPlan* before = nullptr;
    for (RecordedPart& part : parts) {
      if (part.plan.role != Role::send) continue;
      if (before != nullptr) {
        before->is_followed = true;
        part.plan.follows = before->message;
      }
      before = &part.plan;
    }
  }
}

// From the root down a binomial tree. A member sends to its largest subtree first.
void Builder::spread(const Call& call, const bool divides) {
  const std::size_t count = call.members.size();
  const auto root = static_cast<std::size_t>(call.root);
  std::vector<std::uint32_t> has(count, 0);
  for (std::size_t step = std::bit_floor(std::max<std::size_t>(count - 1, 1)); step > 0;
       step /= 2) {
    for (std::size_t i = 0; i + step < count; i += 2 * step) {
      const std::size_t to = i + step;
      const auto times = static_cast<std::int64_t>(divides ? subtree(to, count) : 1);
      has[to] = exchange(call, (i + root) % count, (to + root) % count, call.bytes * times, has[i])
                    .received;
    }
  }
  send_in_turn();
}

// Up a binomial tree to the root.
void Builder::collect(const Call& call, const bool joins) {
  const std::size_t count = call.members.size();
  const auto root = static_cast<std::size_t>(call.root);
  std::vector<std::vector<std::uint32_t>> has(count);
  for (std::size_t step = 1; step < count; step *= 2) {
    for (std::size_t to = 0; to + step < count; to += 2 * step) {
      const std::size_t from = to + step;
      const auto times = static_cast<std::int64_t>(joins ? subtree(from, count) : 1);
      const std::size_t sender = (from + root) % count;
      const Sent signals = exchange(call, sender, (to + root) % count,
                                    at(call.members[sender]).bytes * times, 0);
      // The part before the last one of the sender is what was just added.
      for (RecordedPart& part : parts_[sender]) {
        if (part.plan.signal == signals.sent) part.after = has[from];
      }
      has[to].push_back(signals.received);
    }
  }
}

void Builder::exchange_all(const Call& call) {
  const std::size_t count = call.members.size();
  for (std::size_t step = 1; step < count; ++step) {
    for (std::size_t i = 0; i < count; ++i) {
      exchange(call, i, (i + step) % count, at(call.members[i]).bytes, 0);
    }
  }
}

}  // namespace

void build_collectives(RecordedRun& run) { Builder(run).build_all(); }

}  // namespace imbrex::simulate
