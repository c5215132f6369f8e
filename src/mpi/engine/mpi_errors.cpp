// SPDX-License-Identifier: BSD-3-Clause
// Errors of MPI: the texts of MpiError, and error handlers. MPI keeps the handlers, so that every
// new communicator inherits its parent's; a function of this library precedes each. If MPI calls it
// because a worker polls, the call is kept for the task whose operation failed.
// MPI_ERRORS_ARE_FATAL would end the program in the name of the polling task, so a handler of this
// library replaces it.
#include "mpi/engine/mpi_errors.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <numeric>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "imbrex/detail/observation.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "mpi/abi/error_handlers.hpp"
#include "mpi/abi/standard.hpp"
#include "mpi/abi/switches.hpp"
#include "mpi/engine/deaths.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/threads/ship.hpp"

namespace imbrex::mpi {

void abort_all(MPI_Comm comm, int code) noexcept {
  // MPICH's mpiexec drops output that it has not yet passed on when a process aborts.
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  report_abort(code);
  PMPI_Abort(comm, code);
  std::_Exit(1);
}

namespace {

// Returns one line. MPICH's text has a line for each call inside MPI, the innermost one last, and
// names calls that imbrex made, such as MPI_Wait. The innermost reason is kept.
std::string without_inner_calls(const std::string_view text) {
  constexpr std::string_view begin_of_calls = ", error stack:\n";
  const std::size_t end = text.find(begin_of_calls);
  if (end == std::string_view::npos) return std::string(text);
  std::string_view calls = text.substr(end + begin_of_calls.size());
  std::string_view reason;
  while (!calls.empty()) {
    const std::string_view line = calls.substr(0, calls.find('\n'));
    calls.remove_prefix(std::min(calls.size(), line.size() + 1));
    const std::size_t colon = line.find(": ", std::min(line.find(')'), line.size()));
    if (colon != std::string_view::npos && colon + 2 < line.size()) reason = line.substr(colon + 2);
  }
  std::string described(text.substr(0, end));
  if (!reason.empty()) described += ": " + std::string(reason);
  return described;
}

}  // namespace

MpiError make_error(const char* call, int code, const std::string& place) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  int error_class = MPI_ERR_UNKNOWN;
  if (PMPI_Error_string(code, text, &length) != MPI_SUCCESS) length = 0;
  PMPI_Error_class(code, &error_class);
  const std::string where = place == "no task" ? "outside a task" : "in task " + place;
  return MpiError(std::string("imbrex: ") + call + " " + where + " failed: " +
                      without_inner_calls({text, static_cast<std::size_t>(length)}),
                  call, code, error_class);
}

