// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/abi/tcp_bytes.hpp"

#include <dirent.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <charconv>
#include <chrono>
#include <mutex>
#include <string_view>
#include <vector>

#include "base/guarded.hpp"

namespace imbrex::mpi {

namespace {

using Clock = std::chrono::steady_clock;

// Returns false for a descriptor that is no connection, or that has been closed meanwhile.
bool add(const int descriptor, Moved& sum) noexcept {
  tcp_info info{};
  socklen_t bytes = sizeof info;
  if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0) return false;
  sum.sent += info.tcpi_bytes_acked;
  sum.received += info.tcpi_bytes_received;
  sum.queued = sum.queued || info.tcpi_unacked != 0 || info.tcpi_notsent_bytes != 0;
  return true;
}

// Thread safety: any thread uses every member.
class Connections {
 public:
  [[nodiscard]] Moved moved(const bool look_for_new) noexcept {
    const std::lock_guard guard(lock_);
    const Clock::time_point now = Clock::now();
    if (!look_for_new && now - found_ < keeps) {
      Moved sum;
      std::erase_if(descriptors_, [&sum](const int it) { return !add(it, sum); });
      return sum;
    }
    found_ = now;
    return find();
  }

 private:
  static constexpr std::chrono::milliseconds keeps{20};  // interval of the searches for new
                                                         // connections

  Moved find() noexcept IMBREX_REQUIRES(lock_) {
    Moved sum;
    descriptors_.clear();
    DIR* const all = opendir("/proc/self/fd");
    if (all == nullptr) return sum;
    while (const dirent* const entry = readdir(all)) {
      const std::string_view name = entry->d_name;
      int descriptor = 0;
      const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), descriptor);
      if (error != std::errc() || !add(descriptor, sum)) continue;
      descriptors_.push_back(descriptor);
    }
    closedir(all);
    return sum;
  }

  std::mutex lock_;
  Clock::time_point found_ IMBREX_GUARDED_BY(lock_);
  std::vector<int> descriptors_ IMBREX_GUARDED_BY(lock_);  // descriptors of connections, at the
                                                           // last search
};

}  // namespace

Moved moved_over_tcp(const bool look_for_new) noexcept {
  static Connections& connections = *new Connections;  // used until the end of the process
  return connections.moved(look_for_new);
}

}  // namespace imbrex::mpi
