// SPDX-License-Identifier: BSD-3-Clause
// The objects behind the handles of hcmpi.h. A handle is looked up before it is used, so that a
// null, freed or garbage handle is detected, and never followed.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <utility>

namespace imbrex::hcmpi {

// The object of a handle. The last reference deletes it.
struct Counted {
  std::atomic<int> references{1};  // any thread; acq_rel: the last one sees the writes of the
                                   // others
};

// One reference. Thread safety: as an int.
template <class T>
class Ref {
 public:
  explicit Ref(T* const owned) noexcept : object_(owned) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref(const Ref& other) noexcept : object_(other.object_) {
    if (object_ != nullptr) object_->references.fetch_add(1, std::memory_order_relaxed);
  }
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_ == nullptr) return;
    if (object_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete object_;
  }
  [[nodiscard]] T* get() const noexcept { return object_; }
  T* operator->() const noexcept { return object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }

 private:
  T* object_;
};

// All handles of one kind that the program has not freed, in parts that each have a lock.
// Thread safety: every member, any thread.
template <class T>
class Handles {
 public:
  // Never destroyed: tasks may run while static destructors do. Objects that the program does not
  // free stay reachable here.
  [[nodiscard]] static Handles& all() {
    static Handles& the_handles = *new Handles;
    return the_handles;
  }
  T* add(std::unique_ptr<T> object) {
    Part& part = part_of(object.get());
    const std::lock_guard guard(part.lock);
    part.objects.insert(object.get());
    return object.release();
  }
  // Null: no such handle.
  [[nodiscard]] Ref<T> find(const void* const handle) {
    Part& part = part_of(handle);
    const std::lock_guard guard(part.lock);
    const auto found = part.objects.find(static_cast<T*>(const_cast<void*>(handle)));
    if (found == part.objects.end()) return Ref<T>(nullptr);
    (*found)->references.fetch_add(1, std::memory_order_relaxed);
    return Ref<T>(*found);
  }
  // find(), which also removes the object: the program owns it no more.
  [[nodiscard]] Ref<T> take(const void* const handle) {
    Part& part = part_of(handle);
    const std::lock_guard guard(part.lock);
    const auto found = part.objects.find(static_cast<T*>(const_cast<void*>(handle)));
    if (found == part.objects.end()) return Ref<T>(nullptr);
    Ref<T> taken(*found);
    part.objects.erase(found);
    return taken;
  }

 private:
  Handles() = default;
  struct alignas(64) Part {
    std::mutex lock;  // guards `objects`; this layer does not see base/guarded.hpp
    std::unordered_set<T*> objects;
  };
  [[nodiscard]] Part& part_of(const void* const handle) noexcept {
    const auto bits = reinterpret_cast<std::uintptr_t>(handle);
    return parts_[(bits * 0x9E3779B97F4A7C15u) >> 60];
  }
  std::array<Part, 16> parts_;
};

}  // namespace imbrex::hcmpi
