// SPDX-License-Identifier: BSD-3-Clause
// The order in which a version goes to the ranks that read it, under each policy. Methodology: one
// rank of four inserts a sequence while the writer of the version waits, so its list is complete.
// The rank's transfers are fake, and keep the list that leaves: a chain names it in one message.
#include <gtest/gtest.h>

#include <cstring>
#include <initializer_list>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "distributed/carrier/waves.hpp"
#include "distributed/data/copies/protocol.hpp"
#include "distributed/data/space/space.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/distributed/data_tasks.hpp"
#include "imbrex/future.hpp"
#include "imbrex/runtime.hpp"
#include "imbrex/scope.hpp"

namespace imbrex::test {
namespace {

using distributed::Bytes;

// Keeps the ranks of each list that leaves, in its order.
struct Transfers final : distributed::Transfers {
  [[nodiscard]] int rank() const noexcept override { return 0; }
  void send(const int to, const Bytes bytes, Bytes) override {
    distributed::DataHead head;
    std::memcpy(&head, bytes.data(), sizeof head);
    if (head.message != distributed::DataMessage::copy) return;
    std::vector<int>& list = lists.emplace_back(std::vector{to});
    std::vector<distributed::Stop> rest(head.count);
    if (!rest.empty()) {
      std::memcpy(rest.data(), bytes.data() + sizeof head, rest.size() * sizeof rest[0]);
    }
    for (const distributed::Stop& one : rest) list.push_back(static_cast<int>(one.rank));
  }
  void flush() noexcept override {}
  distributed::Landing offer(int, std::span<std::byte>, distributed::Ended, void*) override {
    throw Error("imbrex: data of a few bytes need no landing");
  }
  void deliver(const distributed::Landing&, Bytes, distributed::Ended, void*) override {
    throw Error("imbrex: data of a few bytes go within a message");
  }
  void expect() override {}
  void expect_no_more() noexcept override {}

  std::vector<std::vector<int>> lists;
};

constexpr int ranks = 4;

// The sequence of insertions on rank 0. Datum 0 belongs to rank 0, whose task writes it; two data
// belong to each other rank.
class Sequence {
 public:
  explicit Sequence(detail::DataSpace& space) : space_(space) {
    version_ = &make(0);
    for (int rank = 0; rank < ranks; ++rank) {
      owned_.emplace_back(&make(rank), &make(rank));
    }
    auto body = [this] { gate_.future().get(); };
    using Body = detail::DataBody<decltype(body), std::tuple<>>;
    const detail::DataAccess writes{version_, detail::DataMode::out};
    void* const memory =
        detail::begin_insertion(space_, {"produce", here()}, {&writes, 1}, Body::ops, sizeof(Body));
    ::new (memory) Body(body, {});
    detail::insert_here(space_, memory);
  }

  // A task on `rank` reads the version, and updates a datum there.
  void read(const int rank, const int priority) {
    elsewhere(priority, {{version_, detail::DataMode::in},
                         {owned(rank).first, detail::DataMode::inout}});
  }
  // A later task on that rank turns this datum into another one.
  void work_on(const int rank) {
    elsewhere(0, {{owned(rank).first, detail::DataMode::in},
                  {owned(rank).second, detail::DataMode::out}});
  }
  enum class Which { first, second };
  // A task on `to` reads a datum of `from`.
  void need(const int to, const int from, const Which which) {
    detail::Datum* const datum =
        which == Which::first ? owned(from).first : owned(from).second;
    elsewhere(0, {{datum, detail::DataMode::in}, {owned(to).second, detail::DataMode::inout}});
  }

  // A task there writes it anew, without reading it.
  void overwrite(const int rank) { elsewhere(0, {{owned(rank).second, detail::DataMode::out}}); }
  // `to` owns the first datum of `from` from now on.
  void move_to(const int to, const int from) {
    detail::move_datum(*owned(from).first, to, here());
  }

  void send() {
    gate_.set();
    space_.pending.wait_for_all("the test");
  }

 private:
  using Owned = std::pair<detail::Datum*, detail::Datum*>;
  [[nodiscard]] static std::source_location here() { return std::source_location::current(); }
  [[nodiscard]] Owned& owned(const int rank) { return owned_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] detail::Datum& make(const int owner) {
    return space_.make({owner, {1, 1, 1, sizeof(double)}, nullptr, ""});
  }
  void elsewhere(const int priority, const std::initializer_list<detail::DataAccess> accesses) {
    const int on = accesses.end()[-1].datum->owner;
    constexpr detail::BodyOps none{};
    EXPECT_EQ(detail::begin_insertion(space_, {"read", here(), priority, on},
                                      {accesses.begin(), accesses.size()}, none, 0),
              nullptr);
  }

