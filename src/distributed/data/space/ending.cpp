// SPDX-License-Identifier: BSD-3-Clause
// The end of a sequence, for now or for good: the operations of this rank end, and all ranks learn
// whether any operation has failed. With IMBREX_CHECK they also compare their insertions.
//
// All steps use waves, which every rank joins one after the other. Ranks that call finish() more
// often than others therefore meet the others in the end of their space, where these join waves
// until all ranks have reached it.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <source_location>
#include <string_view>
#include <utility>

#include "distributed/carrier/errors.hpp"
#include "distributed/data/space/bodies.hpp"
#include "distributed/data/space/space.hpp"
#include "imbrex/detail/observation.hpp"
#include "imbrex/error.hpp"
#include "imbrex/future.hpp"

namespace imbrex::detail {

using distributed::WaveSums;

// ---- failures --------------------------------------------------------------------------------

const distributed::Trouble& DataSpace::keep(std::string text) {
  const std::lock_guard guard(mutex_);
  return troubles_.emplace_back(std::move(text));
}

const distributed::Trouble& DataSpace::failed(const distributed::Insertion& insertion,
                                              const std::exception_ptr error) {
  const std::int64_t iteration = detail::iteration();
  const distributed::Trouble& trouble =
      keep(fmt::format("imbrex: task \"{}\"{} on rank {} of space \"{}\" has failed{}: {}",
                       insertion.name, detail::in_parentheses(insertion.where), me_,
                       options_.name,
                       iteration < 0 ? "" : fmt::format(" in iteration {}", iteration),
                       detail::thrown_text(error)));
  const std::lock_guard guard(mutex_);
  if (failure_.error == nullptr) {
    failure_.error = error;
    failure_.trouble = &trouble;
    failure_.is_of_body = true;
  }
  return trouble;
}

void DataSpace::not_run(const distributed::Trouble& trouble) {
  const std::lock_guard guard(mutex_);
  if (failure_.trouble == nullptr) failure_.trouble = &trouble;
}

void DataSpace::send_failed(const std::exception_ptr error) {
  const distributed::Trouble& trouble = keep(detail::thrown_text(error));
  const std::lock_guard guard(mutex_);
  if (failure_.error == nullptr) {
    failure_.error = error;
    failure_.trouble = &trouble;
  }
}

// ---- waves -----------------------------------------------------------------------------------

void DataSpace::join_wave(const WaveSums& mine, const WaveEnded ended, void* const context) {
  // identifies these waves among all groups
  constexpr std::uint64_t of_data = std::uint64_t{0xda} << 56;
  network_.waves.join({of_data | id(), waves_++}, ranks_.world, mine, ended, context);
}

// A rank that leaves joins the next wave of the others, with a count of 1 and its number, where
// they begin to end their operations together: these sums are 0 for all others.
WaveSums DataSpace::wave(const WaveSums& mine) {
  using Ended = Promise<WaveSums>;
  auto promise = std::make_unique<Ended>("the other ranks, in finish() of a space of data",
                                         std::source_location());
  auto future = promise->future();
  join_wave(mine,
            [](void* const context, const WaveSums& sums) noexcept {
              const std::unique_ptr<Ended> ended(static_cast<Ended*>(context));
              ended->set(sums);
            },
            promise.get());
  (void)promise.release();
  return future.get();
}

// True if ranks have left, as the sums of the first wave of an end tell.
bool DataSpace::note_left(const WaveSums& sums) {
  if (sums[2] == 0) return false;
  const std::string text = sums[2] == 1
      ? distributed::Leaving::text(world(static_cast<int>(sums[3])), object_text())
      : fmt::format("imbrex: exceptions have ended {} on {} ranks, before all ranks reached its "
                    "end", object_text(), sums[2]);
  left_elsewhere_ = std::make_exception_ptr(Error(text));
  return true;
}

// Different sequences are detected before any wait, since tasks may wait for messages that are
// never sent.
bool DataSpace::end_together(const bool closes, std::exception_ptr& error) {
  const bool was_left = left_elsewhere_ != nullptr;
  const std::exception_ptr different = checks_ && !was_left ? end_if_different() : nullptr;
  pending.wait_for_all("finish() of a space of data");
  Failed mine;
  if (const std::lock_guard guard(mutex_); true) mine = std::exchange(failure_, {});
  const bool failed = mine.trouble != nullptr;
  WaveSums sums{};
  if (left_elsewhere_ == nullptr) {
    sums = wave({failed ? 1 : 0, closes ? 1 : 0, 0, 0});
    (void)note_left(sums);
  }
  if (left_elsewhere_ != nullptr) {
    if (!(closes && was_left)) error = mine.is_of_body ? mine.error : left_elsewhere_;
    return true;
  }
  if (differs_) {
    error = different;
  } else if (sums[0] > 0) {
    const std::string text = share_failure(failed ? mine.trouble->text : "", failed);
    error = mine.error != nullptr ? mine.error : std::make_exception_ptr(Error(text));
  }
  return sums[1] == ranks();
}

namespace {
// A text on its way to or from another rank.
struct TextUnderWay {
  static constexpr std::size_t bytes = 2048;
  DataSpace& space;
  std::string text;

