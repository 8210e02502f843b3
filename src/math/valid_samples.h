// The samples of a row that are not missing: all of them, or those not masked out.
//
// Both classes have the same functions, so that the rules are written once. For all samples they
// compile to nothing.
#pragma once

#include <cstdint>
#include <cstring>

#include "platform.h"

namespace rbc {

struct AllSamples {
  static constexpr bool kAll = true;

  template <class Index>
  RBC_HD Index upTo(Index i) const {
    return i;
  }
  template <class Index>
  RBC_HD Index from(Index i, Index) const {
    return i;
  }
  template <class Index>
  RBC_HD bool counts(Index) const {
    return true;
  }
  template <class Index>
  RBC_HD AllSamples shifted(Index) const {
    return {};
  }
};

namespace detail {

// Eight bytes of a mask, at a multiple of 8.
RBC_HD uint64_t maskWord(const uint8_t* at) {
#if defined(__CUDA_ARCH__)
  return *reinterpret_cast<const uint64_t*>(at);
#else
  uint64_t word;
  std::memcpy(&word, at, sizeof word);
  return word;
#endif
}

// The number of zero bytes at the ends of a nonzero word; the lowest byte is the first in memory.
RBC_HD int leadingZeroBytes(uint64_t word) {
#if defined(__CUDA_ARCH__)
  return (__ffsll(static_cast<long long>(word)) - 1) / 8;
#else
  return __builtin_ctzll(word) / 8;
#endif
}
RBC_HD int trailingZeroBytes(uint64_t word) {
#if defined(__CUDA_ARCH__)
  return __clzll(static_cast<long long>(word)) / 8;
#else
  return __builtin_clzll(word) / 8;
#endif
}

RBC_HD bool endsWord(const uint8_t* at) { return (reinterpret_cast<uintptr_t>(at) + 1) % 8 == 0; }
RBC_HD bool beginsWord(const uint8_t* at) { return reinterpret_cast<uintptr_t>(at) % 8 == 0; }

}  // namespace detail

// Samples whose byte in a mask is not 0. Nothing outside of bytes 0 .. n - 1 is read: long runs of
// missing samples are skipped by aligned words, four at once, and the remaining bytes one by one.
template <class Index>
struct ValidSamples {
  static constexpr bool kAll = false;

  const uint8_t* first;  // null: all are valid
  Index stride;          // in bytes; 0 if all are valid

  RBC_HD const uint8_t* at(Index i) const { return first + static_cast<int64_t>(i) * stride; }
  RBC_HD bool counts(Index i) const { return first == nullptr || *at(i) != 0; }

  // The last valid sample of 0 .. i, or -1.
  RBC_HD Index upTo(Index i) const {
    if (i < 0 || counts(i)) return i;
    if (stride == 0) return -1;
    if (stride != 1) {
      do --i;
      while (i >= 0 && *at(i) == 0);
      return i;
    }
    for (--i; i >= 0 && !detail::endsWord(first + i); --i) {
      if (first[i] != 0) return i;
    }
    for (; i >= 31; i -= 32) {
      const uint8_t* const last = first + (i - 7);
      if ((detail::maskWord(last) | detail::maskWord(last - 8) | detail::maskWord(last - 16) |
           detail::maskWord(last - 24)) != 0)
        break;
    }
    for (; i >= 7; i -= 8) {
      const uint64_t word = detail::maskWord(first + (i - 7));
      if (word != 0) return i - detail::trailingZeroBytes(word);
    }
    while (i >= 0 && first[i] == 0) --i;
    return i;
  }

  // The first valid sample of i .. n - 1, or n.
  RBC_HD Index from(Index i, Index n) const {
    if (i >= n) return n;
    if (counts(i)) return i;
    if (stride == 0) return n;
    if (stride != 1) {
      do ++i;
      while (i < n && *at(i) == 0);
      return i;
    }
    for (++i; i < n && !detail::beginsWord(first + i); ++i) {
      if (first[i] != 0) return i;
    }
    for (; n - i >= 32; i += 32) {
      const uint8_t* const begin = first + i;
      if ((detail::maskWord(begin) | detail::maskWord(begin + 8) | detail::maskWord(begin + 16) |
           detail::maskWord(begin + 24)) != 0)
        break;
    }
    for (; n - i >= 8; i += 8) {
      const uint64_t word = detail::maskWord(first + i);
      if (word != 0) return i + detail::leadingZeroBytes(word);
    }
    while (i < n && first[i] == 0) ++i;
    return i;
  }

  RBC_HD ValidSamples shifted(Index begin) const { return {at(begin), stride}; }
};

// Samples begin .. begin + count - 1 of a row.
template <class Index>
struct SampleRange {
  Index begin;
  Index count;
};

// From the first to the last valid sample of n.
template <class Index>
RBC_HD SampleRange<Index> trimmed(const ValidSamples<Index>& valid, Index n) {
  const Index begin = valid.from(0, n);
  if (begin >= n) return {0, 0};
  const Index last = valid.upTo(n - 1);
  return {begin, last < begin ? 0 : last - begin + 1};  // another thread may change the mask
}

// The neighbours of the interval that begins at a sample.
template <class Index>
struct Neighbours {
  Index before;  // -1: no sample
  Index right;
  Index after;  // n: no sample
};

// The right neighbour of sample i, which must have one in the row of n.
template <class Valid, class Index>
RBC_HD Index rightOf(const Valid& valid, Index n, Index i) {
  const Index right = valid.from(i + 1, n);
  if constexpr (!Valid::kAll) return right < n ? right : n - 1;  // the mask may have changed since
  return right;
}

template <class Valid, class Index>
RBC_HD Neighbours<Index> neighboursOf(const Valid& valid, Index n, Index i) {
  const Index right = rightOf(valid, n, i);
  return {valid.upTo(i - 1), right, valid.from(right + 1, n)};
}

}  // namespace rbc
