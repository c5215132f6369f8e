// SPDX-License-Identifier: BSD-3-Clause
// The MPI functions of calls.def, as programs call them. In a task they suspend it. Elsewhere they
// are MPI's own, except collectives: a blocking and a non-blocking one do not match each other (MPI
// 3.1, section 5.12), so all ranks use the non-blocking ones, on every thread.
#include <string_view>
#include <tuple>

#include "mpi/abi/standard.hpp"
#include "mpi/calls/alike.hpp"
#include "mpi/calls/spare.hpp"
#include "mpi/calls/split.hpp"
#include "mpi/calls/twins.hpp"
#include "mpi/check/buffers.hpp"
#include "mpi/check/checks.hpp"
#include "mpi/collectives/blocks/blocks.hpp"
#include "mpi/collectives/order/order.hpp"
#include "mpi/messages/matching/wait.hpp"
#include "mpi/messages/sends/outgoing.hpp"
#include "mpi/recording/message_records.hpp"

namespace imbrex::mpi {

namespace {

// `blocking()` is MPI's own function, `start(&request)` its non-blocking twin.
template <class Blocking, class Start>
int by_twin_in_tasks(const Call& call, MPI_Status* status, Blocking blocking, Start start) {
  return may_block() ? blocking() : carry_out(call, status, start);
}

template <class Blocking, class Start>
int by_twin_everywhere(const Call& call, MPI_Status* status, Blocking blocking, Start start) {
  if (!in_service()) return blocking();
  return carry_out(call, status, start);
}

Call collective_call(const char* name, MPI_Comm comm) noexcept {
  return {.name = name, .comm = comm, .kind = Kind::collective};
}
[[maybe_unused]] Call begun_collective(const char* name, MPI_Comm comm) noexcept {
  return {.name = name, .comm = comm, .kind = Kind::collective, .at_once = true};
}

// `find_buffers()` returns the memory that the call uses, once MPI has accepted the arguments;
// `find_alike()` returns the arguments that are compared between ranks.
template <class Blocking, class Start, class Find, class FindAlike>
int collective(const Call& call, Blocking blocking, Start start, Find find_buffers,
               FindAlike find_alike) {
  if (!in_service()) return blocking();
  if (!collectives_have_twins) [[unlikely]] {
    if (!suspends()) return blocking();
    const BlockedCall blocked(call.name);
    return blocking();
  }
  check::Guard guard;
  check::Compared compared(call.comm);
  // The task is read here, because within `start` the thread runs no task.
  const detail::TaskLabel task = check::on() ? detail::current_task() : detail::TaskLabel();
  order::Turn in_turn(call);
  const auto start_it = [&](MPI_Request* request) {
    const int code = start(request);
    if (check::on() && code == MPI_SUCCESS) [[unlikely]] {
      Call seen = call;
      // It may be in flight beside others: the ranks share their order.
      if (in_turn.is_taken()) seen.kind = Kind::other;
      if (compared.is_wanted()) compared.begin(call, task, find_alike(), in_turn.ordering());
      guard.begin(seen, task, find_buffers());
    }
    return code;
  };
  if (!in_turn.is_taken()) [[likely]] {
    if (in_turn.code() != MPI_SUCCESS) return in_turn.code();
    return carry_out(call, MPI_STATUS_IGNORE, start_it);
  }
  int code = MPI_SUCCESS;
  const int of_call = carry_out(call, MPI_STATUS_IGNORE, start_it, [&] { code = in_turn.end(); });
  return of_call == MPI_SUCCESS ? code : of_call;
}

// `begin()` returns MPI's code when the operation has been started: `request`, unless null, stands
// for it.
template <class Begin, class FindAlike>
int begin_in_turn(const Call& call, MPI_Request* const request, Begin begin, FindAlike find_alike) {
  check::Compared compared(in_service() ? call.comm : MPI_COMM_NULL);
  order::Turn in_turn(call);
  if (in_turn.code() != MPI_SUCCESS) return in_turn.code();
  const Outcome outcome = begin();
  if (compared.is_wanted() && outcome.code == MPI_SUCCESS) [[unlikely]] {
    compared.begin(call, detail::current_task(), find_alike(), in_turn.ordering());
    if (request != nullptr) check::keep_open(*request, std::move(compared));
  }
  const int of_turn = in_turn.end();  // may suspend
  return outcome.code == MPI_SUCCESS ? of_turn : end_call(call, outcome);
}

// The count of the first data argument of a collective: the data that this rank gives, or has in a
// broadcast. None if each rank gets its own count.
MPI_Count count_of(const void*, MPI_Count count, MPI_Datatype, auto...) { return count; }
MPI_Count count_of(const void*, void*, MPI_Count count, MPI_Datatype, MPI_Op, auto...) {
  return count;
}
MPI_Datatype type_of(const void*, MPI_Count, MPI_Datatype type, auto...) { return type; }
MPI_Datatype type_of(const void*, void*, MPI_Count, MPI_Datatype type, MPI_Op, auto...) {
  return type;
}
// Whether the last argument but one is the rank of a root.
consteval bool is_rooted(std::string_view name) {
  if (name.starts_with("I")) name.remove_prefix(1);
  for (const std::string_view one : {"cast", "educe", "ather", "catter"}) {
    const std::size_t at = name.find(one);
    if (at != std::string_view::npos && at <= 1) {
      return !name.starts_with("reduce_scatter") && !name.starts_with("Reduce_scatter");
    }
  }
  return false;
}
// What a trace records of a collective: a root stands in the place of the peer.
template <bool rooted, class... Arguments>
Call with_data_of(Call call, Arguments... arguments) {
  if constexpr (rooted) call.peer = std::get<sizeof...(Arguments) - 2>(std::tie(arguments...));
  if constexpr (requires { count_of(arguments...); }) {
    call.count = count_of(arguments...);
    call.type = type_of(arguments...);
  }
  return call;
}

// The communicator that a call makes is its last argument; the first argument is the parent.
consteval bool makes_communicator(const std::string_view name) {
  return name == "Comm_dup" || name == "Comm_create" || name.starts_with("Comm_split") ||
         name.starts_with("Cart_") || name.starts_with("Graph_") || name.starts_with("Dist_graph_");
}
template <bool makes, class... Arguments>
check::Making making([[maybe_unused]] const Arguments&... arguments) {
  if constexpr (makes) return check::Making(std::get<0>(std::tie(arguments...)));
  return check::Making(MPI_COMM_NULL);
}
template <bool makes, class... Arguments>
int end_making([[maybe_unused]] check::Making& it, const int code,
               [[maybe_unused]] const Arguments&... arguments) {
  if constexpr (makes) {
    return it.end(code, std::get<sizeof...(Arguments) - 1>(std::tie(arguments...)));
  }
  return code;
}

// `ask(&flag)` is the non-blocking form.
template <class Blocking, class Ask>
int by_asking(const char* name, Blocking blocking, Ask ask) {
  return suspends() ? wait_until({name}, question(ask)) : blocking();
}

// Operations on files have twins, but a failing one is only safe with the blocking call: on Open
// MPI 4.1 and 5 MPI_Test crashes, on MPICH 4 and 5 a full disk never completes. A twin may also
// read or write before it returns, which would keep the worker.
template <class Blocking, class Start>
int read_or_write(const Call& call, MPI_Status* status, Blocking blocking, Start start) {
  if (spare_threads_allowed()) return by_spare_thread(call.name, blocking);
  return by_twin_in_tasks(call, status, blocking, start);
}
template <class Blocking, class Start>
int read_or_write_all(const Call& call, MPI_Status* status, Blocking blocking, Start start) {
  if (spare_threads_allowed()) return by_spare_thread(call.name, blocking);
  return by_twin_everywhere(call, status, blocking, start);
}

}  // namespace

// ---- what programs call ----------------------------------------------------------------------

#define IMBREX_AND_REQUEST(...) (__VA_ARGS__ __VA_OPT__(, ) request)
#define IMBREX_KEPT_AND_REQUEST(...) (kept, __VA_ARGS__ __VA_OPT__(, ) request)
#define IMBREX_CALL_AND(...) (call, __VA_ARGS__)
#define IMBREX_CALL_NULL_AND(...) (call, nullptr, __VA_ARGS__)
#define IMBREX_CALL_REQUEST_AND(...) (call, request, __VA_ARGS__)
#define IMBREX_AND_REQUEST_PARAMETER(...) (__VA_ARGS__, MPI_Request* request)
#define IMBREX_MADE_AND(...) (made_here, code __VA_OPT__(, ) __VA_ARGS__)
#define IMBREX_AND_FLAG(...) (__VA_ARGS__, flag)
#define IMBREX_AND_STATUS(...) (__VA_ARGS__, status)
#define IMBREX_AND_STATUS_PARAMETER(...) (__VA_ARGS__, MPI_Status* status)
#define IMBREX_AND_INIT(...) (__VA_ARGS__, info, request)
#define IMBREX_AND_INIT_PARAMETERS(...) (__VA_ARGS__, MPI_Info info, MPI_Request* request)

#define IMBREX_MAKE_SEND(name, twin)                                                       \
  IMBREX_FUNCTION(name)(const void* buffer, Count count, MPI_Datatype type,                \
                        int destination, int tag, MPI_Comm comm) {                         \
    const Call call{"MPI_" #name, comm, destination, tag, count, type, Kind::send};        \
    if (!sends::passes(count, type)) [[unlikely]] {                                        \
      constexpr sends::Asks asks = sends::asks_of(#name);                                  \
      const sends::Outgoing outgoing{buffer, count, type, destination, tag, comm,          \
                                     sends::mode_of(asks)};                                \
      if (const sends::Route route = sends::route_of(outgoing, asks)) {                    \
        return sends::send(call, outgoing, route);                                         \
      }                                                                                    \
    }                                                                                      \
    return by_twin_in_tasks(                                                               \
        call, MPI_STATUS_IGNORE,                                                           \
        [&] { return PMPI_##name(buffer, count, type, destination, tag, comm); },          \
        [&](MPI_Request* request) {                                                        \
          return PMPI_##twin(buffer, count, type, destination, tag, comm, request);        \
        });                                                                                \
  }

#define IMBREX_MAKE_LOCAL(name, twin, parameters, arguments)                               \
  IMBREX_FUNCTION(name) parameters {                                                       \
    return by_twin_in_tasks(                                                               \
        {"MPI_" #name}, MPI_STATUS_IGNORE, [&] { return PMPI_##name arguments; },          \
        [&](MPI_Request* request) { return PMPI_##twin IMBREX_AND_REQUEST arguments; });   \
  }

// `how`: read_or_write or read_or_write_all.
#define IMBREX_MAKE_FILE(how, name, twin, parameters, arguments)                           \
  IMBREX_FUNCTION(name) IMBREX_AND_STATUS_PARAMETER parameters {                           \
    return how(                                                                            \
        {"MPI_" #name, MPI_COMM_NULL, -1, -1, count, type}, status,                        \
        [&] { return PMPI_##name IMBREX_AND_STATUS arguments; },                           \
        [&](MPI_Request* request) { return PMPI_##twin IMBREX_AND_REQUEST arguments; });   \
  }

// Finds the arguments that must be equal on all ranks.
#define IMBREX_ALIKE(name, arguments)                                                      \
  [&] { return alike::arguments_of<alike::what_of(#name)> arguments; }

// `buffers`: finds the memory that the call uses.
#define IMBREX_MAKE_COLLECTIVE(name, twin, parameters, arguments, buffers)                 \
  IMBREX_FUNCTION(name) parameters {                                                       \
    const Call call = collective_call("MPI_" #name, comm);                                 \
    const TracedCollective traced(                                                         \
        with_data_of<is_rooted(#name)> IMBREX_CALL_AND arguments);                         \
    if (const std::optional<int> code =                                                    \
            blocks::attempt<blocks::kind_of(#name), blocks::varies(#name)>       \
                IMBREX_CALL_NULL_AND arguments) {                                          \
      return *code;                                                                        \
    }                                                                                      \
    if (in_service() && mixes_up_sides<&PMPI_##twin>(comm)) {                              \
      const auto by_spare = [&] { return PMPI_##name arguments; };                         \
      return begin_in_turn(                                                                \
          call, nullptr, [&] { return by_spare_thread("MPI_" #name, by_spare); },          \
          IMBREX_ALIKE(name, arguments));                                                  \
    }                                                                                      \
    NoBytes<Count> kept;                                                                   \
    constexpr bool makes = makes_communicator(#name);                                      \
    check::Making made_here = making<makes> arguments;                                     \
    const int code = collective(                                                           \
        call, [&] { return PMPI_##name arguments; },                                       \
        [&](MPI_Request* request) {                                                        \
          made_here.begin();                                                               \
          return start_twin<&PMPI_##twin> IMBREX_KEPT_AND_REQUEST arguments;               \
        },                                                                                 \
        [&] { return buffers; }, IMBREX_ALIKE(name, arguments));                           \
    return end_making<makes> IMBREX_MADE_AND arguments;                                    \
  }

// Makes a function that returns a request.
#define IMBREX_MAKE_BEGIN(function, call, parameters, arguments, buffers)                  \
  IMBREX_FUNCTION(function) IMBREX_AND_REQUEST_PARAMETER parameters {                      \
    return check::begun(call, request, PMPI_##function IMBREX_AND_REQUEST arguments,       \
                        [&] { return buffers; });                                          \
  }

// IMBREX_MAKE_BEGIN for a collective.
#define IMBREX_MAKE_BEGIN_COLLECTIVE(function, parameters, arguments, buffers)             \
  IMBREX_FUNCTION(function) IMBREX_AND_REQUEST_PARAMETER parameters {                      \
    const Call call = begun_collective("MPI_" #function, comm);                            \
    const auto traced = [&](const int code) {                                              \
      return trace_begun_collective(                                                       \
          with_data_of<is_rooted(#function)> IMBREX_CALL_AND arguments, code, request);    \
    };                                                                                     \
    if (const std::optional<int> code =                                                    \
            blocks::attempt<blocks::kind_of(#function),                             \
                               blocks::varies(#function)>                               \
                IMBREX_CALL_REQUEST_AND arguments) {                                       \
      return traced(*code);                                                                \
    }                                                                                      \
    const auto begin = [&] {                                                               \
      return check::begun(call, request, PMPI_##function IMBREX_AND_REQUEST arguments,     \
                          [&] { return buffers; });                                        \
    };                                                                                     \
    return traced(begin_in_turn(call, request, begin, IMBREX_ALIKE(function, arguments))); \
  }

#define IMBREX_MAKE_REMOTE(function, kind, parameters, arguments, buffers)                 \
  IMBREX_MAKE_BEGIN(function,                                                              \
                    (Call{"MPI_" #function, MPI_COMM_NULL, target, Call::none, count, type, \
                          Kind::kind, true}),                                              \
                    parameters, arguments, buffers)

#define IMBREX_MAKE_SPARE(name, parameters, arguments)                                     \
  IMBREX_FUNCTION(name) parameters {                                                       \
    constexpr bool makes = makes_communicator(#name);                                      \
    check::Making made_here = making<makes> arguments;                                     \
    made_here.begin();                                                                     \
    const int code =                                                                       \
        by_spare_thread("MPI_" #name, [&] { return PMPI_##name arguments; });              \
    return end_making<makes> IMBREX_MADE_AND arguments;                                    \
  }

// Where requests of files are not safe, the whole operation happens in its first half (split.hpp).
#define IMBREX_MAKE_FILE_BEGIN(name, twin, parameters, arguments)                          \
  IMBREX_FUNCTION(twin) IMBREX_AND_REQUEST_PARAMETER parameters {                          \
    if (!has<Quirk::file_requests_crash>() || !in_service() || !spare_threads_allowed()) { \
      return PMPI_##twin IMBREX_AND_REQUEST arguments;                                     \
    }                                                                                      \
    return begin_whole(request, [&](MPI_Status* status) {                                  \
      return by_spare_thread("MPI_" #twin,                                                 \
                             [&] { return PMPI_##name IMBREX_AND_STATUS arguments; });     \
    });                                                                                    \
  }
#define IMBREX_MAKE_SPLIT(name, whole, parameters, arguments)                              \
  IMBREX_FUNCTION(name) parameters {                                                       \
    if (!has<Quirk::file_requests_crash>()) {                                              \
      return by_spare_thread("MPI_" #name, [&] { return PMPI_##name arguments; });         \
    }                                                                                      \
    if (!in_service()) return PMPI_##name arguments;                                       \
    return split_collectives().begin(file, [&](MPI_Status* status) {                       \
      return by_spare_thread("MPI_" #name,                                                 \
                             [&] { return PMPI_##whole IMBREX_AND_STATUS arguments; });    \
    });                                                                                    \
  }
#define IMBREX_MAKE_SPLIT_END(name, parameters, arguments)                                 \
  IMBREX_FUNCTION(name) parameters {                                                       \
    if (!has<Quirk::file_requests_crash>()) {                                              \
      return by_spare_thread("MPI_" #name, [&] { return PMPI_##name arguments; });         \
    }                                                                                      \
    return split_collectives().end(file, status) ? MPI_SUCCESS : PMPI_##name arguments;    \
  }

#define IMBREX_MAKE_ASK(name, question, parameters, arguments)                             \
  IMBREX_FUNCTION(name) parameters {                                                       \
    return by_asking(                                                                      \
        "MPI_" #name, [&] { return PMPI_##name arguments; },                               \
        [&](int* flag) { return PMPI_##question IMBREX_AND_FLAG arguments; });             \
  }

#if IMBREX_MPI_4
#define IMBREX_MAKE_INIT(function, parameters, arguments, buffers)                         \
  IMBREX_FUNCTION(function) IMBREX_AND_INIT_PARAMETERS parameters {                        \
    const Call call = collective_call("MPI_" #function, comm);                             \
    const auto begin = [&] {                                                               \
      const int code = by_spare_thread(                                                    \
          "MPI_" #function, [&] { return PMPI_##function IMBREX_AND_INIT arguments; });    \
      return check::prepared(call, request, code, [&] { return buffers; });                \
    };                                                                                     \
    return begin_in_turn(call, nullptr, begin, IMBREX_ALIKE(function, arguments));         \
  }
#else
#define IMBREX_MAKE_INIT(function, parameters, arguments, buffers)
#endif

// The table is read once for the functions that count with int, and those that count nothing...
namespace of_int {
using Count = int;
using Place = int;
#define IMBREX_SEND_C IMBREX_MAKE_SEND
#define IMBREX_LOCAL IMBREX_MAKE_LOCAL
#define IMBREX_FILE_C(...)                                                                 \
  IMBREX_MAKE_FILE(read_or_write, __VA_ARGS__)                                             \
  IMBREX_MAKE_FILE_BEGIN(__VA_ARGS__)
#define IMBREX_FILE_ALL_C(...)                                                             \
  IMBREX_MAKE_FILE(read_or_write_all, __VA_ARGS__)                                         \
  IMBREX_MAKE_FILE_BEGIN(__VA_ARGS__)
#define IMBREX_COLLECTIVE(name, twin, parameters, arguments)                               \
  IMBREX_MAKE_COLLECTIVE(name, twin, parameters, arguments, check::Buffers())              \
  IMBREX_MAKE_BEGIN_COLLECTIVE(twin, parameters, arguments, check::Buffers())
#define IMBREX_COLLECTIVE_C(name, twin, parameters, arguments)                             \
  IMBREX_MAKE_COLLECTIVE(name, twin, parameters, arguments,                                \
                         check::buffers::name arguments)                                   \
  IMBREX_MAKE_BEGIN_COLLECTIVE(twin, parameters, arguments, check::buffers::name arguments) \
  IMBREX_MAKE_INIT(name##_init, parameters, arguments, check::buffers::name arguments)
#define IMBREX_REMOTE_C(name, kind, parameters, arguments)                                 \
  IMBREX_MAKE_REMOTE(name, kind, parameters, arguments, check::buffers::name arguments)
#define IMBREX_SPARE IMBREX_MAKE_SPARE
#define IMBREX_ASK IMBREX_MAKE_ASK
#define IMBREX_SPARE_C IMBREX_MAKE_SPARE
#define IMBREX_SPLIT_C IMBREX_MAKE_SPLIT
#define IMBREX_SPLIT_END IMBREX_MAKE_SPLIT_END
#include "mpi/calls/calls.def"
}  // namespace of_int

// ... and once for those of large counts.
#if MPI_VERSION >= 4
namespace of_count {
using Count = MPI_Count;
using Place = MPI_Aint;
#define IMBREX_SEND_C(name, twin) IMBREX_MAKE_SEND(name##_c, twin##_c)
#define IMBREX_FILE_C(name, twin, parameters, arguments)                                   \
  IMBREX_MAKE_FILE(read_or_write, name##_c, twin##_c, parameters, arguments)               \
  IMBREX_MAKE_FILE_BEGIN(name##_c, twin##_c, parameters, arguments)
#define IMBREX_FILE_ALL_C(name, twin, parameters, arguments)                               \
  IMBREX_MAKE_FILE(read_or_write_all, name##_c, twin##_c, parameters, arguments)           \
  IMBREX_MAKE_FILE_BEGIN(name##_c, twin##_c, parameters, arguments)
#define IMBREX_SPLIT_C(name, whole, parameters, arguments)                                 \
  IMBREX_MAKE_SPLIT(name##_c, whole##_c, parameters, arguments)
#define IMBREX_COLLECTIVE_C(name, twin, parameters, arguments)                             \
  IMBREX_MAKE_COLLECTIVE(name##_c, twin##_c, parameters, arguments,                        \
                         check::buffers::name arguments)                                   \
  IMBREX_MAKE_BEGIN_COLLECTIVE(twin##_c, parameters, arguments,                            \
                               check::buffers::name arguments)                             \
  IMBREX_MAKE_INIT(name##_init_c, parameters, arguments, check::buffers::name arguments)
#define IMBREX_REMOTE_C(name, kind, parameters, arguments)                                 \
  IMBREX_MAKE_REMOTE(name##_c, kind, parameters, arguments, check::buffers::name arguments)
#define IMBREX_SPARE_C(name, parameters, arguments)                                        \
  IMBREX_MAKE_SPARE(name##_c, parameters, arguments)
#include "imbrex/detail/observation.hpp"
#include "mpi/calls/calls.def"
}  // namespace of_count
#endif

}  // namespace imbrex::mpi
