// SPDX-License-Identifier: BSD-3-Clause
// One program of engine_fuzz.cpp, from MPI_Init to MPI_Finalize: its steps, its end, the checks.
#pragma once

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <span>

#include "fuzz/engine_workbench.hpp"
#include "imbrex/events.h"
#include "mpi/active/post/packet.hpp"

namespace imbrex::test {

class Run : Workbench {
 public:
  explicit Run(const Program& program) : Workbench(program) {}

  bool run() {
    fake_mpi::reset({.ranks = ranks,
                     .seed = program_.seed,
                     .patience = 30 + below(100),
                     .yields = exact_ ? 0 : below(20),
                     .late = below(2) == 0,
                     .watch_held = !matches() && !faults() && program_.workers == 1,
                     .send_rounds = below(2) == 0 ? 4 : 60});
    MPI_Init(nullptr, nullptr);
    letters = fake_mpi::named("imbrex active messages");
    fake_mpi::set_others(&sums_of_others);
    make_comms();
    finish([this] {
      for (const int step : program_.steps) {
        carry_out(step);
        return_credit();
      }
      complete_all();
    });
    for (std::thread& thread : threads_) thread.join();
    const bool good = check();
    free_all();
    return_credit();
    MPI_Finalize();
    for (const std::string& breach : fake_mpi::breaches()) {
      std::printf("FAILS: breach of MPI's rules: %s\n", breach.c_str());
    }
    return good && fake_mpi::breaches().empty();
  }

 private:
  // ---- letters: under policy ga imbrex itself sends active messages

  static inline MPI_Comm letters = MPI_COMM_NULL;  // theirs; null if there are none
  static inline std::int64_t credits = 0;          // messages of the other ranks

  [[nodiscard]] static std::array<std::uint32_t, ranks> letters_sent() {
    std::array<std::uint32_t, ranks> sent{};
    for (const fake_mpi::Sent& one : fake_mpi::sent()) {
      if (one.comm == letters) ++sent.at(static_cast<std::size_t>(one.destination));
    }
    return sent;
  }
  static std::array<std::int64_t, 2> sums_of_others() {
    const auto sent = letters_sent();
    return {credits, std::accumulate(sent.begin(), sent.end(), std::int64_t{0})};
  }
  // The other ranks have read what was sent to them, and say so, lest this one cease to send.
  void return_credit() {
    if (letters == MPI_COMM_NULL) return;
    constexpr std::uint32_t some = 16;
    const auto sent = letters_sent();
    for (std::size_t rank = 1; rank < ranks; ++rank) {
      if (sent[rank] - credited_[rank] < some) continue;
      const mpi::active::PacketHead head{sent[rank] - credited_[rank], 0};
      credited_[rank] = sent[rank];
      ++credits;
      const auto bytes = std::as_bytes(std::span(&head, 1));
      fake_mpi::send({.comm = letters, .source = static_cast<int>(rank), .tag = 0,
                      .bytes = {bytes.begin(), bytes.end()}});
    }
  }

  // ---- the beginning and the end

  static void ignore_error(MPI_Comm*, int*, ...) {}

  void make_comms() {
    comms_.resize(between_groups);
    for (MPI_Comm& comm : comms_) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    comms_.push_back(fake_mpi::intercommunicator(2));
    MPI_Comm_create_errhandler(&ignore_error, &handler_);
    for (const MPI_Comm comm : comms_) {
      MPI_Comm_set_errhandler(comm, below(2) == 0 ? MPI_ERRORS_RETURN : handler_);
    }
    for (int i = 0; i < 3; ++i) make_persistent();
  }

  void make_persistent() {
    Open& made = opens_.emplace_back();
    made.persistent = true;
    made.buffer.assign(6, untouched);
    Taking& envelope = made.envelope;
    draw_envelope(envelope);
    MPI_Recv_init(made.buffer.data(), envelope.words, MPI_UINT64_T, envelope.source, envelope.tag,
                  comm_of(envelope), &made.request);
    inactive_.push_back(&made);
  }