namespace {

// ---- handlers of the user ----------------------------------------------------------------------

// MPI passes no user pointer to a handler, so each handler of the user gets a function of this
// library that knows it. Handlers beyond this number are given to MPI directly, and run where MPI
// calls them.
constexpr std::size_t handlers_max = 32;

// The kinds of objects that have handlers. Handles of two kinds may have one type.
struct OfComm {
  using Handle = MPI_Comm;
  static constexpr KeptHandler::Kind kind = KeptHandler::Kind::comm;
};
struct OfWindow {
  using Handle = MPI_Win;
  static constexpr KeptHandler::Kind kind = KeptHandler::Kind::window;
};
struct OfFile {
  using Handle = MPI_File;
  static constexpr KeptHandler::Kind kind = KeptHandler::Kind::file;
};
#if IMBREX_MPI_4
struct OfSession {
  using Handle = MPI_Session;
  static constexpr KeptHandler::Kind kind = KeptHandler::Kind::session;
};
#endif
template <class Kind>
using ErrorHandler = void(typename Kind::Handle*, int*, ...);

// The handlers of one kind of object. Set once each, by any thread.
template <class Kind>
std::array<std::atomic<ErrorHandler<Kind>*>, handlers_max> handlers;

// Calls the handler of the user as MPI would have called it. It may throw, or jump.
template <class Kind>
void call_function(const KeptHandler& kept, int* code) {
  auto object = kept.as<typename Kind::Handle>();
  handlers<Kind>[kept.index].load(std::memory_order_relaxed)(&object, code, nullptr);
}

// At another depth the failed call was made by a function of the program within a call of MPI, the
// operation of a reduction for example.
template <class Kind, std::size_t Index>
void call_or_keep(typename Kind::Handle* object, int* code, ...) {
  const KeptHandler kept{
      .handle = KeptHandler::from(*object), .code = *code, .kind = Kind::kind, .index = Index};
  if (depth_in_next() == 1) {
    if constexpr (std::is_same_v<Kind, OfComm>) {
      if (Asking::keep(*object, *code)) return;
    }
    keep(kept);
    return;
  }
  const InErrorHandler guard;
  call_function<Kind>(kept, code);
}

template <class Kind, std::size_t... Index>
constexpr std::array<ErrorHandler<Kind>*, handlers_max> make_callers(
    std::index_sequence<Index...>) {
  return {&call_or_keep<Kind, Index>...};
}
template <class Kind>
constexpr auto callers = make_callers<Kind>(std::make_index_sequence<handlers_max>{});

// One function may be registered many times, but needs one entry.
template <class Kind>
ErrorHandler<Kind>* caller_of(ErrorHandler<Kind>* handler) noexcept {
  for (std::size_t i = 0; i < handlers_max; ++i) {
    ErrorHandler<Kind>* there = nullptr;
    if (handlers<Kind>[i].compare_exchange_strong(there, handler, std::memory_order_relaxed) ||
        there == handler) {
      return callers<Kind>[i];
    }
  }
  return handler;
}

// ---- MPI_ERRORS_ARE_FATAL ----------------------------------------------------------------------

// Replaces MPI_ERRORS_ARE_FATAL on every communicator of the program. Set in MPI_Init, null again
// from MPI_Finalize on; all other calls of MPI are in between.
MPI_Errhandler fatal = MPI_ERRHANDLER_NULL;

[[noreturn]] void end_program(const char* call, const std::string& place, MPI_Comm comm, int code) {
  const MpiError error = make_error(call, code, place);
  std::fprintf(stderr,
               "%s. The communicator's error handler is MPI_ERRORS_ARE_FATAL, so the program "
               "ends; MPI_Comm_set_errhandler changes that.\n",
               error.what());
  abort_all(comm, error.error_class());
}

void on_fatal(MPI_Comm* comm, int* code, ...) {
  if (depth_in_next() == 1 && Asking::keep(*comm, *code)) return;
  if (engine().polling_here() && depth_in_next() == 1) {
    keep({.handle = KeptHandler::from(*comm), .code = *code, .kind = KeptHandler::Kind::fatal});
    return;
  }
  const char* call = detail::callback_call();
  if (call == nullptr && has<Quirk::handlers_are_given_the_call>()) {
    va_list arguments;
    va_start(arguments, code);
    call = va_arg(arguments, const char*);
    va_end(arguments);
  }
  if (call == nullptr) call = "a call of MPI";
  end_program(call, detail::describe_current_task(), *comm, *code);
}

// If the call names no communicator, Open MPI has called its handlers already and C++ throws; with
// MPICH the handler of MPI_COMM_SELF is called, as MPICH 5 does.
int call_handler(const Call& call, const detail::TaskLabel& task, int code) {
  MPI_Comm comm = call.comm;
  if (comm == MPI_COMM_NULL) {
    if (!has<Quirk::errors_reach_other_handlers>() || call.throws) return code;
    comm = MPI_COMM_SELF;
  }
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  PMPI_Comm_get_errhandler(comm, &handler);
  const bool ends = handler == fatal;
  PMPI_Errhandler_free(&handler);
  if (ends) end_program(call.name, detail::describe(task), comm, code);
  const Outcome called = PMPI_Comm_call_errhandler(comm, code);
  (void)call_kept(called.kept, code);
  return code;
}

}  // namespace

