// SPDX-License-Identifier: BSD-3-Clause
// The communicator for the parts of partial collectives: a private duplicate of the program's one,
// so that no wildcard of the program takes them. docs/design/partial-collectives.md argues why two
// collectives cannot be mixed up.
//
// Thread safety: any thread.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <source_location>
#include <string>
#include <vector>

#include "base/guarded.hpp"
#include "imbrex/future.hpp"
#include "mpi/collectives/blocks/kinds.hpp"

namespace imbrex::detail {
struct CollectiveState;
}

namespace imbrex::mpi::messages {
class Communicator;
struct Watcher;
}  // namespace imbrex::mpi::messages

namespace imbrex::mpi::blocks {

// The division of a tag: instance, kind, part, from the highest bits down. With the least
// MPI_TAG_UB that MPI allows there are 6, 3 and 6 bits.
struct TagLayout {
  int part_bits = 6;
  int instance_bits = 6;
  static constexpr int kind_bits = 3;
  [[nodiscard]] static TagLayout of(int tag_max) noexcept;
  [[nodiscard]] int parts_max() const noexcept { return 1 << part_bits; }
  [[nodiscard]] int instances() const noexcept { return 1 << instance_bits; }
  [[nodiscard]] int tag(int instance, Kind kind, int part) const noexcept {
    return (((instance << kind_bits) | static_cast<int>(kind)) << part_bits) | part;
  }
};

class Place {
 public:
  explicit Place(MPI_Comm its_program);
  ~Place();
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  const MPI_Comm program;  // the program's communicator, perhaps freed
  // The observer of its events; null if the communicator has been freed. Costs one load while there
  // is none.
  [[nodiscard]] const messages::Watcher* watcher() const noexcept;
  // Set by the first user before others may use the place.
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm self = MPI_COMM_NULL;  // a duplicate of MPI_COMM_SELF
  std::mutex self_lock;           // held over a message to this rank, so that two threads do not
                                  // mix theirs up
  int rank = 0;
  int size = 1;
  TagLayout tags;
  // The duplicates were made, on all ranks, when the program could not use the communicator yet, or
  // used it for nothing else: the forms I of calls may then go block by block. Relaxed: MPI orders
  // it.
  std::atomic<bool> is_prepared{false};

  // The number of a collective, which is taken until end(). Throws Error if the earlier collective
  // of that number has not ended.
  [[nodiscard]] int begin(detail::CollectiveState& state);
  // `clean`: each of its parts was sent and received. Otherwise its number is never reused: a
  // message of it may still arrive, or a receive still wait, on this rank or another.
  void end(int instance, bool clean) noexcept;
  [[nodiscard]] bool is_idle() noexcept;
  // In MPI_Finalize: no code will send the held parts. False: there are none.
  [[nodiscard]] bool give_up_held() noexcept;
  // The waiting operations in flight, for reports: a line for each direction of each collective.
  void describe(std::vector<std::string>& lines);
  // Makes the duplicates, or waits until another task has made them. Collective; suspends.
  void make(const char* call);
  void free_duplicates() noexcept;

 private:
  void duplicate(const char* call);

  // The object of `program` as long as it has this life. Null: MPI gives none.
  const messages::Communicator* const of_program_;
  const std::uint32_t life_;
  std::mutex lock_;
  std::uint64_t next_ IMBREX_GUARDED_BY(lock_) = 0;
  // The collectives by number; null: a failed one. The others live as long as they are here.
  std::map<int, detail::CollectiveState*> open_ IMBREX_GUARDED_BY(lock_);
  bool begun_ IMBREX_GUARDED_BY(lock_) = false;  // a task makes the duplicates
  Promise<void> duplicated_{"duplicate of a communicator", std::source_location()};
};

// The Place of `comm`, whose duplicates may not be made yet. Throws MpiError.
[[nodiscard]] std::shared_ptr<Place> place_of(const char* call, MPI_Comm comm);

// The number of parts that a block may have there.
[[nodiscard]] TagLayout layout_of(MPI_Comm comm);

// The collectives in flight on all communicators. Takes locks of places, and none of the engine.
[[nodiscard]] std::vector<std::string> describe_open();

// In MPI_Finalize: waits for collectives that no task waits for, and frees the duplicates. Ends the
// program if parts are held for other ranks, which may wait for ever.
void close_places_or_abort() noexcept;

}  // namespace imbrex::mpi::blocks