  void free_all() {
    for (Open* open : inactive_) MPI_Request_free(&open->request);
    for (int comm = 0; comm <= between_groups; ++comm) {
      imbrex_mpi_events_end(comms_[static_cast<std::size_t>(comm)]);
      MPI_Comm_free(&comms_[static_cast<std::size_t>(comm)]);
    }
    MPI_Errhandler_free(&handler_);
  }

  // ---- steps

  struct Step {
    int weight;
    void (Run::*carry_out)();
    const char* name;
  };

  void carry_out(int number) {
    static constexpr Step steps[] = {
        {22, &Run::send_one, "send_one"},
        {12, &Run::let_arrive, "let_arrive"},
        {14, &Run::post, "post"},
        {12, &Run::receive_in_task, "receive_in_task"},
        {3, &Run::exchange_in_task, "exchange_in_task"},
        {4, &Run::probe_in_task, "probe_in_task"},
        {4, &Run::match_in_task, "match_in_task"},
        {4, &Run::probe_now, "probe_now"},
        {4, &Run::match_now, "match_now"},
        {5, &Run::start_persistent, "start_persistent"},
        {6, &Run::send_own, "send_own"},
        {3, &Run::send_in_task, "send_in_task"},
        {10, &Run::wait_in_task, "wait_in_task"},
        {8, &Run::test_now, "test_now"},
        {3, &Run::cancel, "cancel"},
        {2, &Run::forget, "forget"},
        {4, &Run::hand_over, "hand_over"},
        {5, &Run::let_others_run, "let_others_run"},
        {4, &Run::receive_arrived, "receive_arrived"},
        {1, &Run::burst, "burst"},
        {1, &Run::free_comm, "free_comm"},
        {1, &Run::assert_no_wildcards, "assert_no_wildcards"},
        {2, &Run::inject_error, "inject_error"},
        {3, &Run::watch, "watch"}};
    random_.seed(program_.seed * 1'000'003 + static_cast<std::uint64_t>(number));
    int sum = 0;
    for (const Step& step : steps) sum += step.weight;
    int drawn = below(sum);
    for (const Step& step : steps) {
      drawn -= step.weight;
      if (drawn >= 0) continue;
      if (program_.show) std::printf("step %d: %s\n", number, step.name);
      return (this->*step.carry_out)();
    }
  }

  void send_one() {
    const int comm = draw_comm();
    const int source = draw_source(comm);
    send_from_peer(comm, source, below(tags));
    if (below(2) == 0) fake_mpi::arrive(comms_[static_cast<std::size_t>(comm)], source);
  }

  void let_arrive() {
    for (int i = below(4); i >= 0; --i) fake_mpi::arrive_any();
  }

  // A receive in one of three types; the own one may be freed at once.
  void post() { post(add_taking("MPI_Irecv")); }

  void post(Taking& taking) {
    Open& open = opens_.emplace_back();
    open.taking = &taking;
    const int style = below(3);
    MPI_Datatype pair = MPI_DATATYPE_NULL;
    if (style == 2) {
      MPI_Type_contiguous(taking.words, MPI_UINT64_T, &pair);
      MPI_Type_commit(&pair);
    }
    const MPI_Datatype type = style == 0 ? MPI_UINT64_T : style == 1 ? MPI_BYTE : pair;
    const int count = style == 0 ? taking.words : style == 1 ? taking.words * 8 : 1;
    const int code = posting(taking, [&] {
      return MPI_Irecv(taking.buffer.data(), count, type, taking.source, taking.tag,
                       comm_of(taking), &open.request);
    });
    if (style == 2) MPI_Type_free(&pair);
    if (code == MPI_SUCCESS) {
      available_.push_back(&open);
    } else {
      complete(taking, code, nullptr);
    }
  }

