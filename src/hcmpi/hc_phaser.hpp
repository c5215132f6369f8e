// SPDX-License-Identifier: BSD-3-Clause
// The object behind a `phaser` of hcmpi.h.
#pragma once

#include <memory>

#include "imbrex/compat/hcmpi.h"
#include "hcmpi/handles.hpp"
#include "imbrex/phaser.hpp"

namespace imbrex::hcmpi {

// An accumulator for values of an MPI type. Thread safety: as Accumulator.
class Reduction {
 public:
  virtual ~Reduction() = default;
  virtual void put(const void* value) = 0;  // one value of the type
  // See accum_get().
  [[nodiscard]] virtual void* get() = 0;
};

}  // namespace imbrex::hcmpi

struct hc_phaser : imbrex::hcmpi::Counted {
  explicit hc_phaser(const imbrex::Phaser& its_phaser) : phaser(its_phaser) {}
  const imbrex::Phaser phaser;
  std::unique_ptr<imbrex::hcmpi::Reduction> reduction;  // null: no accumulator
};

namespace imbrex::hcmpi {

// Both throw Misuse.
[[nodiscard]] Ref<hc_phaser> phaser_of(const char* call, const void* handle);
[[nodiscard]] PhaserMode mode_of(const char* call, int mode);

}  // namespace imbrex::hcmpi
