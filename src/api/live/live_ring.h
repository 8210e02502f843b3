// A ring of the newest samples. One thread pushes, one thread takes samples, and neither waits for
// the other.
//
// The ring is a log: entry k is in slot k modulo slots(). The kept samples are the last capacity
// entries before `end`, each sample once, without entries before `first` and without entries before
// the entry that firsts_ has for the last one. An entry does not change until its slot is reused,
// and there are at least twice as many slots as kept samples.
//
// A sample is appended to the log when it arrives. If the ring is full, that removes the entry that
// was appended first. This is correct if no entry has an older time, as in a stream without late
// samples. Otherwise the whole ring is appended once more, in the order of the times and without
// the oldest sample, and all of it becomes visible at once. Such a copy is in order, so the next
// copy comes at the earliest capacity - late_bound pushes later. `order_`, which only the writer
// uses, has the entries in the order of their times.
//
// The protocol is a sequence lock for each slot (Boehm, "Can seqlocks get along with programming
// language memory models?", 2012). Here n entries are appended to `end` entries; n is 1 or
// capacity:
//
//   writer                                        reader
//   W1  begun = end + n           relaxed         R1  end                     acquire
//   W2  fence                     release         R2  first, words of slots   relaxed
//   W3  words of the n slots      relaxed         R3  fence                   acquire
//   W4  end = end + n             release         R4  begun                   relaxed
//
//   reset
//   W5  first = end               relaxed
//
// Why this is sufficient on ARM, where any two of these may be reordered, except as the orders and
// fences above forbid:
//
// - Whole: R1 reads the value of W4, so all of W3 for the entries below `end` happens before R2.
// - Not torn: suppose that R2 reads a word that W3 wrote for a later entry m in the same slot. The
//   fence W2, before that store, and the fence R3, after that load, then synchronize, so that R4
//   sees W1 of m or a later one: begun > m >= k + slots for the entry k that the reader wanted, and
//   the reader retries. Without W2 the store of the word could become visible before `begun`;
//   without R3 `begun` could be read before the words.
// - No thread waits: the slots of the n entries differ from the slots of the capacity entries
//   before `end`, since n + capacity <= slots. So a writer that is stopped between W1 and W4 does
//   not touch the entries that the reader wants, and R4 accepts them: begun = end + n <= first of
//   these + slots. The reader retries only if the ring was copied, or if capacity samples and one
//   more were pushed, while it was reading.
// - Forgotten: firsts_ of the last entry is a word of its slot. So when a sample replaces all
//   others, because of max_ahead or as the first one after a reset, they disappear and it appears
//   in one step, W4. If R2 reads that word of a later entry, it is past `end`, and the reader
//   retries, as in R4.
// - Reset: until the next entry is pushed, `first` is `end`, and no samples are taken. A reader
//   that sees an end from before the reset and the first from after it also takes none, which is
//   the content of the ring by then. A reader that sees neither, or an older first, takes the
//   samples from before.
// - Counted: `marks_` has for each entry the number of samples pushed so far. counters() reads it
//   like a word of a row. So the number of pushed samples and the visible samples change in one
//   step, W4.
// - Arrivals: the slots have them from the first entry with one on. Before it the writer makes them
//   kAlways in all slots and stores has_arrivals_ (release). A reader that loads it (acquire, after
//   R1) and finds false wants no entry with an arrival, and reads none of them.
// - In order: last_late_ and last_swapped_ are stored before W4 of their entry, so a reader that
//   wants the entry sees them, or later ones, which only make it read more samples.
// - Own values: the writer reads the values that only it changes (end, first, order_, times of kept
//   samples) as it wrote them.
// - Hand over: enter() acquires and leave() releases, so another thread may push afterwards.
//
// On x86, W2, R1, R3 and W4 have no cost. ARM needs a barrier each for W2 and R3 (dmb ish, dmb
// ishld), and a special store and load for W4 and R1 (stlr, ldar). All reads and writes of slots
// are relaxed atomics, so that there is no data race and no word is torn.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>

#include "fuse_problem.h"
#include "times.h"

namespace rbc {

class LiveRing {
 public:
  LiveRing(int64_t capacity, int64_t late_bound, TimeLimit max_ahead, int64_t row_bytes);

  int64_t capacity() const { return capacity_; }

  // Bytes from a row that take() wrote to the next: row_bytes, rounded up to whole words.
  int64_t takenBytes() const { return 8 * row_words_; }

  // ---- the thread that pushes ----

  // Returns whether no other thread is pushing; if true, the thread must call leave().
  bool enter() { return !pushing_.exchange(true, std::memory_order_acquire); }
  void leave() { pushing_.store(false, std::memory_order_release); }

  // Keeps or refuses a sample, and counts it. `row` has row_bytes.
  template <class Time>
  void push(Time time, Time arrival, const std::byte* row);
  // Forgets all samples.
  void reset();

  // ---- the thread that reads ----

  // The samples that a call of the reader took, in the order of their times. Each array has room
  // for `capacity` samples.
  template <class Time>
  struct Taken {
    Time* times;
    Time* arrivals;     // if `arrive`
    uint64_t* rows;     // takenBytes() each
    uint64_t* numbers;  // scratch
    int64_t count;
    bool any;     // the ring holds samples
    bool arrive;  // else all of them exist for every query
  };

