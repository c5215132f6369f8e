// SPDX-License-Identifier: BSD-3-Clause
// The ranks that a rank without items asks, and the ranks that it owes some. It first asks some
// ranks at random, then its lifelines, the neighbours in a hypercube, each of which keeps the
// request until it has items to spare (Saraswat et al., Lifeline-based global load balancing, PPoPP
// 2011). When all lifelines have the request, the rank is quiescent: it asks no more, until it gets
// items. Unlike in the paper, a rank that has had work of its own since then begins again with
// random ranks.
//
// Every rank is reached: a place with a bit cleared is a smaller place, down to the first.
//
// Thread safety: the pool's lock is held.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace imbrex::distributed {

class Search {
 public:
  Search(std::size_t place, std::size_t ranks, std::uint32_t victims);

  struct Request {
    std::size_t to;  // a place among the pool's ranks
    bool lifeline;
  };
  // The next rank to ask; false if this rank is quiescent. REQUIRES: no request is in flight.
  [[nodiscard]] bool next(Request& request);
  void brought_none();             // the answer to the last request
  void got_items() noexcept;       // from any rank: the search begins anew
  void got_push(std::size_t from);  // that lifeline keeps the request no more
  void worked() noexcept { worked_ = true; }  // on items
  void all_idle() noexcept;        // all workers are idle

  // The round begins, with the requests that have arrived for it already.
  void begin(std::uint32_t round);

  // Keeps a request of another rank.
  void keep(std::size_t from, std::uint32_t round);
  [[nodiscard]] bool owes() const noexcept;
  // A rank to which items are owed, which are about to be sent; false if there is none.
  [[nodiscard]] bool take_owed(std::size_t& to) noexcept;

 private:
  struct Lifeline {
    std::size_t place;
    bool requested = false;   // it keeps this rank's request
    std::uint32_t owed = 0;   // the round of its request that is kept here
  };
  [[nodiscard]] Lifeline* find(std::size_t place) noexcept;

  const std::size_t place_;
  const std::size_t ranks_;
  const std::uint32_t victims_;
  std::vector<Lifeline> lifelines_;
  std::minstd_rand random_;
  std::uint32_t tries_ = 0;           // random requests since items came
  std::size_t next_lifeline_ = 0;
  Lifeline* last_request_ = nullptr;    // the lifeline of the last request, if any
  bool worked_ = false;               // since the search became quiescent
  std::uint32_t round_ = 0;
  std::size_t next_owed_ = 0;         // in turn
};

}  // namespace imbrex::distributed
