// SPDX-License-Identifier: BSD-3-Clause
// imbrex/events.h: messages that arrive, sends that end, parts of collectives, polled or told to a
// handler.
#include "imbrex/events.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "imbrex/collective.hpp"
#include "imbrex/continue.h"
#include "imbrex/mpi.h"
#include "mpi_test.hpp"

namespace imbrex::test {
namespace {

imbrex_mpi_event next_event() {
  imbrex_mpi_event event = {};
  while (imbrex_mpi_event_poll(&event) == 0) {
  }
  return event;
}

bool no_event() {
  imbrex_mpi_event event = {};
  for (int i = 0; i < 100; ++i) {
    if (imbrex_mpi_event_poll(&event) != 0) return false;
  }
  return true;
}

// A communicator whose events are wanted while this lives.
struct WatchedRing : Ring {
  WatchedRing() { EXPECT_EQ(imbrex_mpi_events_begin(comm), IMBREX_SUCCESS); }
  ~WatchedRing() {
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(imbrex_mpi_events_end(comm), IMBREX_SUCCESS);
  }
};

TEST(Events, a_message_that_nobody_waits_for_is_told_with_source_and_tag) {
  const WatchedRing ring;
  MPI_Send(&ring.rank, 1, MPI_INT, ring.next(), 11, ring.comm);
  const imbrex_mpi_event event = next_event();
  EXPECT_EQ(event.kind, IMBREX_INCOMING_PTP);
  EXPECT_EQ(event.comm, ring.comm);
  EXPECT_EQ(event.peer, ring.previous());
  EXPECT_EQ(event.tag, 11);
  EXPECT_EQ(event.request, MPI_REQUEST_NULL);
  EXPECT_EQ(event.code, MPI_SUCCESS);
  EXPECT_EQ(event.block, -1);
  EXPECT_EQ(event.part, -1);
  EXPECT_EQ(event.address, nullptr);
  EXPECT_EQ(event.call, nullptr);
  int flag = 0;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, ring.comm, &flag, MPI_STATUS_IGNORE);
  EXPECT_EQ(flag, 1);
  int value = -1;
  MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 11, ring.comm, MPI_STATUS_IGNORE);
  EXPECT_EQ(value, ring.previous());
  EXPECT_TRUE(no_event());  // of each message one
}

