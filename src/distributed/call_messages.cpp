// SPDX-License-Identifier: BSD-3-Clause
#include "distributed/call_messages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <source_location>
#include <string_view>

#include "distributed/carrier/errors.hpp"
#include "imbrex/detail/observation.hpp"
#include "imbrex/error.hpp"
#include "imbrex/task.hpp"

namespace imbrex::distributed {

struct Calls::Head {
  std::uint64_t token;   // of the caller's Made; in go, of the other rank's answer
  std::uint64_t answer;  // long_result: the answer's own
  CodePlace run, function;
  std::uint64_t bytes;
  Landing landing;
  CallMessage message;
};

namespace {
constexpr std::size_t inline_bytes_max = message_bytes_max - 128;

// The length that a transfer can carry.
void check_length(const char* const what, const std::size_t bytes) {
  if (bytes <= transfer_bytes_max) return;
  throw Error(fmt::format("imbrex: a remote call with {} of {} bytes: at most {} bytes are "
                          "possible", what, bytes,
                          transfer_bytes_max));
}
}  // namespace

// A handler owns it once it is sent.
struct Calls::Made {
  detail::CallEnded ended;
  std::source_location where;    // the call
  std::vector<std::byte> bytes;  // long arguments, then a long result

  static void end(Made* const made, const std::exception_ptr& error, const Bytes result) noexcept {
    made->ended(error, result);
    delete made;
  }
};

// Bytes that stay until they are sent.
struct Calls::Sending {
  std::vector<std::byte> bytes;
  Made* made = nullptr;  // the call with these arguments, or null: a result

