// Loops over large data on every core, for what is not timed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

namespace bench {

// Calls work(begin, end) for parts of 0 .. count - 1, at the same time; it must not throw.
template <class Work>
void onAllCores(int64_t count, Work&& work, int64_t least_part = 1 << 14) {
  const int64_t cores = std::max<int64_t>(std::thread::hardware_concurrency(), 1);
  const int64_t part = std::max((count + cores - 1) / cores, least_part);
  std::vector<std::thread> others;
  for (int64_t begin = part; begin < count; begin += part)
    others.emplace_back(work, begin, std::min(begin + part, count));
  work(0, std::min(part, count));
  for (std::thread& other : others) other.join();
}

// Sorts parts, and merges them two by two.
template <class T>
void sortOnAllCores(std::vector<T>& items) {
  constexpr int64_t kParts = 16;
  const auto at = [&](int64_t part) {
    return items.begin() + static_cast<int64_t>(items.size()) * part / kParts;
  };
  const auto sort = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) std::sort(at(i), at(i + 1));
  };
  onAllCores(kParts, sort, 1);
  for (int64_t width = 1; width < kParts; width *= 2) {
    const auto merge = [&](int64_t begin, int64_t end) {
      for (int64_t i = 2 * width * begin; i < 2 * width * end; i += 2 * width)
        std::inplace_merge(at(i), at(i + width), at(i + 2 * width));
    };
    onAllCores(kParts / (2 * width), merge, 1);
  }
}

}  // namespace bench
