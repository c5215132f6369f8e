// SPDX-License-Identifier: BSD-3-Clause
// What the scheduler tells the trace (docs/design/trace-format.md): who made which task, what it
// depends on, where it went. Called where records or times are kept; else costs a branch at most.
//
// Thread safety: each by the thread of the worker that it is given.
#pragma once

#include "sched/worker.hpp"

namespace imbrex::sched::observe {

// The running task of `worker` makes a task.
void creation(Worker& worker, std::uint64_t id, const detail::TaskSpec& spec);
// The body begins; what keeps records does so.
void begin(Worker& worker, const Task& task);
// `task` has a higher priority since now. Of a thread that imbrex does not know, nothing is kept.
void rise(const Task& task, int priority);
// The running task ends its access to `address`; its completion waits for an event from now on.
void release(Worker& worker, const void* address);
void hold(Worker& worker);
// A started task leaves its worker; it goes on there.
void suspension(Worker& worker, const Task& task, const detail::WaitReason& reason);
void resumption(Worker& worker, const Task& task);

}  // namespace imbrex::sched::observe
