// SPDX-License-Identifier: BSD-3-Clause
// held_sends [CASE...]: long messages that wait for their turn, on fake_mpi, where a message stays
// in flight until the test says that it has left. Every message of more than 64 bytes is long here,
// and one is in flight at a time to each rank.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "fake_mpi.hpp"
#include "fuzz/expect.hpp"
#include "imbrex/continue.h"
#include "imbrex/imbrex.hpp"
#include "imbrex/mpi.hpp"
#include "mpi/messages/sends/limits.hpp"

namespace {

using namespace imbrex;
using imbrex::test::expect;

constexpr int long_count = 32;  // of ints
constexpr int peer = 1;

// A message whose first word is its number.
struct Message {
  explicit Message(int number, int count = long_count)
      : words(static_cast<std::size_t>(count), number) {}
  std::vector<int> words;
  MPI_Request request = MPI_REQUEST_NULL;

  void isend(int tag, int to = peer, MPI_Comm comm = MPI_COMM_WORLD) {
    MPI_Isend(words.data(), static_cast<int>(words.size()), MPI_INT, to, tag, comm, &request);
  }
};

std::vector<Message> messages(int count) {
  std::vector<Message> all;
  for (int i = 0; i < count; ++i) all.emplace_back(i);
  return all;
}

std::vector<int> sent_numbers() {
  std::vector<int> numbers;
  for (const fake_mpi::Sent& sent : fake_mpi::sent()) {
    int number = 0;
    std::memcpy(&number, sent.bytes.data(), sizeof number);
    numbers.push_back(number);
  }
  return numbers;
}

// Polls until `is_so()`, for some time.
template <class F>
bool comes_true(F is_so) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  while (!is_so()) {
    if (Clock::now() - begin > std::chrono::seconds(20)) return false;
    int found = 0;
    MPI_Iprobe(2, 77, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);  // makes progress
    (void)imbrex_progress();
  }
  return true;
}

// Waits until all expected messages are sent; a waiting message does not go by itself.
bool sent(const std::vector<int>& expected) {
  return comes_true([&] { return sent_numbers().size() >= expected.size(); }) &&
         sent_numbers() == expected;
}

bool is_done(MPI_Request& request) {
  int done = 0;
  MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  return done != 0;
}
bool is_done_at_last(MPI_Request& request) {
  return comes_true([&] { return is_done(request); });
}

// The message at this place has left.
void end_send(std::size_t place) {
  expect(comes_true([place] { return fake_mpi::end_send(place); }), "the message is under way");
}

MPI_Comm without_any_tag() {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "mpi_assert_no_any_tag", "true");
  MPI_Comm_set_info(comm, info);
  MPI_Info_free(&info);
  return comm;
}

// ---- cases -----------------------------------------------------------------------------------

void spread() {
  std::vector<Message> all = messages(16);
  for (Message& message : all) message.isend(3);
  for (std::size_t i = 0; i < all.size(); ++i) {
    expect(comes_true([i] { return fake_mpi::sent().size() == i + 1; }), "one is under way");
    expect(!is_done(all[i].request), "it is not complete");
    end_send(i);
    expect(is_done_at_last(all[i].request) && all[i].request == MPI_REQUEST_NULL, "complete");
  }
  for (int i = 0; i < 16; ++i) expect(sent_numbers()[static_cast<std::size_t>(i)] == i, "in order");
}

void order() {
  Message first(1);
  Message second(2);
  Message third(3, 1);
  Message to_another(4, 1);
  Message by_another(5, 1);
  MPI_Comm other = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  first.isend(0);
  second.isend(1);
  third.isend(2);
  to_another.isend(2, 2);
  by_another.isend(2, peer, other);
  expect(sent({1, 4, 5}), "only what may be overtaken is");
  end_send(0);
  expect(sent({1, 4, 5, 2, 3}), "the short one follows the long one at once");
  for (const std::size_t place : {1u, 2u, 3u, 4u}) end_send(place);
  for (Message* one : {&first, &second, &third, &to_another, &by_another}) {
    expect(is_done_at_last(one->request), "complete");
  }
  MPI_Comm_free(&other);
}

void tags() {
  MPI_Comm comm = without_any_tag();
  Message first(1);
  Message second(2);
  Message same_tag(3, 1);
  Message another_tag(4, 1);
  first.isend(0, peer, comm);
  second.isend(1, peer, comm);
  same_tag.isend(1, peer, comm);
  another_tag.isend(2, peer, comm);
  expect(sent({1, 4}), "only equal tags are kept in order");
  end_send(0);
  expect(sent({1, 4, 2, 3}), "and they are");
  for (const std::size_t place : {1u, 2u, 3u}) end_send(place);
  for (Message* one : {&first, &second, &same_tag, &another_tag}) {
    MPI_Wait(&one->request, MPI_STATUS_IGNORE);
  }
  MPI_Comm_free(&comm);
}

