// SPDX-License-Identifier: BSD-3-Clause
// engine_fuzz [--seed N] [--count N] [--workers N] [--policy P] [--steps N] [--only I,J,...]
// [--show 1]: random programs of receives, probes, waits and tests against random arrivals in fake_mpi.
//
// Methodology: a program is a list of steps, each drawn from a seed of its own, so that it stays the
// same when others are left out; --only names those that are carried out. The root task carries the
// steps out and never blocks; what blocks runs in tasks and, with more than one worker, in threads
// that imbrex does not know. Messages are sent by scripted ranks and arrive when a step says so, or
// when nobody has seen one for some time. At the end every open operation is given a message that
// fits, all messages that are left are received, and then
//   1. matching.hpp must be able to explain who got what,
//   2. fake_mpi must have seen no breach of MPI's rules, and nothing may be left at MPI_Finalize,
//   3. what this rank sent must have been sent once.
// Each program runs in a process of its own, which also finds crashes and hangs. A program that
// fails is run again without some of its steps, and the smallest that fails is named.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <set>
#include <thread>

#include "fake_mpi/fake_mpi.hpp"
#include "fuzz/matching.hpp"
#include "imbrex/events.h"
#include "imbrex/imbrex.hpp"
#include "imbrex/mpi.hpp"

namespace imbrex::test {
namespace {

using Clock = std::chrono::steady_clock;

struct Program {
  std::uint64_t seed = 1;
  int workers = 1;
  std::string policy = "default";
  std::vector<int> steps;  // the numbers of those that are carried out
  bool show = false;       // prints the steps

  // One task runs at a time, so that the order of postings is known.
  [[nodiscard]] bool exact() const { return workers == 1 || policy == "seeded"; }
};

// A request of the program: a receive's if it has a taking, else a send's.
struct Open {
  MPI_Request request = MPI_REQUEST_NULL;
  Taking* taking = nullptr;
  bool persistent = false;
  std::vector<std::uint64_t> buffer;  // a send's, or a persistent receive's
  Taking envelope;                    // a persistent receive's
};

void ignore_error(MPI_Comm*, int*, ...) {}

enum class Way { test, testall, testany, testsome, wait, waitall, waitany, waitsome };

class Run {
 public:
  explicit Run(const Program& program) : program_(program), exact_(program.exact()) {}

  bool run() {
    random_.seed(program_.seed);
    fake_mpi::reset({.ranks = ranks,
                     .seed = program_.seed,
                     .patience = 30 + below(100),
                     .yields = exact_ ? 0 : below(20),
                     .late = below(2) == 0,
                     .watch_held = !matches() && !faults() && program_.workers == 1});
    MPI_Init(nullptr, nullptr);
    make_comms();
    finish([this] {
      for (const int step : program_.steps) carry_out(step);
      complete_all();
    });
    for (std::thread& thread : threads_) thread.join();
    const bool good = check();
    free_all();
    MPI_Finalize();
    for (const std::string& breach : fake_mpi::breaches()) {
      std::printf("FAILS: breach of MPI's rules: %s\n", breach.c_str());
    }
    return good && fake_mpi::breaches().empty();
  }

 private:
  static constexpr int ranks = 3;
  static constexpr int tags = 3;
  // The communicators by their place: two like the world, an intercommunicator, and what a step has
  // made and freed.
  static constexpr int without_wildcards = 1;
  static constexpr int between_groups = 2;

  // Half of the programs take no message out of the matching. Nobody may hold one back then while
  // a receive is posted that it fits, unless it is about to be given to an earlier receive.
  [[nodiscard]] bool matches() const { return program_.seed % 2 == 0; }
  // In some programs MPI calls fail.
  [[nodiscard]] bool faults() const { return program_.seed % 3 == 0; }

  // ---- drawing

  int below(int end) { return static_cast<int>(random_() % static_cast<unsigned>(end)); }
  int draw_comm() { return below(between_groups + 1); }
  // The remote group of the intercommunicator is smaller.
  int draw_source(int comm) { return below(comm == between_groups ? 2 : ranks); }

  Way draw_way() { return static_cast<Way>(below(8)); }

