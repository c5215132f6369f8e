// SPDX-License-Identifier: BSD-3-Clause
// A plug-in above MPI, which knows the plug-in interface and no MPI: compiled once, linked and run
// with every MPI. Each part is a task on every rank.
#include "mpi/plugin/plugin.hpp"

#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>

#include "imbrex/imbrex.hpp"

#ifdef MPI_VERSION
#error "the plug-in interface must not bring mpi.h along"
#endif

extern "C" void run_plugin();
extern "C" int run_plugin_outside();

namespace {

using namespace imbrex::mpi;

void require(bool condition, const char* what) {
  if (!condition) throw std::runtime_error(what);
}

struct Ring {
  int first_tag;
  int next = (plugin::rank() + 1) % plugin::ranks();
  int previous = (plugin::rank() + plugin::ranks() - 1) % plugin::ranks();
};

// Sends are started first: a rank that is alone sends to itself.
void exchange_blocking(const Ring& ring) {
  const int mine = plugin::rank();
  const auto sent = plugin::start_send(ring.next, ring.first_tag, &mine, sizeof mine);
  int got = -1;
  const plugin::Arrival arrival =
      plugin::receive(ring.previous, ring.first_tag, &got, sizeof got);
  require(got == ring.previous && arrival.source == ring.previous, "the rank before this one");
  require(arrival.tag == ring.first_tag && arrival.bytes == sizeof got, "tag and size");
  (void)sent.get();
}

void exchange_as_dependency(const Ring& ring) {
  int got = -1;
  const auto received = plugin::start_receive(plugin::any, ring.first_tag + 1, &got, sizeof got);
  const auto checked = imbrex::task("uses the message").in(received).spawn([&] {
    require(got == ring.previous, "the message of the future");
    require(received.get().source == ring.previous, "its source");
  });
  const int mine = plugin::rank();
  plugin::send(ring.next, ring.first_tag + 1, &mine, sizeof mine);
  checked.get();
}

void exchange_of_any_length(const Ring& ring) {
  const std::string text(1000 + static_cast<std::size_t>(plugin::rank()), 'x');
  const auto sent = plugin::start_send(ring.next, ring.first_tag + 2, text.data(), text.size());
  plugin::Arrival arrival;
  const auto data = plugin::receive_whole(plugin::any, ring.first_tag + 2, arrival);
  require(data.size() == 1000 + static_cast<std::size_t>(ring.previous), "the length");
  require(arrival.source == ring.previous, "who has sent it");
  (void)sent.get();
}

// A message that is longer than its buffer. (Open MPI 4.1 cuts one to
// oneself short and says nothing.)
void meet_truncation(const Ring& ring) {
  const char text[] = "longer than that";
  char buffer[4];
  const auto received =
      plugin::start_receive(ring.previous, ring.first_tag + 3, buffer, sizeof buffer);
  const auto sent = plugin::start_send(ring.next, ring.first_tag + 3, text, sizeof text);
  bool failed = false;
  try {
    (void)received.get();
  } catch (const imbrex::MpiError& error) {
    failed = std::strstr(error.what(), "plugin::start_receive") != nullptr;
  }
  require(failed, "a truncated message fails its future");
  (void)sent.get();
}

void meet_missing_rank(const Ring& ring) {
  bool failed = false;
  try {
    plugin::send(plugin::ranks(), ring.first_tag, &failed, sizeof failed);
  } catch (const imbrex::MpiError&) {
    failed = true;
  }
  require(failed, "a send to nobody throws");
}

// Calls `function`, and requires that the Error it throws contains `part`.
template <class F>
void require_error(const char* part, F function) {
  try {
    function();
  } catch (const imbrex::Error& error) {
    require(std::strstr(error.what(), part) != nullptr, error.what());
    return;
  }
  throw std::runtime_error(std::string("nothing is thrown: ") + part);
}

// What would take the messages of others, or be taken by them.
void meet_tags_of_others(const Ring& ring) {
  int got = -1;
  plugin::Arrival arrival;
  require_error("start_receive of any tag", [&] {
    (void)plugin::start_receive(plugin::any, plugin::any, &got, sizeof got);
  });
  require_error("receive of any tag", [&] {
    (void)plugin::receive(ring.previous, plugin::any, &got, sizeof got);
  });
  require_error("receive_whole of any tag",
                [&] { (void)plugin::receive_whole(plugin::any, plugin::any, arrival); });
  for (const int tag : {-1, 0, ring.first_tag + 4, 1024, 2000}) {
    const std::string part = "with tag " + std::to_string(tag) + ", which no plug-in has claimed";
    require_error(part.c_str(), [&] { plugin::send(ring.next, tag, &got, sizeof got); });
    require_error(part.c_str(),
                  [&] { (void)plugin::start_send(ring.next, tag, &got, sizeof got); });
    require_error(part.c_str(),
                  [&] { (void)plugin::start_receive(plugin::any, tag, &got, sizeof got); });
  }
  for (const int rank : {-1, -2}) {
    require_error("there is no rank -",
                  [&] { plugin::send(rank, ring.first_tag, &got, sizeof got); });
    require_error("there is no rank -", [&] {
      (void)plugin::start_receive(rank, ring.first_tag, &got, sizeof got);
    });
  }
}

}  // namespace

// Throws what goes wrong.
void run_plugin() {
  const Ring ring{plugin::claim_tags(4)};
  imbrex::finish([&] {
    imbrex::task("blocking").launch([&] { exchange_blocking(ring); });
    imbrex::task("dependency").launch([&] { exchange_as_dependency(ring); });
    imbrex::task("any length").launch([&] { exchange_of_any_length(ring); });
    imbrex::task("missing rank").launch([&] { meet_missing_rank(ring); });
    imbrex::task("tags of others").launch([&] { meet_tags_of_others(ring); });
    if (plugin::ranks() > 1) imbrex::task("truncation").launch([&] { meet_truncation(ring); });
  });
  (void)plugin::start_barrier().get();
}

// 0 if outside of MPI all is refused.
int run_plugin_outside() {
  try {
    (void)plugin::claim_tags(1);
  } catch (const imbrex::Error&) {
    return plugin::is_active() ? 1 : 0;
  }
  return 1;
}
