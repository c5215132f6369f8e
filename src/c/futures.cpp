// SPDX-License-Identifier: BSD-3-Clause
// imbrex.h: futures of bytes, promises, events.
#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <source_location>
#include <string>
#include <vector>

#include "c/guard.hpp"
#include "imbrex/detail/observation.hpp"
#include "imbrex/imbrex.hpp"

struct imbrex_event_s {
  imbrex::detail::EventWord word;
};

// The state, followed by its bytes, which the future keeps alive.
struct imbrex_promise_s {
  explicit imbrex_promise_s(const std::string& description)
      : promise(description, std::source_location()) {}
  imbrex::Promise<std::unique_ptr<std::byte[]>> promise;
  std::size_t size;
  std::byte* bytes;  // the bytes of the value
  std::unique_ptr<std::byte[]> value;
};

namespace imbrex::c {

namespace {

void wait(const imbrex_future_s* const future) {
  require(future, "a future");
  future->future.wait();
}

// IMBREX_SUCCESS, or the code of the failure of a ready future.
int outcome_of(const imbrex_future_s& future) noexcept {
  const std::exception_ptr error = detail::take_failure(*detail::completion_of(future.future));
  return error ? fail(IMBREX_ERR_TASK, error) : IMBREX_SUCCESS;
}

// The promised bytes. Only the caller that has taken the promise makes one, so that of two
// concurrent sets one is refused and touches nothing.
struct Filled {
  imbrex_promise_s* promise;
  const void* value;
  operator std::unique_ptr<std::byte[]>() const noexcept {
    if (promise->size != 0) std::memcpy(promise->bytes, value, promise->size);
    return std::move(promise->value);
  }
};

// The call has no parameter for a place of the program: the text names the task that makes the
// promise.
std::string describe_new_promise() {
  return fmt::format("the promise made in task {}", detail::describe_current_task());
}

template <class Join>
void join(const int count, const imbrex_future_t* const futures, imbrex_future_t* const joint,
          const Join& join_parts) {
  if (count < 0) throw Error(fmt::format("imbrex: the number of futures to join is {}: give 0 or "
                                         "more", count));
  if (count != 0) require(futures, "the array of futures");
  require(joint, "the future for all");
  std::vector<detail::Completion*> parts;
  for (int index = 0; index < count; ++index) {
    require(futures[index], "one of the futures");
    parts.push_back(detail::completion_of(futures[index]->future));
  }
  auto handle = std::make_unique<imbrex_future_s>(nullptr, nullptr, 0);
  handle->future = detail::future_of(join_parts(parts));
  *joint = handle.release();
}

}  // namespace

}  // namespace imbrex::c

using imbrex::c::guard;
using imbrex::c::require;

