// SPDX-License-Identifier: BSD-3-Clause
// Everything of the core; <imbrex/mpi.hpp> adds what concerns MPI. With IMBREX_SERIAL defined, what
// a program of tasks, named events and progress functions needs to run without the runtime.
#pragma once

#include "imbrex/detail/language.hpp"

#ifdef IMBREX_SERIAL
#include "imbrex/imbrex.h"
// Without the runtime; needs what is above.
#include "imbrex/detail/serial.hpp"
#else
#include "imbrex/error.hpp"
#include "imbrex/future.hpp"
#include "imbrex/phaser.hpp"
#include "imbrex/runtime.hpp"
#include "imbrex/scope.hpp"
#include "imbrex/task.hpp"
#include "imbrex/trigger.hpp"
#include "imbrex/version.h"
#endif
