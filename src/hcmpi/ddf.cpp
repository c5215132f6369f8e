// SPDX-License-Identifier: BSD-3-Clause
// hcmpi.h: data-driven futures and lists of them.
#include "hcmpi/ddf.hpp"

#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "c/places.hpp"
#include "hcmpi/report.hpp"
#include "imbrex/detail/observation.hpp"

namespace imbrex::hcmpi {

Put::Put(const char* const name, const std::source_location& made)
    : promise_(std::string_view(name), made), future_(promise_.future()), made_(made) {}

void Put::put(const char* const call, void* const pointer, const std::source_location& where) {
  std::source_location before;
  // relaxed: only the place is handed on
  if (!put_at_.compare_exchange_strong(before, where, std::memory_order_relaxed)) {
    refuse(call, MPI_ERR_OTHER,
           "a second put to the ddf made at " + detail::text_of(made_) + ", at " +
               detail::text_of(where) + ": it was put at " + detail::text_of(before));
  }
  promise_.set(pointer);
}

void* Put::get(const std::source_location& where) const {
  void* const* const pointer = future_.try_get();
  if (pointer == nullptr) {
    refuse("DDF_GET", MPI_ERR_OTHER,
           "a get of the ddf made at " + detail::text_of(made_) + ", at " +
               detail::text_of(where) +
               ", before a value was put: let the task await the ddf first");
  }
  return *pointer;
}

Ref<hc_ddf> ddf_of(const char* const call, const void* const handle) {
  Ref<hc_ddf> found = Ddfs::all().find(handle);
  if (!found) {
    refuse(call, MPI_ERR_REQUEST,
           handle == nullptr ? "a null pointer is neither a DDF_t nor a request"
                             : "this pointer is neither a DDF_t nor a request: it was freed, or no "
                               "call such as DDF_CREATE or HCMPI_Isend returned it");
  }
  return found;
}

Ref<hc_ddf> request_of(const char* const call, const void* const handle) {
  Ref<hc_ddf> found = ddf_of(call, handle);
  if (found->kind == hc_ddf::Kind::data || found->kind == hc_ddf::Kind::distributed) {
    refuse(call, MPI_ERR_REQUEST,
           "a DDF_t of DDF_CREATE or DDF_HANDLE is no request: let a task await it, or use "
           "HCMPI_REQUEST_CREATE");
  }
  return found;
}

namespace {

DDF_t* make(const hc_ddf::Kind kind, const char* const name, const std::source_location& where) {
  auto made = std::make_unique<hc_ddf>(kind);
  made->data.emplace(name, where);
  return Ddfs::all().add(std::move(made));
}

Ref<hc_ddf_list> list_of(const char* const call, const void* const handle) {
  Ref<hc_ddf_list> found = Handles<hc_ddf_list>::all().find(handle);
  if (!found) refuse(call, MPI_ERR_ARG, "this pointer is not a list of DDF_LIST_CREATE");
  return found;
}

template <class T>
Ref<T> free_handle(const char* const call, T** const handle) {
  require(handle, call, "the address of the handle");
  Ref<T> taken = Handles<T>::all().take(*handle);
  if (!taken) {
    refuse(call, MPI_ERR_ARG,
           *handle == nullptr ? "the handle is null" : "this pointer is not a handle, or the "
                                                       "handle was freed before");
  }
  *handle = nullptr;
  return taken;
}
void free_ddf(const char* const call, DDF_t** const handle) {
  const Ref<hc_ddf> taken = free_handle(call, handle);
  if (taken->kind == hc_ddf::Kind::distributed) forget_handle(*taken.get());
}

}  // namespace

}  // namespace imbrex::hcmpi

using imbrex::hcmpi::Ddfs;
using imbrex::hcmpi::guard;
using Kind = hc_ddf::Kind;

#pragma GCC visibility push(default)
extern "C" {

DDF_t* hc_ddf_create(const char* const file, const int line) {
  DDF_t* made = nullptr;
  (void)guard("DDF_CREATE", [&] {
    made = imbrex::hcmpi::make(Kind::data, "ddf", imbrex::c::place(file, line));
  });
  return made;
}

HCMPI_Request* hc_request_create(const char* const file, const int line) {
  HCMPI_Request* made = nullptr;
  (void)guard("HCMPI_REQUEST_CREATE", [&] {
    made = imbrex::hcmpi::make(Kind::made, "request", imbrex::c::place(file, line));
  });
  return made;
}

int hc_ddf_put(DDF_t* const ddf, void* const pointer, const char* const file, const int line) {
  return guard("DDF_PUT", [&] {
    const auto found = imbrex::hcmpi::ddf_of("DDF_PUT", ddf);
    if (found->kind == Kind::operation) {
      imbrex::hcmpi::refuse("DDF_PUT", MPI_ERR_REQUEST,
                            "this DDF_t is a request of MPI: its completion puts the status");
    }
    if (found->kind == Kind::distributed) {
      found->distributed->put(pointer, imbrex::c::place(file, line));
    } else {
      found->data->put("DDF_PUT", pointer, imbrex::c::place(file, line));
    }
  });
}

void* hc_ddf_get(DDF_t* const ddf, const char* const file, const int line) {
  void* pointer = nullptr;
  (void)guard("DDF_GET", [&] {
    const auto found = imbrex::hcmpi::ddf_of("DDF_GET", ddf);
    if (found->kind == Kind::distributed) {
      pointer = found->distributed->get();
      return;
    }
    if (found->kind != Kind::operation) {
      pointer = found->data->get(imbrex::c::place(file, line));
      return;
    }
    if (!found->status.ready()) {
      imbrex::hcmpi::refuse("DDF_GET", MPI_ERR_OTHER,
                            "the request is not complete: await it, or use HCMPI_Wait");
    }
    pointer = const_cast<MPI_Status*>(&found->status.get());
  });
  return pointer;
}

int hc_ddf_free(DDF_t** const ddf) {
  return guard("DDF_FREE", [ddf] { imbrex::hcmpi::free_ddf("DDF_FREE", ddf); });
}
int HCMPI_REQUEST_FREE(HCMPI_Request** const request) {
  constexpr const char* call = "HCMPI_REQUEST_FREE";
  return guard(call, [request] { imbrex::hcmpi::free_ddf(call, request); });
}

DDF_list_t* DDF_LIST_CREATE(void) {
  DDF_list_t* made = nullptr;
  (void)guard("DDF_LIST_CREATE", [&made] {
    made = imbrex::hcmpi::Handles<hc_ddf_list>::all().add(std::make_unique<hc_ddf_list>());
  });
  return made;
}
int DDF_LIST_ADD(DDF_t* const ddf, DDF_list_t* const list) {
  return guard("DDF_LIST_ADD", [&] {
    const auto found = imbrex::hcmpi::ddf_of("DDF_LIST_ADD", ddf);
    imbrex::hcmpi::list_of("DDF_LIST_ADD", list)->futures.push_back(found->done());
  });
}
int DDF_LIST_FREE(DDF_list_t** const list) {
  return guard("DDF_LIST_FREE", [list] {
    (void)imbrex::hcmpi::free_handle("DDF_LIST_FREE", list);
  });
}

void* hc_malloc(const size_t bytes) { return std::malloc(bytes); }
void hc_free(void* const memory) { std::free(memory); }

}  // extern "C"
#pragma GCC visibility pop