#pragma GCC visibility push(default)
extern "C" {

int imbrex_future_wait(const imbrex_future_t future) {
  const int code = guard(IMBREX_ERR_USE, [&] { imbrex::c::wait(future); });
  return code == IMBREX_SUCCESS ? imbrex::c::outcome_of(*future) : code;
}

int imbrex_future_get(const imbrex_future_t future, void* const value, const size_t bytes) {
  const int code = guard(IMBREX_ERR_USE, [&] {
    require(future, "the future given to imbrex_future_get()");
    if (bytes != 0) require(value, "the value given to imbrex_future_get()");
    if (bytes != future->size) {
      throw imbrex::Error(fmt::format("imbrex: imbrex_future_get() asks for {} bytes of a future "
                                      "whose value has {}: give the size of the value",
                                      bytes, future->size));
    }
    imbrex::c::wait(future);
  });
  if (code != IMBREX_SUCCESS) return code;
  if (const int failure = imbrex::c::outcome_of(*future)) return failure;
  if (bytes != 0) std::memcpy(value, future->bytes, bytes);
  return IMBREX_SUCCESS;
}

int imbrex_future_ready(const imbrex_future_t future) {
  return future != nullptr && future->future.ready() ? 1 : 0;
}

void imbrex_future_free(imbrex_future_t* const future) {
  if (future != nullptr) delete std::exchange(*future, nullptr);
}

int imbrex_when_all(const int count, const imbrex_future_t futures[], imbrex_future_t* const all) {
  return guard(IMBREX_ERR_USE, [&] {
    imbrex::c::join(count, futures, all, [](const auto& parts) {
      return imbrex::detail::join_all(parts);
    });
  });
}

int imbrex_when_any(const int count, const imbrex_future_t futures[],
                    imbrex_future_t* const first) {
  return guard(IMBREX_ERR_USE, [&] {
    imbrex::c::join(count, futures, first, [](const auto& parts) {
      return imbrex::detail::join_any(parts);
    });
    (*first)->first_of = true;
  });
}

int imbrex_future_index(const imbrex_future_t first) {
  if (first == nullptr || !first->first_of || !first->future.ready()) return -1;
  imbrex::detail::Completion& joint = *imbrex::detail::completion_of(first->future);
  return static_cast<int>(imbrex::detail::joint_index(joint).value);
}

int imbrex_promise_create(const size_t bytes, imbrex_promise_t* const promise,
                          imbrex_future_t* const future) {
  return guard(IMBREX_ERR_USE, [&] {
    require(promise, "the promise given to imbrex_promise_create()");
    require(future, "the future given to imbrex_promise_create()");
    if (bytes > imbrex::c::bytes_max) throw std::bad_alloc();
    auto made = std::make_unique<imbrex_promise_s>(imbrex::c::describe_new_promise());
    made->value = std::make_unique<std::byte[]>(bytes);
    made->bytes = made->value.get();
    made->size = bytes;
    auto handle = std::make_unique<imbrex_future_s>(nullptr, made->bytes, bytes);
    using namespace imbrex::detail;
    Completion* const state = completion_of(made->promise.future());
    retain(*state);
    handle->future = future_of(state);
    *promise = made.release();
    *future = handle.release();
  });
}

int imbrex_promise_set(const imbrex_promise_t promise, const void* const value) {
  return guard(IMBREX_ERR_USE, [&] {
    require(promise, "the promise given to imbrex_promise_set()");
    if (promise->size != 0) require(value, "the value given to imbrex_promise_set()");
    promise->promise.set(imbrex::c::Filled{promise, value});
  });
}

void imbrex_promise_free(imbrex_promise_t* const promise) {
  if (promise != nullptr) delete std::exchange(*promise, nullptr);
}

int imbrex_event_create(imbrex_event_t* const event) {
  return guard(IMBREX_ERR_USE, [&] {
    require(event, "the event given to imbrex_event_create()");
    *event = new imbrex_event_s;
  });
}

int imbrex_event_set(const imbrex_event_t event) {
  return guard(IMBREX_ERR_USE, [&] {
    require(event, "the event given to imbrex_event_set()");
    imbrex::detail::fire_once(event->word);
  });
}

int imbrex_event_ready(const imbrex_event_t event) {
  return event != nullptr && event->word.has_fired() ? 1 : 0;
}

int imbrex_event_wait(const imbrex_event_t event) {
  return guard(IMBREX_ERR_USE, [&] {
    require(event, "the event given to imbrex_event_wait()");
    if (event->word.has_fired()) return;
    imbrex::detail::await(event->word, {.kind = imbrex::detail::WaitKind::event});
  });
}

int imbrex_event_release_after(const imbrex_event_t event) {
  return guard(IMBREX_ERR_USE, [&] {
    require(event, "the event given to imbrex_event_release_after()");
    imbrex::detail::release_after(event->word);
  });
}

int imbrex_event_release_object_after(const imbrex_event_t event, const void* const object) {
  return guard(IMBREX_ERR_USE, [&] {
    require(event, "the event given to imbrex_event_release_object_after()");
    require(object, "the object given to imbrex_event_release_object_after()");
    imbrex::detail::release_access_after(event->word, object);
  });
}

int imbrex_event_release_range_after(const imbrex_event_t event, const void* const begin,
                                     const size_t bytes) {
  return guard(IMBREX_ERR_USE, [&] {
    require(event, "the event given to imbrex_event_release_range_after()");
    const auto range = imbrex::range(static_cast<const std::byte*>(begin), bytes);
    if (range.bytes == 0) return;
    imbrex::detail::release_access_after(event->word, range.begin, range.bytes);
  });
}

void imbrex_event_free(imbrex_event_t* const event) {
  if (event != nullptr) delete std::exchange(*event, nullptr);
}

}  // extern "C"
#pragma GCC visibility pop