  // Receives that find the queue empty: a communicator that matches begins to post again.
  void burst() {
    const int comm = draw_comm();
    for (int i = 0; i < 80; ++i) {
      const int source = draw_source(comm);
      send_from_peer(comm, source, 0);
      fake_mpi::arrive(comms_[static_cast<std::size_t>(comm)], source);
      post();
      std::vector<Open*> last;
      if (!available_.empty()) last = {available_.back()}, available_.pop_back();
      for (int ask_again = 0; ask_again < 3; ++ask_again) ask(last, Way::test, false);
      available_.insert(available_.end(), last.begin(), last.end());
    }
  }

  // MPI releases a freed communicator only when all operations in flight on it are complete.
  void free_comm() {
    if (faults()) return;  // a receive that is refused would leave its message there
    const int place = static_cast<int>(comms_.size());
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(comms_[0], &comm);
    comms_.push_back(comm);
    const int receives = 1 + below(6);
    for (int i = 0; i < receives; ++i) {
      Taking& taking = takings_.emplace_back();
      taking.number = takings_.size();
      taking.call = "MPI_Irecv before MPI_Comm_free";
      taking.comm = place;
      taking.source = MPI_ANY_SOURCE;
      taking.tag = MPI_ANY_TAG;
      taking.words = 5;
      taking.buffer.assign(6, untouched);
      if (below(2) == 0) send_from_peer(place, below(ranks), below(tags));
      if (below(4) == 0) fake_mpi::arrive_any();
      post(taking);
    }
    while (fake_mpi::count_sent(comm) < receives) {
      send_from_peer(place, below(ranks), below(tags));
    }
    MPI_Comm_free(&comm);
  }

  void assert_no_wildcards() {
    MPI_Info info = MPI_INFO_NULL;
    MPI_Info_create(&info);
    const char* const key = below(2) == 0 ? "mpi_assert_no_any_source" : "mpi_assert_no_any_tag";
    MPI_Info_set(info, key, "true");
    MPI_Comm_set_info(comms_[without_wildcards], info);
    MPI_Info_free(&info);
  }

  // Each message is told once, and nothing else changes.
  void watch() {
    const MPI_Comm comm = comms_[static_cast<std::size_t>(draw_comm())];
    if (below(2) == 0) {
      imbrex_mpi_events_begin(comm);
    } else {
      imbrex_mpi_events_end(comm);
    }
    imbrex_mpi_event event = {};
    while (imbrex_mpi_event_poll(&event) != 0) {
      const auto arrived = static_cast<int>(fake_mpi::arrived(event.comm).size());
      if (event.kind == IMBREX_INCOMING_PTP && ++told_[event.comm] > arrived) {
        fail("more events than messages");
      }
    }
  }

  void inject_error() {
    if (!faults()) return;
    constexpr const char* functions[] = {"Irecv", "Improbe", "Iprobe"};
    fake_mpi::fail(functions[below(3)], below(4), injected);
  }

  void receive_in_task() {
    Taking& taking = add_taking("MPI_Recv");
    const bool ignore = below(3) == 0;
    launch([this, &taking, ignore] {
      MPI_Status status = {};
      const int code = posting(taking, [&] {
        return MPI_Recv(taking.buffer.data(), taking.words, MPI_UINT64_T, taking.source, taking.tag,
                        comm_of(taking), ignore ? MPI_STATUS_IGNORE : &status);
      });
      complete(taking, code, ignore ? nullptr : &status);
    });
  }

  void exchange_in_task() {
    Taking& taking = add_taking("MPI_Sendrecv");
    const std::vector<std::uint64_t>& content = own_content();
    launch([this, &taking, &content] {
      MPI_Status status = {};
      const int code = posting(taking, [&] {
        return MPI_Sendrecv(content.data(), static_cast<int>(content.size()), MPI_UINT64_T, 1, 5,
                            taking.buffer.data(), taking.words, MPI_UINT64_T, taking.source,
                            taking.tag, comm_of(taking), &status);
      });
      complete(taking, code, &status);
    });
  }