  static void ended(void* const context, const std::exception_ptr error) noexcept {
    const std::unique_ptr<Sending> sent(static_cast<Sending*>(context));
    if (error == nullptr) return;
    if (sent->made != nullptr) return Made::end(sent->made, error, {});
    report_at_end(error);
  }
};

struct Calls::Taken {
  Calls& calls;
  int from;
  std::uint64_t token;
  CodePlace run, function;
  std::vector<std::byte> arguments;
};

// ---- the caller ------------------------------------------------------------------------------

void Calls::call(const CalledRank& to, const detail::Callee& callee,
                 std::vector<std::byte> arguments, detail::CallEnded ended) {
  check_length("arguments", arguments.size());
  Head message = head(CallMessage::call, 0);
  message.run = place_of(reinterpret_cast<const void*>(callee.run));
  message.function = place_of(reinterpret_cast<const void*>(callee.function));
  message.bytes = arguments.size();
  const bool fits = arguments.size() <= inline_bytes_max;
  const Bytes beside = fits ? Bytes(arguments) : Bytes();  // goes with the message
  auto made = std::make_unique<Made>(Made{std::move(ended), to.where, {}});
  message.token = reinterpret_cast<std::uintptr_t>(made.get());
  if (!fits) {
    message.message = CallMessage::long_call;
    made->bytes = std::move(arguments);
  }
  Made* const under_way = made.release();  // the handler owns it from the next line on
  try {
    send(to.rank, message, beside);
  } catch (...) {
    made.reset(under_way);
    throw;
  }
  transfers_.flush();
}

// ---- the other side --------------------------------------------------------------------------

void Calls::take(const int from, const Head& head, const Bytes arguments) {
  auto taken = std::make_unique<Taken>(Taken{*this, from, head.token, head.run, head.function, {}});
  if (head.message == CallMessage::call) {
    taken->arguments.assign(arguments.begin(), arguments.end());
    return start(std::move(taken));
  }
  Head land = Calls::head(CallMessage::land, head.token);
  try {
    taken->arguments.resize(head.bytes);
    land.landing = transfers_.offer(
        from, taken->arguments,
        [](void* const context, const std::exception_ptr error) noexcept {
          std::unique_ptr<Taken> arrived(static_cast<Taken*>(context));
          if (error != nullptr) return report_at_end(error);
          Calls& calls = arrived->calls;
          calls.start(std::move(arrived));
        },
        taken.get());
  } catch (...) {
    return fail(*taken, detail::thrown_text(std::current_exception()));
  }
  (void)taken.release();
  send(from, land, {});
}

void Calls::start(std::unique_ptr<Taken> taken) {
  // The task has no place here: errors name the place of the call.
  TaskBuilder("remote call", std::source_location())
      .launch([this, taken = std::move(taken)] { run(*taken); });
}

void Calls::run(const Taken& taken) {
  try {
    const auto run = reinterpret_cast<decltype(detail::Callee::run)>(code_at(taken.run));
    auto* const function = reinterpret_cast<detail::AnyFunction*>(code_at(taken.function));
    if (run == nullptr || function == nullptr) {
      throw Error("the program or library of the function is not loaded on that rank, or is "
                  "another build");
    }
    std::vector<std::byte> result;
    run(function, taken.arguments, result);
    check_length("a result", result.size());
    answer(taken, std::move(result));
  } catch (...) {
    fail(taken, detail::thrown_text(std::current_exception()));
  }
  transfers_.flush();
}

void Calls::fail(const Taken& taken, const std::string& why) {
  send(taken.from, Calls::head(CallMessage::failed, taken.token),
       std::as_bytes(std::span(why.data(), std::min(why.size(), inline_bytes_max))));
}

void Calls::answer(const Taken& taken, std::vector<std::byte> result) {
  Head message = head(CallMessage::result, taken.token);
  message.bytes = result.size();
  if (result.size() <= inline_bytes_max) return send(taken.from, message, result);
  message.message = CallMessage::long_result;
  message.answer = reinterpret_cast<std::uintptr_t>(new Sending{std::move(result), nullptr});
  send(taken.from, message, {});
}

// ---- messages --------------------------------------------------------------------------------

Calls::Head Calls::head(const CallMessage message, const std::uint64_t token) noexcept {
  Head made{};
  made.token = token;
  made.message = message;
  return made;
}

void Calls::send(const int to, const Head& head, const Bytes body) {
  transfers_.send(to, bytes_of(head), body);
}

void Calls::deliver(const Landing& landing, std::unique_ptr<Sending> sending) {
  try {
    transfers_.deliver(landing, sending->bytes, Sending::ended, sending.get());
  } catch (...) {
    return Sending::ended(sending.release(), std::current_exception());
  }
  (void)sending.release();
}

void Calls::receive(const int from, const Bytes message) noexcept {
  Head head;
  std::memcpy(&head, message.data(), sizeof head);
  try {
    handle(from, head, message.subspan(sizeof head));
  } catch (...) {
    report_at_end(std::current_exception());
  }
}

void Calls::handle(const int from, const Head& head, const Bytes body) {
  switch (head.message) {
    case CallMessage::call:
    case CallMessage::long_call: return take(from, head, body);
    case CallMessage::go: {
      std::unique_ptr<Sending> sending(reinterpret_cast<Sending*>(head.answer));
      if (head.landing.tag < 0) return;  // the other rank has no room for it
      return deliver(head.landing, std::move(sending));
    }
    default: break;
  }
  Made& made = *reinterpret_cast<Made*>(head.token);
  if (head.message == CallMessage::land) {
    deliver(head.landing, std::make_unique<Sending>(Sending{std::move(made.bytes), &made}));
  } else if (head.message == CallMessage::result) {
    Made::end(&made, nullptr, body);
  } else if (head.message == CallMessage::failed) {
    const std::string_view why(reinterpret_cast<const char*>(body.data()), body.size());
    const std::string text =
        fmt::format("imbrex: a call from rank {}{} on rank {} has failed: {}",
                    transfers_.rank(), detail::in_parentheses(made.where), from, why);
    Made::end(&made, std::make_exception_ptr(RemoteError(text, from)), {});
  } else {
    Head go = Calls::head(CallMessage::go, head.token);
    go.answer = head.answer;
    try {
      made.bytes.resize(head.bytes);
      go.landing = transfers_.offer(
          from, made.bytes,
          [](void* const context, const std::exception_ptr error) noexcept {
            auto* const arrived = static_cast<Made*>(context);
            Made::end(arrived, error, arrived->bytes);
          },
          &made);
    } catch (...) {
      Made::end(&made, std::current_exception(), {});
    }
    send(from, go, {});
  }
}

}  // namespace imbrex::distributed
