// A ring of the samples that arrived last: one thread pushes, one takes what it needs, and neither
// waits for the other.
//
// Samples are numbered as they are accepted; number k lies in slot k modulo slots(). Nothing there is
// changed until it is overwritten, and there are at least twice as many slots as samples are kept: a
// reader has to look again only if more samples than are kept came while it looked.
//
// The protocol is a sequence lock for each slot (Boehm, "Can seqlocks get along with programming
// language memory models?", 2012). The writer says that it begins number k, with a release fence
// behind that; it writes the slot; it says, by a release, that k is there. The reader learns the end
// by an acquire, reads slots, and behind an acquire fence looks whether the writer had begun a number
// that falls into one of them. If a read saw a byte of such a number, the fences make the reader see
// its beginning too. All reads and writes of slots are relaxed atomics, so that there is no data race.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "times.h"

namespace rbc {

class LiveRing {
 public:
  LiveRing(int64_t capacity, int64_t late_bound, int64_t row_bytes);

  int64_t capacity() const { return capacity_; }

  // ---- the thread that pushes ----

  // Whether it is the only one; then it has to leave.
  bool enter() { return !pushing_.exchange(true, std::memory_order_acquire); }
  void leave() { pushing_.store(false, std::memory_order_release); }

  // `row` has row_bytes. False if the sample is dropped.
  template <class Time>
  bool push(Time time, const std::byte* row);

  // ---- the thread that reads ----

  // What a call of the reader has taken: samples in the order of their times. Memory of capacity().
  template <class Time>
  struct Taken {
    Time* times;
    std::byte* rows;    // row_bytes each
    uint64_t* numbers;  // scratch
    int64_t count;
    bool any;     // the ring holds samples
    Time newest;  // their largest time
  };

  // The samples that queries from `first` on need, for any method: all later ones, and those of some
  // distinct times before. With `needs_none` only `any` and `newest`.
  template <class Time>
  void take(Time first, bool needs_none, Taken<Time>* taken);

  // ---- any thread ----

  struct Counters {
    int64_t pushed;
    int64_t late;
    int64_t dropped;
    int64_t retried;
  };
  Counters counters() const;

 private:
  int64_t slotOf(uint64_t number) const { return static_cast<int64_t>(number & slot_mask_); }
  template <class Time>
  Time timeOf(uint64_t number) const;
  bool isInOrder(uint64_t number) const {
    return in_order_[slotOf(number)].load(std::memory_order_relaxed);
  }
  // How many of numbers first .. last - 1 are later than a time, if that is no more than late_bound_;
  // else more than it.
  template <class Time>
  int64_t newerThan(Time time, uint64_t first, uint64_t last) const;
  template <class Time>
  bool takeOnce(Time first, bool needs_none, Taken<Time>* taken);
  template <class Time>
  bool walkBack(uint64_t begin, uint64_t end, Time first, Taken<Time>* taken) const;
  template <class Time>
  void sortAll(uint64_t begin, uint64_t end, Time first, Taken<Time>* taken) const;
  void readRow(uint64_t number, std::byte* to) const;
  void writeRow(uint64_t number, const std::byte* from);

  const int64_t capacity_;
  const int64_t late_bound_;
  const int64_t row_bytes_;
  const int64_t row_words_;
  const uint64_t slot_mask_;
  std::unique_ptr<std::atomic<uint64_t>[]> times_;  // their bits
  std::unique_ptr<std::atomic<uint64_t>[]> rows_;
  std::unique_ptr<std::atomic<bool>[]> in_order_;  // not before any that was kept when it came

  // The writer's, apart from what the reader writes.
  alignas(64) std::atomic<uint64_t> begun_{0};  // numbers that the writer has begun
  std::atomic<uint64_t> end_{0};                // and that are there
  std::atomic<int64_t> late_{0};
  std::atomic<int64_t> dropped_{0};
  std::atomic<bool> pushing_{false};
  uint64_t newest_ = 0;  // the number with the largest time of the kept ones, the last such
  alignas(64) std::atomic<int64_t> retried_{0};
};

}  // namespace rbc