TEST(Events, a_message_names_the_receive_that_gets_it) {
  const WatchedRing ring;
  int values[2] = {-1, -1};
  MPI_Request requests[2];
  MPI_Irecv(&values[0], 1, MPI_INT, MPI_ANY_SOURCE, 1, ring.comm, &requests[0]);
  MPI_Irecv(&values[1], 1, MPI_INT, ring.previous(), MPI_ANY_TAG, ring.comm, &requests[1]);
  MPI_Send(&ring.rank, 1, MPI_INT, ring.next(), 2, ring.comm);
  const imbrex_mpi_event event = next_event();
  EXPECT_EQ(event.tag, 2);
  EXPECT_EQ(event.request, requests[1]);
  MPI_Send(&ring.rank, 1, MPI_INT, ring.next(), 1, ring.comm);
  EXPECT_EQ(next_event().request, requests[0]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  EXPECT_EQ(values[0], ring.previous());
  EXPECT_EQ(values[1], ring.previous());
}

// The handle stands for nothing any more, or for the next receive.
TEST(Events, a_message_of_a_receive_that_was_handed_over_names_no_request) {
  const WatchedRing ring;
  int values[2] = {-1, -1};
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Irecv(&values[0], 1, MPI_INT, ring.previous(), 1, ring.comm, &request);
  const Future<MPI_Status> status = when(request);
  MPI_Irecv(&values[1], 1, MPI_INT, ring.previous(), 2, ring.comm, &request);
  MPI_Request_free(&request);
  MPI_Irecv(&values[1], 1, MPI_INT, ring.previous(), 3, ring.comm, &request);
  for (int tag = 1; tag <= 3; ++tag) {
    MPI_Send(&ring.rank, 1, MPI_INT, ring.next(), tag, ring.comm);
    const imbrex_mpi_event event = next_event();
    EXPECT_EQ(event.tag, tag);
    EXPECT_EQ(event.request, tag == 3 ? request : MPI_REQUEST_NULL);
  }
  status.wait();
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT_EQ(values[0], ring.previous());
}

TEST(Events, the_end_of_a_send_names_its_request) {
  const WatchedRing ring;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Issend(&ring.rank, 1, MPI_INT, ring.next(), 4, ring.comm, &request);
  int value = -1;
  imbrex_mpi_event of_send = {};
  imbrex_mpi_event of_message = {};
  for (int i = 0; i < 2; ++i) {  // in an order that other ranks decide
    const imbrex_mpi_event event = next_event();
    (event.kind == IMBREX_OUTGOING_PTP ? of_send : of_message) = event;
    if (event.kind == IMBREX_OUTGOING_PTP) continue;
    MPI_Recv(&value, 1, MPI_INT, ring.previous(), 4, ring.comm, MPI_STATUS_IGNORE);
  }
  EXPECT_EQ(of_message.kind, IMBREX_INCOMING_PTP);
  EXPECT_EQ(of_send.kind, IMBREX_OUTGOING_PTP);
  EXPECT_EQ(of_send.peer, ring.next());
  EXPECT_EQ(of_send.tag, 4);
  EXPECT_EQ(of_send.request, request);
  int flag = 0;
  MPI_Status status;
  EXPECT_EQ(MPI_Test(&request, &flag, &status), MPI_SUCCESS);
  EXPECT_EQ(flag, 1);
  EXPECT_EQ(request, MPI_REQUEST_NULL);
}

// One of the sends that give a request, of one int.
struct AnySend {
  const char* name;
  std::function<int(const int*, int peer, int tag, MPI_Comm, MPI_Request*)> call;
};
template <class Count>
AnySend any_send(const char* name,
                 int (*call)(const void*, Count, MPI_Datatype, int, int, MPI_Comm, MPI_Request*)) {
  return {name, [call](const int* value, int peer, int tag, MPI_Comm comm, MPI_Request* request) {
            return call(value, 1, MPI_INT, peer, tag, comm, request);
          }};
}
std::vector<AnySend> all_sends() {
  return {any_send("MPI_Isend", &MPI_Isend),
          any_send("MPI_Issend", &MPI_Issend),
          any_send("MPI_Irsend", &MPI_Irsend),
          any_send("MPI_Ibsend", &MPI_Ibsend),
#if MPI_VERSION >= 4
          any_send("MPI_Isend_c", &MPI_Isend_c),
          any_send("MPI_Issend_c", &MPI_Issend_c),
          any_send("MPI_Irsend_c", &MPI_Irsend_c),
          any_send("MPI_Ibsend_c", &MPI_Ibsend_c),
#endif
  };
}

// Memory for buffered sends while this lives.
struct SendBuffer {
  SendBuffer() { MPI_Buffer_attach(memory.data(), static_cast<int>(memory.size())); }
  ~SendBuffer() {
    void* gone = nullptr;
    int bytes = 0;
    MPI_Buffer_detach(static_cast<void*>(&gone), &bytes);
  }
  std::array<char, 1 << 12> memory;
};

TEST(Events, the_end_of_a_send_of_every_kind_is_told) {
  const SendBuffer buffer;
  const WatchedRing ring;
  for (const AnySend& send : all_sends()) {
    int value = -1;
    MPI_Request receive = MPI_REQUEST_NULL;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Irecv(&value, 1, MPI_INT, ring.previous(), 4, ring.comm, &receive);
    MPI_Barrier(ring.comm);  // MPI_Irsend must find the receive
    ASSERT_EQ(send.call(&ring.rank, ring.next(), 4, ring.comm, &request), MPI_SUCCESS);
    int outgoing = 0;
    for (int i = 0; i < 2; ++i) {
      const imbrex_mpi_event event = next_event();
      if (event.kind != IMBREX_OUTGOING_PTP) continue;
      ++outgoing;
      EXPECT_EQ(event.request, request) << send.name;
      EXPECT_EQ(event.peer, ring.next()) << send.name;
    }
    EXPECT_EQ(outgoing, 1) << send.name;
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
    EXPECT_EQ(value, ring.previous()) << send.name;
    MPI_Barrier(ring.comm);
  }
}

// A thread that imbrex does not know waits in MPI for the handle that imbrex gave out.
TEST(Events, a_thread_may_wait_for_a_send_that_is_watched) {
  const WatchedRing ring;
  int value = -1;
  on_unknown_thread([&] {
    MPI_Request requests[2];
    MPI_Irecv(&value, 1, MPI_INT, ring.previous(), 4, ring.comm, &requests[0]);
    MPI_Issend(&ring.rank, 1, MPI_INT, ring.next(), 4, ring.comm, &requests[1]);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  });
  EXPECT_EQ(value, ring.previous());
  (void)next_event();
  (void)next_event();
}

TEST(Events, after_the_end_there_are_none) {
  const Ring ring;
  imbrex_mpi_events_begin(ring.comm);
  imbrex_mpi_events_end(ring.comm);
  MPI_Barrier(ring.comm);  // no message comes before the end
  MPI_Request request = MPI_REQUEST_NULL;
  int value = -1;
  MPI_Irecv(&value, 1, MPI_INT, ring.previous(), 4, ring.comm, &request);
  MPI_Send(&ring.rank, 1, MPI_INT, ring.next(), 4, ring.comm);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT_EQ(value, ring.previous());
  EXPECT_TRUE(no_event());
}

TEST(Events, a_communicator_without_wildcards_is_refused) {
  const Ring ring;
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "mpi_assert_no_any_source", "true");
  MPI_Comm_set_info(ring.comm, info);
  MPI_Info_free(&info);
  MPI_Comm_get_info(ring.comm, &info);
  char value[8] = "";
  int known = 0;
  MPI_Info_get(info, "mpi_assert_no_any_source", 7, value, &known);
  MPI_Info_free(&info);
  if (known == 0) GTEST_SKIP() << "this MPI forgets the hint";
  EXPECT_EQ(imbrex_mpi_events_begin(ring.comm), IMBREX_ERR_USE);
}

