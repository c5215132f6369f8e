// SPDX-License-Identifier: BSD-3-Clause
// Addresses that stand for named events: a mark, 16 bits for the text, 36 for the number. No known
// processor uses addresses with this mark, so an event is told from an object without a look-up;
// and nothing must be freed, however many numbers a program uses.
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/check.hpp"
#include "base/guarded.hpp"
#include "base/spin_lock.hpp"
#include "imbrex/detail/waist.hpp"

namespace imbrex::detail {

namespace {

constexpr int number_bits = 36;
constexpr std::size_t texts_max = 1 << 16;

struct Texts {
  base::LastingLock<base::SpinLock> lock;
  std::unordered_map<std::string, std::uintptr_t> numbers IMBREX_GUARDED_BY(lock);
  std::vector<const std::string*> by_number IMBREX_GUARDED_BY(lock);  // keys of the map
};

// Never destroyed: tasks may outlive static objects.
Texts& texts() {
  static auto& all_texts = *new Texts;
  return all_texts;
}
[[maybe_unused]] const Texts& addresses_at_load = texts();

}  // namespace

const void* address_of(const EventName& name) {
  const auto number = static_cast<std::uintptr_t>(name.number);
  IMBREX_CHECK(name.text.data() != nullptr, "the name in a depend clause is a null pointer");
  IMBREX_CHECK(number >> number_bits == 0,
               "the event \"{}\" {} is named in a depend clause: its number must be 0 to 2^36 - 1",
               name.text, name.number);
  Texts& known = texts();
  const std::lock_guard guard(known.lock);
  const auto [entry, is_new] = known.numbers.try_emplace(std::string(name.text),
                                                         known.by_number.size());
  if (is_new) {
    known.by_number.push_back(&entry->first);
    IMBREX_CHECK(known.by_number.size() <= texts_max,
                 "more than {} names of events in depend clauses, the last of them \"{}\": give "
                 "iterations a number instead",
                 texts_max, name.text);
  }
  return reinterpret_cast<const void*>(name_address_mark << 52 | entry->second << number_bits |
                                       number);
}

EventName name_at(const void* const address) noexcept {
  const auto bits = reinterpret_cast<std::uintptr_t>(address);
  Texts& known = texts();
  const std::lock_guard guard(known.lock);
  const std::string& text = *known.by_number[(bits >> number_bits) & (texts_max - 1)];
  return {text, static_cast<std::int64_t>(bits & ((std::uintptr_t{1} << number_bits) - 1))};
}

}  // namespace imbrex::detail
