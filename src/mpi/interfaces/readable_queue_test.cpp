// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/interfaces/readable_queue.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <deque>
#include <random>
#include <thread>
#include <vector>

namespace imbrex::mpi {
namespace {

struct Item : Readable {
  int producer = 0;
  int number = 0;
};

bool readable(const ReadableQueue& queue, const int timeout_ms) {
  pollfd descriptor{.fd = queue.descriptor(), .events = POLLIN, .revents = 0};
  return ::poll(&descriptor, 1, timeout_ms) == 1;
}

// Methodology: random pushes and takes of any size, compared with std::deque after each.
TEST(ReadableQueue, behaves_like_a_sequential_queue_and_is_readable_while_it_holds_items) {
  std::mt19937 random(20261128);
  std::vector<Item> items(20'000);
  ReadableQueue queue;
  std::deque<Readable*> model;
  EXPECT_FALSE(readable(queue, 0));
  for (std::size_t next = 0; next < items.size();) {
    if (random() % 3 != 0) {
      queue.push(items[next]);
      model.push_back(&items[next++]);
    } else {
      const int most = static_cast<int>(random() % 5);
      int count = 0;
      for (Readable* item = queue.take(most); item != nullptr; item = item->next, ++count) {
        ASSERT_LT(count, most);
        ASSERT_FALSE(model.empty());
        ASSERT_EQ(item, model.front());
        model.pop_front();
      }
      ASSERT_TRUE(count == most || model.empty());
    }
    ASSERT_EQ(readable(queue, 0), !model.empty());
  }
}

TEST(ReadableQueue, hands_out_nothing_where_nothing_or_a_negative_number_is_asked_for) {
  ReadableQueue queue;
  EXPECT_EQ(queue.take(10), nullptr);
  Item item;
  queue.push(item);
  EXPECT_EQ(queue.take(0), nullptr);
  EXPECT_EQ(queue.take(-1), nullptr);
  EXPECT_TRUE(readable(queue, 0));
  EXPECT_EQ(queue.take(1), &item);
  EXPECT_FALSE(readable(queue, 0));
}

// Methodology: producers push as fast as they can; consumers take only when the descriptor is
// readable. A lost make_readable() would leave items that no poll announces: the wait below would
// end.
TEST(ReadableQueue, no_item_is_lost_and_each_producers_order_is_kept_for_any_number_of_threads) {
  constexpr int each = 20'000;
  constexpr int lost_ms = 20'000;
  for (const int producers : {1, 2, 4, 8}) {
    ReadableQueue queue;
    std::vector<std::vector<Item>> items(static_cast<std::size_t>(producers));
    std::vector<std::thread> threads;
    for (int producer = 0; producer < producers; ++producer) {
      items[producer].resize(each);
      threads.emplace_back([&queue, &mine = items[producer], producer] {
        for (int i = 0; i < each; ++i) {
          mine[i].producer = producer;
          mine[i].number = i;
          queue.push(mine[i]);
        }
      });
    }
    std::vector<int> next(static_cast<std::size_t>(producers));
    for (int left = producers * each; left != 0;) {
      ASSERT_TRUE(readable(queue, lost_ms)) << left << " of " << producers << " producers are left";
      for (const Readable* item = queue.take(7); item != nullptr; item = item->next, --left) {
        const Item& it = *static_cast<const Item*>(item);
        ASSERT_EQ(it.number, next[it.producer]++);
      }
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(queue.take(1), nullptr);
    EXPECT_FALSE(readable(queue, 0));
  }
}

TEST(ReadableQueue, is_silent_while_a_consumer_attends_and_readable_afterwards) {
  ReadableQueue queue;
  std::vector<Item> items(3);
  {
    const ReadableQueue::Attention attention(queue);
    queue.push(items[0]);
    EXPECT_FALSE(readable(queue, 0));
    EXPECT_EQ(queue.take(1), items.data());
    queue.push(items[1]);
    queue.push(items[2]);
  }
  EXPECT_TRUE(readable(queue, 0));
  EXPECT_EQ(queue.take(2), &items[1]);
  EXPECT_FALSE(readable(queue, 0));
}

// Methodology: the consumer attends for a few takes, leaves, and waits for the descriptor. An item
// that was pushed at the moment of its leaving, without make_readable(), would end the wait below.
TEST(ReadableQueue, no_item_is_lost_when_a_consumer_stops_attending) {
  constexpr int each = 50'000;
  constexpr int producers = 2;
  constexpr int lost_ms = 20'000;
  ReadableQueue queue;
  std::vector<std::vector<Item>> items(producers, std::vector<Item>(each));
  std::vector<std::thread> threads;
  for (std::vector<Item>& mine : items) {
    threads.emplace_back([&queue, &mine] {
      for (Item& item : mine) queue.push(item);
    });
  }
  for (int left = producers * each; left != 0;) {
    ASSERT_TRUE(readable(queue, lost_ms)) << left << " are left";
    const ReadableQueue::Attention attention(queue);
    for (int looks = 0; looks < 3; ++looks) {
      for (const Readable* item = queue.take(7); item != nullptr; item = item->next) --left;
    }
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(queue.take(1), nullptr);
  EXPECT_FALSE(readable(queue, 0));
}

TEST(ReadableQueue, several_consumers_share_the_items) {
  constexpr int each = 10'000;
  constexpr int pairs = 4;
  ReadableQueue queue;
  std::vector<std::vector<Item>> items(pairs);
  std::vector<std::atomic<int>> taken(pairs * each);
  std::atomic<int> left{pairs * each};
  std::vector<std::thread> threads;
  for (int pair = 0; pair < pairs; ++pair) {
    items[pair].resize(each);
    threads.emplace_back([&queue, &mine = items[pair], pair] {
      for (int i = 0; i < each; ++i) {
        mine[i].number = pair * each + i;
        queue.push(mine[i]);
      }
    });
    threads.emplace_back([&] {
      while (left.load(std::memory_order_relaxed) != 0) {
        if (!readable(queue, 1)) continue;  // another consumer may have the last
        for (const Readable* item = queue.take(5); item != nullptr; item = item->next) {
          taken[static_cast<const Item*>(item)->number].fetch_add(1, std::memory_order_relaxed);
          left.fetch_sub(1, std::memory_order_relaxed);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::atomic<int>& count : taken) ASSERT_EQ(count.load(), 1);
}

}  // namespace
}  // namespace imbrex::mpi