  detail::DataSpace& space_;
  detail::Datum* version_ = nullptr;
  std::vector<Owned> owned_;
  Promise<void> gate_;
};

// The order in which the ranks get the version, if `insert` adds its readers.
template <class Insert>
[[nodiscard]] std::vector<int> order(const std::string& policy, const Insert insert) {
  const Runtime runtime({.workers = 1, .policy = policy});
  Transfers transfers;
  distributed::Waves waves(transfers);
  distributed::Broadcasts broadcasts(transfers, {.kind = distributed::TreeKind::chain});
  finish([&] {
    detail::Members members{.id = 1, .world = {0, 1, 2, 3}, .nodes = {0, 1, 2, 3}};
    detail::DataSpace space({broadcasts, waves, 0}, members, {});
    Sequence sequence(space);
    insert(sequence);
    sequence.send();
  });
  EXPECT_EQ(broadcasts.close_space(1), nullptr);
  EXPECT_EQ(transfers.lists.size(), 1U);
  return transfers.lists.empty() ? std::vector<int>() : transfers.lists.front();
}

constexpr const char* policies_that_learn[] = {"fa", "ga"};
constexpr const char* other_policies[] = {"default", "steal", "fifo", "priority", "ma1",
                                          "ma2",     "ma3",   "sa",   "seeded:1"};
using Which = Sequence::Which;

void read_on_all(Sequence& sequence) {
  for (int rank = 1; rank < ranks; ++rank) sequence.read(rank, 0);
}

// The work of rank 3 leads to a send at once, that of rank 2 after one more task.
void insert_readers_that_lead_to_sends(Sequence& sequence) {
  read_on_all(sequence);
  sequence.work_on(2);
  sequence.need(1, 2, Which::second);
  sequence.need(1, 3, Which::first);
}

TEST(OrderOfCopies, is_by_steps_to_the_next_send_under_a_policy_that_learns_sends) {
  for (const char* const policy : policies_that_learn) {
    EXPECT_EQ(order(policy, insert_readers_that_lead_to_sends), (std::vector{3, 2, 1})) << policy;
  }
}

TEST(OrderOfCopies, goes_round_from_the_root_under_other_policies) {
  for (const char* const policy : other_policies) {
    EXPECT_EQ(order(policy, insert_readers_that_lead_to_sends), (std::vector{1, 2, 3})) << policy;
  }
}

TEST(OrderOfCopies, is_by_the_priority_of_the_program_first_under_every_policy) {
  const auto insert = [](Sequence& sequence) {
    for (int rank = 1; rank < ranks; ++rank) sequence.read(rank, rank == 1 ? 5 : 0);
    sequence.need(2, 3, Which::first);
  };
  for (const char* const policy : policies_that_learn) {
    EXPECT_EQ(order(policy, insert), (std::vector{1, 3, 2})) << policy;
  }
  for (const char* const policy : other_policies) {
    EXPECT_EQ(order(policy, insert), (std::vector{1, 2, 3})) << policy;
  }
}

TEST(OrderOfCopies, counts_a_move_as_a_send) {
  const auto insert = [](Sequence& sequence) {
    read_on_all(sequence);
    sequence.move_to(1, 2);
  };
  EXPECT_EQ(order("fa", insert), (std::vector{2, 1, 3}));
}

TEST(OrderOfCopies, a_version_that_is_written_anew_before_it_is_sent_leads_nowhere) {
  const auto insert = [](Sequence& sequence) {
    read_on_all(sequence);
    sequence.work_on(2);           // reads the first datum of rank 2, and writes its second one
    sequence.work_on(3);
    sequence.overwrite(3);
    sequence.need(1, 3, Which::second);
    sequence.need(1, 2, Which::second);
  };
  EXPECT_EQ(order("fa", insert), (std::vector{2, 1, 3}));
}

// A rank whose messages open longer paths goes first, as for messages of the program.
TEST(OrderOfCopies, is_by_the_paths_that_open_on_the_ranks_under_ga) {
  const auto insert = [](Sequence& sequence) {
    for (int report = 0; report < 16; ++report) {
      for (std::uint64_t rank = 1; rank < ranks; ++rank) {
        detail::learn_path(rank << 32, rank == 3 ? 1000.0F : 100.0F);
      }
    }
    read_on_all(sequence);
  };
  EXPECT_EQ(order("ga", insert), (std::vector{3, 1, 2}));
  EXPECT_EQ(order("fa", insert), (std::vector{1, 2, 3}));
}

}  // namespace
}  // namespace imbrex::test
