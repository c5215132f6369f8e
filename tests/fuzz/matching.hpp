// SPDX-License-Identifier: BSD-3-Clause
// What the operations of a program on one communicator have to do with the messages that arrived
// there: the rules of MPI's matching, for engine_fuzz.cpp. Knows nothing of the runtime.
//
// Methodology: each operation notes by one clock when it was posted at the earliest and at the
// latest, and which message it got; fake_mpi says in which order the messages arrived. If every
// posting has one time (one task runs at a time), exactly one outcome is right: posted receives
// prefer earlier messages, messages prefer earlier receives, and since both sides agree on what is
// early, the assignment in which no two would rather have each other is unique, whatever the order
// of postings relative to arrivals. That is what a sequential queue gives. With several threads the
// order of some postings is open, and the same rule refuses only what no order can explain.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <string>
#include <unordered_map>
#include <vector>

namespace imbrex::test {

// Messages are known by what is in them: words id, id + 1, id + 2, ...
struct Arrival {
  std::uint64_t id;
  int source;
  int tag;
  int words;
  int error;  // that the transfer ends with
};

// A receive, or a probe that has found something.
struct Taking {
  std::uint64_t number = 0;
  const char* call = "";
  int comm = 0;
  int source = 0;
  int tag = 0;
  int words = 0;       // room in the buffer
  bool takes = true;   // false: a probe, which leaves the message where it is

  std::uint64_t posted_first = 0;  // by the clock of the program
  std::uint64_t posted_last = 0;

  std::vector<std::uint64_t> buffer;
  std::atomic<bool> posted{false};  // what stands above is written
  std::atomic<bool> done{false};    // what stands below is, too
  bool has_status = false;
  bool empty = false;  // cancelled, or refused by an injected error: it got nothing
  bool code_known = true;
  int code = MPI_SUCCESS;
  MPI_Status status = {};
  std::uint64_t id = 0;  // of the message
};

constexpr std::uint64_t untouched = ~std::uint64_t{0};

[[nodiscard]] inline bool fits(const Taking& one, int source, int tag) {
  return (one.source == MPI_ANY_SOURCE || one.source == source) &&
         (one.tag == MPI_ANY_TAG || one.tag == tag);
}

// The checks of one communicator. Each failure is a line on standard output.
class Matching {
 public:
  Matching(std::vector<const Taking*> takings, std::vector<Arrival> arrivals)
      : takings_(std::move(takings)), arrivals_(std::move(arrivals)) {
    for (std::size_t place = 0; place < arrivals_.size(); ++place) {
      place_of_[arrivals_[place].id] = place;
    }
    taker_.resize(arrivals_.size());
  }

  [[nodiscard]] bool check() {
    for (const Taking* one : takings_) {
      if (!one->done.load()) {
        fail(*one, "never completes");
      } else if (one->takes && !one->empty) {
        check_one(*one);
      }
    }
    for (std::size_t place = 0; place < arrivals_.size(); ++place) {
      if (taker_[place] == nullptr) fail_message(arrivals_[place], "is lost");
    }
    if (good_) check_order();
    return good_;
  }

 private:
  void check_one(const Taking& one) {
    const auto found = place_of_.find(one.id);
    if (found == place_of_.end()) {
      return fail(one, "got a message that never arrived: " + std::to_string(one.id));
    }
    const Arrival& message = arrivals_[found->second];
    if (!fits(one, message.source, message.tag)) fail(one, "got a message that does not fit");
    if (one.has_status) check_status(one, message);
    check_content(one, message);
    if (taker_[found->second] != nullptr) fail(one, "got a message for the second time");
    taker_[found->second] = &one;
  }