// Tasks run, and send, in the order of their creation; their messages go by priority.
void priorities() {
  MPI_Comm comm = without_any_tag();
  Message running(0);
  running.isend(0, peer, comm);
  std::vector<Message> all = messages(5);
  constexpr int priority[] = {1, 9, 3, 9, 5};
  for (int i = 0; i < 5; ++i) {
    auto sent = task("send").priority(priority[i]).spawn([&all, i, comm] {
      all[static_cast<std::size_t>(i)].isend(10 + i, peer, comm);
    });
    sent.get();
  }
  for (std::size_t place = 0; place < 6; ++place) end_send(place);
  expect(sent({0, 1, 3, 4, 2, 0}), "by priority, then by creation");
  MPI_Wait(&running.request, MPI_STATUS_IGNORE);
  for (Message& one : all) MPI_Wait(&one.request, MPI_STATUS_IGNORE);
  MPI_Comm_free(&comm);
}

// Every call that asks knows a request of a message that waits.
void calls() {
  std::vector<Message> all = messages(8);
  for (Message& message : all) message.isend(3);
  std::vector<MPI_Request> requests;
  for (const Message& message : all) requests.push_back(message.request);
  int flag = 1;
  int index = 0;
  int count = 1;
  int indices[8];
  MPI_Status status;
  MPI_Status statuses[8];
  MPI_Request_get_status(requests[5], &flag, &status);
  expect(flag == 0, "MPI_Request_get_status");
  MPI_Testall(8, requests.data(), &flag, statuses);
  expect(flag == 0, "MPI_Testall");
  MPI_Testany(8, requests.data(), &index, &flag, &status);
  expect(flag == 0 && index == MPI_UNDEFINED, "MPI_Testany");
  MPI_Testsome(8, requests.data(), &count, indices, statuses);
  expect(count == 0, "MPI_Testsome");

  end_send(0);
  expect(comes_true([&] {
           MPI_Request_get_status(requests[0], &flag, &status);
           return flag == 1;
         }), "MPI_Request_get_status of one that is complete");
  MPI_Waitany(8, requests.data(), &index, &status);
  expect(index == 0 && requests[0] == MPI_REQUEST_NULL, "MPI_Waitany");
  end_send(1);
  MPI_Waitsome(8, requests.data(), &count, indices, statuses);
  expect(count == 1 && indices[0] == 1, "MPI_Waitsome");
  end_send(2);
  expect(comes_true([&] {
           MPI_Testany(8, requests.data(), &index, &flag, &status);
           return flag == 1 && index == 2;
         }), "MPI_Testany of one that is complete");
  end_send(3);
  MPI_Wait(&requests[3], &status);
  int cancelled = 1;
  MPI_Test_cancelled(&status, &cancelled);
  expect(cancelled == 0, "MPI_Wait gives a status");

  std::atomic<bool> called{false};
  end_send(4);
  imbrex_continue(
      &requests[4], [](int code, int, const MPI_Status*, void* it) {
        static_cast<std::atomic<bool>*>(it)->store(code == MPI_SUCCESS);
      },
      &called);
  Future<MPI_Status> when_sent = when(requests[5]);
  expect(!when_sent.ready(), "when() of one that is under way");
  end_send(5);
  expect(comes_true([&] { return called.load(); }), "imbrex_continue");
  (void)when_sent.get();
  end_send(6);
  end_send(7);
  MPI_Waitall(8, requests.data(), statuses);
  for (const MPI_Request request : requests) expect(request == MPI_REQUEST_NULL, "null again");
}

void cancel() {
  std::vector<Message> all = messages(4);
  for (Message& message : all) message.isend(3);
  MPI_Cancel(&all[1].request);
  MPI_Status status;
  int cancelled = 0;
  MPI_Wait(&all[1].request, &status);
  MPI_Test_cancelled(&status, &cancelled);
  expect(cancelled == 1, "one that waits can be cancelled");
  Future<MPI_Status> future = when(all[2].request);
  imbrex::cancel(future);
  const MPI_Status other = future.get();
  MPI_Test_cancelled(&other, &cancelled);
  expect(cancelled == 1, "by the future as well");
  end_send(0);
  end_send(1);
  MPI_Wait(&all[0].request, MPI_STATUS_IGNORE);
  MPI_Wait(&all[3].request, MPI_STATUS_IGNORE);
  expect(sent({0, 3}), "it is not sent");
}

