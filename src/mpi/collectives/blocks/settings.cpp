// SPDX-License-Identifier: BSD-3-Clause
// Which calls go block by block: the options and infos, and the calls that all ranks accept.
#include "mpi/abi/switches.hpp"
#include "mpi/collectives/blocks/blocks.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/error.hpp"
#include "mpi/abi/inquiries.hpp"
#include "mpi/collectives/blocks/block_channel.hpp"
#include "mpi/engine/lifetime.hpp"
#include "mpi/engine/mpi_errors.hpp"
#include "mpi/engine/of_communicators.hpp"
#include "mpi/messages/sends/outgoing.hpp"

namespace imbrex::mpi::blocks {

namespace {

constexpr std::int64_t bytes_least = 1024;  // bytes of a block, if the mode is not `all`
constexpr int parts_most = 1'000'000;

// ---- settings ----------------------------------------------------------------------------------

std::optional<Mode> mode_of(const std::string_view text) noexcept {
  if (text == "off") return Mode::off;
  if (text == "on") return Mode::on;
  if (text == "release") return Mode::release;
  if (text == "all") return Mode::all;
  return std::nullopt;
}

// All of these are relaxed, as the switches are.
std::atomic<Mode> mode_of_all{Mode::off};
std::atomic<int> parts_of_all{1};
std::atomic<bool> some_have_their_own{false};

// The infos of a communicator. Relaxed, as the switches are.
struct Own {
  std::atomic<int> mode{-1};   // -1: not set
  std::atomic<int> parts{0};   // 0: not set
};
OfCommunicators<Own>& owns() {
  static auto& the_owns = *new OfCommunicators<Own>;
  return the_owns;
}

Setting setting_of(MPI_Comm comm) {
  Setting setting{mode_of_all.load(std::memory_order_relaxed),
                  parts_of_all.load(std::memory_order_relaxed)};
  if (!some_have_their_own.load(std::memory_order_relaxed)) return setting;
  int code = MPI_SUCCESS;
  if (const std::shared_ptr<Own> own = owns().find(comm, code)) {
    const int mode = own->mode.load(std::memory_order_relaxed);
    const int parts = own->parts.load(std::memory_order_relaxed);
    if (mode >= 0) setting.mode = static_cast<Mode>(mode);
    if (parts > 0) setting.parts = parts;
  }
  return setting;
}

// ---- infos -------------------------------------------------------------------------------------

constexpr const char* mode_key = "imbrex_partial";
constexpr const char* parts_key = "imbrex_partial_parts";

// Returns std::nullopt if the info object has no such key.
std::optional<std::string> value_of(MPI_Info info, const char* const key) {
  std::array<char, MPI_MAX_INFO_VAL + 1> value{};
  int found = 0;
  if (info == MPI_INFO_NULL) return std::nullopt;
  PMPI_Info_get(info, key, MPI_MAX_INFO_VAL, value.data(), &found);
  if (found == 0) return std::nullopt;
  return std::string(value.data());
}

std::optional<int> parts_in(const std::string& text) noexcept {
  int parts = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, parts);
  const bool valid = error == std::errc() && stopped == end && parts >= 1 && parts <= parts_most;
  return valid ? std::optional(parts) : std::nullopt;
}

// ---- calls -------------------------------------------------------------------------------------

// Whether MPI will refuse this rank's arguments: its own call then reports the error.
bool is_wrong(const Side& side, const int size) noexcept {
  for (int block = 0; block < size; ++block) {
    const MPI_Count count = side.count_of(block);
    if (count < 0 || (count > 0 && side.type_of(block) == MPI_DATATYPE_NULL)) return true;
  }
  return false;
}

// Neighbours that are not connected with others may have blocks of another length, and a rank that
// sends blocks of one length may get those of another. So no length decides.
bool accepts_neighbors(const CollectiveCall& it) noexcept {
  const std::optional<Degrees> degrees = degrees_of(it.comm);
  if (!degrees || it.send.address == MPI_IN_PLACE || it.receive.address == MPI_IN_PLACE) {
    return false;
  }
  const int sent = it.kind == Kind::neighbor_allgather ? 1 : degrees->out;
  return !is_wrong(it.send, degrees->out == 0 ? 0 : sent) && !is_wrong(it.receive, degrees->in);
}

}  // namespace

