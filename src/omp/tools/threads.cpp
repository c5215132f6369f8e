// SPDX-License-Identifier: BSD-3-Clause
#include <pthread.h>

#include <mutex>
#include <new>

#include "base/guarded.hpp"
#include "base/spin_lock.hpp"
#include "omp/tools/records.hpp"
#include "omp/tools/tool.hpp"

namespace imbrex::omp::tools {

namespace {

base::SpinLock lock;
ThreadRecord* all IMBREX_GUARDED_BY(lock) = nullptr;

void add(ThreadRecord& thread) noexcept {
  const std::lock_guard guard(lock);
  thread.next = all;
  all = &thread;
}

// False: another thread has taken it out.
bool take_out(ThreadRecord& thread) noexcept {
  const std::lock_guard guard(lock);
  for (ThreadRecord** link = &all; *link != nullptr; link = &(*link)->next) {
    if (*link != &thread) continue;
    *link = thread.next;
    return true;
  }
  return false;
}

ThreadRecord* take_any() noexcept {
  const std::lock_guard guard(lock);
  ThreadRecord* const thread = all;
  if (thread != nullptr) all = thread->next;
  return thread;
}

// Code outside of all regions: one task, whose number in the standard's event is 1.
constexpr unsigned outside_size = 1, outside_number = 1;

void begin(ThreadRecord& thread) {
  TaskRecord& outside = thread.outside;
  outside.parallel = &thread.outside_region;
  outside.flags = task_flag::initial;
  outside.is_native = true;
  outside.state = State::work_serial;
  add(thread);
  emit<Event::thread_begin>(thread, thread.kind, &thread.data);
  if (thread.kind == ThreadKind::initial) {
    emit<Event::implicit_task>(thread, Endpoint::begin, &thread.outside_region.data, &outside.data,
                               outside_size, outside_number, outside.flags);
  }
}

// `here` makes the call; it is `thread`, or the thread that ends the process.
void end(ThreadRecord& thread, ThreadRecord& here) {
  if (thread.kind == ThreadKind::initial) {
    emit<Event::implicit_task>(here, Endpoint::end, static_cast<Data*>(nullptr),
                               &thread.outside.data, outside_size, outside_number,
                               thread.outside.flags);
  }
  emit<Event::thread_end>(here, &thread.data);
}

pthread_key_t key() noexcept;

// A key and not a thread_local: its address is never kept by code that may change its thread.
pthread_key_t make_key() noexcept {
  pthread_key_t made = 0;
  pthread_key_create(&made, [](void* const value) {
    auto* const thread = static_cast<ThreadRecord*>(value);
    if (!take_out(*thread)) return;  // the end of the process has told of it, and may use it
    if (on()) {
      pthread_setspecific(key(), thread);  // for the tool, which asks for its data
      end(*thread, *thread);
      pthread_setspecific(key(), nullptr);
    }
    delete thread;
  });
  return made;
}
pthread_key_t key() noexcept {
  static const pthread_key_t made = make_key();
  return made;
}

ThreadRecord& make(const ThreadKind kind) {
  auto* const thread = new ThreadRecord;
  thread->kind = kind;
  pthread_setspecific(key(), thread);  // before the tool asks for its data
  begin(*thread);
  return *thread;
}

}  // namespace

[[gnu::noinline]] ThreadRecord* known_thread() noexcept {
  return static_cast<ThreadRecord*>(pthread_getspecific(key()));
}

ThreadRecord& this_thread() {
  ThreadRecord* const known = known_thread();
  return known != nullptr ? *known : make(ThreadKind::initial);
}

ThreadRecord* listener() { return listens() ? &this_thread() : nullptr; }

void begin_pool_thread() {
  if (listens() && known_thread() == nullptr) (void)make(ThreadKind::worker);
}

void end_all_threads() {
  ThreadRecord nobody;
  ThreadRecord* const known = known_thread();
  ThreadRecord& here = known != nullptr ? *known : nobody;
  while (ThreadRecord* const thread = take_any()) {
    here.speaks_for = thread;
    end(*thread, here);
  }
  here.speaks_for = nullptr;
}

void forget_threads() noexcept {
  ::new (&lock) base::SpinLock;
  const std::lock_guard guard(lock);
  all = nullptr;
}

}  // namespace imbrex::omp::tools
