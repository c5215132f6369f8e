// SPDX-License-Identifier: BSD-3-Clause
// Which receive gets which message, and the messages of collectives.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

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

class Matcher {
 public:
  Matcher(std::vector<RecordedRank>& ranks, const std::vector<TraceHead>& heads)
      : ranks_(ranks), heads_(heads) {}
  void match_messages();
  void build_collectives();

 private:
  struct End {
    int source, target, tag;
    std::uint32_t communicator;
    Place place;
    [[nodiscard]] auto channel() const noexcept {
      return std::tuple(source, target, tag, communicator);
    }
  };
  // One collective call on all of its ranks.
  struct Call {
    std::vector<Place> members;  // by rank
    int root;                    // position in `members`
    std::int64_t bytes;          // of the root, or of the first member
  };

  [[nodiscard]] Operation& at(const Place& place) {
    return ranks_[place.rank].operations[place.operation];
  }
  [[noreturn]] void fail(const Place& place, const std::string& what) {
    throw Error(fmt::format("{}: record {}: {}", heads_[place.rank].path, at(place).record, what));
  }
  [[nodiscard]] std::uint32_t new_message();
  void number_channel(std::span<const End> sent, std::span<const End> received);
  void build(const Call& call);

  // ---- the parts of one call: each function adds what one pair of ranks exchanges ----
  RecordedPart& add_part(const Place& place, Role role, int peer, std::int64_t bytes);
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

  std::vector<RecordedRank>& ranks_;
  const std::vector<TraceHead>& heads_;
  std::uint32_t messages_ = 0;
  // For the present call, by member: the signals that its end follows, and its parts.
  std::vector<std::vector<std::uint32_t>> ends_;
  std::vector<std::vector<RecordedPart>> parts_;
};

std::uint32_t Matcher::new_message() {
  if (messages_ >= INT32_MAX) throw Error("the trace has more than 2^31 messages");
  return ++messages_;
}

void Matcher::match_messages() {
  std::vector<End> sent, received;
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    const auto& operations = ranks_[rank].operations;
    for (std::uint32_t number = 0; number < operations.size(); ++number) {
      const Operation& one = operations[number];
      const bool sends = one.kind == Operation::Kind::send;
      if (!sends && one.kind != Operation::Kind::receive) continue;
      if (one.peer < 0 || static_cast<std::size_t>(one.peer) >= ranks_.size()) {
        fail({rank, number}, fmt::format("a message with rank {}, but there are {} ranks", one.peer,
                                         ranks_.size()));
      }
      const int here = static_cast<int>(rank);
      (sends ? sent : received)
          .push_back({sends ? here : one.peer, sends ? one.peer : here, one.tag, one.communicator,
                      {rank, number}});
    }
  }
  std::ranges::stable_sort(sent, {}, &End::channel);  // stable: in the order of the calls
  std::ranges::stable_sort(received, {}, &End::channel);
  const auto run = [](const std::vector<End>& ends, const std::size_t first) {
    std::size_t last = first;
    while (last < ends.size() && ends[last].channel() == ends[first].channel()) ++last;
    return last;
  };
  std::size_t s = 0, r = 0;
  while (s < sent.size() || r < received.size()) {
    const bool has_sent = s < sent.size() &&
                          (r == received.size() || sent[s].channel() <= received[r].channel());
    const bool has_received = r < received.size() &&
                              (s == sent.size() || received[r].channel() <= sent[s].channel());
    const std::size_t s_end = has_sent ? run(sent, s) : s;
    const std::size_t r_end = has_received ? run(received, r) : r;
    number_channel(std::span(sent).subspan(s, s_end - s),
                   std::span(received).subspan(r, r_end - r));
    s = s_end;
    r = r_end;
  }
}

// The n-th message of a channel goes to the n-th receive.
void Matcher::number_channel(const std::span<const End> sent, const std::span<const End> received) {
  for (std::size_t i = 0; i < std::max(sent.size(), received.size()); ++i) {
    if (i >= received.size()) {
      fail(sent[i].place, fmt::format("a message to rank {} with tag {} that no receive of its "
                                      "trace gets",
                                      sent[i].target, sent[i].tag));
    }
    if (i >= sent.size()) {
      fail(received[i].place, fmt::format("a message of rank {} with tag {} that its trace does "
                                          "not send",
                                          received[i].source, received[i].tag));
    }
    at(sent[i].place).message = new_message();
    at(received[i].place).message = at(sent[i].place).message;
  }
}