Setting setting_by_options() {
  const std::string text = detail::text_option("PARTIAL");
  const std::optional<Mode> mode = mode_of(text);
  if (!mode) {
    throw Error(fmt::format("imbrex: IMBREX_PARTIAL={}: valid: off, on, release, all", text));
  }
  return {*mode, static_cast<int>(detail::number_option("PARTIAL_PARTS"))};
}

void start(const Setting& setting) noexcept {
  mode_of_all.store(setting.mode, std::memory_order_relaxed);
  parts_of_all.store(setting.parts, std::memory_order_relaxed);
  if (setting.mode != Mode::off) switches.goes_by_blocks.store(true, std::memory_order_relaxed);
}

void end() noexcept {
  switches.goes_by_blocks.store(false, std::memory_order_relaxed);
  owns().end();
  close_places_or_abort();
}

int look_at_info(const Call& call, MPI_Info info) {
  const std::optional<std::string> mode = value_of(info, mode_key);
  const std::optional<std::string> parts = value_of(info, parts_key);
  std::string wrong;
  if (mode && !mode_of(*mode)) {
    wrong = fmt::format("{}={}: valid: off, on, release, all", mode_key, *mode);
  } else if (parts && !parts_in(*parts)) {
    wrong = fmt::format("{}={}: valid: 1 to {}", parts_key, *parts, parts_most);
  }
  if (wrong.empty()) return MPI_SUCCESS;
  print(fmt::format("{} in {} is given an info with {}", call.name, detail::describe_current_task(),
                    wrong));
  return raise_error(call, MPI_ERR_INFO_VALUE);
}

int keep_info(const Call& call, MPI_Comm comm, MPI_Info info) {
  if (!in_service()) return MPI_SUCCESS;
  const std::optional<std::string> mode = value_of(info, mode_key);
  const std::optional<std::string> parts = value_of(info, parts_key);
  if (!mode && !parts) return MPI_SUCCESS;
  int code = MPI_SUCCESS;
  const std::shared_ptr<Own> own =
      owns().find_or(comm, code, [] { return std::make_shared<Own>(); });
  if (own == nullptr) return raise_error(call, code);
  if (mode) own->mode.store(static_cast<int>(*mode_of(*mode)), std::memory_order_relaxed);
  if (parts) own->parts.store(*parts_in(*parts), std::memory_order_relaxed);
  some_have_their_own.store(true, std::memory_order_relaxed);
  switches.goes_by_blocks.store(true, std::memory_order_relaxed);
  int between_groups = 1;
  PMPI_Comm_test_inter(comm, &between_groups);
  if (between_groups != 0 || setting_of(comm).mode == Mode::off) return MPI_SUCCESS;
  return prepare(call, comm);
}

bool accepts(CollectiveCall& it) {
  if (!in_service() || it.comm == MPI_COMM_NULL) return false;
  it.setting = setting_of(it.comm);
  if (it.setting.mode == Mode::off) return false;
  int between_groups = 1;
  if (PMPI_Comm_test_inter(it.comm, &between_groups) != MPI_SUCCESS || between_groups != 0) {
    return false;
  }
  if (it.kind == Kind::alltoall && it.send.address == MPI_IN_PLACE) return false;
  if (it.kind == Kind::neighbor_alltoall || it.kind == Kind::neighbor_allgather) {
    return accepts_neighbors(it);
  }
  int size = 0;
  int rank = 0;
  PMPI_Comm_size(it.comm, &size);
  PMPI_Comm_rank(it.comm, &rank);
  const bool rooted = it.kind == Kind::gather || it.kind == Kind::scatter;
  if (rooted && (it.root < 0 || it.root >= size)) return false;
  if (it.varies) {
    const bool sends = it.kind != Kind::scatter || rank == it.root;
    const bool receives = it.kind != Kind::gather || rank == it.root;
    const bool own_sent = it.send.address == MPI_IN_PLACE;
    const bool own_here = it.receive.address == MPI_IN_PLACE;
    return !(sends && !own_sent && is_wrong(it.send, size)) &&
           !(receives && !own_here && is_wrong(it.receive, size));
  }
  // A side that counts on this rank and gives the length of a block.
  const bool by_receive = it.send.address == MPI_IN_PLACE ||
                          (it.kind == Kind::scatter && it.receive.address != MPI_IN_PLACE);
  const Side& side = by_receive ? it.receive : it.send;
  const std::int64_t bytes = bytes_of(side.count, side.type);
  return bytes >= (it.setting.mode == Mode::all ? 1 : bytes_least);
}

}  // namespace imbrex::mpi::blocks