// The events that handlers have seen. They run in any thread that polls.
struct Seen {
  std::mutex mutex;
  std::vector<imbrex_mpi_event> events;
  std::atomic<int> count{0};
  std::atomic<int> depth{0};
  std::atomic<int> deepest{0};
  int codes[4] = {-1, -1, -1, -1};

  static void note(const imbrex_mpi_event* event, void* argument) {
    Seen& self = *static_cast<Seen*>(argument);
    if (++self.depth > self.deepest) ++self.deepest;
    {
      const std::lock_guard guard(self.mutex);
      self.events.push_back(*event);
    }
    (void)imbrex_progress();  // refused: else handlers would be nested
    --self.depth;
    ++self.count;
  }
  static void call_mpi(const imbrex_mpi_event* event, void* argument) {
    Seen& self = *static_cast<Seen*>(argument);
    int flag = 0;
    int value = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    self.codes[0] = MPI_Iprobe(event->peer, event->tag, event->comm, &flag, MPI_STATUS_IGNORE);
    self.codes[1] = MPI_Recv(&value, 1, MPI_INT, event->peer, 0, event->comm, MPI_STATUS_IGNORE);
    self.codes[2] = MPI_Isend(&value, 1, MPI_INT, event->peer, 0, event->comm, &request);
    self.codes[3] = imbrex_mpi_events_end(event->comm);
    ++self.count;
  }
  static void wait(const imbrex_mpi_event*, void* argument) {
    Seen& self = *static_cast<Seen*>(argument);
    ++self.count;
    static Promise<void> never;
    never.future().get();  // throws: a handler stands in no task
  }
};

// Until `least` handlers have ended.
void progress_until(const Seen& seen, int least) {
  while (seen.count.load() < least) (void)imbrex_progress();
}

TEST(Events, a_handler_is_told_of_each_and_never_nested) {
  Seen seen;
  {
    const WatchedRing ring;
    testing::internal::CaptureStderr();
    imbrex_mpi_event_set_handler(&Seen::note, &seen);
    constexpr int messages = 20;
    for (int i = 0; i < messages; ++i) {
      MPI_Send(&ring.rank, 1, MPI_INT, ring.next(), i, ring.comm);
    }
    progress_until(seen, messages);
    imbrex_mpi_event_set_handler(nullptr, nullptr);
    (void)testing::internal::GetCapturedStderr();
    ASSERT_EQ(seen.events.size(), static_cast<std::size_t>(messages));
    for (int i = 0; i < messages; ++i) {
      EXPECT_EQ(seen.events[static_cast<std::size_t>(i)].kind, IMBREX_INCOMING_PTP);
      int value = -1;
      MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, i, ring.comm, MPI_STATUS_IGNORE);
    }
  }
  if (worker_count() == 1) {
    EXPECT_EQ(seen.deepest, 1);
  }
}

