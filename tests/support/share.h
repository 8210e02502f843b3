// A part of the cases, for tools and emulators with which each takes a hundred times as long.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace support {

// ROBOCACHE_TEST_SHARE=3/8 takes the cases whose number leaves 3 when it is divided by 8.
inline bool inShare(uint64_t number) {
  static const char* const text = std::getenv("ROBOCACHE_TEST_SHARE");
  unsigned rest = 0;
  unsigned parts = 1;
  if (text != nullptr && (std::sscanf(text, "%u/%u", &rest, &parts) != 2 || parts == 0)) {
    std::fprintf(stderr, "ROBOCACHE_TEST_SHARE: is \"%s\", expected such as 3/8\n", text);
    std::exit(2);
  }
  return number % parts == rest;
}

template <class Case>
std::vector<Case> shareOf(const std::vector<Case>& cases) {
  std::vector<Case> some;
  for (size_t i = 0; i < cases.size(); ++i) {
    if (inShare(i)) some.push_back(cases[i]);
  }
  return some;
}

}  // namespace support
