// A share of the cases, for tools and emulators that make each case a hundred times slower.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace support {

struct Share {
  unsigned rest = 0;
  unsigned parts = 1;
};

// ROBOCACHE_TEST_SHARE=3/8 selects the cases whose number modulo 8 is 3.
inline Share testShare() {
  static const char* const text = std::getenv("ROBOCACHE_TEST_SHARE");
  Share share;
  if (text != nullptr &&
      (std::sscanf(text, "%u/%u", &share.rest, &share.parts) != 2 || share.parts == 0)) {
    std::fprintf(stderr, "ROBOCACHE_TEST_SHARE: is \"%s\", expected such as 3/8\n", text);
    std::exit(2);
  }
  return share;
}

inline bool inShare(uint64_t number) {
  const Share share = testShare();
  return number % share.parts == share.rest;
}

// The share of a number of steps that are not separate cases.
inline int64_t shareOf(int64_t count) { return count / static_cast<int64_t>(testShare().parts); }

template <class Case>
std::vector<Case> shareOf(const std::vector<Case>& cases) {
  std::vector<Case> some;
  for (size_t i = 0; i < cases.size(); ++i) {
    if (inShare(i)) some.push_back(cases[i]);
  }
  return some;
}

}  // namespace support
