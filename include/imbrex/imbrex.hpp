// SPDX-License-Identifier: BSD-3-Clause
// Everything of the core; <imbrex/mpi.hpp> adds what concerns MPI.
#pragma once

#include "imbrex/error.hpp"
#include "imbrex/event.hpp"
#include "imbrex/future.hpp"
#include "imbrex/runtime.hpp"
#include "imbrex/scope.hpp"
#include "imbrex/task.hpp"
#include "imbrex/trigger.hpp"