  static void arrived(void* const context, distributed::Buffer* const buffer,
                      const std::exception_ptr error) noexcept {
    auto& self = *static_cast<TextUnderWay*>(context);
    if (buffer == nullptr) {
      self.text = detail::thrown_text(error);
      return;
    }
    const auto* const text = reinterpret_cast<const char*>(buffer->bytes().data());
    self.text.assign(text, strnlen(text, bytes));
    buffer->release();
  }
  static void passed_on(void* const context) noexcept {
    static_cast<TextUnderWay*>(context)->space.pending.end(distributed::Pending::step);
  }
  static void sent(void* const context, const std::exception_ptr) noexcept { passed_on(context); }
};
}  // namespace

// The text of the first failed rank goes to all ranks, as a broadcast without a datum.
std::string DataSpace::share_failure(const std::string& mine, const bool failed) {
  int first = 0;
  for (int end = ranks(); end - first > 1;) {
    const int middle = first + (end - first) / 2;
    const bool below = failed && first <= me_ && me_ < middle;
    if (wave({below ? 1 : 0, 0, 0, 0})[0] > 0) {
      end = middle;
    } else {
      first = middle;
    }
  }
  if (ranks() == 1) return mine;
  const distributed::DatumName name{id(), distributed::text_datum};
  TextUnderWay text{*this, mine};
  pending.begin(distributed::Pending::step);
  if (first == me_) {
    text.text.resize(TextUnderWay::bytes - 1);
    text.text.push_back('\0');
    std::vector<distributed::Recipient> all;
    for (int rank = 0; rank < ranks(); ++rank) {
      if (rank != me_) all.push_back(recipient(rank, {}));
    }
    broadcasts().send(name, std::move(all), std::as_bytes(std::span(text.text)),
                      TextUnderWay::sent, &text);
  } else {
    broadcasts().expect(name, world(first), tickets_from_[static_cast<std::size_t>(first)]++,
                        TextUnderWay::bytes,
                        {TextUnderWay::arrived, TextUnderWay::passed_on, &text});
  }
  pending.wait_for_all("the text of a failure on another rank");
  return failed ? mine : text.text.c_str();
}

// ---- with IMBREX_CHECK -------------------------------------------------------------------------

namespace {
[[nodiscard]] std::uint64_t mixed(std::uint64_t hash, const std::uint64_t word) noexcept {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 29;
}
[[nodiscard]] std::uint64_t mixed(std::uint64_t hash, const std::string_view text) noexcept {
  for (const char c : text) hash = mixed(hash, static_cast<unsigned char>(c));
  return hash;
}
// Has so few bits that the sum of the squares of all ranks fits.
[[nodiscard]] std::int64_t folded(const std::uint64_t hash) noexcept {
  return static_cast<std::int64_t>(mixed(hash, 1) >> 40);
}
// Whether all of `ranks` numbers are equal, by their sum and that of their squares.
[[nodiscard]] bool all_equal(const std::int64_t sum, const std::int64_t squares, const int ranks) {
  return static_cast<__int128>(squares) * ranks == static_cast<__int128>(sum) * sum;
}
}  // namespace

void DataSpace::note(const DataTaskSpec& spec, const std::span<const DataAccess> accesses) {
  std::uint64_t hash = mixed(noted_.empty() ? 0 : noted_.back().hash, spec.name);
  hash = mixed(hash, static_cast<std::uint64_t>(spec.on) << 32 | spec.where.line());
  for (const DataAccess& access : accesses) {
    hash = mixed(hash, access.datum->number << 2 | static_cast<std::uint64_t>(access.mode));
  }
  noted_.push_back(
      {hash, fmt::format("task \"{}\"{}", spec.name, detail::in_parentheses(spec.where))});
}

void DataSpace::note(const char* const what, const Datum& datum, const int rank) {
  std::uint64_t hash = mixed(noted_.empty() ? 0 : noted_.back().hash, what);
  hash = mixed(hash, datum.number << 32 | static_cast<std::uint32_t>(rank));
  noted_.push_back({hash, fmt::format("{}() of {}", what, text_of(datum))});
}

void DataSpace::note(const IterateSpec& spec) {
  std::uint64_t hash = mixed(noted_.empty() ? 0 : noted_.back().hash, "iterate");
  hash = mixed(mixed(hash, static_cast<std::uint64_t>(spec.count)),
               static_cast<std::uint64_t>(spec.period));
  noted_.push_back({hash, fmt::format("iterate() of {} iterations{}", spec.count,
                                      detail::in_parentheses(spec.where))});
}

std::exception_ptr DataSpace::end_if_different() {
  std::exception_ptr different = compare_sequences();
  if (different != nullptr) {
    differs_ = true;
    broadcasts().give_up_space(id(), "ranks have inserted different sequences");
  }
  return different;
}

std::exception_ptr DataSpace::compare_sequences() {
  const WaveSums first = wave({trimmed_ ? 1 : 0, 0, 0, 0});
  if (note_left(first) || first[0] > 0) return nullptr;
  const std::vector<Noted> mine = std::exchange(noted_, {});
  const std::uint64_t count = mine.size();
  // The hash of the first `length` insertions; beyond the end, of all and of their number:
  // different sequences differ at each greater length, also where they are equally long.
  const auto hash_of = [&](const std::uint64_t length) {
    if (length > count) return folded(mixed(count == 0 ? 0 : mine.back().hash, count + 1));
    return length == 0 ? 0 : folded(mine[length - 1].hash);
  };
  const std::int64_t own = folded(count), hash = hash_of(count);
  const WaveSums sums = wave({own, own * own, hash, hash * hash});
  const bool as_many = all_equal(sums[0], sums[1], ranks());
  if (as_many && all_equal(sums[2], sums[3], ranks())) return nullptr;
  std::uint64_t equal = 0;  // equal everywhere up to here; not equal up to `different`
  auto different =
      static_cast<std::uint64_t>(wave({static_cast<std::int64_t>(count), 0, 0, 0})[0]) + 1;
  while (different - equal > 1) {
    const std::uint64_t middle = equal + (different - equal) / 2;
    const std::int64_t it = hash_of(middle);
    const WaveSums both = wave({it, it * it, 0, 0});
    (all_equal(both[0], both[1], ranks()) ? equal : different) = middle;
  }
  return std::make_exception_ptr(Error(fmt::format(
      "imbrex: ranks have inserted different sequences into space \"{}\": the first {} insertions "
      "since the last finish() are equal, and the next on rank {} is {}",
      options_.name, equal, me_, equal < count ? mine[equal].text : "none")));
}

// ---- the end ---------------------------------------------------------------------------------

void DataSpace::finish() {
  refuse_in_loop("finish()");
  if (network_.recorder != nullptr) [[unlikely]] return network_.recorder->finish(recorded_);
  std::exception_ptr error;
  (void)end_together(false, error);
  if (error != nullptr) std::rethrow_exception(error);
}

void DataSpace::end() {
  if (leaving_.is_unwound()) return leave();
  close();
  delete this;
}

// The program's catch block must be reached, so this waits for operations of this rank only: bodies
// that have begun, and sends of memory that may be the program's. They end, since all ranks give up
// what they miss. The others learn it where they meet this rank: in their next wave.
void DataSpace::leave() {
  if (network_.recorder != nullptr) [[unlikely]] {
    network_.recorder->abandon();
    close();
    delete this;
    return;
  }
  leaving_.begin(object_text());
  const std::string text = distributed::Leaving::text(world(me_), object_text());
  left_.store(&keep(text), std::memory_order_release);
  broadcasts().leave_space(id(), ranks_.world, text.substr(std::string_view("imbrex: ").size()));
  pending.wait_for_all("tasks of a space of data that an exception has ended");
  const auto ended = [](void* const context, const WaveSums&) noexcept {
    auto* const space = static_cast<DataSpace*>(context);
    space->leaving_.over();
    (void)space->broadcasts().close_space(space->id());
    delete space;
  };
  try {
    join_wave({0, 0, 1, me_}, ended, this);
  } catch (...) {  // messages are closed: MPI_Finalize was called before
    distributed::report_at_end(std::current_exception());
  }
}

std::string DataSpace::object_text() const {
  return fmt::format("the space of data \"{}\"", options_.name);
}

void DataSpace::close() {
  // Only the end of the program can report it.
  const auto report = [](const std::exception_ptr& error) {
    if (error != nullptr) distributed::report_at_end(error);
  };
  if (network_.recorder != nullptr) [[unlikely]] {
    network_.recorder->close(recorded_);
  }
  for (bool all_close = network_.recorder != nullptr; !all_close;) {
    std::exception_ptr error;
    all_close = end_together(true, error);
    report(error);
  }
  report(broadcasts().close_space(id()));
}

SpaceCounters DataSpace::counters() const noexcept {
  SpaceCounters all = counters_;
  const distributed::Broadcasts::SpaceCopies copies = broadcasts().copies(id());
  all.copies_from_root = copies.as_root;
  all.copies_from_relay = copies.as_relay;
  all.bytes_sent = copies.bytes;
  all.bytes_received = bytes_received_.load(std::memory_order_relaxed);
  all.copies_bytes_peak = copy_bytes.most();
  return all;
}

}  // namespace imbrex::detail