// Sends one to the next rank, and waits until `handler` has seen its own.
void tell_of_a_message(const WatchedRing& ring, imbrex_mpi_event_handler* handler, Seen& seen) {
  imbrex_mpi_event_set_handler(handler, &seen);
  MPI_Send(&ring.rank, 1, MPI_INT, ring.next(), 5, ring.comm);
  progress_until(seen, 1);
  imbrex_mpi_event_set_handler(nullptr, nullptr);
}

TEST(Events, a_handler_that_calls_mpi_gets_an_error_and_is_named) {
  const WatchedRing ring;
  Seen seen;
  testing::internal::CaptureStderr();
  tell_of_a_message(ring, &Seen::call_mpi, seen);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(seen.codes[0], MPI_ERR_OTHER);
  EXPECT_EQ(seen.codes[1], MPI_ERR_OTHER);
  EXPECT_EQ(seen.codes[2], MPI_ERR_OTHER);
  EXPECT_EQ(seen.codes[3], IMBREX_ERR_USE);
  for (const char* call : {"MPI_Iprobe", "MPI_Recv", "MPI_Isend", "imbrex_mpi_events_end"}) {
    EXPECT_NE(text.find(std::string(call) + " is called within an event handler"),
              std::string::npos)
        << call;
  }
  int value = -1;  // nothing is lost
  MPI_Recv(&value, 1, MPI_INT, ring.previous(), 5, ring.comm, MPI_STATUS_IGNORE);
  EXPECT_EQ(value, ring.previous());
}

TEST(Events, a_handler_that_begins_a_send_gets_an_error_whatever_the_kind) {
  static std::vector<int> codes;
  const auto send_all = [](const imbrex_mpi_event* event, void* argument) {
    codes.clear();
    const int value = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    for (const AnySend& send : all_sends()) {
      codes.push_back(send.call(&value, event->peer, 0, event->comm, &request));
    }
    codes.push_back(MPI_Startall(1, &request));
    ++static_cast<Seen*>(argument)->count;
  };
  const WatchedRing ring;
  Seen seen;
  testing::internal::CaptureStderr();
  tell_of_a_message(ring, send_all, seen);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(codes, std::vector<int>(all_sends().size() + 1, MPI_ERR_OTHER));
  for (const AnySend& send : all_sends()) {
    EXPECT_NE(text.find(std::string(send.name) + " is called within"), std::string::npos)
        << send.name;
  }
  int value = -1;
  MPI_Recv(&value, 1, MPI_INT, ring.previous(), 5, ring.comm, MPI_STATUS_IGNORE);
}

// The rule holds also if MPI itself would do the call, on a communicator without events.
TEST(Events, a_handler_that_communicates_in_any_way_gets_an_error) {
  static std::vector<std::pair<std::string, int>> codes;
  const auto call_all = [](const imbrex_mpi_event*, void* argument) {
    codes.clear();
    int out = 0;
    int in = 0;
    const auto note = [&](const char* call, const int code) { codes.emplace_back(call, code); };
    note("MPI_Sendrecv", MPI_Sendrecv(&out, 1, MPI_INT, 0, 3, &in, 1, MPI_INT, 0, 3, MPI_COMM_SELF,
                                      MPI_STATUS_IGNORE));
    note("MPI_Sendrecv_replace", MPI_Sendrecv_replace(&in, 1, MPI_INT, 0, 3, 0, 3, MPI_COMM_SELF,
                                                      MPI_STATUS_IGNORE));
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Comm comm = MPI_COMM_NULL;
    note("MPI_Ibarrier", MPI_Ibarrier(MPI_COMM_SELF, &request));
    note("MPI_Allreduce", MPI_Allreduce(&out, &in, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF));
    note("MPI_Comm_dup", MPI_Comm_dup(MPI_COMM_SELF, &comm));
    note("MPI_Testall", MPI_Testall(0, nullptr, &in, MPI_STATUSES_IGNORE));
    MPI_Message message = MPI_MESSAGE_NO_PROC;
    note("MPI_Imrecv", MPI_Imrecv(&in, 1, MPI_INT, &message, &request));
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
    constexpr int none = MPI_PROC_NULL;
    note("MPI_Isendrecv", MPI_Isendrecv(&out, 1, MPI_INT, none, 3, &in, 1, MPI_INT, none, 3,
                                        MPI_COMM_SELF, &request));
    note("MPI_Isendrecv_replace", MPI_Isendrecv_replace(&in, 1, MPI_INT, none, 3, none, 3,
                                                        MPI_COMM_SELF, &request));
#endif
    ++static_cast<Seen*>(argument)->count;
  };
  const WatchedRing ring;
  Seen seen;
  testing::internal::CaptureStderr();
  tell_of_a_message(ring, call_all, seen);
  const std::string text = testing::internal::GetCapturedStderr();
  for (const auto& [call, code] : codes) {
    EXPECT_EQ(code, MPI_ERR_OTHER) << call;
    EXPECT_NE(text.find(call + " is called within an event handler"), std::string::npos) << call;
  }
  int value = -1;
  MPI_Recv(&value, 1, MPI_INT, ring.previous(), 5, ring.comm, MPI_STATUS_IGNORE);
}

