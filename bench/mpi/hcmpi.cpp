// SPDX-License-Identifier: BSD-3-Clause
// messages.hpp by HCMPI's calls in tasks, on as many workers.
//
//   mpirun -n 2 message_hcmpi <tasks>
#include <imbrex/compat/hcmpi.h>

#include <imbrex/runtime.hpp>

#include "messages.hpp"

namespace {

// The calls of messages::OfMpi, by HCMPI. Each status is an object of its own, as HCMPI has it.
struct OfHcmpi {
  static void send(const char* buffer, const int bytes, const int peer, const int tag) {
    HCMPI_Send(buffer, bytes, HCMPI_BYTE, peer, tag, HCMPI_COMM_WORLD);
  }
  static int receive(char* buffer, const int bytes, const int peer, const int tag) {
    HCMPI_Status* status = nullptr;
    HCMPI_Recv(buffer, bytes, HCMPI_BYTE, peer, tag, HCMPI_COMM_WORLD, &status);
    int count = -1;
    HCMPI_Get_count(status, HCMPI_BYTE, &count);
    HCMPI_STATUS_FREE(&status);
    return count;
  }
};

}  // namespace

int main(int argc, char** argv) {
  const int count = messages::count_from(argc, argv);
  setenv("IMBREX_WORKERS", std::to_string(count).c_str(), 1);  // HCMPI_Init starts the runtime
  HCMPI_Init(&argc, &argv);
  require_equal("workers", imbrex::worker_count(), count);
  messages::run<OfHcmpi>("imbrex, HCMPI", count, [count](auto body) {
    struct In {
      decltype(body)* call;
      int index;
    };
    hc_finish_begin();
    for (int index = 0; index < count; ++index) {
      const In in{&body, index};
      hc_async(
          [](void* argument) {
            const In& mine = *static_cast<const In*>(argument);
            (*mine.call)(mine.index);
          },
          &in, sizeof in, nullptr);
    }
    hc_finish_end();
  });
  HCMPI_Finalize();
}
