#include "live/live_ring.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <limits>

#include "fuse/times_check.h"
#include "number.h"

namespace rbc {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr int kLeaps = 3;  // this many samples that agree outvote the newest one

uint64_t slotsFor(int64_t capacity) {
  uint64_t slots = 2;
  while (slots < 2 * static_cast<uint64_t>(capacity)) slots *= 2;
  return slots;
}

template <class Time>
uint64_t bitsOf(Time time) {
  uint64_t bits = 0;
  std::memcpy(&bits, &time, sizeof time);
  return bits;
}

template <class Time>
Time timeOf(uint64_t bits) {
  Time time;
  std::memcpy(&time, &bits, sizeof time);
  return time;
}

// Returns false for NaN, infinities, and the ends of i64, which stand for NaT and infinity.
template <class Time>
bool isTime(Time time) {
  using Limits = std::numeric_limits<Time>;
  if constexpr (Limits::is_integer) {
    return time != Limits::min() && time != Limits::max();
  } else {
    return time >= Limits::lowest() && time <= Limits::max();
  }
}

// A thread that reads the new number also sees the samples that were pushed before.
void add(std::atomic<int64_t>* counter, int64_t number) {
  counter->store(counter->load(kRelaxed) + number, std::memory_order_release);
}

// Returns the first of the numbers begin .. end - 1, whose times ascend, with a time after the
// query; or end. The search starts around `pace` numbers before the end.
template <class Times, class Time>
[[gnu::always_inline]] inline uint64_t firstAfter(Times times, Time query, uint64_t begin,
                                                  uint64_t end, uint64_t pace) {
  const auto isAfter = [&](uint64_t number) { return times[number] > query; };
  uint64_t low = begin;
  uint64_t high = end;
  uint64_t step = 1;
  if (low < high) {
    const uint64_t guess = high - std::min(pace, high - low);
    if (isAfter(guess)) {
      high = guess;
      while (low < high) {
        const uint64_t probe = high - std::min(step, high - low);
        if (!isAfter(probe)) {
          low = probe + 1;
          break;
        }
        high = probe;
        step *= 2;
      }
    } else {
      low = guess + 1;
      while (low < high) {
        const uint64_t probe = low + std::min(step, high - low) - 1;
        if (isAfter(probe)) {
          high = probe;
          break;
        }
        low = probe + 1;
        step *= 2;
      }
    }
  }
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (isAfter(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return high;
}

}  // namespace

LiveRing::LiveRing(int64_t capacity, int64_t late_bound, TimeLimit max_ahead, int64_t row_bytes)
    : capacity_(capacity),
      late_bound_(late_bound),
      max_ahead_(max_ahead),
      row_bytes_(row_bytes),
      row_words_((row_bytes + 7) / 8),
      slot_mask_(slotsFor(capacity) - 1) {
  const size_t slots = slot_mask_ + 1;
  times_.reset(new std::atomic<uint64_t>[slots]());
  arrivals_.reset(new std::atomic<uint64_t>[slots]());
  rows_.reset(new std::atomic<uint64_t>[slots * static_cast<size_t>(row_words_)]());
  marks_.reset(new std::atomic<uint64_t>[slots]());
  firsts_.reset(new std::atomic<uint64_t>[slots]());
  order_.reset(new uint64_t[slots]());
}

// Reads rows that are adjacent in the ring together.
void LiveRing::readRows(const uint64_t* numbers, int64_t count, uint64_t* to) const {
  for (int64_t i = 0; i < count;) {
    const int64_t slot = slotOf(numbers[i]);
    const int64_t most = std::min(count - i, static_cast<int64_t>(slot_mask_) + 1 - slot);
    int64_t run = 1;
    while (run < most && numbers[i + run] == numbers[i] + static_cast<uint64_t>(run)) ++run;
    const std::atomic<uint64_t>* from = &rows_[slot * row_words_];
    const int64_t words = run * row_words_;
#pragma GCC unroll 4
    for (int64_t k = 0; k < words; ++k) to[k] = from[k].load(kRelaxed);
    to += words;
    i += run;
  }
}

void LiveRing::writeRow(uint64_t number, const std::byte* from) {
  std::atomic<uint64_t>* words = &rows_[slotOf(number) * row_words_];
  int64_t left = row_bytes_;
  for (; left >= 8; left -= 8, from += 8) {
    uint64_t word;
    std::memcpy(&word, from, 8);
    words++->store(word, kRelaxed);
  }
  if (left > 0) {
    uint64_t word = 0;
    std::memcpy(&word, from, static_cast<size_t>(left));
    words->store(word, kRelaxed);
  }
}

// ---- pushing ------------------------------------------------------------------------------------

// A time that is far from the newest sample's is doubted until kLeaps such samples arrive in a row.
template <class Time>
LiveRing::Leap LiveRing::leapOf(Time time) {
  if (!max_ahead_.set || size() == 0) return Leap::kNone;
  const Time newest = times<Time>()[order_[(order_end_ - 1) & slot_mask_]];
  if (!isFurther(time, newest, max_ahead_)) {
    leaps_ = 0;
    return Leap::kNone;
  }
  const auto last = timeOf<Time>(last_leap_);
  const bool agrees = leaps_ > 0 && time > last && !isFurther(time, last, max_ahead_);
  leaps_ = agrees ? leaps_ + 1 : 1;
  last_leap_ = bitsOf(time);
  if (leaps_ < kLeaps) return Leap::kDoubted;
  leaps_ = 0;
  return Leap::kBelieved;
}

template <class Time>
void LiveRing::push(Time time, Time arrival, const std::byte* row) {
  if (!isTime(time)) return add(&invalid_, 1);
  if (arrival != kAlways<Time> && !has_arrivals_.load(kRelaxed)) {
    beginArrivals(bitsOf(kAlways<Time>));
  }
  const Leap leap = leapOf(time);
  const Times<Time> times = this->times<Time>();
  const auto timeAt = [&](uint64_t place) { return times[order_[place & slot_mask_]]; };
  if (leap != Leap::kNone) {
    const bool ahead = time > timeAt(order_end_ - 1);
    if (ahead && leap == Leap::kDoubted) return add(&ahead_, 1);
    if (!ahead && leap == Leap::kBelieved) forget();
  }
  const uint64_t limit = std::min(size(), static_cast<uint64_t>(late_bound_) + 1);
  uint64_t newer = 0;
  while (newer < limit && timeAt(order_end_ - 1 - newer) > time) ++newer;
  if (newer > static_cast<uint64_t>(late_bound_)) return add(&dropped_, 1);
  ++pushed_;
  if (newer > 0) add(&late_, 1);
  if (size() < static_cast<uint64_t>(capacity_)) return append(time, arrival, row, newer);
  add(&overwritten_, 1);
  const uint64_t end = end_.load(kRelaxed);
  if (order_[order_begin_ & slot_mask_] != end - size()) return copyAll(time, arrival, row);
  ++order_begin_;
  append(time, arrival, row, newer);
}

void LiveRing::beginArrivals(uint64_t always) {
  for (uint64_t slot = 0; slot <= slot_mask_; ++slot) arrivals_[slot].store(always, kRelaxed);
  has_arrivals_.store(true, std::memory_order_release);
}

inline void LiveRing::writeEntry(uint64_t number, uint64_t time, uint64_t arrival, bool in_order) {
  const int64_t slot = slotOf(number);
  times_[slot].store(time, kRelaxed);
  if (has_arrivals_.load(kRelaxed)) arrivals_[slot].store(arrival, kRelaxed);
  marks_[slot].store(2 * pushed_ + (in_order ? 1 : 0), kRelaxed);
  firsts_[slot].store(next_first_, kRelaxed);
}

// Whether an entry that is written after `number` entries arrived before the last of them, or one of
// the two has no time.
template <class Time>
bool LiveRing::arrivesBefore(Time arrival, uint64_t number) const {
  if (number == 0) return TimeMath<Time>::isNaN(arrival);
  return !(arrivals<Time>()[number - 1] <= arrival);
}

// order_ must have room.
template <class Time>
void LiveRing::append(Time time, Time arrival, const std::byte* row, uint64_t newer) {
  const uint64_t number = end_.load(kRelaxed);
  for (uint64_t place = order_end_; place > order_end_ - newer; --place) {
    order_[place & slot_mask_] = order_[(place - 1) & slot_mask_];
  }
  order_[(order_end_ - newer) & slot_mask_] = number;
  ++order_end_;
  begun_.store(number + 1, kRelaxed);
  std::atomic_thread_fence(std::memory_order_release);
  writeEntry(number, bitsOf(time), bitsOf(arrival), newer == 0);
  writeRow(number, row);
  if (newer > 0) last_late_.store(number + 1, kRelaxed);
  if (has_arrivals_.load(kRelaxed) && arrivesBefore(arrival, number)) {
    last_swapped_.store(number + 1, kRelaxed);
  }
  end_.store(number + 1, std::memory_order_release);
}

// Appends the kept samples and the new one in the order of their times, without the oldest. The new
// sample is not the oldest: at most late_bound samples, fewer than all, are newer.
template <class Time>
void LiveRing::copyAll(Time time, Time arrival, const std::byte* row) {
  const Times<Time> times = this->times<Time>();
  const uint64_t begin = end_.load(kRelaxed);
  uint64_t number = begin;
  begun_.store(begin + size(), kRelaxed);
  std::atomic_thread_fence(std::memory_order_release);
  bool written = false;
  const auto writeNew = [&] {
    writeEntry(number, bitsOf(time), bitsOf(arrival), true);
    writeRow(number++, row);
    written = true;
  };
  for (uint64_t place = order_begin_ + 1; place < order_end_; ++place) {
    const uint64_t from = order_[place & slot_mask_];
    if (!written && times[from] > time) writeNew();
    writeEntry(number, bitsOf(times[from]), arrivals_[slotOf(from)].load(kRelaxed), true);
    const std::atomic<uint64_t>* words = &rows_[slotOf(from) * row_words_];
    std::atomic<uint64_t>* to = &rows_[slotOf(number++) * row_words_];
    for (int64_t k = 0; k < row_words_; ++k) to[k].store(words[k].load(kRelaxed), kRelaxed);
  }
  if (!written) writeNew();
  for (uint64_t k = begin; k < number; ++k) {
    order_[(order_begin_ + k - begin) & slot_mask_] = k;
    if (has_arrivals_.load(kRelaxed) && arrivesBefore(arrivals<Time>()[k], k)) {
      last_swapped_.store(k + 1, kRelaxed);
    }
  }
  end_.store(number, std::memory_order_release);
}

void LiveRing::forget() {
  add(&forgotten_, static_cast<int64_t>(size()));
  order_begin_ = order_end_;
  leaps_ = 0;
  next_first_ = end_.load(kRelaxed);
}

void LiveRing::reset() {
  forget();
  first_.store(next_first_, kRelaxed);
}

// ---- taking -------------------------------------------------------------------------------------

// Reads back from the newest sample while samples arrived in order; no earlier sample is then
// later. Returns false if one arrived out of order. Otherwise the samples needed are at the end of
// the memory.
template <bool kArrive, class Time>
bool LiveRing::walkBack(uint64_t begin, uint64_t end, const Queries<Time>& queries,
                        Taken<Time>* taken) const {
  const Times<Time> times = this->times<Time>();
  const Times<Time> arrivals = this->arrivals<Time>();
  const Time until = queries.untilOf(queries.first_common);
  int64_t place = capacity_;
  int before = 0;
  Time last = queries.first;
  for (uint64_t k = end; k > begin && before < queries.times_around; --k) {
    if (!isInOrder(k - 1)) return false;
    const Time time = times[k - 1];
    taken->times[--place] = time;
    taken->numbers[place] = k - 1;
    if (time < last && (!kArrive || arrivals[k - 1] <= until)) {
      ++before;
      last = time;
    }
  }
  taken->count = capacity_ - place;
  return true;
}

// Reads all samples and sorts them by insertion; late ones move only a few places. The samples
// needed are then at the end of the memory.
template <bool kArrive, class Time>
void LiveRing::sortAll(uint64_t begin, uint64_t end, const Queries<Time>& queries,
                       Taken<Time>* taken) const {
  const auto count = static_cast<int64_t>(end - begin);
  const Times<Time> given = this->times<Time>();
  const Times<Time> arrivals = this->arrivals<Time>();
  const Time until = queries.untilOf(queries.first_common);
  Time* const times = taken->times + capacity_ - count;
  uint64_t* const numbers = taken->numbers + capacity_ - count;
  for (int64_t i = 0; i < count; ++i) {
    const Time time = given[begin + static_cast<uint64_t>(i)];
    int64_t place = i;
    for (; place > 0 && times[place - 1] > time; --place) {
      times[place] = times[place - 1];
      numbers[place] = numbers[place - 1];
    }
    times[place] = time;
    numbers[place] = begin + static_cast<uint64_t>(i);
  }
  int64_t i = count;
  int before = 0;
  Time last = queries.first;
  while (i > 0 && before < queries.times_around) {
    --i;
    if (times[i] < last && (!kArrive || arrivals[numbers[i]] <= until)) {
      ++before;
      last = times[i];
    }
  }
  taken->count = count - i;
}

// For numbers whose times ascend, and whose arrivals do: from the last query back, takes the samples
// around each query that are not taken yet. Those that exist for it are the numbers before one.
template <bool kArrive, class Time>
void LiveRing::takeAround(uint64_t begin, uint64_t end, const Queries<Time>& queries,
                          Taken<Time>* taken) const {
  const Times<Time> times = this->times<Time>();
  const Times<Time> arrivals = this->arrivals<Time>();
  const int around = queries.times_around;
  const Time* const few = queries.few;
  Time* to = taken->times + capacity_;
  uint64_t* number = taken->numbers + capacity_;
  uint64_t lowest = end;  // the lowest number taken
  uint64_t after = end;
  uint64_t pace = 1;
  uint64_t existing = end;
  uint64_t existing_pace = 1;
  for (int64_t i = queries.count; i-- > 0;) {
    const Time query = few[i];
    const uint64_t next = firstAfter(times, query, begin, after, pace);
    pace = std::max<uint64_t>(after - next, 1);
    after = next;
    if constexpr (kArrive) {
      const Time until = queries.untilOf(queries.few_common[i]);
      const uint64_t none = firstAfter(arrivals, until, begin, existing, existing_pace);
      existing_pace = std::max<uint64_t>(existing - none, 1);
      // The oldest is taken even if it does not exist: queries before all samples are counted.
      existing = std::max(none, begin + 1);
    }
    const uint64_t stop = kArrive ? std::min(lowest, existing) : lowest;
    uint64_t last = after + 1;
    for (int distinct = 1; last < stop && distinct < around; ++last) {
      distinct += times[last] > times[last - 1] ? 1 : 0;
    }
    const auto keep = [&](uint64_t own_number, Time own) {
      *--to = own;
      *--number = own_number;
    };
    for (uint64_t k = std::min(last, stop); k > after; --k) keep(k - 1, times[k - 1]);
    uint64_t first = kArrive ? std::min(after, existing) : after;
    Time time = query;
    for (int distinct = 0; first > begin && distinct < around; --first) {
      const Time own = times[first - 1];
      distinct += own < time ? 1 : 0;
      time = own;
      if (first <= lowest) keep(first - 1, own);
    }
    lowest = std::min(lowest, first);
  }
  taken->count = taken->times + capacity_ - to;
}

// The samples that queries need among begin .. end - 1. Returns false if one of them may have been
// replaced meanwhile.
template <bool kArrive, class Time>
bool LiveRing::takeBetween(uint64_t begin, uint64_t end, const Queries<Time>& queries,
                           Taken<Time>* taken) {
  uint64_t oldest = begin;  // the oldest number that is read
  // Takes the samples around each query if the samples from the first query on are more than these.
  const auto around = static_cast<uint64_t>(3 * queries.count);
  const bool few = queries.count > 0 && last_late_.load(kRelaxed) <= begin + 1 &&
                   (!kArrive || last_swapped_.load(kRelaxed) <= begin + 1) &&
                   end - begin > around && times<Time>()[end - around] > queries.first;
  if (few) {
    takeAround<kArrive>(begin, end, queries, taken);
  } else if (walkBack<kArrive>(begin, end, queries, taken)) {
    oldest = taken->numbers[capacity_ - taken->count];
  } else {
    sortAll<kArrive>(begin, end, queries, taken);
  }
  if (queries.none) {
    taken->count = 0;
  } else {
    const int64_t skipped = capacity_ - taken->count;
    readRows(taken->numbers + skipped, taken->count, taken->rows);
    std::copy_n(taken->times + skipped, taken->count, taken->times);
    for (int64_t i = 0; kArrive && i < taken->count; ++i) {
      taken->arrivals[i] = arrivals<Time>()[taken->numbers[skipped + i]];
    }
  }
  std::atomic_thread_fence(std::memory_order_acquire);
  return begun_.load(kRelaxed) <= oldest + slot_mask_ + 1;
}

template <class Time>
bool LiveRing::takeOnce(const Queries<Time>& queries, Taken<Time>* taken) {
  const uint64_t end = end_.load(std::memory_order_acquire);
  taken->count = 0;
  taken->any = end > first_.load(kRelaxed);
  taken->arrive = has_arrivals_.load(std::memory_order_acquire);
  if (!taken->any) return true;
  const auto capacity = static_cast<uint64_t>(capacity_);
  const uint64_t begin =
      std::max(firsts_[slotOf(end - 1)].load(kRelaxed), end > capacity ? end - capacity : 0);
  if (begin >= end) return false;  // it belongs to a later entry
  return taken->arrive ? takeBetween<true>(begin, end, queries, taken)
                       : takeBetween<false>(begin, end, queries, taken);
}

template <class Time>
void LiveRing::take(const Queries<Time>& queries, Taken<Time>* taken) {
  while (!takeOnce(queries, taken)) {
    snapshot_retries_.store(snapshot_retries_.load(kRelaxed) + 1, kRelaxed);
  }
}

LiveRing::Counters LiveRing::counters() const {
  constexpr auto kAcquire = std::memory_order_acquire;
  Counters counters = {};
  for (;;) {
    const uint64_t end = end_.load(kAcquire);
    if (end == 0) break;
    counters.pushed = static_cast<int64_t>(marks_[slotOf(end - 1)].load(kRelaxed) / 2);
    std::atomic_thread_fence(kAcquire);
    if (begun_.load(kRelaxed) <= end + slot_mask_) break;
  }
  counters.overwritten = overwritten_.load(kAcquire);
  counters.late = late_.load(kAcquire);
  counters.dropped = dropped_.load(kAcquire);
  counters.ahead = ahead_.load(kAcquire);
  counters.invalid = invalid_.load(kAcquire);
  counters.forgotten = forgotten_.load(kAcquire);
  counters.snapshot_retries = snapshot_retries_.load(kRelaxed);
  return counters;
}

template void LiveRing::push(float, float, const std::byte*);
template void LiveRing::push(double, double, const std::byte*);
template void LiveRing::push(int64_t, int64_t, const std::byte*);
template void LiveRing::take(const Queries<float>&, Taken<float>*);
template void LiveRing::take(const Queries<double>&, Taken<double>*);
template void LiveRing::take(const Queries<int64_t>&, Taken<int64_t>*);

}  // namespace rbc
