// SPDX-License-Identifier: BSD-3-Clause
// From a sequence of insertions to the steps of each rank: the records of distributed/data/space,
// kept once for all ranks. In a run each rank keeps its own, and all agree, because all insert the
// same sequence. docs/design/simulator.md says where this copy differs.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "distributed/data/leads.hpp"
#include "imbrex/detail/distributed/data_space.hpp"
#include "simulate/owners/stream.hpp"

namespace imbrex::simulate {

// The copies of one version that its source sends, as distributed::VersionSend. References: the
// datum's, and those of steps, sends and leads.
struct Version {
  std::uint32_t references = 1;
  std::uint32_t coming = 0;      // copies whose step has been read, and whose list is not closed
  std::uint32_t recipients = 0;  // on lists so far, as are the next ones
  bool lists = false;            // they are on more than one list
  bool has_sent = false;
  std::vector<distributed::Recipient>* open = nullptr;

  [[nodiscard]] bool is_open() const noexcept { return coming != 0; }
  void raise(const int rank, const std::int32_t urgency) {
    if (open != nullptr) distributed::raise(*open, rank, urgency);
  }
  void retain() noexcept { ++references; }
  void release() noexcept {
    if (--references == 0) delete this;
  }
};
using VersionLeads = distributed::Leads<Version>;

// One step of one rank.
struct Step {
  enum class Kind : std::uint8_t {
    task,       // runs here
    send,       // `rank` needs the version: joins the open list, or begins one
    send_once,  // the elements of a reduction go to one rank
    receive,    // a copy comes from `rank`
    raise,      // copies from here lead to a version that `rank` gets from another rank
    merge,      // two copies are combined
    finish,     // all of this rank, then a wave over all ranks
    end         // the file has ended
  };
  Kind kind;
  std::uint16_t space = 0;
  std::uint32_t accesses = 0;  // of task, merge: how many of StepList::accesses
  std::uint64_t position = 0;  // of its insertion in the sequence
  std::uint32_t name = 0;      // of task
  int priority = 0;
  std::uint64_t datum = 0;     // of send, receive, as are the next ones
  std::uint64_t copy = 0;      // names the memory of a version on this rank
  int rank = 0;
  std::uint32_t ticket = 0;    // of the transfer, as in docs/design/data-with-owners.md
  Version* version = nullptr;  // of send: a reference
};
struct StepAccess {
  std::uint64_t copy;
  detail::AccessKind kind;
};
// The steps of one rank that it has not reached.
struct StepList {
  std::deque<Step> steps;
  std::deque<StepAccess> accesses;
  std::deque<VersionLeads> leads;  // of steps of kind raise
};

class Sequence {
 public:
  // Throws Error as Stream does.
  Sequence(const std::string& path, int ranks, std::uint32_t names);
  ~Sequence();
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;
  // The policies of the ranks learn sends: from here on there are steps of kind raise.
  void look_ahead() noexcept { looks_ahead_ = true; }

  // Reads on until `rank` has a step.
  [[nodiscard]] StepList& steps(int rank);
  // Spaces that have been read. One appears here before any step names it.
  [[nodiscard]] std::size_t spaces() const noexcept { return spaces_.size(); }
  [[nodiscard]] std::uint64_t window(const std::size_t space) const noexcept {
    return spaces_[space].window;
  }
  [[nodiscard]] std::uint64_t bytes(const std::size_t space, const std::uint64_t datum) const {
    return spaces_[space].data[datum].bytes;
  }
  [[nodiscard]] int ranks() const noexcept { return static_cast<int>(lists_.size()); }

 private:
  // The copy of one rank.
  struct Held {
    int rank;
    std::uint64_t copy;
  };
  // Leads to a version from the lists of one rank, as that rank keeps them in a run.
  struct LeadsFrom {
    int rank;
    VersionLeads leads;
  };
  using AllLeads = std::vector<LeadsFrom>;
  struct Datum {
    int owner = -1;
    int source = -1;
    bool temporary = false;
    std::uint64_t bytes = 0;
    Version* version = nullptr;      // null: no copy of it is sent so far
    AllLeads leads;                  // to this version
    std::vector<Held> copies;        // of the version after the last insertion
    std::int64_t reduction = -1;     // -1: none is open
    std::vector<int> reducers;
    std::vector<Held> partials;      // elements of the open reduction
  };
  struct Space {
    std::uint64_t window = 0;
    std::vector<Datum> data;
    std::vector<std::uint32_t> tickets;  // of the next transfer, by source and receiver
  };
  // A datum, and what a transfer of it needs.
  struct Place {
    std::uint16_t space;
    std::uint64_t number;
    Datum& datum;
    int priority;
  };
  struct Access {
    std::uint64_t datum;
    detail::DataMode mode;
    std::int64_t reduction;
  };

  void read();
  void read_space();
  void read_datum();
  void read_task();
  void read_access();
  void read_movement(distributed::recorded::Operation operation);
  [[nodiscard]] std::uint16_t read_number_of_space();
  [[nodiscard]] std::uint64_t read_number_of_datum(const Space& space);

  void insert(std::uint16_t space, std::uint32_t name, int executor, int priority);
  [[nodiscard]] Step& add(int rank, Step::Kind kind, const Place& place);
  void add_to_all(Step::Kind kind, std::uint16_t space);
  void add_access(int rank, std::uint64_t copy, detail::AccessKind kind);

  [[nodiscard]] static std::uint64_t* find(std::vector<Held>& copies, int rank) noexcept;
  [[nodiscard]] std::uint64_t hold(std::vector<Held>& copies, int rank);
  [[nodiscard]] std::uint32_t take_ticket(const Place& place, int from, int to);
  void bring(const Place& place, int rank);
  [[nodiscard]] AllLeads leads_to(int executor, const Space& space) const;
  [[nodiscard]] static VersionLeads& leads_from(AllLeads& all, int rank);
  void raise(const Place& place, int rank);
  void written(Datum& datum, int rank);
  static void forget_version(Datum& datum) noexcept;
  void move(const Place& place, int owner);
  void combine(const Place& place);
  void combine_on(const Place& place, const std::vector<int>& members, std::size_t at);
  void merge(const Place& place, int rank, std::uint64_t into, std::uint64_t from);

  Stream stream_;
  const std::uint32_t names_;
  std::vector<StepList> lists_;
  std::vector<Space> spaces_;
  std::vector<Access> accesses_;     // of the insertion that is being read
  std::uint64_t position_ = 0;
  std::uint64_t last_copy_ = 0;
  bool ended_ = false;
  bool looks_ahead_ = false;
};

}  // namespace imbrex::simulate
