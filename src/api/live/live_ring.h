// A ring of the newest samples: one thread pushes, one takes what it needs, and neither waits for the
// other.
//
// The ring is a log: entry k is in slot k modulo slots(). The samples that are kept are the last capacity
// entries before `end`, each sample once, without those before `first` and without those before the
// entry that firsts_ has for the last one. An entry never changes until its slot is used again, and there
// are at least twice as many slots as samples are kept.
//
// A sample is appended to the log as it arrives. If the ring is full, that ends the life of the entry that
// was appended first: right if no entry is older by its time, as in a stream without late samples. Else
// the whole ring is appended once more, in the order of the times and without the oldest sample, and all
// of it becomes visible at once. In such a copy nothing is out of order, so the next one comes
// capacity - late_bound pushes later at the earliest. `order_`, which only the writer sees, has the
// entries in the order of their times.
//
// The protocol is a sequence lock for each slot (Boehm, "Can seqlocks get along with programming
// language memory models?", 2012). Here n entries are appended to `end` ones; n is 1, or capacity:
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
// Why that is enough on ARM, where any two of these may pass each other but for what stands between:
//
// - Whole: R1 reads what W4 wrote, so all of W3 for the entries below `end` happens before R2.
// - Not torn: suppose that R2 reads a word which W3 wrote for a later entry m in the same slot. The
//   fences W2, before that store, and R3, behind that load, then synchronize, so that R4 sees
//   W1 of m or a later one: begun > m >= k + slots for the entry k that the reader wanted, and it looks
//   again. Without W2 the store of the word could become visible before `begun`; without R3 `begun` could
//   be read before the words.
// - No thread waits: the slots of the n entries differ from the slots of the capacity entries before `end`,
//   since n + capacity <= slots. So a writer that stands still between W1 and W4 leaves what the reader wants
//   untouched, and R4 lets it pass: begun = end + n <= first of these + slots. It has to look again
//   only if the ring was copied, or capacity samples came, and then one more, while it looked.
// - Forgotten: firsts_ of the last entry is a word of its slot. So when a sample replaces all others,
//   because of max_ahead or as the first one after a reset, they leave and it comes in one step, W4. If
//   R2 reads that word of a later entry, it is behind `end`, and the reader looks again, as R4 would have it.
// - Reset: until the next entry comes, `first` is `end`, and nothing is taken. A reader that sees an end
//   from before the reset and the first from after it takes nothing, too: it is what the ring holds by
//   then. A reader that sees neither, or an older first, takes what the ring held before.
// - Counted: `marks_` has for each entry how many samples had been pushed. counters() reads it like a
//   word of a row. So the number of pushed samples and what is visible of them change in one step, W4.
// - Own values: what only the writer changes (end, first, order_, times of kept samples) it reads as it
//   wrote.
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

#include "fuse_problem.h"
#include "times.h"

namespace rbc {

class LiveRing {
 public:
  LiveRing(int64_t capacity, int64_t late_bound, TimeLimit max_ahead, int64_t row_bytes);

  // From a row that take() has taken to the next: row_bytes and what makes them whole words.
  int64_t takenBytes() const { return 8 * row_words_; }

  // ---- the thread that pushes ----

  // Whether it is the only one; then it has to leave.
  bool enter() { return !pushing_.exchange(true, std::memory_order_acquire); }
  void leave() { pushing_.store(false, std::memory_order_release); }

  // `row` has row_bytes. The sample is kept or refused, and counted.
  template <class Time>
  void push(Time time, const std::byte* row);
  // Forgets all samples.
  void reset();

  // ---- the thread that reads ----

  // The samples that a call of the reader took, in the order of their times. Each array has room for
  // as many as the capacity.
  template <class Time>
  struct Taken {
    Time* times;
    uint64_t* rows;     // takenBytes() each
    uint64_t* numbers;  // scratch
    int64_t count;
    bool any;  // the ring holds samples
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
  // those around a few queries. Without queries only `any`.
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
    return (marks_[slotOf(number)].load(std::memory_order_relaxed) & 1) != 0;
  }
  // How a time compares with max_ahead.
  enum class Leap {
    kNone,     // it is near the newest sample
    kDoubted,  // it is far from the newest sample
    kBelieved  // it is far, as the samples before it were, and they agree with it
  };
  template <class Time>
  Leap leapOf(Time time);
  uint64_t size() const { return order_end_ - order_begin_; }
  template <class Time>
  void append(Time time, const std::byte* row, uint64_t newer);
  template <class Time>
  void copyAll(Time time, const std::byte* row);
  void writeEntry(uint64_t number, uint64_t time, bool in_order);
  // For the entries that come.
  void forget();
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
  const TimeLimit max_ahead_;
  const int64_t row_bytes_;
  const int64_t row_words_;
  const uint64_t slot_mask_;
  std::unique_ptr<std::atomic<uint64_t>[]> times_;  // their bits
  std::unique_ptr<std::atomic<uint64_t>[]> rows_;
  // Of an entry: twice the samples that were pushed up to it, and 1 more if it is not before any that
  // was kept when it came.
  std::unique_ptr<std::atomic<uint64_t>[]> marks_;
  std::unique_ptr<std::atomic<uint64_t>[]> firsts_;  // of an entry: those before are forgotten

  // The writer's, apart from what the reader writes.
  alignas(64) std::atomic<uint64_t> begun_{0};  // entries that the writer has begun
  std::atomic<uint64_t> end_{0};                // and that are there
  std::atomic<uint64_t> first_{0};              // those before are forgotten, by reset()
  std::atomic<uint64_t> last_late_{0};          // 1 + the last entry that was out of order
  std::atomic<int64_t> overwritten_{0};
  std::atomic<int64_t> late_{0};
  std::atomic<int64_t> dropped_{0};
  std::atomic<int64_t> ahead_{0};
  std::atomic<int64_t> invalid_{0};
  std::atomic<int64_t> forgotten_{0};
  std::atomic<bool> pushing_{false};
  // Only the writer looks at these. Of order_, a ring as well, order_begin_ .. order_end_ - 1 are the kept
  // entries in the order of their times, those with equal times as they came.
  uint64_t pushed_ = 0;
  uint64_t next_first_ = 0;  // for firsts_
  std::unique_ptr<uint64_t[]> order_;
  uint64_t order_begin_ = 0;
  uint64_t order_end_ = 0;
  int leaps_ = 0;           // successive samples that agree and are far from the newest one
  uint64_t last_leap_ = 0;  // the bits of the last one's time
  alignas(64) std::atomic<int64_t> snapshot_retries_{0};
};

}  // namespace rbc
