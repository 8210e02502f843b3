// The values of bytes, from tables of 256 that registers hold: vpermi2b looks up one byte of 64
// values at a time.

#include "images/byte_products.h"

#if RBC_HAS_BYTE_PRODUCTS

// GCC 12 warns of its own header.
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#include <algorithm>

namespace rbc::cpu {
namespace {

// Where a byte of a block comes from: of the 128 bytes that two vectors have.
struct Places {
  alignas(64) uint8_t first[64];   // of the first two of three vectors
  alignas(64) uint8_t second[64];  // of the result of that and the third
};

// The places of the bytes of 64 pixels, in the order from which joinParts() makes values in order.
constexpr Places placesOf(int value_bytes, int channels, int channel, bool reversed) {
  Places places = {};
  for (int i = 0; i < 64; ++i) {
    const int lane = i / 16;
    const int inside = i % 16;
    const int value = value_bytes == 4   ? inside / 4 * 16 + 4 * lane + inside % 4
                      : value_bytes == 2 ? inside / 8 * 32 + 8 * lane + inside % 8
                                         : i;
    const int from = (reversed ? 63 - value : value) * channels + channel;
    places.first[i] = static_cast<uint8_t>(from < 128 ? from : 0);
    places.second[i] = static_cast<uint8_t>(from < 128 ? i : from - 64);
  }
  return places;
}

struct PlacesOfChannels {
  Places places[2][3];  // [reversed][channel]
};
template <int kValueBytes, int kChannels>
constexpr PlacesOfChannels makePlaces() {
  PlacesOfChannels all = {};
  for (int reversed = 0; reversed < 2; ++reversed) {
    for (int c = 0; c < kChannels; ++c) {
      all.places[reversed][c] = placesOf(kValueBytes, kChannels, c, reversed != 0);
    }
  }
  return all;
}
template <int kValueBytes, int kChannels>
constexpr PlacesOfChannels kPlaces = makePlaces<kValueBytes, kChannels>();

// The entries of a table of 256 bytes.
RBC_BYTE_PRODUCTS_INLINE __m512i lookUp(const __m512i (&table)[4], __m512i x) {
  return _mm512_mask_blend_epi8(_mm512_movepi8_mask(x),
                                _mm512_permutex2var_epi8(table[0], x, table[1]),
                                _mm512_permutex2var_epi8(table[2], x, table[3]));
}

// The first `count` elements of 64 values, whose bytes are apart.
template <int kValueBytes>
RBC_BYTE_PRODUCTS_INLINE void joinParts(const __m512i (&part)[kValueBytes], int64_t count,
                                        uint8_t* to) {
  __m512i words[kValueBytes];
  if constexpr (kValueBytes == 1) {
    words[0] = part[0];
  } else {
    const __m512i low = _mm512_unpacklo_epi8(part[0], part[1]);
    const __m512i high = _mm512_unpackhi_epi8(part[0], part[1]);
    if constexpr (kValueBytes == 2) {
      words[0] = low;
      words[1] = high;
    } else {
      const __m512i low_upper = _mm512_unpacklo_epi8(part[2], part[3]);
      const __m512i high_upper = _mm512_unpackhi_epi8(part[2], part[3]);
      words[0] = _mm512_unpacklo_epi16(low, low_upper);
      words[1] = _mm512_unpackhi_epi16(low, low_upper);
      words[2] = _mm512_unpacklo_epi16(high, high_upper);
      words[3] = _mm512_unpackhi_epi16(high, high_upper);
    }
  }
  if (count >= 64) {
    for (int i = 0; i < kValueBytes; ++i) _mm512_storeu_si512(to + 64 * i, words[i]);
    return;
  }
  const int64_t bytes = count * kValueBytes;
  for (int64_t i = 0; 64 * i < bytes; ++i) {
    const int64_t rest = bytes - 64 * i;
    const __mmask64 mask = rest >= 64 ? ~__mmask64{0} : (__mmask64{1} << rest) - 1;
    _mm512_mask_storeu_epi8(to + 64 * i, mask, words[i]);
  }
}

template <int kValueBytes, int kChannels>
RBC_BYTE_PRODUCTS void putAs(const ValueRows& rows) {
  for (int c = 0; c < kChannels; ++c) {
    __m512i table[kValueBytes][4];
    const uint8_t* parts = rows.parts + c * kValueBytes * 256;
    for (int part = 0; part < kValueBytes; ++part) {
      for (int i = 0; i < 4; ++i) table[part][i] = _mm512_loadu_si512(parts + part * 256 + 64 * i);
    }
    const Places& places = kPlaces<kValueBytes, kChannels>.places[rows.reversed ? 1 : 0][c];
    const __m512i first = _mm512_load_si512(places.first);
    const __m512i second = _mm512_load_si512(places.second);
    for (int64_t y = 0; y < rows.rows; ++y) {
      const uint8_t* pixels = rows.pixels + y * rows.pitch;
      auto* to = static_cast<uint8_t*>(rows.out) +
                 (y * rows.row_stride + c * rows.channel_stride) * kValueBytes;
      for (int64_t x = 0; x < rows.count; x += 64, to += 64 * kValueBytes) {
        // The last block may begin before the row, or end behind it.
        const int64_t begin = rows.reversed ? rows.count - 64 - x : x;
        const uint8_t* from = pixels + begin * kChannels;
        __m512i bytes = _mm512_loadu_si512(from);
        if constexpr (kChannels == 3) {
          bytes = _mm512_permutex2var_epi8(bytes, first, _mm512_loadu_si512(from + 64));
          bytes = _mm512_permutex2var_epi8(bytes, second, _mm512_loadu_si512(from + 128));
        } else {
          bytes = _mm512_permutexvar_epi8(first, bytes);
        }
        __m512i values[kValueBytes];
        for (int part = 0; part < kValueBytes; ++part) values[part] = lookUp(table[part], bytes);
        joinParts<kValueBytes>(values, rows.count - x, to);
      }
    }
  }
}

template <int kValueBytes>
RBC_BYTE_PRODUCTS void putBytesOf(const ValueRows& rows) {
  return rows.channels == 3 ? putAs<kValueBytes, 3>(rows) : putAs<kValueBytes, 1>(rows);
}

}  // namespace

void putByteValues(const ValueRows& rows, int value_bytes) {
  switch (value_bytes) {
    case 1: return putBytesOf<1>(rows);
    case 2: return putBytesOf<2>(rows);
    default: return putBytesOf<4>(rows);
  }
}

}  // namespace rbc::cpu

#endif  // RBC_HAS_BYTE_PRODUCTS
