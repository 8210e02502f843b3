// Times in nanoseconds, counted exactly: a quantile of ten million is exact to a nanosecond.
#pragma once

#include <time.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace live_bench {

inline int64_t nanoseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{1000000000} * now.tv_sec + now.tv_nsec;
}

class Histogram {
 public:
  Histogram() : counts_(kMost + 1) {}

  void add(int64_t time) {
    ++counts_[static_cast<size_t>(std::clamp<int64_t>(time, 0, kMost))];
    ++total_;
    longest_ = std::max(longest_, time);
  }
  // The upper bound of the time of a share of the calls.
  int64_t quantile(double share) const {
    const auto rank = static_cast<int64_t>(share * static_cast<double>(total_ - 1));
    int64_t seen = 0;
    for (int64_t time = 0; time < kMost; ++time) {
      seen += counts_[static_cast<size_t>(time)];
      if (seen > rank) return time;
    }
    return longest_;
  }
  int64_t longest() const { return longest_; }

 private:
  static constexpr int64_t kMost = 10'000'000;  // ns

  std::vector<int32_t> counts_;
  int64_t total_ = 0;
  int64_t longest_ = 0;
};

}  // namespace live_bench