  // The message that the probe saw may be gone when the receive comes: then the receive waits for
  // another.
  void probe_in_task() {
    Taking& probing = add_taking("MPI_Probe");
    probing.takes = false;
    Taking& taking = add_taking("MPI_Recv");
    launch([this, &probing, &taking] {
      MPI_Status status = {};
      const bool found = searching(probing, [&] {
        return MPI_Probe(probing.source, probing.tag, comm_of(probing), &status);
      });
      if (!found) return complete(taking, injected, nullptr);
      see(probing, status);
      taking.comm = probing.comm;
      taking.source = status.MPI_SOURCE;
      taking.tag = status.MPI_TAG;
      const int code = posting(taking, [&] {
        return MPI_Recv(taking.buffer.data(), taking.words, MPI_UINT64_T, taking.source, taking.tag,
                        comm_of(taking), &status);
      });
      complete(taking, code, &status);
    });
  }

  void match_in_task() {
    if (!matches()) return;
    Taking& taking = add_taking("MPI_Mprobe");
    launch([this, &taking] {
      MPI_Message message = MPI_MESSAGE_NULL;
      MPI_Status status = {};
      const bool found = searching(taking, [&] {
        return MPI_Mprobe(taking.source, taking.tag, comm_of(taking), &message, &status);
      });
      if (found) receive_matched(taking, message);
    });
  }

  void receive_arrived() {
    if (!matches()) return;
    Taking& taking = add_taking("when_arrived");
    ++live_bodies_;
    taking.posted_first = ++clock_;
    const Future<ArrivedMessage> future =
        when_arrived(taking.source, taking.tag, comm_of(taking));
    taking.posted.store(true);
    auto arrived = task("arrived");
    if (!faults()) (void)arrived.in(future);  // it does not run if the future has failed
    arrived.launch([this, &taking, future] {
      MPI_Status status = {};
      int code = MPI_SUCCESS;
      try {
        const ArrivedMessage& message = future.get();
        taking.posted_last = ++clock_;
        status = message.receive(taking.buffer.data(), taking.words, MPI_UINT64_T);
      } catch (const MpiError& error) {
        code = error.code();
      }
      complete(taking, code, code == MPI_SUCCESS ? &status : nullptr);
      --live_bodies_;
    });
  }

  void probe_now() {
    Taking& probing = add_taking("MPI_Iprobe");
    probing.takes = false;
    MPI_Status status = {};
    int flag = 0;
    const bool good = searching(probing, [&] {
      return MPI_Iprobe(probing.source, probing.tag, comm_of(probing), &flag, &status);
    });
    if (good && flag != 0) return see(probing, status);
    takings_.pop_back();
  }

  void match_now() {
    if (!matches()) return;
    Taking& taking = add_taking("MPI_Improbe");
    auto message = std::make_shared<MPI_Message>(MPI_MESSAGE_NULL);
    MPI_Status status = {};
    int flag = 0;
    const bool good = searching(taking, [&] {
      return MPI_Improbe(taking.source, taking.tag, comm_of(taking), &flag, message.get(), &status);
    });
    if (!good || flag == 0) return takings_.pop_back();
    if (below(2) == 0) {
      launch([this, &taking, message] { receive_matched(taking, *message); });
      return;
    }
    Open& open = opens_.emplace_back();
    open.taking = &taking;
    MPI_Imrecv(taking.buffer.data(), taking.words, MPI_UINT64_T, message.get(), &open.request);
    available_.push_back(&open);
  }