  void draw_envelope(Taking& taking) {
    taking.comm = draw_comm();
    const bool exact = taking.comm == without_wildcards;
    taking.source = !exact && below(3) == 0 ? MPI_ANY_SOURCE : draw_source(taking.comm);
    taking.tag = !exact && below(3) == 0 ? MPI_ANY_TAG : below(tags);
    taking.words = 1 + below(5);
  }

  Taking& add_taking(const char* call) {
    Taking& made = takings_.emplace_back();
    made.number = takings_.size();
    made.call = call;
    draw_envelope(made);
    made.buffer.assign(6, untouched);
    return made;
  }

  // ---- messages

  std::vector<std::uint64_t> words_of(std::uint64_t id, int words) {
    std::vector<std::uint64_t> content(static_cast<std::size_t>(words));
    for (std::size_t i = 0; i < content.size(); ++i) content[i] = id + i;
    return content;
  }
  std::vector<std::uint64_t> draw_content() { return words_of(next_id_ += 16, 1 + below(5)); }

  void send_from_peer(int comm, int source, int tag) {
    const std::vector<std::uint64_t> content = draw_content();
    const auto* const first = reinterpret_cast<const std::byte*>(content.data());
    fake_mpi::send({.comm = comms_[static_cast<std::size_t>(comm)],
                    .source = source,
                    .tag = tag,
                    .bytes = {first, first + content.size() * sizeof content[0]},
                    .synchronous = below(4) == 0,
                    .rounds = below(2) * below(6),
                    .error = below(25) == 0 ? static_cast<int>(MPI_ERR_OTHER) : MPI_SUCCESS});
  }

  // ---- the beginning and the end

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
      imbrex_events_end(comms_[static_cast<std::size_t>(comm)]);
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

  // MPI lets go of a freed communicator only when what is under way on it is complete.
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
    MPI_Info_set(info, below(2) == 0 ? "mpi_assert_no_any_source" : "mpi_assert_no_any_tag", "true");
    MPI_Comm_set_info(comms_[without_wildcards], info);
    MPI_Info_free(&info);
  }

