// Arithmetic on times: offsets of clocks.
#include "times.h"

#include <limits>
#include <vector>

#include "support/expect.h"
#include "support/random.h"

namespace {

using Ticks = rbc::TimeMath<int64_t>;

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

int64_t saturated(int64_t t, int64_t offset) {
  const long double exact = static_cast<long double>(t) - static_cast<long double>(offset);
  if (exact < static_cast<long double>(kLeast)) return kLeast;
  return exact > static_cast<long double>(kMost) ? kMost : static_cast<int64_t>(exact);
}

}  // namespace

TEST_CASE("times: ticks minus an offset saturate, everywhere") {
  std::vector<int64_t> numbers = {kLeast, kLeast + 1, kLeast / 2, -2,        -1,   0,
                                  1,      2,          kMost / 2,  kMost - 1, kMost};
  support::Random random(31);
  for (int i = 0; i < 200; ++i)
    numbers.push_back(static_cast<int64_t>(random.bits()) >> random.below(63));
  int wrong = 0;
  for (const int64_t t : numbers) {
    for (const int64_t offset : numbers)
      wrong += Ticks::shifted(t, offset) == saturated(t, offset) ? 0 : 1;
  }
  CHECK(wrong == 0);
  CHECK(Ticks::shifted(0, kLeast) == kMost);
  CHECK(Ticks::shifted(-1, kLeast) == kMost);
  CHECK(Ticks::shifted(-2, kMost) == kLeast);
  CHECK(Ticks::shifted(kMost, kMost) == 0);
}

TEST_CASE("times: seconds minus an offset are rounded once, in their dtype") {
  CHECK(rbc::TimeMath<float>::shifted(1.0f, 0x1p-25f) == 1.0f);
  CHECK(rbc::TimeMath<double>::shifted(1.0, 0x1p-25) == 1 - 0x1p-25);
  CHECK(rbc::TimeMath<float>::shifted(3.5f, 1.25f) == 2.25f);
}