  void start_persistent() {
    const std::size_t most = 1 + static_cast<std::size_t>(below(2));
    std::vector<MPI_Request> requests;
    std::vector<Open*> started;
    const std::lock_guard guard(mutex_);
    while (!inactive_.empty() && started.size() < most) {
      Open& open = *inactive_.back();
      inactive_.pop_back();
      Taking& taking = takings_.emplace_back();
      taking.number = takings_.size();
      taking.call = "MPI_Start";
      taking.comm = open.envelope.comm;
      taking.source = open.envelope.source;
      taking.tag = open.envelope.tag;
      taking.words = open.envelope.words;
      std::fill(open.buffer.begin(), open.buffer.end(), untouched);
      open.taking = &taking;
      started.push_back(&open);
      requests.push_back(open.request);
    }
    if (started.empty()) return;
    // The receives are posted in the order of the array.
    for (Open* open : started) open->taking->posted_first = ++clock_;
    MPI_Startall(static_cast<int>(requests.size()), requests.data());
    for (std::size_t i = 0; i < started.size(); ++i) {
      Taking& taking = *started[i]->taking;
      taking.posted_last = exact_ ? taking.posted_first : ++clock_;
      taking.posted.store(true);
      started[i]->request = requests[i];
      available_.push_back(started[i]);
    }
  }

  // Sends to another rank, or to this rank; then it is a message like others.
  void send_own() {
    Open& open = opens_.emplace_back();
    open.buffer = own_content();
    const int comm = below(between_groups);
    const int tag = below(tags);
    const int peer = below(ranks);
    if (peer == 0) {
      own_.pop_back();
    } else {
      in_order_.push_back({comms_[static_cast<std::size_t>(comm)], peer, tag, open.buffer});
    }
    const auto start = below(2) == 0 ? &MPI_Isend : &MPI_Issend;
    start(open.buffer.data(), static_cast<int>(open.buffer.size()), MPI_UINT64_T, peer, tag,
          comms_[static_cast<std::size_t>(comm)], &open.request);
    available_.push_back(&open);
  }

  void send_in_task() {
    const int peer = 1 + below(ranks - 1);
    const MPI_Comm comm = comms_[static_cast<std::size_t>(below(between_groups))];
    const std::vector<std::uint64_t>& content = own_content();
    const auto send = below(2) == 0 ? &MPI_Send : &MPI_Ssend;
    launch([&content, peer, comm, send] {
      send(content.data(), static_cast<int>(content.size()), MPI_UINT64_T, peer, 6, comm);
    });
  }

  void wait_in_task() {
    const std::vector<Open*> some = take_some(4);
    if (some.empty()) return;
    const Way way = draw_way();
    const bool ignore = below(2) == 0;
    const bool look_first = below(5) == 0;
    launch([=, this] { wait_for(some, way, ignore, look_first); });
  }

  void test_now() {
    std::vector<Open*> some = take_some(3);
    constexpr Way ways[] = {Way::test, Way::testall, Way::testany, Way::testsome};
    ask(some, ways[below(4)], false);
    available_.insert(available_.end(), some.begin(), some.end());
  }

  // Does nothing if the communicator is freed: no rank could receive the message then.
  void cancel() {
    const std::vector<Open*> some = take_some(1);
    if (some.empty() || some[0]->taking == nullptr || some[0]->taking->comm > between_groups) {
      available_.insert(available_.end(), some.begin(), some.end());
      return;
    }
    MPI_Cancel(&some[0]->request);
    launch([this, some] { wait_for(some, Way::wait, false, false); });
  }

  void forget() {
    const std::vector<Open*> some = take_some(1);
    if (some.empty() || some[0]->taking == nullptr || some[0]->persistent) {
      available_.insert(available_.end(), some.begin(), some.end());
      return;
    }
    MPI_Request_free(&some[0]->request);
    forgotten_.insert(some[0]->taking);
  }