// MPI_Finalize also sends the messages whose requests the program has freed; a thread plays the
// network.
void forgotten() {
  static auto& all = *new std::vector<Message>(messages(4));  // as long as the thread
  for (Message& message : all) {
    message.isend(3);
    MPI_Request_free(&message.request);
    expect(message.request == MPI_REQUEST_NULL, "null");
  }
  static std::thread network([] {
    for (std::size_t place = 0; place < 4;) {
      if (fake_mpi::end_send(place)) ++place;
      std::this_thread::yield();
    }
  });
  MPI_Finalize();
  network.join();
  expect(sent({0, 1, 2, 3}), "all is sent");
}

void communicators() {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  std::vector<Message> all = messages(4);
  for (Message& message : all) message.isend(3, peer, comm);
  Message elsewhere(7);
  elsewhere.isend(3);
  MPI_Comm_free(&comm);
  expect(sent({0, 1, 2, 3}), "what waits on a communicator goes before it is freed");
  for (std::size_t place = 0; place < 4; ++place) end_send(place);
  end_send(4);
  for (Message& message : all) MPI_Wait(&message.request, MPI_STATUS_IGNORE);
  MPI_Wait(&elsewhere.request, MPI_STATUS_IGNORE);
}

// A buffered send is complete whatever the receiver does, so it lets what waits go before it.
void modes() {
  std::vector<Message> all = messages(3);
  for (Message& message : all) message.isend(3);
  Message buffered(9, 1);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibsend(buffered.words.data(), 1, MPI_INT, peer, 4, MPI_COMM_WORLD, &request);
  expect(sent({0, 1, 2, 9}), "the order is kept");
  for (std::size_t place = 0; place < 4; ++place) end_send(place);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (Message& message : all) MPI_Wait(&message.request, MPI_STATUS_IGNORE);

  Message first(1);
  Message synchronous(2);
  Message ready(3);
  first.isend(3);
  const std::uint64_t before = fake_mpi::calls("Issend") + fake_mpi::calls("Irsend");
  MPI_Issend(synchronous.words.data(), long_count, MPI_INT, peer, 4, MPI_COMM_WORLD,
             &synchronous.request);
  MPI_Irsend(ready.words.data(), long_count, MPI_INT, peer, 4, MPI_COMM_WORLD, &ready.request);
  end_send(4);
  end_send(5);
  end_send(6);
  expect(fake_mpi::calls("Issend") + fake_mpi::calls("Irsend") == before + 2, "the modes are kept");
  for (Message* one : {&first, &synchronous, &ready}) MPI_Wait(&one->request, MPI_STATUS_IGNORE);
}

void persistent() {
  Message first(1);
  Message second(2);
  Message short_one(3, 1);
  MPI_Send_init(second.words.data(), long_count, MPI_INT, peer, 3, MPI_COMM_WORLD, &second.request);
  MPI_Send_init(short_one.words.data(), 1, MPI_INT, peer, 3, MPI_COMM_WORLD, &short_one.request);
  const MPI_Request handle = second.request;
  for (std::size_t round = 0; round < 2; ++round) {
    first.isend(3);
    MPI_Start(&second.request);
    expect(second.request == handle && !is_done(second.request), "it waits");
    expect(fake_mpi::sent().size() == 2 * round + 1, "it waits");
    end_send(2 * round);
    expect(comes_true([round] { return fake_mpi::sent().size() == 2 * round + 2; }), "it goes");
    end_send(2 * round + 1);
    MPI_Wait(&second.request, MPI_STATUS_IGNORE);
    expect(second.request == handle, "inactive again");
    MPI_Wait(&first.request, MPI_STATUS_IGNORE);
  }
  first.isend(3);
  MPI_Request both[] = {second.request, short_one.request};
  MPI_Startall(2, both);
  expect(sent({1, 2, 1, 2, 1, 2, 3}), "one that MPI starts lets what waits go before it");
  for (const std::size_t place : {4u, 5u, 6u}) end_send(place);
  MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
  MPI_Wait(&first.request, MPI_STATUS_IGNORE);
  for (MPI_Request& request : both) MPI_Request_free(&request);
}

// A receiver that never posts a receive does not block others without end.
void stuck() {
  std::vector<Message> all = messages(3);
  for (Message& message : all) message.isend(3);
  expect(sent({0, 1, 2}), "the others go after all");
  for (const std::size_t place : {2u, 1u, 0u}) end_send(place);
  for (Message& message : all) MPI_Wait(&message.request, MPI_STATUS_IGNORE);
}