// ---- parts of collectives --------------------------------------------------------------------

constexpr int partial_in = IMBREX_COLLECTIVE_PARTIAL_INCOMING;
constexpr int partial_out = IMBREX_COLLECTIVE_PARTIAL_OUTGOING;

std::vector<imbrex_mpi_event> all_events() {
  std::vector<imbrex_mpi_event> all;
  imbrex_mpi_event event = {};
  while (imbrex_mpi_event_poll(&event) != 0) all.push_back(event);
  return all;
}

// The event of one part; none if there is not exactly one.
std::optional<imbrex_mpi_event> event_of(const std::vector<imbrex_mpi_event>& all, const int kind,
                                     const int block, const int part) {
  const auto is_it = [&](const imbrex_mpi_event& it) {
    return it.kind == kind && it.block == block && it.part == part;
  };
  if (std::ranges::count_if(all, is_it) != 1) return {};
  return *std::ranges::find_if(all, is_it);
}

// The buffers of both sides of an exchange with all ranks, `count` numbers a block.
struct Buffers {
  Buffers(const Ring& ring, const int its_count)
      : count(its_count), out(static_cast<std::size_t>(ring.size * count), ring.rank),
        in(out.size(), -1) {}
  [[nodiscard]] SendBlocks send() const { return {out.data(), count, MPI_INT}; }
  [[nodiscard]] ReceiveBlocks receive() { return {in.data(), count, MPI_INT}; }

  int count;
  std::vector<int> out;
  std::vector<int> in;
};

TEST(Events, each_part_of_a_collective_is_told_once_and_is_ready_by_then) {
  const WatchedRing ring;
  Buffers buffers(ring, 8);
  static const char* const name = "exchange";
  const Collective x = alltoall(buffers.send(), buffers.receive(), ring.comm,
                                {.parts = 2, .name = name});
  std::vector<imbrex_mpi_event> all;
  while (all.size() < static_cast<std::size_t>(4 * ring.size)) {
    const imbrex_mpi_event event = next_event();
    const bool comes = event.kind == partial_in;
    EXPECT_TRUE((comes ? x.from(event.block, event.part) : x.to(event.block, event.part)).ready());
    all.push_back(event);
  }
  x.all().get();
  EXPECT_TRUE(no_event());
  for (const int kind : {partial_in, partial_out}) {
    for (int rank = 0; rank < ring.size; ++rank) {
      for (int part = 0; part < 2; ++part) {
        const std::optional<imbrex_mpi_event> event = event_of(all, kind, rank, part);
        ASSERT_TRUE(event.has_value()) << kind << ", rank " << rank << ", part " << part;
        const auto& buffer = kind == partial_in ? buffers.in : buffers.out;
        EXPECT_EQ(event->address, &buffer[static_cast<std::size_t>(rank * 8 + part * 4)]);
        EXPECT_EQ(event->comm, ring.comm);
        EXPECT_EQ(event->peer, rank);
        EXPECT_EQ(event->tag, MPI_ANY_TAG);
        EXPECT_EQ(event->request, MPI_REQUEST_NULL);
        EXPECT_EQ(event->code, MPI_SUCCESS);
        EXPECT_EQ(event->call, name);
      }
    }
  }
}