  void hand_over() {
    const std::vector<Open*> some = take_some(1);
    if (some.empty() || some[0]->persistent) {
      available_.insert(available_.end(), some.begin(), some.end());
      return;
    }
    Open& open = *some[0];
    const int way = below(2);
    const Future<MPI_Status> future = way == 0 ? when(open.request) : Future<MPI_Status>();
    ++live_bodies_;
    task("get").launch([this, &open, future, way] {
      MPI_Status status = {};
      int code = MPI_SUCCESS;
      try {
        status = way == 0 ? future.get() : await(open.request);
      } catch (const MpiError& error) {
        code = error.code();
      }
      complete(open, code, code == MPI_SUCCESS ? &status : nullptr);
      --live_bodies_;
    });
  }

  void let_others_run() {
    for (int i = below(6); i >= 0; --i) yield();
  }

  // ---- the end

  [[nodiscard]] bool is_done(Taking& taking) {
    if (taking.done.load()) return true;
    if (!forgotten_.contains(&taking)) return false;
    taking.id = fake_mpi::peek(taking.buffer[0]);
    if (taking.id == untouched) return false;
    taking.code_known = false;
    taking.done.store(true);
    return true;
  }

  void complete_all() {
    const Clock::time_point begin = Clock::now();
    for (int round = 0;;) {
      std::vector<Open*> rest;
      rest.swap(available_);
      if (!rest.empty()) launch([this, rest] { wait_for(rest, Way::waitall, false, false); });
      const Clock::time_point now = Clock::now();
      bool all_done = false;
      while (!all_done && Clock::now() - now < std::chrono::milliseconds(2)) {
        all_done = true;
        for (Taking& taking : takings_) all_done = is_done(taking) && all_done;
        yield();
      }
      if (Clock::now() - begin > std::chrono::seconds(give_up_s)) give_up();
      if (!all_done) feed();
      // Now and then also before all is done: a wait for several requests may be for an own
      // synchronous send too. Not always, or a probe never sees what it was fed.
      if (!all_done && ++round % 8 != 0) continue;
      if (receive_the_rest() && all_done && live_bodies_ == 0) return;
    }
  }

  // Each operation that waits gets a message.
  void feed() {
    for (std::size_t i = 0; i < takings_.size(); ++i) {
      Taking& taking = takings_[i];
      if (taking.done.load() || !taking.posted.load() || taking.comm > between_groups) continue;
      const int source = taking.source == MPI_ANY_SOURCE ? draw_source(taking.comm) : taking.source;
      send_from_peer(taking.comm, source, taking.tag == MPI_ANY_TAG ? below(tags) : taking.tag);
    }
    while (fake_mpi::arrive_any()) {
    }
  }

  // True once nothing is left. The own synchronous sends need it.
  bool receive_the_rest() {
    while (fake_mpi::arrive_any()) {
    }
    for (int comm = 0; comm <= between_groups; ++comm) {
      if (comm != without_wildcards) {
        receive_all(comm, MPI_ANY_SOURCE, MPI_ANY_TAG);
        continue;
      }
      for (int i = 0; i < ranks * tags; ++i) receive_all(comm, i / tags, i % tags);
    }
    std::size_t taken = 0;
    for (const Taking& taking : takings_) {
      taken += taking.done.load() && taking.takes && !taking.empty ? 1u : 0u;
    }
    std::size_t arrived = 0;
    for (const MPI_Comm comm : comms_) arrived += fake_mpi::arrived(comm).size();
    return taken >= arrived;
  }

  void receive_all(int comm, int source, int tag) {
    for (int flag = 1; flag != 0;) {
      Taking& taking = add_taking("MPI_Improbe at the end");
      taking.comm = comm;
      taking.source = source;
      taking.tag = tag;
      taking.words = 6;
      MPI_Message message = MPI_MESSAGE_NULL;
      MPI_Status status = {};
      const bool good = searching(taking, [&] {
        return MPI_Improbe(source, tag, comm_of(taking), &flag, &message, &status);
      });
      if (good && flag != 0) {
        receive_matched(taking, message);
      } else {
        takings_.pop_back();
        flag = good ? 0 : 1;
      }
    }
  }