int raise_error(const Operation& operation) {
  const KeptHandler& kept = operation.handler;
  const MPI_Comm comm = operation.call.comm;
  const bool is_of_comm =
      kept.kind == KeptHandler::Kind::comm || kept.kind == KeptHandler::Kind::fatal;
  const bool is_of_another =
      is_of_comm && comm != MPI_COMM_NULL && kept.as<MPI_Comm>() != comm;
  if (kept.kind == KeptHandler::Kind::none || is_of_another) {
    if (operation.handler_ran) return operation.code;
    return call_handler(operation.call, operation.task, operation.code);
  }
  if (kept.kind == KeptHandler::Kind::fatal) {
    end_program(operation.call.name, detail::describe(operation.task), kept.as<MPI_Comm>(),
                kept.code);
  }
  return call_kept(kept, operation.code);
}

// As MPI would have called it: the code is MPI's, and the function may change it.
int call_kept(const KeptHandler& kept, const int code) {
  int changed = kept.code;
  switch (kept.kind) {
    case KeptHandler::Kind::none: return code;
    case KeptHandler::Kind::fatal:
      end_program("a call of MPI", detail::describe_current_task(), kept.as<MPI_Comm>(), code);
    case KeptHandler::Kind::comm: call_function<OfComm>(kept, &changed); break;
    case KeptHandler::Kind::window: call_function<OfWindow>(kept, &changed); break;
    case KeptHandler::Kind::file: call_function<OfFile>(kept, &changed); break;
    case KeptHandler::Kind::session:
#if IMBREX_MPI_4
      call_function<OfSession>(kept, &changed);
#endif
      break;
  }
  return code == MPI_SUCCESS || code == MPI_ERR_IN_STATUS ? code : changed;
}

int raise_error_in_callback(const Operation& operation) noexcept {
  const auto report = [&operation](const char* const what, const char* const text) {
    std::fprintf(stderr, "imbrex: the error handler of %s, of a request with a continuation, has "
                 "thrown%s%s\n", operation.call.name, what, text);
  };
  try {
    return raise_error(operation);
  } catch (const std::exception& error) {
    report(": ", error.what());
  } catch (...) {
    report(" something", "");
  }
  return operation.code;
}

// Looked up by name: not every MPI has it, and not all headers of those that do declare it.
std::string describe_failed(const MPI_Comm comm) {
  using GetFailed = int(MPI_Comm, MPI_Group*);
  auto* const get_failed =
      reinterpret_cast<GetFailed*>(dlsym(RTLD_DEFAULT, "MPIX_Comm_get_failed"));
  if (get_failed == nullptr || comm == MPI_COMM_NULL) return "";
  MPI_Group failed = MPI_GROUP_NULL;
  int code = MPI_SUCCESS;
  const auto ask = [&] { code = get_failed(comm, &failed); };
  if (switches.ships_calls.load(std::memory_order_relaxed) && !threads::on_mpi_thread()) {
    threads::ship(ask);
  } else {
    ask();
  }
  if (code != MPI_SUCCESS) return "";
  int count = 0;
  PMPI_Group_size(failed, &count);
  std::vector<int> ranks(static_cast<std::size_t>(count));
  std::iota(ranks.begin(), ranks.end(), 0);
  std::vector<int> in_comm(ranks.size());
  MPI_Group all = MPI_GROUP_NULL;
  PMPI_Comm_group(comm, &all);
  PMPI_Group_translate_ranks(failed, count, ranks.data(), all, in_comm.data());
  PMPI_Group_free(&all);
  PMPI_Group_free(&failed);
  std::string text;
  for (const int rank : in_comm) {
    text += (text.empty() ? "rank " : ", rank ") + std::to_string(rank);
  }
  return text.empty() ? text : text + (count == 1 ? " has failed" : " have failed");
}

void print(const std::string& text) { detail::print("imbrex: " + text + "\n"); }

int raise_error(const Call& call, int code) {
  return call_handler(call, detail::current_task(), code);
}

std::string unprefixed(const std::exception& error) {
  constexpr std::string_view prefix = "imbrex: ";
  std::string_view text = error.what();
  if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  return std::string(text);
}

void begin_errors() {
  PMPI_Comm_create_errhandler(&on_fatal, &fatal);
  MPI_Comm parent = MPI_COMM_NULL;
  PMPI_Comm_get_parent(&parent);
  for (const MPI_Comm comm : {MPI_COMM_WORLD, MPI_COMM_SELF, parent}) {
    if (comm == MPI_COMM_NULL) continue;
    MPI_Errhandler present = MPI_ERRHANDLER_NULL;
    PMPI_Comm_get_errhandler(comm, &present);
    if (present == MPI_ERRORS_ARE_FATAL) PMPI_Comm_set_errhandler(comm, fatal);
    PMPI_Errhandler_free(&present);
  }
}