// Blocking calls in tasks, and what they are given before and after.
void tasks() {
  std::vector<Message> all = messages(6);
  Promise<void> sent_all;
  finish([&] {
    for (Message& message : all) {
      task("send").launch([&message] {
        MPI_Send(message.words.data(), long_count, MPI_INT, peer, 3, MPI_COMM_WORLD);
      });
    }
    task("network").launch([] {
      for (std::size_t place = 0; place < 6;) {
        if (fake_mpi::end_send(place)) ++place;
        yield();
      }
    });
  });
  expect(fake_mpi::sent().size() == 6, "all are sent");
}

void exchange() {
  Message first(1);
  first.isend(3);
  Message out(2);
  std::vector<int> in(1, 0);
  fake_mpi::send({.comm = MPI_COMM_WORLD, .source = peer, .tag = 5,
                  .bytes = std::vector<std::byte>(sizeof(int), std::byte{1})});
  fake_mpi::arrive(MPI_COMM_WORLD, peer);
  finish([&] {
    task("exchange").launch([&] {
      MPI_Sendrecv(out.words.data(), long_count, MPI_INT, peer, 3, in.data(), 1, MPI_INT, peer, 5,
                   MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    });
    task("network").launch([] {
      for (std::size_t place = 0; place < 2;) {
        if (fake_mpi::end_send(place)) ++place;
        yield();
      }
    });
  });
  expect(in[0] == 0x01010101 && sent({1, 2}), "both have moved");
  MPI_Wait(&first.request, MPI_STATUS_IGNORE);
}

// MPI refuses a message that has waited: its own wait reports that, and the next message goes.
void refused() {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  std::vector<Message> all = messages(3);
  for (Message& message : all) message.isend(3);
  fake_mpi::fail("Isend", 0, MPI_ERR_OTHER);
  end_send(0);
  expect(sent({0, 2}), "the next one goes");
  expect(MPI_Wait(&all[1].request, MPI_STATUS_IGNORE) == MPI_ERR_OTHER, "the code");
  end_send(1);
  expect(MPI_Wait(&all[0].request, MPI_STATUS_IGNORE) == MPI_SUCCESS, "the others are well");
  expect(MPI_Wait(&all[2].request, MPI_STATUS_IGNORE) == MPI_SUCCESS, "the others are well");
  fake_mpi::fail("Isend", 0, MPI_ERR_OTHER);
  Message at_once(4);
  expect(MPI_Isend(at_once.words.data(), long_count, MPI_INT, peer, 3, MPI_COMM_WORLD,
                   &at_once.request) == MPI_ERR_OTHER, "one that goes at once");
  expect(at_once.request == MPI_REQUEST_NULL, "it has no request");
  // MPI refuses wrong arguments at once, also while other messages wait.
  expect(MPI_Isend(at_once.words.data(), long_count, MPI_INT, 99, 3, MPI_COMM_WORLD,
                   &at_once.request) == MPI_ERR_RANK, "a wrong rank");
}

struct Case {
  const char* name;
  void (*run)();
  bool finalizes;
};
constexpr Case cases[] = {
    {"spread", &spread, false},         {"order", &order, false},
    {"tags", &tags, false},             {"priorities", &priorities, false},
    {"calls", &calls, false},           {"cancel", &cancel, false},
    {"forgotten", &forgotten, true},    {"communicators", &communicators, false},
    {"modes", &modes, false},           {"persistent", &persistent, false},
    {"stuck", &stuck, false},           {"tasks", &tasks, false},
    {"exchange", &exchange, false},     {"refused", &refused, false}};

int run(const std::string& name) {
  for (const Case& each : cases) {
    if (name != each.name) continue;
    fake_mpi::reset({.sends_stay = true});
    MPI_Init(nullptr, nullptr);
    each.run();
    if (!each.finalizes) MPI_Finalize();
    for (const std::string& breach : fake_mpi::breaches()) {
      expect(false, ("a breach of MPI's rules: " + breach).c_str());
    }
    return imbrex::test::failures == 0 ? 0 : 1;
  }
  std::printf("there is no case %s\n", name.c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  setenv("IMBREX_SENDS_ABOVE", "64", 1);
  const bool waits_long = argc == 2 && std::string(argv[1]) != "stuck";
  constexpr imbrex::mpi::sends::Time ms = 1'000'000;
  imbrex::mpi::sends::initial_limits() = {
      .each = 1, .bytes = 0, .patience = waits_long ? 1'000'000 * ms : 5 * ms};
  setenv("IMBREX_POLICY", "priority", 0);
  return argc == 2 ? run(argv[1]) : 2;
}