  // Tasks wait for what never comes: the process ends here.
  [[noreturn]] void give_up() {
    std::printf("FAILS: not complete after %d s, %d bodies live\n", give_up_s, live_bodies_.load());
    (void)check();
    std::_Exit(1);
  }

  bool check() {
    bool good = failures_ == 0;
    for (int comm = 0; comm < static_cast<int>(comms_.size()); ++comm) {
      std::vector<const Taking*> takings;
      for (const Taking& taking : takings_) {
        if (taking.comm == comm) takings.push_back(&taking);
      }
      std::vector<Arrival> arrivals;
      for (const auto& sent : fake_mpi::arrived(comms_[static_cast<std::size_t>(comm)])) {
        std::uint64_t id = 0;
        std::memcpy(&id, sent.bytes.data(), sizeof id);
        arrivals.push_back({id, sent.source, sent.tag,
                            static_cast<int>(sent.bytes.size() / sizeof id), sent.error});
      }
      good = Matching(std::move(takings), std::move(arrivals)).check() && good;
    }
    return check_sent() && check_order() && good;
  }

  // Messages of the root task to one rank on one communicator stay in order; where no receive may
  // name any tag, those with the same tag do.
  bool check_order() {
    const MPI_Comm by_tag = comms_[without_wildcards];
    std::vector<fake_mpi::Sent> sent = fake_mpi::sent();
    for (const Own& own : in_order_) {
      const auto same_channel = [&](const fake_mpi::Sent& one) {
        return one.comm == own.comm && one.destination == own.peer &&
               (own.comm != by_tag || one.tag == own.tag) && is_of_root(one);
      };
      const auto first = std::find_if(sent.begin(), sent.end(), same_channel);
      if (first == sent.end() || !has_content(*first, own.content)) {
        std::printf("FAILS: a message of this rank has overtaken another\n");
        return false;
      }
      sent.erase(first);
    }
    return true;
  }

  static bool has_content(const fake_mpi::Sent& sent, const std::vector<std::uint64_t>& content) {
    return sent.bytes.size() == content.size() * sizeof(std::uint64_t) &&
           std::memcmp(sent.bytes.data(), content.data(), sent.bytes.size()) == 0;
  }
  // Other tasks' messages have tags of their own.
  static bool is_of_root(const fake_mpi::Sent& sent) { return sent.tag < tags; }

  bool check_sent() {
    std::multiset<std::vector<std::uint64_t>> expected(own_.begin(), own_.end());
    for (const fake_mpi::Sent& sent : fake_mpi::sent()) {
      if (sent.comm == letters) continue;
      std::vector<std::uint64_t> content(sent.bytes.size() / sizeof(std::uint64_t));
      std::memcpy(content.data(), sent.bytes.data(), sent.bytes.size());
      const auto found = expected.find(content);
      if (found == expected.end()) {
        std::printf("FAILS: this rank sent something twice, or what it should not\n");
        return false;
      }
      expected.erase(found);
    }
    if (expected.empty() || faults()) return true;  // MPI_Sendrecv sends nothing if it is refused
    std::printf("FAILS: %zu messages were not sent\n", expected.size());
    return false;
  }

  using Clock = std::chrono::steady_clock;
  static constexpr int give_up_s = 50;  // no system takes as long, and run_program() allows 60

  MPI_Errhandler handler_ = MPI_ERRHANDLER_NULL;
  std::set<const Taking*> forgotten_;  // of requests that were freed
  struct Own {
    MPI_Comm comm;
    int peer;
    int tag;
    std::vector<std::uint64_t> content;
  };
  std::vector<Own> in_order_;  // sends of the root task
  std::map<MPI_Comm, int> told_;       // events of messages
  std::array<std::uint32_t, ranks> credited_{};  // packets of letters, by rank
};

}  // namespace imbrex::test