  void check_status(const Taking& one, const Arrival& message) {
    if (one.status.MPI_SOURCE != message.source) fail(one, "has a wrong source in its status");
    if (one.status.MPI_TAG != message.tag) fail(one, "has a wrong tag in its status");
    int words = 0;
    PMPI_Get_count(&one.status, MPI_UINT64_T, &words);
    if (one.code == MPI_SUCCESS && words != message.words) fail(one, "has a wrong count");
    int cancelled = 0;
    PMPI_Test_cancelled(&one.status, &cancelled);
    if (cancelled != 0) fail(one, "is cancelled and got a message");
  }

  void check_content(const Taking& one, const Arrival& message) {
    const int expected = message.words > one.words ? static_cast<int>(MPI_ERR_TRUNCATE)
                                                   : message.error;
    if (one.code_known && one.code != expected) {
      fail(one, "ended with code " + std::to_string(one.code) + ", not " +
                    std::to_string(expected));
    }
    const std::size_t words = static_cast<std::size_t>(std::min(message.words, one.words));
    for (std::size_t i = 0; i < one.buffer.size(); ++i) {
      const std::uint64_t word = i < words ? message.id + i : untouched;
      if (one.buffer[i] != word) return fail(one, "has a wrong buffer");
    }
  }

  // No message that came earlier than the own one may have been there for `one`.
  void check_order() {
    for (const Taking* one : takings_) {
      if (one->empty) continue;
      if (!one->takes) {
        if (!can_be_seen(*one)) fail(*one, "saw a message that was not there, or not the first");
        continue;
      }
      if (const Arrival* const earlier = find_earlier(*one, place_of_.at(one->id))) {
        fail(*one, "was overtaken by " + name_of(*taker_[place_of_.at(earlier->id)]) +
                       ", which was posted later");
      }
    }
  }

  // Returns a message that fits, arrived before `own`, and was taken after `one` was posted.
  [[nodiscard]] const Arrival* find_earlier(const Taking& one, std::size_t own) const {
    for (std::size_t place = 0; place < own; ++place) {
      const Arrival& earlier = arrivals_[place];
      if (fits(one, earlier.source, earlier.tag) &&
          taker_[place]->posted_first > one.posted_last) {
        return &earlier;
      }
    }
    return nullptr;
  }

  // A probe does not say which message it saw: one of its source, tag and size.
  [[nodiscard]] bool can_be_seen(const Taking& probe) const {
    for (std::size_t place = 0; place < arrivals_.size(); ++place) {
      const Arrival& message = arrivals_[place];
      int words = 0;
      PMPI_Get_count(&probe.status, MPI_UINT64_T, &words);
      if (message.source == probe.status.MPI_SOURCE && message.tag == probe.status.MPI_TAG &&
          message.words == words && fits(probe, message.source, message.tag) &&
          taker_[place]->posted_last > probe.posted_first &&
          find_earlier(probe, place) == nullptr) {
        return true;
      }
    }
    return false;
  }

  static std::string name_of(const Taking& one) {
    const auto text = [](int value, int any) {
      return value == any ? std::string("any") : std::to_string(value);
    };
    return std::string(one.call) + " " + std::to_string(one.number) + " (communicator " +
           std::to_string(one.comm) + ", source " + text(one.source, MPI_ANY_SOURCE) + ", tag " +
           text(one.tag, MPI_ANY_TAG) + ", posted " + std::to_string(one.posted_first) + " to " +
           std::to_string(one.posted_last) + ", got " + std::to_string(one.id) + ")";
  }

  void fail(const Taking& one, const std::string& what) {
    std::printf("FAILS: %s %s\n", name_of(one).c_str(), what.c_str());
    good_ = false;
  }
  void fail_message(const Arrival& message, const char* what) {
    std::printf("FAILS: message %llu from %d with tag %d %s\n",
                static_cast<unsigned long long>(message.id), message.source, message.tag, what);
    good_ = false;
  }

  std::vector<const Taking*> takings_;
  std::vector<Arrival> arrivals_;
  std::unordered_map<std::uint64_t, std::size_t> place_of_;
  std::vector<const Taking*> taker_;  // by place of the message
  bool good_ = true;
};

}  // namespace imbrex::test
