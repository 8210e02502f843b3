// A share of the cases, for tools and emulators that make each case a hundred times slower.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace support {

struct Share {
  unsigned rest = 0;
  unsigned parts = 1;
};

inline Share readShare(const char* variable) {
  const char* const text = std::getenv(variable);
  Share share;
  if (text == nullptr) return share;
  int end = -1;
  std::sscanf(text, "%u/%u%n", &share.rest, &share.parts, &end);
  if (end < 0 || text[end] != 0 || std::strchr(text, '-') != nullptr || share.rest >= share.parts) {
    std::fprintf(stderr, "%s: is \"%s\", expected such as 3/8\n", variable, text);
    std::exit(2);
  }
  return share;
}

// ROBOCACHE_TEST_SHARE=3/8 selects the cases whose number modulo 8 is 3.
inline Share testShare() {
  static const Share share = readShare("ROBOCACHE_TEST_SHARE");
  return share;
}

// The number of random cases to run, of `count`: a quarter with ROBOCACHE_RANDOM_SHARE=1/4. All
// cases of tables run.
inline uint64_t randomShareOf(uint64_t count) {
  static const Share share = readShare("ROBOCACHE_RANDOM_SHARE");
  return (count + share.parts - 1) / share.parts;
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
