// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/check/ranks/begun_collective.hpp"

#include <fmt/format.h>

#include <charconv>
#include <vector>

namespace imbrex::mpi::check {

namespace {

// The part of a task's text that names it.
std::string_view name_in(const std::string_view task) {
  const std::size_t end = task.rfind('"');
  return end == std::string_view::npos ? task : task.substr(0, end + 1);
}

constexpr char field_end = '\0';  // separates fields in a letter

template <class Number>
bool read_number(const std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

std::vector<std::string_view> fields_of(std::string_view text) {
  std::vector<std::string_view> fields;
  for (;;) {
    const std::size_t end = text.find(field_end);
    fields.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return fields;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

std::string kind_of(std::string_view call) {
  constexpr std::string_view prefix = "MPI_";
  if (!call.starts_with(prefix)) return std::string(call);
  call.remove_prefix(prefix.size());
  if (call.ends_with("_c")) call.remove_suffix(2);
  std::string kind(call);
  if (kind == "Comm_idup") return "Comm_dup";
  if (kind.size() > 1 && kind[0] == 'I' && kind[1] >= 'a' && kind[1] <= 'z') {
    kind.erase(0, 1);
    kind[0] = static_cast<char>(kind[0] - 'a' + 'A');
  }
  return kind;
}

std::string difference(const Begun& one, const Begun& other, const bool unordered) {
  std::string words;
  const auto note = [&words](const bool differs, const std::string_view word) {
    if (differs) words += fmt::format("{}{}", words.empty() ? "" : ", ", word);
  };
  const bool same_call = kind_of(one.call) == kind_of(other.call);
  note(!same_call, "the call");
  // Another call has other arguments.
  note(same_call && one.alike.root != other.alike.root, "the root");
  note(same_call && one.alike.op != other.alike.op, "the operation");
  note(same_call && one.alike.bytes != other.alike.bytes, "the number of bytes");
  const By by = one.ordering.by;
  if (by != other.ordering.by) {
    note(true, "the kind of order");
    return words;
  }
  if (by == By::key) {
    note(one.ordering.key != other.ordering.key, "the key");
  } else if (by == By::spawns && name_in(one.task) != name_in(other.task)) {
    note(true, "the task");
  } else if (unordered) {
    note(one.task != other.task, "the task");
  }
  return words;
}

std::string describe(const Begun& it) {
  std::string text = it.call;
  if (it.alike.root != Alike::none) text += fmt::format(", root {}", it.alike.root);
  if (!it.alike.op.empty()) text += fmt::format(", {}", it.alike.op);
  if (it.alike.bytes != Alike::none) text += fmt::format(", {} bytes", it.alike.bytes);
  if (it.ordering.by == By::key) text += fmt::format(", by key {}", it.ordering.key_text);
  if (it.ordering.by == By::spawns) text += ", as spawned";
  return text + ": in " + it.task;
}

std::string advise(const Begun& one, const Begun& other) {
  if (one.ordering.by != other.ordering.by) {
    return "Order a collective by the same means on all ranks (imbrex::order_collectives, "
           "imbrex::order_collectives_as_spawned), or on none";
  }
  if (one.ordering.by == By::spawns) {
    return "Spawn the tasks of imbrex::order_collectives_as_spawned in the same order on all "
           "ranks, and give tasks that belong together one name; or use a key "
           "(imbrex::order_collectives)";
  }
  return "All ranks must begin the collectives of a communicator in the same order, but tasks run "
         "in any order: order the tasks by a dependency, give each collective a key "
         "(imbrex::order_collectives), or give each task a communicator of its own (MPI_Comm_dup)";
}

std::string write(const Begun& it) {
  const auto by = static_cast<unsigned>(it.ordering.by);
  return fmt::format("{}{c}{}{c}{}{c}{}{c}{}{c}{}{c}{}{c}{}{c}{}{c}{}{c}{}", it.number, it.call,
                     it.comm, it.task, it.alike.root, it.alike.op, it.alike.bytes, by,
                     it.ordering.key, it.ordering.key_text, it.unordered ? 1 : 0,
                     fmt::arg("c", field_end));
}

std::optional<Begun> read(const std::string_view text) {
  const std::vector<std::string_view> fields = fields_of(text);
  if (fields.size() != 11) return std::nullopt;
  Begun it;
  unsigned by = 0;
  int unordered = 0;
  const bool well = read_number(fields[0], it.number) && read_number(fields[4], it.alike.root) &&
                    read_number(fields[6], it.alike.bytes) && read_number(fields[7], by) &&
                    read_number(fields[8], it.ordering.key) && read_number(fields[10], unordered);
  if (!well || by > static_cast<unsigned>(By::spawns)) return std::nullopt;
  it.call = fields[1];
  it.comm = fields[2];
  it.task = fields[3];
  it.alike.op = fields[5];
  it.ordering.by = static_cast<By>(by);
  it.ordering.key_text = fields[9];
  it.unordered = unordered != 0;
  return it;
}

}  // namespace imbrex::mpi::check