// ---- collectives -------------------------------------------------------------------------------

// The n-th call of one name on a communicator is the same call on all its ranks.
void Matcher::build_collectives() {
  std::map<std::pair<std::uint32_t, std::string>, std::map<std::uint32_t, std::vector<Place>>> all;
  std::map<std::uint32_t, std::vector<std::uint32_t>> members;  // of communicators
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    members[0].push_back(rank);  // MPI_COMM_WORLD
    const auto& operations = ranks_[rank].operations;
    for (std::uint32_t number = 0; number < operations.size(); ++number) {
      const Operation& one = operations[number];
      if (one.kind != Operation::Kind::collective || one.name == UINT32_MAX) continue;
      std::vector<std::uint32_t>& its = members[one.communicator];
      if (its.empty() || (one.communicator != 0 && its.back() != rank)) its.push_back(rank);
      all[{one.communicator, heads_[rank].names[one.name]}][rank].push_back({rank, number});
    }
  }
  for (const auto& [key, calls] : all) {
    const std::vector<std::uint32_t>& its = members[key.first];
    std::size_t most = 0;
    for (const auto& [rank, places] : calls) most = std::max(most, places.size());
    for (std::size_t n = 0; n < most; ++n) {
      Call call{{}, -1, 0};
      std::uint32_t lacks = 0;
      for (const std::uint32_t rank : its) {
        const auto found = calls.find(rank);
        if (found != calls.end() && n < found->second.size()) {
          call.members.push_back(found->second[n]);
        } else {
          lacks = rank;
        }
      }
      if (call.members.size() != its.size()) {
        fail(call.members.front(), fmt::format("call {} of {} on its communicator is not in the "
                                               "trace of rank {}",
                                               n + 1, key.second, lacks));
      }
      build(call);
    }
  }
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
void Matcher::build(const Call& given) {
  Call call = given;
  const Operation& first = at(call.members.front());
  for (std::size_t i = 0; i < call.members.size(); ++i) {
    if (static_cast<int>(call.members[i].rank) == first.peer) call.root = static_cast<int>(i);
  }
  call.bytes = at(call.members[static_cast<std::size_t>(std::max(call.root, 0))]).bytes;
  ends_.assign(call.members.size(), {});
  parts_.assign(call.members.size(), {});
  const std::string name = plain(heads_[call.members.front().rank].names[first.name]);
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
    std::vector<RecordedPart>& all = ranks_[call.members[i].rank].parts;
    operation.first_part = all.size();
    operation.parts = static_cast<std::uint32_t>(parts_[i].size() + 1);
    std::ranges::move(parts_[i], std::back_inserter(all));
    all.push_back({.plan = {.role = Role::compute, .by_library = true, .signal = operation.signal},
                   .after = std::move(ends_[i])});
  }
}

// A message between two members, sent after a signal of the sender.
Matcher::Sent Matcher::exchange(const Call& call, const std::size_t from, const std::size_t to,
                                const std::int64_t bytes, const std::uint32_t after) {
  const std::uint32_t message = new_message();
  const Sent signals{++ranks_[call.members[from].rank].signals,
                     ++ranks_[call.members[to].rank].signals};
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
void Matcher::disseminate(const Call& call, const bool grows, const std::int64_t bytes) {
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
void Matcher::send_in_turn() {
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
void Matcher::spread(const Call& call, const bool divides) {
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
void Matcher::collect(const Call& call, const bool joins) {
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

void Matcher::exchange_all(const Call& call) {
  const std::size_t count = call.members.size();
  for (std::size_t step = 1; step < count; ++step) {
    for (std::size_t i = 0; i < count; ++i) {
      exchange(call, i, (i + step) % count, at(call.members[i]).bytes, 0);
    }
  }
}

}  // namespace

void match(std::vector<RecordedRank>& ranks, const std::vector<TraceHead>& heads) {
  Matcher matcher(ranks, heads);
  matcher.match_messages();
  matcher.build_collectives();
}

}  // namespace imbrex::simulate
