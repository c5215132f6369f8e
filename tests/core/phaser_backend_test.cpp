// SPDX-License-Identifier: BSD-3-Clause
// Phasers that span several processes, as the core sees them (detail/phasers.hpp, PhaserBackend):
// here several of one process, which a network of this file's joins. It ends phases when it likes,
// from a thread of its own or at once, and may fail.
#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "core/on_runtime.hpp"
#include "imbrex/accumulator.hpp"

namespace imbrex::test {
namespace {

// Lets `ranks` phasers meet in each phase, and adds up what they bring.
class Network {
 public:
  Network(const int ranks, const unsigned seed, const std::uint64_t fails_in)
      : ranks_(ranks), fails_in_(fails_in), random_(seed), thread_([this] { run(); }) {}
  ~Network() {
    {
      const std::lock_guard guard(mutex_);
      ends_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  struct Arrival {
    detail::PhaserState* phaser;
    detail::AccumulatorBase* accumulator;
    std::vector<std::byte> message;
  };
  // Returns true if the caller's phase is over; the others are told later.
  bool join(const std::uint64_t phase, Arrival arrival) {
    detail::PhaserState& mine = *arrival.phaser;
    std::vector<Arrival> all;
    bool at_once = false;
    {
      const std::lock_guard guard(mutex_);
      std::vector<Arrival>& here = meetings_[phase];
      here.push_back(std::move(arrival));
      detail::retain(mine);
      if (std::ssize(here) != ranks_) return false;
      all = std::move(here);
      meetings_.erase(phase);
      at_once = random_() % 2 == 0;
    }
    std::vector<std::byte> sum = all.front().message;
    for (std::size_t i = 1; i < all.size(); ++i) {
      all[i].accumulator->combine(all[i].message.data(), sum.data());
    }
    for (const Arrival& one : all) {
      complete(one, phase, sum);
      if (one.phaser != &mine || !at_once) end_later(*one.phaser);
    }
    if (at_once) detail::release(mine);
    return at_once;
  }

 private:
  void complete(const Arrival& one, const std::uint64_t phase, const std::vector<std::byte>& sum) {
    if (phase == fails_in_) {
      const auto error = std::make_exception_ptr(std::runtime_error("the network is down"));
      one.accumulator->fail(phase, error);
      detail::fail_phaser(*one.phaser, error);
    } else {
      one.accumulator->publish(phase, sum.data(), false);
    }
  }
  void end_later(detail::PhaserState& phaser) {
    {
      const std::lock_guard guard(mutex_);
      to_end_.push_back(&phaser);
    }
    wake_.notify_one();
  }
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return ends_ || !to_end_.empty(); });
      if (to_end_.empty()) return;
      const std::size_t which = random_() % to_end_.size();
      detail::PhaserState& phaser = *to_end_[which];
      to_end_.erase(to_end_.begin() + static_cast<std::ptrdiff_t>(which));
      lock.unlock();
      detail::end_phase(phaser);
      detail::release(phaser);
      lock.lock();
    }
  }

  const int ranks_;
  const std::uint64_t fails_in_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::mt19937 random_;
  std::map<std::uint64_t, std::vector<Arrival>> meetings_;  // by phase
  std::deque<detail::PhaserState*> to_end_;
  bool ends_ = false;
  std::thread thread_;
};

// The calls that one phaser got from the core.
struct Told {
  std::atomic<std::uint64_t> signalled{0};  // by the tasks, which count first
  std::atomic<std::uint64_t> phases{0};
  std::atomic<int> closed{0};
  std::atomic<int> wrong{0};
};

class Backend final : public detail::PhaserBackend {
 public:
  Backend(Network& network, Told& told) : network_(network), told_(told) { early = true; }

  void look() noexcept override {}
  void first_signal(const std::uint64_t phase, detail::AccumulatorBase*) noexcept override {
    told_.wrong += told_.signalled.load() > phase ? 0 : 1;
  }
  bool last_signal(detail::PhaserState& phaser, const std::uint64_t phase,
                   detail::AccumulatorBase* const accumulators,
                   const detail::PhaseFollows follows) noexcept override {
    told_.wrong += phase == told_.phases.load() && told_.closed == 0 ? 0 : 1;
    if (follows != detail::PhaseFollows::yes) return true;  // all have left
    ++told_.phases;
    std::vector<std::byte> message(accumulators->message_bytes());
    accumulators->collect(phase, message.data());
    return network_.join(phase, {&phaser, accumulators, std::move(message)});
  }
  void closed() noexcept override { ++told_.closed; }

