// A ring as the header describes it: a sorted list of samples.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

namespace live_model {

template <class Time>
constexpr bool kTicks = std::is_same_v<Time, int64_t>;

// The distance of two times as the library sees it: i64 exactly, else rounded to the type of times.
template <class Time>
long double distanceOf(Time a, Time b) {
  if constexpr (kTicks<Time>) {
    return std::fabs(static_cast<long double>(a) - static_cast<long double>(b));
  } else {
    return static_cast<long double>(std::fabs(static_cast<Time>(a - b)));
  }
}

template <class Time>
bool isTime(Time time) {
  if constexpr (kTicks<Time>) {
    return time != std::numeric_limits<Time>::min() && time != std::numeric_limits<Time>::max();
  } else {
    return std::isfinite(time);
  }
}

template <class Time>
class Stream {
 public:
  struct Sample {
    Time time;
    Time arrival;
    std::vector<float> row;
  };

  size_t capacity;
  int64_t late_bound;
  double max_ahead;  // infinity: no limit

  std::vector<Sample> kept;  // in the order of their times, equal ones as they came
  int64_t pushed = 0;
  int64_t overwritten = 0;
  int64_t late = 0;
  int64_t dropped = 0;
  int64_t ahead = 0;
  int64_t invalid = 0;
  int64_t forgotten = 0;
  int64_t early = 0;

  Stream(int64_t capacity_, int64_t late_bound_, double max_ahead_)
      : capacity(static_cast<size_t>(capacity_)), late_bound(late_bound_), max_ahead(max_ahead_) {}

  void push(Time time, Time arrival, const std::vector<float>& row) {
    if (!isTime(time)) {
      ++invalid;
      return;
    }
    if (std::isfinite(max_ahead) && !kept.empty() && !staysNear(time)) return;
    const auto newer = std::count_if(kept.begin(), kept.end(),
                                     [&](const Sample& other) { return other.time > time; });
    if (newer > late_bound) {
      ++dropped;
      return;
    }
    ++pushed;
    late += newer > 0 ? 1 : 0;
    kept.insert(kept.end() - newer, {time, arrival, row});
    if (kept.size() > capacity) {
      kept.erase(kept.begin());
      ++overwritten;
    }
  }

  void reset() {
    forgotten += static_cast<int64_t>(kept.size());
    kept.clear();
    strangers_.clear();
  }

  // The sample that the age of a query is measured from, or null. It had arrived at `until`.
  const Sample* usedBy(Time query, Time until) const {
    const Sample* used = nullptr;
    for (const Sample& sample : kept) {
      if (!(sample.arrival <= until)) continue;
      if (sample.time <= query || used == nullptr) used = &sample;
    }
    return used;
  }

 private:
  // Returns false if the sample is refused.
  bool staysNear(Time time) {
    const auto far = [&](Time other) {
      return distanceOf(time, other) > static_cast<long double>(static_cast<Limit>(max_ahead));
    };
    const Time newest = kept.back().time;
    if (!far(newest)) {
      strangers_.clear();
      return true;
    }
    if (!strangers_.empty() && (time <= strangers_.back() || far(strangers_.back()))) {
      strangers_.clear();
    }
    strangers_.push_back(time);
    if (strangers_.size() < 3) {
      if (time < newest) return true;
      ++ahead;
      return false;
    }
    if (time < newest) reset();
    strangers_.clear();
    return true;
  }

  using Limit = std::conditional_t<kTicks<Time>, double, Time>;
  std::vector<Time> strangers_;  // successive ones that agree with each other, but not with `kept`
};

}  // namespace live_model
