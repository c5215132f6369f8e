// SPDX-License-Identifier: BSD-3-Clause
// What a module that divides its work among workers must know of IMBREX_LEND.
#pragma once

#pragma GCC visibility push(default)

namespace imbrex::detail {

// worker_count(), and with IMBREX_LEND a worker for each processor of the node's other ranks: how
// many tasks of this process may run at once. Any thread may ask.
[[nodiscard]] int workers_with_spares() noexcept;

}  // namespace imbrex::detail

#pragma GCC visibility pop
