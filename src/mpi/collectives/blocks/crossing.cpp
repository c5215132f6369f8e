// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/collectives/blocks/crossing.hpp"

#include <ifaddrs.h>
#include <net/if.h>

#include <cstdlib>
#include <set>
#include <string>

namespace imbrex::mpi::blocks {

namespace {

constexpr std::int64_t eager_limit = 65536;  // of Open MPI over TCP, with its header

int count_networks() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return 0;
  std::set<std::string> names;
  for (const ifaddrs* it = first; it != nullptr; it = it->ifa_next) {
    const bool has_address = it->ifa_addr != nullptr && (it->ifa_addr->sa_family == AF_INET ||
                                                         it->ifa_addr->sa_family == AF_INET6);
    if (has_address && (it->ifa_flags & IFF_UP) != 0 && (it->ifa_flags & IFF_LOOPBACK) == 0) {
      names.insert(it->ifa_name);
    }
  }
  freeifaddrs(first);
  return static_cast<int>(names.size());
}

}  // namespace

Signs look(const bool is_affected) {
  return {.is_affected = is_affected,
          .networks = count_networks(),
          .links = std::getenv("OMPI_MCA_btl_tcp_links"),
          .eager_limit = std::getenv("OMPI_MCA_btl_tcp_eager_limit")};
}

std::int64_t at_once_most(const Signs& signs) noexcept {
  if (!signs.is_affected) return 0;
  const long links = signs.links != nullptr ? std::strtol(signs.links, nullptr, 10) : 1;
  if (links <= 1 && signs.networks <= 1) return 0;
  const long long set =
      signs.eager_limit != nullptr ? std::strtoll(signs.eager_limit, nullptr, 10) : 0;
  return set > 0 ? set : eager_limit;
}

}  // namespace imbrex::mpi::blocks
