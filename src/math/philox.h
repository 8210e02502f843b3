// Random numbers that depend only on a counter and a key: Philox4x32-10 of Salmon, Moraes, Dror and
// Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011).
#pragma once

#include <cstdint>

#include "platform.h"

namespace rbc {

struct PhiloxWords {
  uint32_t word[4];
};

RBC_HD PhiloxWords philox(PhiloxWords counter, uint64_t key) {
  auto low = static_cast<uint32_t>(key);
  auto high = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter.word[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * counter.word[2];
    counter = {{static_cast<uint32_t>(b >> 32) ^ counter.word[1] ^ low, static_cast<uint32_t>(b),
                static_cast<uint32_t>(a >> 32) ^ counter.word[3] ^ high, static_cast<uint32_t>(a)}};
    low += 0x9E3779B9u;
    high += 0xBB67AE85u;
  }
  return counter;
}

// A number of 0 to 1 - 2^-24.
RBC_HD double unitOf(uint32_t word) { return static_cast<double>(word >> 8) * 0x1p-24; }

RBC_HD double between(uint32_t word, double low, double high) {
  return low + unitOf(word) * (high - low);
}

// An integer of 0 to n - 1.
RBC_HD int64_t belowOf(uint32_t word, int64_t n) {
  return static_cast<int64_t>(uint64_t{word} * static_cast<uint64_t>(n) >> 32);
}

}  // namespace rbc
