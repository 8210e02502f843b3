#include "live_ring.h"

#include <algorithm>
#include <cstring>

#include "number.h"

namespace rbc {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

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

// The first of numbers begin .. end - 1, whose times ascend, with a time after the query's; or end. It is
// looked for around `pace` numbers from the end.
template <class Times, class Time>
uint64_t firstAfter(Times times, Time query, uint64_t begin, uint64_t end, uint64_t pace) {
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

LiveRing::LiveRing(int64_t capacity, int64_t late_bound, int64_t row_bytes)
    : capacity_(capacity),
      late_bound_(late_bound),
      row_bytes_(row_bytes),
      row_words_((row_bytes + 7) / 8),
      slot_mask_(slotsFor(capacity) - 1) {
  const size_t slots = slot_mask_ + 1;
  times_.reset(new std::atomic<uint64_t>[slots]());
  rows_.reset(new std::atomic<uint64_t>[slots * static_cast<size_t>(row_words_)]());
  in_order_.reset(new std::atomic<bool>[slots]());
}

// Rows that follow each other in the ring are read as one.
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

// ---- pushing --------------------------------------------------------------------------------------

template <class Time>
int64_t LiveRing::newerThan(Time time, uint64_t first, uint64_t last) const {
  const Times<Time> times = this->times<Time>();
  int64_t newer = 0;
  for (uint64_t k = last; k > first && newer <= late_bound_; --k) {
    newer += times[k - 1] > time ? 1 : 0;
  }
  return newer;
}

template <class Time>
bool LiveRing::push(Time time, const std::byte* row) {
  const Times<Time> times = this->times<Time>();
  const uint64_t number = end_.load(kRelaxed);
  const auto kept = static_cast<uint64_t>(capacity_);
  // Those that are there beside it, once it has come.
  const uint64_t first = number >= kept ? number + 1 - kept : 0;
  if (newest_ < first) {
    newest_ = first;
    for (uint64_t k = first; k < number; ++k) {
      if (times[k] >= times[newest_]) newest_ = k;
    }
  }
  const bool in_order = number == first || !(time < times[newest_]);
  const bool too_late = !in_order && newerThan(time, first, number) > late_bound_;
  if (TimeMath<Time>::isNaN(time) || too_late) {
    dropped_.store(dropped_.load(kRelaxed) + 1, kRelaxed);
    return false;
  }
  begun_.store(number + 1, kRelaxed);
  std::atomic_thread_fence(std::memory_order_release);
  const int64_t slot = slotOf(number);
  times_[slot].store(bitsOf(time), kRelaxed);
  in_order_[slot].store(in_order, kRelaxed);
  writeRow(number, row);
  if (in_order) {
    newest_ = number;
  } else {
    late_.store(late_.load(kRelaxed) + 1, kRelaxed);
    last_late_.store(number + 1, kRelaxed);
  }
  end_.store(number + 1, std::memory_order_release);
  return true;
}

// ---- taking ---------------------------------------------------------------------------------------

// From the newest back, as long as they came in order: then none before is later. False if one did
// not; else what is needed lies at the end of the memory.
template <class Time>
bool LiveRing::walkBack(uint64_t begin, uint64_t end, const Queries<Time>& queries,
                        Taken<Time>* taken) const {
  const Times<Time> times = this->times<Time>();
  int64_t place = capacity_;
  int before = 0;
  Time last = queries.first;
  for (uint64_t k = end; k > begin && before < queries.times_around; --k) {
    if (!isInOrder(k - 1)) return false;
    const Time time = times[k - 1];
    taken->times[--place] = time;
    taken->numbers[place] = k - 1;
    if (time < last) {
      ++before;
      last = time;
    }
  }
  taken->count = capacity_ - place;
  return true;
}

// All of them, sorted by insertion: late ones have few places to go. What is needed comes to lie at the
// end of the memory.
template <class Time>
void LiveRing::sortAll(uint64_t begin, uint64_t end, const Queries<Time>& queries,
                       Taken<Time>* taken) const {
  const auto count = static_cast<int64_t>(end - begin);
  const Times<Time> given = this->times<Time>();
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
    if (times[i] < last) {
      ++before;
      last = times[i];
    }
  }
  taken->count = count - i;
}

// Of numbers whose times ascend: from the last query back, those around each that are not taken yet.
template <class Time>
void LiveRing::takeAround(uint64_t begin, uint64_t end, const Queries<Time>& queries,
                          Taken<Time>* taken) const {
  const Times<Time> times = this->times<Time>();
  const int around = queries.times_around;
  const Time* const few = queries.few;
  Time* to = taken->times + capacity_;
  uint64_t* number = taken->numbers + capacity_;
  uint64_t lowest = end;  // of those taken
  uint64_t after = end;
  uint64_t pace = 1;
  for (int64_t i = queries.count; i-- > 0;) {
    const Time query = few[i];
    const uint64_t next = firstAfter(times, query, begin, after, pace);
    pace = std::max<uint64_t>(after - next, 1);
    after = next;
    uint64_t last = after + 1;
    for (int distinct = 1; last < lowest && distinct < around; ++last) {
      distinct += times[last] > times[last - 1] ? 1 : 0;
    }
    const auto keep = [&](uint64_t own_number, Time own) {
      *--to = own;
      *--number = own_number;
    };
    for (uint64_t k = std::min(last, lowest); k > after; --k) keep(k - 1, times[k - 1]);
    uint64_t first = after;
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

template <class Time>
bool LiveRing::takeOnce(const Queries<Time>& queries, Taken<Time>* taken) {
  const uint64_t end = end_.load(std::memory_order_acquire);
  const auto kept = static_cast<uint64_t>(capacity_);
  const uint64_t begin = end > kept ? end - kept : 0;
  taken->count = 0;
  taken->any = end > begin;
  if (!taken->any) return true;
  uint64_t oldest = begin;  // that is read
  // Around each query, where the samples from the first on are more than those.
  const auto around = static_cast<uint64_t>(3 * queries.count);
  const bool few = queries.count > 0 && last_late_.load(kRelaxed) <= begin + 1 &&
                   end - begin > around && times<Time>()[end - around] > queries.first;
  if (few) {
    takeAround(begin, end, queries, taken);
  } else if (walkBack(begin, end, queries, taken)) {
    oldest = taken->numbers[capacity_ - taken->count];
  } else {
    sortAll(begin, end, queries, taken);
  }
  taken->newest = few ? times<Time>()[end - 1] : taken->times[capacity_ - 1];
  if (queries.none) {
    taken->count = 0;
  } else {
    const int64_t skipped = capacity_ - taken->count;
    readRows(taken->numbers + skipped, taken->count, taken->rows);
    std::copy_n(taken->times + skipped, taken->count, taken->times);
  }
  std::atomic_thread_fence(std::memory_order_acquire);
  return begun_.load(kRelaxed) <= oldest + slot_mask_ + 1;
}

template <class Time>
void LiveRing::take(const Queries<Time>& queries, Taken<Time>* taken) {
  while (!takeOnce(queries, taken)) {
    retried_.store(retried_.load(kRelaxed) + 1, kRelaxed);
  }
}

LiveRing::Counters LiveRing::counters() const {
  return {static_cast<int64_t>(end_.load(kRelaxed)), late_.load(kRelaxed), dropped_.load(kRelaxed),
          retried_.load(kRelaxed)};
}

template bool LiveRing::push(float, const std::byte*);
template bool LiveRing::push(double, const std::byte*);
template bool LiveRing::push(int64_t, const std::byte*);
template void LiveRing::take(const Queries<float>&, Taken<float>*);
template void LiveRing::take(const Queries<double>&, Taken<double>*);
template void LiveRing::take(const Queries<int64_t>&, Taken<int64_t>*);

}  // namespace rbc
