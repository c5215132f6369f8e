// SPDX-License-Identifier: BSD-3-Clause
// The library's meaning of a request of the program, beside a request of MPI. Used by operations
// behind such a request, and by messages/requests/, which finds it for a handle.
#pragma once

#include <mpi.h>

#include <cstdint>

namespace imbrex::mpi::messages {

class Communicator;
struct Persistent;
class Substitute;

// A generalised request that stands for an operation: the handle of the program. MPI is told of its
// completion only if no task has begun to wait by then; otherwise it is reused, which saves its
// start and its end.
struct Token {
  MPI_Request request = MPI_REQUEST_NULL;
  Substitute* operation = nullptr;
  bool announced = false;  // MPI knows that it is complete
  Token* next = nullptr;
};

// The meaning of a request: one of three, or none. The lowest bits of the pointer say which.
class Known {
 public:
  Known() = default;
  Known(Token& token) noexcept : word_(word(&token) | 1) {}
  Known(Persistent& persistent) noexcept : word_(word(&persistent) | 2) {}
  Known(Communicator& posted_on) noexcept : word_(word(&posted_on) | 3) {}

  // A generalised request that stands for an operation of this library.
  [[nodiscard]] Token* token() const noexcept { return as<Token>(1); }
  // A persistent receive, or a persistent send of a long message.
  [[nodiscard]] Persistent* persistent() const noexcept { return as<Persistent>(2); }
  // A posted receive, counted by its communicator.
  [[nodiscard]] Communicator* posted_on() const noexcept { return as<Communicator>(3); }

 private:
  static std::uintptr_t word(void* pointer) noexcept {
    return reinterpret_cast<std::uintptr_t>(pointer);
  }
  template <class T>
  [[nodiscard]] T* as(std::uintptr_t kind) const noexcept {
    return (word_ & 3) == kind ? reinterpret_cast<T*>(word_ & ~std::uintptr_t{3}) : nullptr;
  }
  std::uintptr_t word_ = 0;
};

}  // namespace imbrex::mpi::messages