  // The queries: any times from `first` on, or no times if `none`. If `count` is not 0, they are
  // exactly the entries of `few`, which ascend and begin with `first`.
  template <class Time>
  struct Queries {
    Time first;
    bool none;
    const Time* few;
    int64_t count;
    // The number of distinct times taken on each side of a query. Of samples that equal the last of
    // these times, the one next to the query is taken; the others may be omitted.
    int times_around;
    // The first query and the few ones on the clock of the arrivals. Samples that arrived later than
    // `lag` after a query do not exist for it, and do not count as its neighbours.
    Time first_common;
    const Time* few_common;
    Time lag;

    Time untilOf(Time query) const { return TimeMath<Time>::later(query, lag); }
  };

  // Takes the samples that queries need: all after `first` and some with a few distinct times before
  // it, or those around a few queries. Without queries it only sets `any`.
  template <class Time>
  void take(const Queries<Time>& queries, Taken<Time>* taken);

  // ---- any thread ----

  struct Counters {
    int64_t pushed;
    int64_t overwritten;
    int64_t late;
    int64_t dropped;
    int64_t ahead;
    int64_t invalid;
    int64_t forgotten;
    int64_t snapshot_retries;
  };
  Counters counters() const;

 private:
  // Reads the times by number. Returned by value, so that its members stay in registers.
  template <class Time>
  struct Times {  // or their arrivals
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
  template <class Time>
  Times<Time> arrivals() const {
    return {arrivals_.get(), slot_mask_};
  }
  bool isInOrder(uint64_t number) const {
    return (marks_[slotOf(number)].load(std::memory_order_relaxed) & 1) != 0;
  }
  // The distance of a time from the newest sample, compared with max_ahead.
  enum class Leap {
    kNone,     // near the newest sample
    kDoubted,  // far from the newest sample
    kBelieved  // far, and it agrees with the far samples before it
  };
  template <class Time>
  Leap leapOf(Time time);
  uint64_t size() const { return order_end_ - order_begin_; }
  template <class Time>
  void append(Time time, Time arrival, const std::byte* row, uint64_t newer);
  template <class Time>
  void copyAll(Time time, Time arrival, const std::byte* row);
  template <class Time>
  bool arrivesBefore(Time arrival, uint64_t number) const;
  // Before the first entry with an arrival.
  void beginArrivals(uint64_t always);
  void writeEntry(uint64_t number, uint64_t time, uint64_t arrival, bool in_order);
  // For the entries to be appended.
  void forget();
  template <class Time>
  bool takeOnce(const Queries<Time>& queries, Taken<Time>* taken);
  // `kArrive`: entries may have arrivals.
  template <bool kArrive, class Time>
  bool takeBetween(uint64_t begin, uint64_t end, const Queries<Time>& queries, Taken<Time>* taken);
  template <bool kArrive, class Time>
  void takeAround(uint64_t begin, uint64_t end, const Queries<Time>& queries,
                  Taken<Time>* taken) const;
  template <bool kArrive, class Time>
  bool walkBack(uint64_t begin, uint64_t end, const Queries<Time>& queries,
                Taken<Time>* taken) const;
  template <bool kArrive, class Time>
  void sortAll(uint64_t begin, uint64_t end, const Queries<Time>& queries,
               Taken<Time>* taken) const;
  void readRows(const uint64_t* numbers, int64_t count, uint64_t* to) const;
  void writeRow(uint64_t number, const std::byte* from);

  const int64_t capacity_;
  const int64_t late_bound_;
  const TimeLimit max_ahead_;
  const int64_t row_bytes_;
  const int64_t row_words_;
  const uint64_t slot_mask_;
  std::unique_ptr<std::atomic<uint64_t>[]> times_;     // the bits of the times
  std::unique_ptr<std::atomic<uint64_t>[]> arrivals_;  // the same of arrivals, if has_arrivals_
  std::unique_ptr<std::atomic<uint64_t>[]> rows_;
  // Per entry: twice the number of samples pushed up to it, plus 1 if no kept sample was newer when
  // it arrived.
  std::unique_ptr<std::atomic<uint64_t>[]> marks_;
  std::unique_ptr<std::atomic<uint64_t>[]>
      firsts_;  // per entry: entries before this one are forgotten

  // Written by the writer, on a separate cache line from the reader's variables.
  alignas(64) std::atomic<uint64_t> begun_{0};  // entries that the writer has begun to append
  std::atomic<uint64_t> end_{0};                // entries that are visible
  std::atomic<uint64_t> first_{0};              // entries before it were forgotten by reset()
  std::atomic<uint64_t> last_late_{0};          // 1 + the last entry that was out of order
  std::atomic<uint64_t> last_swapped_{0};  // 1 + the last that arrived before the one before it
  std::atomic<bool> has_arrivals_{false};  // an entry up to `end` may have an arrival
  std::atomic<int64_t> overwritten_{0};
  std::atomic<int64_t> late_{0};
  std::atomic<int64_t> dropped_{0};
  std::atomic<int64_t> ahead_{0};
  std::atomic<int64_t> invalid_{0};
  std::atomic<int64_t> forgotten_{0};
  std::atomic<bool> pushing_{false};
  // Only the writer uses these. order_ is a ring; order_begin_ .. order_end_ - 1 are the kept
  // entries in the order of their times, and of arrival if times are equal.
  uint64_t pushed_ = 0;
  uint64_t next_first_ = 0;  // for firsts_
  std::unique_ptr<uint64_t[]> order_;
  uint64_t order_begin_ = 0;
  uint64_t order_end_ = 0;
  int leaps_ = 0;           // successive samples that agree and are far from the newest one
  uint64_t last_leap_ = 0;  // the bits of the time of the last leap
  alignas(64) std::atomic<int64_t> snapshot_retries_{0};
};

}  // namespace rbc