void end_errors() {
  if (fatal != MPI_ERRHANDLER_NULL) PMPI_Errhandler_free(&fatal);  // communicators keep it
}

}  // namespace imbrex::mpi

using namespace imbrex::mpi;

IMBREX_FUNCTION(Comm_create_errhandler)(MPI_Comm_errhandler_function* function,
                                          MPI_Errhandler* handler) {
  if (function == nullptr) return PMPI_Comm_create_errhandler(function, handler);
  return PMPI_Comm_create_errhandler(caller_of<OfComm>(function), handler);
}
IMBREX_FUNCTION(File_create_errhandler)(MPI_File_errhandler_function* function,
                                        MPI_Errhandler* handler) {
  if (function == nullptr) return PMPI_File_create_errhandler(function, handler);
  return PMPI_File_create_errhandler(caller_of<OfFile>(function), handler);
}
IMBREX_FUNCTION(Win_create_errhandler)(MPI_Win_errhandler_function* function,
                                       MPI_Errhandler* handler) {
  if (function == nullptr) return PMPI_Win_create_errhandler(function, handler);
  return PMPI_Win_create_errhandler(caller_of<OfWindow>(function), handler);
}
#if IMBREX_MPI_4
IMBREX_FUNCTION(Session_create_errhandler)(MPI_Session_errhandler_function* function,
                                           MPI_Errhandler* handler) {
  if (function == nullptr) return PMPI_Session_create_errhandler(function, handler);
  return PMPI_Session_create_errhandler(caller_of<OfSession>(function), handler);
}
#endif

// The code that the handler gets is no failure of the call.
IMBREX_FUNCTION(Comm_call_errhandler)(MPI_Comm comm, int code) {
  const int end = PMPI_Comm_call_errhandler(comm, code);
  return end == code ? MPI_SUCCESS : end;
}
IMBREX_FUNCTION(File_call_errhandler)(MPI_File file, int code) {
  const int end = PMPI_File_call_errhandler(file, code);
  return end == code ? MPI_SUCCESS : end;
}
IMBREX_FUNCTION(Win_call_errhandler)(MPI_Win window, int code) {
  const int end = PMPI_Win_call_errhandler(window, code);
  return end == code ? MPI_SUCCESS : end;
}
#if IMBREX_MPI_4
IMBREX_FUNCTION(Session_call_errhandler)(MPI_Session session, int code) {
  const int end = PMPI_Session_call_errhandler(session, code);
  return end == code ? MPI_SUCCESS : end;
}
#endif

// ---- programs see MPI_ERRORS_ARE_FATAL in place of the replacement ----------------------------

IMBREX_FUNCTION(Comm_set_errhandler)(MPI_Comm comm, MPI_Errhandler handler) {
  const bool replace = handler == MPI_ERRORS_ARE_FATAL && fatal != MPI_ERRHANDLER_NULL;
  return PMPI_Comm_set_errhandler(comm, replace ? fatal : handler);
}

IMBREX_FUNCTION(Comm_get_errhandler)(MPI_Comm comm, MPI_Errhandler* handler) {
  const int code = PMPI_Comm_get_errhandler(comm, handler);
  if (code == MPI_SUCCESS && *handler == fatal && fatal != MPI_ERRHANDLER_NULL) {
    PMPI_Errhandler_free(handler);
    *handler = MPI_ERRORS_ARE_FATAL;
  }
  return code;
}

// The function above returns MPI_ERRORS_ARE_FATAL without a reference that MPI counts, so nothing
// of MPI is freed for it.
IMBREX_FUNCTION(Errhandler_free)(MPI_Errhandler* handler) {
  if (handler == nullptr || *handler != MPI_ERRORS_ARE_FATAL) return PMPI_Errhandler_free(handler);
  *handler = MPI_ERRHANDLER_NULL;
  return MPI_SUCCESS;
}
