// SPDX-License-Identifier: BSD-3-Clause
#include "dist/data/broadcasts.hpp"
