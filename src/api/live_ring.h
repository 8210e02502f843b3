// A ring of the samples that arrived last: one thread pushes, one takes what it needs, and neither
// waits for the other.
//
// Samples are numbered as they are accepted; number k lies in slot k modulo slots(). Nothing there is
// changed until it is overwritten, and there are at least twice as many slots as samples are kept: a
// reader has to look again only if more samples than are kept came while it looked.
//
// The protocol is a sequence lock for each slot (Boehm, "Can seqlocks get along with programming
// language memory models?", 2012):
//
//   writer                                        reader
//   W1  begun = k + 1             relaxed         R1  end                     acquire
//   W2  fence                     release         R2  words of slots          relaxed
//   W3  words of slot k % slots   relaxed         R3  fence                   acquire
//   W4  end = k + 1               release         R4  begun                   relaxed
//
// Why that is enough on ARM, where any two of these may pass each other but for what stands between:
//
// - Whole: R1 reads what W4 wrote, so all of W3 for the numbers below `end` happens before R2.
// - Not torn: suppose that R2 reads a word which W3 wrote for a later number m in the same slot. The
//   fences W2, before that store, and R3, behind that load, then synchronize, so that R4 sees
//   W1 of m or a later one: begun > m = k + slots, and the reader looks again. Without W2 the store
//   of the word could become visible before `begun`; without R3 `begun` could be read before the words.
// - Own values: what only the writer changes (newest_, times of kept samples) it reads as it wrote.
// - Hand over: enter() acquires and leave() releases, so a thread may push after another has.
//
// x86 gives W2, R1, R3 and W4 for nothing; ARM takes a barrier each for W2 and R3 (dmb ish, dmb
// ishld), and a store and a load of their own kind for W4 and R1 (stlr, ldar). All reads and writes of slots
// are relaxed atomics, so that there is no data race and no word is torn.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "times.h"

namespace rbc {

class LiveRing {
 public:
  LiveRing(int64_t capacity, int64_t late_bound, int64_t row_bytes);

  int64_t capacity() const { return capacity_; }
  // From a row that take() has taken to the next: row_bytes and what makes them whole words.
  int64_t takenBytes() const { return 8 * row_words_; }

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
    uint64_t* rows;     // takenBytes() each
    uint64_t* numbers;  // scratch
    int64_t count;
    bool any;     // the ring holds samples
    Time newest;  // their largest time
  };

  // What queries are about: all times from `first` on; none where `none`. If `count` is not 0, they
  // are these few, which ascend and begin with `first`.
  template <class Time>
  struct Queries {
    Time first;
    bool none;
    const Time* few;
    int64_t count;
    // Distinct times on each side of a query that are taken. Of the last of them the sample next to
    // the query is; its equals may be left out.
    int times_around;
  };

  // The samples that queries need: all later than `first`, and those of some distinct times before; or
  // those around a few queries. Without queries only `any` and `newest`.
  template <class Time>
  void take(const Queries<Time>& queries, Taken<Time>* taken);

  // ---- any thread ----

  struct Counters {
    int64_t pushed;
    int64_t late;
    int64_t dropped;
    int64_t retried;
  };
  Counters counters() const;

 private:
  // The times by number. By value, so that the members stay in registers.
  template <class Time>
  struct Times {
    const std::atomic<uint64_t>* bits;
    uint64_t slot_mask;

    Time operator[](uint64_t number) const {
      const uint64_t own = bits[number & slot_mask].load(std::memory_order_relaxed);
      Time time;
      std::memcpy(&time, &own, sizeof time);
      return time;
    }
  };

  int64_t slotOf(uint64_t number) const { return static_cast<int64_t>(number & slot_mask_); }
  template <class Time>
  Times<Time> times() const {
    return {times_.get(), slot_mask_};
  }
  bool isInOrder(uint64_t number) const {
    return in_order_[slotOf(number)].load(std::memory_order_relaxed);
  }
  // How many of numbers first .. last - 1 are later than a time, if that is no more than late_bound_;
  // else more than it.
  template <class Time>
  int64_t newerThan(Time time, uint64_t first, uint64_t last) const;
  template <class Time>
  bool takeOnce(const Queries<Time>& queries, Taken<Time>* taken);
  template <class Time>
  void takeAround(uint64_t begin, uint64_t end, const Queries<Time>& queries,
                  Taken<Time>* taken) const;
  template <class Time>
  bool walkBack(uint64_t begin, uint64_t end, const Queries<Time>& queries,
                Taken<Time>* taken) const;
  template <class Time>
  void sortAll(uint64_t begin, uint64_t end, const Queries<Time>& queries,
               Taken<Time>* taken) const;
  void readRows(const uint64_t* numbers, int64_t count, uint64_t* to) const;
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
  std::atomic<uint64_t> last_late_{0};  // 1 + the last number that was late
  std::atomic<int64_t> dropped_{0};
  std::atomic<bool> pushing_{false};
  uint64_t newest_ = 0;  // the number with the largest time of the kept ones, the last such
  alignas(64) std::atomic<int64_t> retried_{0};
};

}  // namespace rbc
