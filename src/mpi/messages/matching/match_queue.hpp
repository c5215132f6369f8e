// SPDX-License-Identifier: BSD-3-Clause
// MPI's matching as a data structure: posted receives, and unexpected messages. Used by
// communicator.hpp; knows no MPI, only that `any` stands for every value.
//
// Everything is found by its (source, tag); wildcards are values like others. An arriving message
// could serve four kinds of receives, so it makes four searches and takes the oldest. A receive
// makes one search, since a held message is in four indices.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace imbrex::mpi::messages {

// The source and tag that a receive names, or that a message has. Wildcards have the values of the
// MPI in use.
struct Envelope {
  int source;
  int tag;
  friend bool operator==(const Envelope&, const Envelope&) = default;
};

// One entry of an Index. It is a member of the object that it stands for, and is not moved while it
// is in the Index.
struct Link {
  Envelope key = {};
  std::uint64_t sequence : 63 = 0;  // the order of insertion, over all keys
  bool queued : 1 = false;          // it is in an index
  Link* previous = nullptr;
  Link* next = nullptr;
  void* owner = nullptr;
};

// Links by key, oldest first among equals. Each bucket is one list in the order of insertion, so
// that a key needs no node; there are as many buckets as there were ever links at once. Thread
// safety: none.
// Invariants:
//   (1) within a bucket sequences ascend.
//   (2) there are never more links than buckets.
class Index {
 public:
  void insert(Link& link, Envelope key, std::uint64_t sequence, void* owner) {
    if (size_ == buckets_.size()) grow();
    link.key = key;
    link.sequence = sequence;
    link.owner = owner;
    link.queued = true;
    append(bucket_of(key), link);
    ++size_;
  }

  void remove(Link& link) noexcept {
    Bucket& bucket = bucket_of(link.key);
    (link.previous != nullptr ? link.previous->next : bucket.first) = link.next;
    (link.next != nullptr ? link.next->previous : bucket.last) = link.previous;
    link.queued = false;
    --size_;
  }

  // The oldest link with this key, or null.
  [[nodiscard]] Link* find(Envelope key) const noexcept {
    if (size_ == 0) return nullptr;
    Link* link = buckets_[place_of(key)].first;
    while (link != nullptr && link->key != key) link = link->next;
    return link;
  }

  // Both are called before a find() with this key: the first prefetches its bucket, the second its
  // oldest link.
  void fetch_bucket(Envelope key) const noexcept {
    if (size_ != 0) __builtin_prefetch(&buckets_[place_of(key)]);
  }
  void fetch_link(Envelope key) const noexcept {
    if (size_ != 0) __builtin_prefetch(buckets_[place_of(key)].first, 1);
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  template <class Visit>
  void for_each(Visit visit) const {
    for (const Bucket& bucket : buckets_) {
      for (const Link* link = bucket.first; link != nullptr; link = link->next) visit(*link);
    }
  }

 private:
  struct Bucket {
    Link* first = nullptr;
    Link* last = nullptr;
  };

  // Multiplication spreads neighbouring tags and sources over the upper bits.
  [[nodiscard]] std::size_t place_of(Envelope key) const noexcept {
    const std::uint64_t both = (std::uint64_t{static_cast<std::uint32_t>(key.source)} << 32) |
                               static_cast<std::uint32_t>(key.tag);
    return static_cast<std::size_t>((both * 0x9E3779B97F4A7C15u) >> shift_);
  }
  [[nodiscard]] Bucket& bucket_of(Envelope key) noexcept { return buckets_[place_of(key)]; }

  static void append(Bucket& bucket, Link& link) noexcept {
    link.previous = bucket.last;
    link.next = nullptr;
    (bucket.last != nullptr ? bucket.last->next : bucket.first) = &link;
    bucket.last = &link;
  }

  // Links with one key come from one bucket, so moves in its order keep (1).
  void grow() {
    constexpr std::size_t least = 64;
    constexpr int shift_of_least = 64 - 6;
    std::vector<Bucket> old(buckets_.empty() ? least : 2 * buckets_.size());
    shift_ = buckets_.empty() ? shift_of_least : shift_ - 1;
    std::swap(old, buckets_);
    for (const Bucket& bucket : old) {
      for (Link* link = bucket.first; link != nullptr;) {
        Link* const next = link->next;
        append(bucket_of(link->key), *link);
        link = next;
      }
    }
  }

  std::vector<Bucket> buckets_;  // a power of two
  std::size_t size_ = 0;
  int shift_ = 63;
};

// The values that stand for any source and for any tag.
struct Wildcards {
  int source;
  int tag;
};

// Receives in the order in which they were made. Thread safety: none.
class ReceiveQueue {
 public:
  explicit ReceiveQueue(Wildcards any) noexcept : any_(any) {}