TEST(Events, when_a_collective_is_over_all_its_handlers_have_returned) {
  const WatchedRing ring;
  Buffers buffers(ring, 50'000);
  for (int round = 0; round < 20; ++round) {
    Seen seen;
    imbrex_mpi_event_set_handler(&Seen::note, &seen);
    testing::internal::CaptureStderr();
    alltoall(buffers.send(), buffers.receive(), ring.comm, {.parts = 3}).all().get();
    EXPECT_EQ(seen.count.load(), 6 * ring.size);
    imbrex_mpi_event_set_handler(nullptr, nullptr);
    (void)testing::internal::GetCapturedStderr();
  }
}

TEST(Events, a_broadcast_names_the_ranks_of_its_chain_and_a_reduction_this_one) {
  const WatchedRing ring;
  std::array<int, 6> data{};
  broadcast({data.data(), 6, MPI_INT}, 0, ring.comm, {.parts = 3}).all().get();
  std::vector<imbrex_mpi_event> all = all_events();
  const bool comes = ring.rank != 0;
  const bool goes = ring.next() != 0;
  EXPECT_EQ(std::ssize(all), 3 * ((comes ? 1 : 0) + (goes ? 1 : 0)));
  for (int part = 0; part < 3; ++part) {
    const auto before = event_of(all, partial_in, ring.previous(), part);
    const auto after = event_of(all, partial_out, ring.next(), part);
    EXPECT_EQ(before.has_value(), comes);
    EXPECT_EQ(after.has_value(), goes);
    if (before) {
      EXPECT_EQ(before->address, &data[static_cast<std::size_t>(2 * part)]);
    }
  }
  allreduce({.address = MPI_IN_PLACE}, {data.data(), 6, MPI_INT}, MPI_SUM, ring.comm, {.parts = 2})
      .all().get();
  all = all_events();
  EXPECT_EQ(all.size(), 2U);
  for (int part = 0; part < 2; ++part) {
    const auto result = event_of(all, partial_in, ring.rank, part);
    ASSERT_TRUE(result.has_value());
    EXPECT_EQ(result->peer, ring.rank);
    EXPECT_EQ(result->address, &data[static_cast<std::size_t>(3 * part)]);
  }
}

// Blocks that are cut within elements behave so too: the address of the type is the whole block's.
TEST(Events, a_part_begins_where_the_first_byte_of_its_type_is) {
  MPI_Comm alone = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_SELF, &alone);
  imbrex_mpi_events_begin(alone);
  const int out = 3;
  std::array<int, 4> in{};
  const int count = 1;
  const MPI_Aint place = 2 * sizeof(int);
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_create_hindexed(1, &count, &place, MPI_INT, &type);
  MPI_Type_commit(&type);
  alltoall({&out, 1, MPI_INT}, {.address = in.data()}, alone,
           {.incoming = [type](int, int) -> Piece { return {0, 1, type}; }})
      .all().get();
  const std::vector<imbrex_mpi_event> all = all_events();
  const auto event = event_of(all, partial_in, 0, 0);
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->address, &in[2]);
  EXPECT_EQ(in[2], 3);
  MPI_Type_free(&type);
  imbrex_mpi_events_end(alone);
  MPI_Comm_free(&alone);
}

// A ring, whose ends may be one rank: two blocks with it.
TEST(Events, a_block_of_a_neighbour_is_told_by_its_index) {
  const Ring ring;
  MPI_Comm row = MPI_COMM_NULL;
  const int periodic = 1;
  MPI_Cart_create(ring.comm, 1, &ring.size, &periodic, 0, &row);
  imbrex_mpi_events_begin(row);
  const std::array<int, 2> out{};
  std::array<int, 2> in{};
  neighbor_alltoall({out.data(), 1, MPI_INT}, {in.data(), 1, MPI_INT}, row).all().get();
  const std::vector<imbrex_mpi_event> all = all_events();
  EXPECT_EQ(all.size(), 4U);
  for (const int kind : {partial_in, partial_out}) {
    for (int block = 0; block < 2; ++block) {
      const auto event = event_of(all, kind, block, 0);
      ASSERT_TRUE(event.has_value());
      EXPECT_EQ(event->peer, block == 0 ? ring.previous() : ring.next());
      EXPECT_EQ(event->comm, row);
    }
  }
  MPI_Barrier(row);
  imbrex_mpi_events_end(row);
  MPI_Comm_free(&row);
}