 private:
  Network& network_;
  Told& told_;
};

class Spanned : public Phaser {
 public:
  Spanned(Network& network, Told& told, const PhaserMode mode)
      : Phaser(detail::make_phaser({mode, 0, "spanned", new Backend(network, told)},
                                   std::source_location::current())) {}
};

class PhaserBackendTest : public OnRuntime {
 protected:
  // Each of three phasers has four tasks for `phases_` phases. Returns how many of the tasks have
  // thrown the error of the network.
  int run(const PhaserMode mode, const unsigned seed, const std::uint64_t fails_in) {
    constexpr int ranks = 3;
    constexpr int tasks = 4;
    std::vector<Told> told(ranks);
    std::atomic<int> thrown{0};
    std::atomic<int> wrong{0};
    std::atomic<int> functions{0};
    {
      Network network(ranks, seed, fails_in);
      const auto part = [&](const Accumulator<int>& sum_of, Told& mine) {
        for (std::uint64_t phase = 0; phase < phases_; ++phase) {
          sum_of.put(1);
          std::uint64_t before = mine.signalled.load();
          while (before < phase + 1 &&
                 !mine.signalled.compare_exchange_weak(before, phase + 1)) {
          }
          if (mode == single) {
            Phaser::next_all(single, [&] { ++functions; });
          } else {
            Phaser::next_all();
          }
          wrong += sum_of.get() == ranks * tasks ? 0 : 1;
        }
      };
      const auto rank = [&](Told& mine) {
        finish([&] {
          const Spanned step(network, mine, mode);
          const Accumulator<int> sum_of(step, op::sum);
          for (int i = 0; i < tasks; ++i) {
            task("part").phased(step).launch([&, sum_of] {
              try {
                part(sum_of, mine);
              } catch (const std::runtime_error&) {
                ++thrown;
              }
            });
          }
        });
      };
      finish([&] {
        for (Told& mine : told) task("rank").launch([&] { rank(mine); });
      });
    }
    EXPECT_EQ(wrong, 0);
    const std::uint64_t expected = std::min(phases_, fails_in == none ? none : fails_in + 1);
    if (mode == single) {
      EXPECT_EQ(functions, ranks * static_cast<int>(std::min(phases_, fails_in)));
    }
    for (const Told& mine : told) {
      EXPECT_EQ(mine.wrong, 0);
      EXPECT_EQ(mine.closed, 1);
      EXPECT_EQ(mine.phases, expected);
    }
    return thrown;
  }

  static constexpr std::uint64_t none = UINT64_MAX;
  static constexpr std::uint64_t phases_ = 20;
};
INSTANTIATE_TEST_SUITE_P(All, PhaserBackendTest, testing::ValuesIn(every_policy({1, 2, 8})),
                         name_of);

TEST_P(PhaserBackendTest, a_phase_is_over_when_the_network_says_so) {
  for (unsigned seed = 1; seed <= 5; ++seed) EXPECT_EQ(run(signal_wait, seed, none), 0);
}

TEST_P(PhaserBackendTest, a_function_of_single_runs_for_each_phaser_when_all_have_met) {
  for (unsigned seed = 1; seed <= 5; ++seed) EXPECT_EQ(run(single, seed, none), 0);
}

TEST_P(PhaserBackendTest, a_failure_reaches_every_task) {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    EXPECT_EQ(run(signal_wait, seed, seed * 3), 12);
    EXPECT_EQ(run(single, seed, seed), 12);
  }
}

TEST_P(PhaserBackendTest, a_failure_reaches_futures_and_accumulators) {
  Told told;
  Network network(1, 1, 1);
  finish([&] {
    const Spanned step(network, told, signal_wait);
    const Accumulator<int> value(step, op::sum);
    const Future<void> first = step.passed(0);
    const Future<void> third = step.passed(2);
    value.put(1);
    step.next();
    EXPECT_EQ(value.get(), 1);
    EXPECT_THROW(step.next(), std::runtime_error);
    EXPECT_THROW(step.signal(), std::runtime_error);
    EXPECT_THROW((void)value.get(), std::runtime_error);
    first.get();
    EXPECT_THROW(third.get(), std::runtime_error);
    EXPECT_THROW(step.passed(7).get(), std::runtime_error);
    EXPECT_NO_THROW(step.passed(0).get());
  });
  EXPECT_EQ(told.closed, 1);
}

}  // namespace
}  // namespace imbrex::test
