// SPDX-License-Identifier: BSD-3-Clause
// All of the core; <imbrex/mpi.hpp> adds the functions for MPI. With IMBREX_SERIAL defined, only
// the part that runs without the runtime: tasks, named events and progress functions.
#pragma once

#include "imbrex/detail/language.hpp"

#ifdef IMBREX_SERIAL
#include "imbrex/imbrex.h"
// The serial interface in C++; it needs the headers above.
#include "imbrex/detail/serial.hpp"
#else
#include "imbrex/error.hpp"
#include "imbrex/future.hpp"
#include "imbrex/iterate.hpp"
#include "imbrex/phaser.hpp"
#include "imbrex/runtime.hpp"
#include "imbrex/scope.hpp"
#include "imbrex/task.hpp"
#include "imbrex/trigger.hpp"
#include "imbrex/version.h"
#endif