  // Each message is told once, and nothing else changes.
  void watch() {
    const MPI_Comm comm = comms_[static_cast<std::size_t>(draw_comm())];
    if (below(2) == 0) {
      imbrex_events_begin(comm);
    } else {
      imbrex_events_end(comm);
    }
    imbrex_event event = {};
    while (imbrex_event_poll(&event) != 0) {
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

  // What the probe saw may be gone when the receive comes: then it waits for another.
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
    task("arrived").in(future).launch([this, &taking, future] {
      taking.posted_last = ++clock_;
      MPI_Status status = {};
      int code = MPI_SUCCESS;
      try {
        status = future.get().receive(taking.buffer.data(), taking.words, MPI_UINT64_T);
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
    // In the order of the array.
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

  // To another rank, or to this one; then it is a message like others.
  void send_own() {
    Open& open = opens_.emplace_back();
    open.buffer = own_content();
    const int comm = below(between_groups);
    const int tag = below(tags);
    const int peer = below(ranks);
    if (peer == 0) own_.pop_back();
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

  // Not where the communicator is freed: nobody could receive the message then.
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

  // ---- what the steps are made of

  [[nodiscard]] MPI_Comm comm_of(const Taking& taking) const {
    return comms_[static_cast<std::size_t>(taking.comm)];
  }

  const std::vector<std::uint64_t>& own_content() { return own_.emplace_back(draw_content()); }

  // In a task or, if the order of things may be open, now and then in a thread.
  template <class F>
  void launch(F body) {
    ++live_bodies_;
    const auto counted = [this, body]() mutable {
      body();
      --live_bodies_;
    };
    if (!exact_ && below(6) == 0) {
      threads_.emplace_back(counted);
    } else {
      task("body").launch(counted);
    }
  }

  static void pause() {
    if (detail::in_task()) {
      yield();
    } else {
      std::this_thread::yield();
    }
  }

  // `f` posts a receive, and may wait for it then.
  template <class F>
  int posting(Taking& taking, F f) {
    taking.posted_first = taking.posted_last = ++clock_;
    taking.posted.store(true);
    const int code = f();
    if (!exact_) taking.posted_last = ++clock_;
    return code;
  }

  // `f` looks for a message at some time until it returns. REQUIRES: `taking` is complete then.
  // False if it fails; then it is over.
  template <class F>
  bool searching(Taking& taking, F f) {
    taking.posted_first = ++clock_;
    taking.posted.store(true);
    const int code = f();
    taking.posted_last = ++clock_;
    if (code == MPI_SUCCESS) return true;
    complete(taking, code, nullptr);
    return false;
  }

  void receive_matched(Taking& taking, MPI_Message message) {
    MPI_Status status = {};
    const int code =
        MPI_Mrecv(taking.buffer.data(), taking.words, MPI_UINT64_T, &message, &status);
    if (message != MPI_MESSAGE_NULL) fail("MPI_Mrecv left its message");
    complete(taking, code, &status);
  }

  // A probe says no more than its status: the message is the first of that source and tag that is
  // still there, and the check of the order shows whether that can be.
  void see(Taking& probing, const MPI_Status& status) {
    probing.status = status;
    probing.has_status = true;
    probing.done.store(true);
  }

  void complete(Taking& taking, int code, const MPI_Status* status) {
    taking.code = code;
    if (status != nullptr) {
      int cancelled = 0;
      MPI_Test_cancelled(status, &cancelled);
      taking.empty = cancelled != 0;
      taking.status = *status;
      taking.has_status = !taking.empty;
    }
    if (code == injected || (!taking.code_known && taking.buffer[0] == untouched)) {
      taking.empty = true;
    }
    taking.id = taking.buffer[0];
    taking.done.store(true);
  }

  void complete(Open& open, int code, const MPI_Status* status) {
    if (!open.persistent && open.request != MPI_REQUEST_NULL) fail("a complete request is left");
    if (open.taking == nullptr) {
      if (code != MPI_SUCCESS) fail("a send failed");
      return;
    }
    Taking& taking = *std::exchange(open.taking, nullptr);
    if (open.persistent) taking.buffer = open.buffer;
    complete(taking, code, status);
  }

  // Out of the requests that nobody waits for.
  std::vector<Open*> take_some(int most) {
    std::vector<Open*> some;
    for (int i = 1 + below(most); i > 0 && !available_.empty(); --i) {
      const auto place = available_.begin() + below(static_cast<int>(available_.size()));
      some.push_back(*place);
      available_.erase(place);
    }
    return some;
  }

  // The requests of one call, with a null one among them.
  struct Array {
    explicit Array(const std::vector<Open*>& some)
        : requests(some.size() + 1, MPI_REQUEST_NULL), statuses(some.size() + 1),
          indices(some.size() + 1) {
      for (std::size_t i = 0; i < some.size(); ++i) requests[i] = some[i]->request;
    }
    std::vector<MPI_Request> requests;
    std::vector<MPI_Status> statuses;
    std::vector<int> indices;
  };

  // One call for some requests: those that it completes leave `some`.
  void ask(std::vector<Open*>& some, Way way, bool ignore) {
    if (some.empty()) return;
    Array all(some);
    MPI_Request* const requests = all.requests.data();
    MPI_Status* const statuses = all.statuses.data();
    int* const indices = all.indices.data();
    int* const places = all.indices.data();
    const int size = static_cast<int>(all.requests.size());
    int flag = 1;
    int found = 1;
    int code = MPI_SUCCESS;
    std::iota(all.indices.begin(), all.indices.end(), 0);
    switch (way) {
      case Way::test: code = MPI_Test(requests, &flag, statuses); break;
      case Way::wait: code = MPI_Wait(requests, statuses); break;
      case Way::testany: code = MPI_Testany(size, requests, places, &flag, statuses); break;
      case Way::waitany: code = MPI_Waitany(size, requests, places, statuses); break;
      case Way::testsome: code = MPI_Testsome(size, requests, &found, indices, statuses); break;
      case Way::waitsome: code = MPI_Waitsome(size, requests, &found, indices, statuses); break;
      case Way::testall:
        found = static_cast<int>(some.size());
        code = MPI_Testall(size, requests, &flag, statuses);
        break;
      case Way::waitall:
        found = static_cast<int>(some.size());
        code = MPI_Waitall(size, requests, ignore ? MPI_STATUSES_IGNORE : statuses);
        break;
    }
    if (flag == 0 && code == MPI_SUCCESS) return;
    settle(some, all, found, code, ignore && way == Way::waitall);
  }

  // The first `found` of the places are complete, by the first of the statuses.
  void settle(std::vector<Open*>& some, const Array& all, int found, int code, bool ignored) {
    std::set<Open*> completed;
    for (std::size_t i = 0; i < static_cast<std::size_t>(found); ++i) {
      const auto place = static_cast<std::size_t>(all.indices[i]);
      if (place >= some.size()) {
        fail("a null request is complete");
        continue;
      }
      const MPI_Status& status = all.statuses[i];
      const int own = code == MPI_ERR_IN_STATUS ? status.MPI_ERROR : code;
      if (own == MPI_ERR_PENDING) continue;
      Open& open = *some[place];
      open.request = all.requests[place];
      if (open.taking != nullptr && ignored) open.taking->code_known = code == MPI_SUCCESS;
      complete(open, own, ignored ? nullptr : &status);
      completed.insert(&open);
    }
    std::erase_if(some, [&](Open* open) { return completed.contains(open); });
    const std::lock_guard guard(mutex_);
    for (Open* open : completed) {
      if (open->persistent) inactive_.push_back(open);
    }
  }

  void wait_for(std::vector<Open*> some, Way way, bool ignore, bool look_first) {
    for (int flag = 0; look_first && flag == 0;) {
      MPI_Status status;
      MPI_Request_get_status(some[0]->request, &flag, &status);
      if (flag == 0) pause();
    }
    while (!some.empty()) {
      ask(some, way, ignore);
      pause();
    }
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
    for (const Taking& taking : takings_) taken += taking.takes && !taking.empty ? 1u : 0u;
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
    return check_sent() && good;
  }

  bool check_sent() {
    std::multiset<std::vector<std::uint64_t>> expected(own_.begin(), own_.end());
    for (const fake_mpi::Sent& sent : fake_mpi::sent()) {
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

  void fail(const char* what) {
    std::printf("FAILS: %s\n", what);
    ++failures_;
  }

  static constexpr int give_up_s = 5;
  static constexpr int injected = MPI_ERR_INTERN;  // no message has this error

  const Program& program_;
  const bool exact_;
  std::mt19937_64 random_;                   // the root task only, as all that has no atomic type
  std::vector<MPI_Comm> comms_;
  MPI_Errhandler handler_ = MPI_ERRHANDLER_NULL;
  std::uint64_t next_id_ = 0;
  std::deque<Taking> takings_;
  std::deque<Open> opens_;
  std::deque<std::vector<std::uint64_t>> own_;  // contents that this rank sends to others
  std::vector<Open*> available_;             // requests that nobody waits for
  std::set<const Taking*> forgotten_;        // of requests that were freed
  std::map<MPI_Comm, int> told_;             // events of messages
  std::vector<std::thread> threads_;
  std::mutex mutex_;                         // guards inactive_
  std::vector<Open*> inactive_;              // persistent requests that are not started
  std::atomic<std::uint64_t> clock_ = 0;     // any thread; seq_cst: its order is that of the run
  std::atomic<int> live_bodies_ = 0;
  std::atomic<int> failures_ = 0;
};

// ---- one program, and all of them --------------------------------------------------------------

struct Options {
  std::uint64_t seed = 1;
  int count = 20;
  int workers = 0;  // 0: 1, 2 and 4
  std::string policy = "every";
  int steps = 80;
  std::vector<int> only;
  bool show = false;
};

// In a process of its own. True if all is well.
bool run_program(const Program& program) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    // Receives of a communicator that MPI has before further ones are matched by imbrex.
    constexpr const char* match_above[] = {"0", "1", "2", "4", "1000000000"};
    setenv("IMBREX_MATCH_ABOVE", match_above[program.seed % std::size(match_above)], 1);
    Config config;
    config.workers = program.workers;
    config.policy = program.policy == "seeded" ? "seeded:" + std::to_string(program.seed)
                                               : program.policy;
    bool good = false;
    {
      const Runtime runtime(config);
      Run run(program);
      good = run.run();
    }
    std::exit(good ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) std::printf("FAILS: signal %d\n", WTERMSIG(status));
  return status == 0;
}

void print(const Program& program, const std::vector<int>* steps) {
  std::printf("--seed %llu --count 1 --workers %d --policy %s",
              static_cast<unsigned long long>(program.seed), program.workers,
              program.policy.c_str());
  for (std::size_t i = 0; steps != nullptr && i < steps->size(); ++i) {
    std::printf("%s%d", i == 0 ? " --only " : ",", (*steps)[i]);
  }
  std::printf("\n");
}

// Leaves out halves, quarters, ... of the steps as long as the program fails all the same.
void shrink(Program program) {
  program.show = false;
  const Clock::time_point end = Clock::now() + std::chrono::seconds(60);
  for (std::size_t part = program.steps.size() / 2; part > 0; part /= 2) {
    for (std::size_t first = 0; first + part <= program.steps.size() && Clock::now() < end;) {
      Program smaller = program;
      const auto begin = smaller.steps.begin() + static_cast<std::ptrdiff_t>(first);
      smaller.steps.erase(begin, begin + static_cast<std::ptrdiff_t>(part));
      if (run_program(smaller)) {
        first += part;
      } else {
        program = smaller;
      }
    }
  }
  std::printf("the smallest that fails: ");
  print(program, &program.steps);
}

bool run_seed(const Options& options, std::uint64_t seed, int workers, const std::string& policy) {
  Program program{.seed = seed, .workers = workers, .policy = policy, .steps = options.only, .show = options.show};
  print(program, options.only.empty() ? nullptr : &options.only);
  if (program.steps.empty()) {
    program.steps.resize(static_cast<std::size_t>(options.steps));
    std::iota(program.steps.begin(), program.steps.end(), 0);
  }
  if (run_program(program)) return true;
  if (options.only.empty()) shrink(program);
  return false;
}

std::vector<int> parse_list(const char* text) {
  std::vector<int> numbers;
  for (char* end = nullptr; *text != '\0'; text = *end == ',' ? end + 1 : end) {
    numbers.push_back(static_cast<int>(std::strtol(text, &end, 10)));
    if (end == text) return {};
  }
  return numbers;
}

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; i += 2) {
    const std::string key = argv[i];
    if (i + 1 == argc) return false;
    if (key == "--seed") {
      options.seed = std::strtoull(argv[i + 1], nullptr, 10);
    } else if (key == "--count") {
      options.count = std::atoi(argv[i + 1]);
    } else if (key == "--workers") {
      options.workers = std::atoi(argv[i + 1]);
    } else if (key == "--policy") {
      options.policy = argv[i + 1];
    } else if (key == "--steps") {
      options.steps = std::atoi(argv[i + 1]);
    } else if (key == "--only") {
      options.only = parse_list(argv[i + 1]);
    } else if (key == "--show") {
      options.show = std::atoi(argv[i + 1]) != 0;
    } else {
      return false;
    }
  }
  return true;
}

int run_all(const Options& options) {
  std::vector<int> workers{1, 2, 4};
  if (options.workers > 0) workers = {options.workers};
  std::vector<std::string> policies{"default", "steal", "fifo", "priority", "seeded"};
  if (options.policy != "every") policies = {options.policy};
  int failed = 0;
  for (int i = 0; i < options.count; ++i) {
    for (const int count : workers) {
      for (const std::string& policy : policies) {
        if (!run_seed(options, options.seed + static_cast<std::uint64_t>(i), count, policy)) {
          ++failed;
        }
      }
    }
  }
  std::printf("%d programs failed\n", failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace imbrex::test

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // the last line names the seed, also after a crash
  imbrex::test::Options options;
  if (!imbrex::test::parse(argc, argv, options)) {
    std::fprintf(stderr,
                 "usage: %s [--seed N] [--count N] [--workers N] [--policy P] [--steps N] "
                 "[--only I,J,...] [--show 1]\n",
                 argv[0]);
    return 2;
  }
  return imbrex::test::run_all(options);
}