  void push(Link& link, Envelope wanted, void* owner) {
    index_.insert(link, wanted, ++sequence_, owner);
    ++kinds_[kind_of(wanted)];
  }
  void remove(Link& link) noexcept {
    --kinds_[kind_of(link.key)];
    index_.remove(link);
  }

  // The oldest receive that a message with this envelope may serve, or null.
  [[nodiscard]] Link* find(Envelope message) const noexcept {
    const std::array<Envelope, 4> keys{message, Envelope{any_.source, message.tag},
                                       Envelope{message.source, any_.tag},
                                       Envelope{any_.source, any_.tag}};
    Link* oldest = nullptr;
    for (std::size_t kind = 0; kind < keys.size(); ++kind) {
      if (kinds_[kind] == 0) continue;
      Link* const link = index_.find(keys[kind]);
      if (link != nullptr && (oldest == nullptr || link->sequence < oldest->sequence)) {
        oldest = link;
      }
    }
    return oldest;
  }

  // Several messages are matched faster if all their buckets are fetched first, then all links.
  void fetch_bucket(Envelope message) const noexcept { index_.fetch_bucket(message); }
  void fetch_link(Envelope message) const noexcept { index_.fetch_link(message); }

  [[nodiscard]] std::size_t size() const noexcept { return index_.size(); }
  [[nodiscard]] bool empty() const noexcept { return index_.size() == 0; }

  // Visits all, in no order.
  template <class Visit>
  void for_each(Visit visit) const {
    index_.for_each(visit);
  }

 private:
  // The place of the key in find(): bit 0 any source, bit 1 any tag.
  [[nodiscard]] std::size_t kind_of(Envelope wanted) const noexcept {
    return (wanted.source == any_.source ? 1u : 0u) | (wanted.tag == any_.tag ? 2u : 0u);
  }

  Wildcards any_;
  Index index_;
  std::array<std::size_t, 4> kinds_{};  // number of each kind: most programs use one
  std::uint64_t sequence_ = 0;
};

// An unexpected message. Message is the type of the user of this file.
template <class Message>
struct Held {
  std::array<Link, 4> links;
  Message message;
};

// Messages in the order of their arrival. Thread safety: none.
template <class Message>
class HeldMessages {
 public:
  explicit HeldMessages(Wildcards any) noexcept : any_(any) {}

  void push(Held<Message>& held, Envelope came) {
    ++sequence_;
    const std::array<Envelope, 4> keys{came, Envelope{any_.source, came.tag},
                                       Envelope{came.source, any_.tag},
                                       Envelope{any_.source, any_.tag}};
    for (std::size_t i = 0; i < keys.size(); ++i) {
      index_.insert(held.links[i], keys[i], sequence_, &held);
    }
  }
  void remove(Held<Message>& held) noexcept {
    for (Link& link : held.links) index_.remove(link);
  }

  // The oldest that a receive with this envelope, wildcards included, may get; or null.
  [[nodiscard]] Held<Message>* find(Envelope wanted) const noexcept {
    const Link* const link = index_.find(wanted);
    return link == nullptr ? nullptr : static_cast<Held<Message>*>(link->owner);
  }

  [[nodiscard]] bool empty() const noexcept { return index_.size() == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return index_.size() / 4; }

  // Visits all, oldest first.
  template <class Visit>
  void for_each(Visit visit) const {
    const Envelope all{any_.source, any_.tag};
    for (const Link* link = index_.find(all); link != nullptr; link = link->next) {
      if (link->key == all) visit(*static_cast<const Held<Message>*>(link->owner));
    }
  }

 private:
  Wildcards any_;
  Index index_;
  std::uint64_t sequence_ = 0;
};

}  // namespace imbrex::mpi::messages