TEST(Events, a_part_that_fails_is_told_with_its_code) {
  const WatchedRing ring;
  const std::array<int, 4> out{};
  std::array<int, 4> in{};
  Collective x = broadcast({in.data(), ring.rank == 0 ? 4 : 2, MPI_INT}, 0, ring.comm);
  EXPECT_EQ(ring.rank != 0, [&] {
    try {
      x.all().get();
    } catch (const MpiError&) {
      return true;
    }
    return false;
  }());
  for (const imbrex_mpi_event& event : all_events()) {
    int error_class = MPI_SUCCESS;
    MPI_Error_class(event.code, &error_class);
    const int of_incoming = ring.rank == 1 ? MPI_ERR_TRUNCATE : MPI_ERR_OTHER;
    EXPECT_EQ(error_class, ring.rank == 0             ? MPI_SUCCESS
                           : event.kind == partial_in ? of_incoming
                                                      : MPI_ERR_OTHER);
  }
  // No rank ever sends: this rank's own parts fail, and the parts on the ranks to which it would
  // send.
  x = gather({out.data(), 1, MPI_INT}, {in.data(), 1, MPI_INT}, 0, ring.comm, {.hold = true});
  const Future<void> all = std::exchange(x, {}).all();
  EXPECT_THROW(all.get(), Error);
  const std::vector<imbrex_mpi_event> told = all_events();
  EXPECT_EQ(std::ssize(told), ring.rank == 0 ? ring.size + 1 : 1);
  for (const imbrex_mpi_event& event : told) EXPECT_EQ(event.code, MPI_ERR_OTHER);
}

// The object by which imbrex knows the first communicator serves the second one.
TEST(Events, parts_of_a_communicator_that_was_freed_are_not_told_of_another) {
  const int out = 1;
  int in = 0;
  MPI_Comm first = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_SELF, &first);
  const Collective x = alltoall({&out, 1, MPI_INT}, {&in, 1, MPI_INT}, first, {.hold = true});
  MPI_Comm_free(&first);
  MPI_Comm second = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_SELF, &second);
  imbrex_mpi_events_begin(second);
  x.send(0);
  x.all().get();
  EXPECT_TRUE(no_event());
  const Collective y = alltoall({&out, 1, MPI_INT}, {&in, 1, MPI_INT}, second);
  EXPECT_EQ(all_events().size(), 2U);
  imbrex_mpi_events_end(second);
  alltoall({&out, 1, MPI_INT}, {&in, 1, MPI_INT}, second).all().get();
  EXPECT_TRUE(no_event());
  MPI_Comm_free(&second);
}

// The test runs with IMBREX_PARTIAL=all. A call in place has no block from this rank.
TEST(Events, a_call_of_mpi_that_goes_block_by_block_tells_of_each_before_it_returns) {
  if (std::getenv("IMBREX_PARTIAL") == nullptr) GTEST_SKIP() << "calls are MPI's own";
  const WatchedRing ring;
  Buffers buffers(ring, 2);
  const unsigned long long before = imbrex_decomposed_calls();
  MPI_Alltoall(buffers.out.data(), 2, MPI_INT, buffers.in.data(), 2, MPI_INT, ring.comm);
  const std::vector<imbrex_mpi_event> exchanged = all_events();
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, buffers.in.data(), 2, MPI_INT, ring.comm);
  const std::vector<imbrex_mpi_event> gathered = all_events();
  EXPECT_EQ(imbrex_decomposed_calls(), before + 2);
  EXPECT_EQ(std::ssize(exchanged), 2 * ring.size);
  EXPECT_EQ(std::ssize(gathered), 2 * ring.size - 2);
  for (int rank = 0; rank < ring.size; ++rank) {
    const auto event = event_of(exchanged, partial_in, rank, 0);
    ASSERT_TRUE(event.has_value());
    EXPECT_EQ(event->address, &buffers.in[static_cast<std::size_t>(2 * rank)]);
    EXPECT_STREQ(event->call, "MPI_Alltoall");
    EXPECT_EQ(event->comm, ring.comm);
    EXPECT_EQ(event_of(gathered, partial_out, rank, 0).has_value(), rank != ring.rank);
  }
}

TEST(Events, a_handler_that_waits_is_named_and_harms_nobody) {
  const WatchedRing ring;
  Seen seen;
  testing::internal::CaptureStderr();
  tell_of_a_message(ring, &Seen::wait, seen);
  int value = -1;
  MPI_Recv(&value, 1, MPI_INT, ring.previous(), 5, ring.comm, MPI_STATUS_IGNORE);
  EXPECT_EQ(value, ring.previous());
  MPI_Barrier(ring.comm);
  const std::string text = testing::internal::GetCapturedStderr();
  if (worker_count() == 1) {
    EXPECT_NE(text.find("event handler has thrown"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace imbrex::test
