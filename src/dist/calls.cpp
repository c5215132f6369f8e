// SPDX-License-Identifier: BSD-3-Clause
#include "dist/calls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "imbrex/detail/observation.hpp"
#include "imbrex/error.hpp"
#include "imbrex/task.hpp"

namespace imbrex::dist {

struct CallsOn::Head {
  std::uint64_t id;
  std::uint64_t token;   // of the caller's Made, or in go of the other's answer
  std::uint64_t answer;  // long_result: the answer's own
  CodePlace run, function;
  std::uint64_t bytes;
  Landing landing;
  CallMessage message;
};

namespace {
constexpr std::size_t inline_bytes_max = message_bytes_max - 128;

struct Sending {  // bytes that stay until they are sent
  std::vector<std::byte> bytes;
  static void ended(void* const context, const std::exception_ptr error) noexcept {
    const std::unique_ptr<Sending> sent(static_cast<Sending*>(context));
    if (error != nullptr) Promise<void>("a remote call").set_exception(error);
  }
};
}  // namespace

// A handler's once it is sent.
struct CallsOn::Made {
  CallsOn& calls;
  int rank;
  detail::CallEnded ended;
  std::vector<std::byte> bytes;  // long arguments, then a long result
};

struct CallsOn::Taken {
  CallsOn& calls;
  int from;
  std::uint64_t token;
  CodePlace run, function;
  std::vector<std::byte> arguments;
};

// ---- the caller ------------------------------------------------------------------------------

void CallsOn::call(const int rank, const detail::Callee& callee, std::vector<std::byte> arguments,
                   detail::CallEnded ended) {
  if (rank < 0 || static_cast<std::size_t>(rank) >= members_.size()) {
    throw Error(fmt::format("imbrex: a remote call to rank {}: there are {}", rank,
                            members_.size()));
  }
  const int to = members_[static_cast<std::size_t>(rank)];
  Head message = head(CallMessage::call, 0);
  message.run = place_of(reinterpret_cast<const void*>(callee.run));
  message.function = place_of(reinterpret_cast<const void*>(callee.function));
  message.bytes = arguments.size();
  if (const std::lock_guard guard(mutex_); true) {
    if (stops_) throw Error("imbrex: a remote call after close()");
    ++made_;
    ++active_;
  }
  const bool fits = arguments.size() <= inline_bytes_max;
  auto* const made = new Made{*this, to, std::move(ended), {}};  // a handler's, once it is sent
  message.token = reinterpret_cast<std::uintptr_t>(made);
  if (!fits) {
    message.message = CallMessage::long_call;
    made->bytes = std::move(arguments);
  }
  try {
    send(to, message, fits ? Bytes(arguments) : Bytes());
    sets_.transfers_.flush();
  } catch (...) {
    end(*made, std::current_exception(), {});
  }
}

void CallsOn::end(Made& made, const std::exception_ptr& error, const Bytes result) noexcept {
  made.ended(error, result);
  delete &made;
  one_less();
}

// ---- the other side --------------------------------------------------------------------------

void CallsOn::take(const int from, const Head& head, const Bytes arguments) {
  if (const std::lock_guard guard(mutex_); true) {
    ++taken_;
    ++active_;
  }
  auto taken = std::make_unique<Taken>(Taken{*this, from, head.token, head.run, head.function, {}});
  if (head.message == CallMessage::call) {
    taken->arguments.assign(arguments.begin(), arguments.end());
    return queue(std::move(taken));
  }
  taken->arguments.resize(head.bytes);
  Head land = this->head(CallMessage::land, head.token);
  land.landing = sets_.transfers_.offer(
      from, taken->arguments,
      [](void* const context, const std::exception_ptr error) noexcept {
        std::unique_ptr<Taken> arrived(static_cast<Taken*>(context));
        if (error != nullptr) Promise<void>("a remote call").set_exception(error);
        CallsOn& calls = arrived->calls;
        calls.queue(std::move(arrived));
      },
      taken.get());
  (void)taken.release();
  send(from, land, {});
}

void CallsOn::queue(std::unique_ptr<Taken> taken) {
  std::optional<Promise<void>> more;
  if (const std::lock_guard guard(mutex_); true) {
    queued_.push_back(std::move(taken));
    more.swap(more_);
  }
  if (more) more->set();
}

void CallsOn::accept() {
  for (;;) {
    std::vector<std::unique_ptr<Taken>> calls;
    Future<void> more;
    if (const std::lock_guard guard(mutex_); true) {
      if (queued_.empty() && stops_) return;
      calls.swap(queued_);
      if (calls.empty()) more = more_.emplace("a remote call to come").future();
    }
    if (calls.empty()) more.wait();
    for (auto& one : calls) {
      task("remote call").launch([this, taken = std::move(one)]() mutable {
        run(std::move(taken));
      });
    }
  }
}

void CallsOn::run(std::unique_ptr<Taken> taken) {
  const int rank = sets_.transfers_.rank();
  std::string failure;
  try {
    const auto run = reinterpret_cast<decltype(detail::Callee::run)>(code_at(taken->run));
    auto* const function = reinterpret_cast<detail::AnyFunction*>(code_at(taken->function));
    if (run == nullptr || function == nullptr) {
      throw Error(fmt::format("the program or library that has the function is not loaded on rank "
                              "{}, or is another build of it there", rank));
    }
    std::vector<std::byte> result;
    run(function, taken->arguments, result);
    answer(*taken, std::move(result));
  } catch (const std::exception& error) {
    failure = fmt::format("imbrex: a call from rank {} on rank {}, in task {}, has failed: {}",
                          taken->from, rank, detail::describe_current_task(), error.what());
  } catch (...) {
    failure = fmt::format("imbrex: a call from rank {} on rank {}, in task {}, has thrown what is "
                          "no std::exception", taken->from, rank, detail::describe_current_task());
  }
  if (!failure.empty()) {
    send(taken->from, head(CallMessage::failed, taken->token),
         std::as_bytes(std::span(failure.data(), std::min(failure.size(), inline_bytes_max))));
  }
  sets_.transfers_.flush();
  one_less();
}

void CallsOn::answer(const Taken& taken, std::vector<std::byte> result) {
  Head message = head(CallMessage::result, taken.token);
  message.bytes = result.size();
  if (result.size() <= inline_bytes_max) return send(taken.from, message, result);
  message.message = CallMessage::long_result;
  message.answer = reinterpret_cast<std::uintptr_t>(new Sending{std::move(result)});
  send(taken.from, message, {});
}

// ---- messages --------------------------------------------------------------------------------

CallsOn::Head CallsOn::head(const CallMessage message, const std::uint64_t token) const noexcept {
  Head made{};
  made.id = id_;
  made.token = token;
  made.message = message;
  return made;
}

void CallsOn::send(const int to, const Head& head, const Bytes body) {
  sets_.transfers_.send(to, bytes_of(head), body);
}

void CallsOn::receive(const int from, const Head& head, const Bytes body) noexcept {
  try {
    handle(from, head, body);
  } catch (...) {
    Promise<void>("messages of remote calls").set_exception(std::current_exception());
  }
}

void CallsOn::handle(const int from, const Head& head, const Bytes body) {
  const auto send_from = [&](Sending* const sending) {
    sets_.transfers_.deliver(head.landing, sending->bytes, Sending::ended, sending);
  };
  switch (head.message) {
    case CallMessage::call:
    case CallMessage::long_call: return take(from, head, body);
    case CallMessage::go: return send_from(reinterpret_cast<Sending*>(head.answer));
    default: break;
  }
  Made& made = *reinterpret_cast<Made*>(head.token);
  if (head.message == CallMessage::land) {
    send_from(new Sending{std::move(made.bytes)});
  } else if (head.message == CallMessage::result) {
    end(made, nullptr, body);
  } else if (head.message == CallMessage::failed) {
    const std::string text(reinterpret_cast<const char*>(body.data()), body.size());
    end(made, std::make_exception_ptr(RemoteError(text, from)), {});
  } else {
    made.bytes.resize(head.bytes);
    Head go = this->head(CallMessage::go, head.token);
    go.answer = head.answer;
    go.landing = sets_.transfers_.offer(
        from, made.bytes,
        [](void* const context, const std::exception_ptr error) noexcept {
          Made& arrived = *static_cast<Made*>(context);
          arrived.calls.end(arrived, error, arrived.bytes);
        },
        &made);
    send(from, go, {});
  }
}

// ---- beginning and end -----------------------------------------------------------------------

CallsOn::CallsOn(CallSets& sets, const std::uint64_t id, std::vector<int> members)
    : sets_(sets), id_(id), members_(std::move(members)) {
  acceptor_ = task("remote calls").spawn([this] { accept(); });
}

CallsOn::~CallsOn() = default;

void CallsOn::one_less() {
  if (const std::lock_guard guard(mutex_); true) --active_;
  join_if_passive();
}

void CallsOn::join_if_passive() {
  WaveSums mine{};
  std::uint64_t epoch = 0;
  if (const std::lock_guard guard(mutex_); true) {
    if (!closing_ || joined_ || stops_ || active_ != 0) return;
    joined_ = true;
    mine = {made_, taken_, 0, 0};
    epoch = epoch_;
  }
  constexpr std::uint64_t of_calls = std::uint64_t{0xf6} << 56;  // among the groups of waves
  sets_.waves_.join({of_calls | id_, epoch}, members_, mine,
                    [](void* const context, const WaveSums& sums) noexcept {
                      static_cast<CallsOn*>(context)->wave_ended(sums);
                    },
                    this);
}

void CallsOn::wave_ended(const WaveSums& sums) noexcept {
  bool ended = false;
  std::optional<Promise<void>> more;
  if (const std::lock_guard guard(mutex_); true) {
    ended = sums[0] == taken_last_;
    taken_last_ = sums[1];
    ++epoch_;
    joined_ = false;
    if (ended) {
      stops_ = true;
      more.swap(more_);
    }
  }
  if (!ended) return join_if_passive();
  if (more) more->set();
  const Promise<void> closed = closed_;  // close() may destroy this from here on
  closed.set();
}

void CallsOn::close() {
  if (const std::lock_guard guard(mutex_); true) {
    if (closing_) throw Error("imbrex: remote calls are closed twice");
    closing_ = true;
  }
  join_if_passive();
  closed_.future().wait();
  acceptor_.wait();
  sets_.transfers_.expect_no_more();
  const std::lock_guard guard(sets_.mutex_);
  sets_.known_.erase(id_);
}

detail::Calls& CallSets::open(const std::uint64_t id, std::vector<int> members) {
  transfers_.expect();
  auto& calls = *new CallsOn(*this, id, std::move(members));
  std::vector<std::pair<int, std::vector<std::byte>>> kept;
  if (const std::lock_guard guard(mutex_); true) {
    Known& known = known_[id];
    known.calls = &calls;
    kept = std::move(known.kept);
  }
  for (const auto& [from, message] : kept) receive(from, message);
  return calls;
}

std::uint64_t CallSets::draw_id() noexcept {
  return (static_cast<std::uint64_t>(transfers_.rank()) << 32) |
         drawn_.fetch_add(1, std::memory_order_relaxed);  // relaxed: a number
}

void CallSets::receive(const int from, const Bytes message) noexcept {
  CallsOn::Head head;
  std::memcpy(&head, message.data(), sizeof head);
  CallsOn* calls = nullptr;
  if (const std::lock_guard guard(mutex_); true) {
    Known& known = known_[head.id];
    calls = known.calls;
    if (calls == nullptr) {
      known.kept.emplace_back(from, std::vector(message.begin(), message.end()));
    }
  }
  if (calls != nullptr) calls->receive(from, head, message.subspan(sizeof head));
}

}  // namespace imbrex::dist
