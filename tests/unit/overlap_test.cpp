// Overlap, compared with a list of every byte of both tensors.
#include "overlap.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <set>
#include <vector>

#include "guard.h"
#include "support/cases.h"
#include "support/expect.h"

namespace {

std::vector<std::byte> memory(4096);

struct Described {
  rbcDType dtype = support::kU8;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  int64_t origin = 0;  // bytes

  rbc::View view(const char* argument) const {
    const rbcTensor t = {memory.data() + origin,
                         {RBC_DEVICE_CPU, 0},
                         static_cast<int32_t>(shape.size()),
                         dtype,
                         const_cast<int64_t*>(shape.data()),
                         const_cast<int64_t*>(strides.data()),
                         0};
    return rbc::normalize(&t, argument);
  }

  // Offsets of all bytes, once per element that contains them.
  std::multiset<int64_t> bytes() const {
    std::vector<int64_t> starts = {origin};
    for (size_t i = 0; i < shape.size(); ++i) {
      std::vector<int64_t> next;
      for (const int64_t start : starts) {
        for (int64_t k = 0; k < shape[i]; ++k)
          next.push_back(start + k * strides[i] * support::sizeOf(dtype));
      }
      starts = next;
    }
    std::multiset<int64_t> all;
    for (const int64_t start : starts) {
      for (int64_t k = 0; k < support::sizeOf(dtype); ++k) all.insert(start + k);
    }
    return all;
  }
};

bool disjoint(const Described& a, const Described& b) {
  return rbc::guard([&] {
           rbc::requireDisjoint(a.view("out"), "out", b.view("values"), "values");
         }) == RBC_STATUS_SUCCESS;
}

bool distinct(const Described& a) {
  return rbc::guard([&] { rbc::requireDistinctElements(a.view("out"), "out"); }) ==
         RBC_STATUS_SUCCESS;
}

const Described kBase = {support::kF32, {4, 6}, {6, 1}, 1024};

Described shifted(Described d, int64_t bytes) {
  d.origin += bytes;
  return d;
}

}  // namespace

TEST_CASE("overlap: neighbours do not overlap, and one shared byte does") {
  CHECK(disjoint(kBase, shifted(kBase, 96)));
  CHECK(disjoint(shifted(kBase, 96), kBase));
  CHECK_FALSE(disjoint(kBase, shifted(kBase, 92)));
  CHECK_FALSE(disjoint(kBase, kBase));
  const Described bytes = {support::kU8, {4}, {1}, 1024 + 95};
  CHECK_FALSE(disjoint(kBase, bytes));
  CHECK(disjoint(kBase, shifted(bytes, 1)));
  CHECK(disjoint(kBase, shifted(bytes, -99)));
  CHECK_FALSE(disjoint(kBase, shifted(bytes, -98)));
  CHECK_FAILS(rbc::guard([&] {
                rbc::requireDisjoint(kBase.view("out"), "out", kBase.view("values"), "values");
              }),
              RBC_STATUS_INVALID_ARGUMENT, "out:", "overlaps values");
}

TEST_CASE("overlap: an empty tensor overlaps nothing") {
  Described empty = kBase;
  empty.shape[0] = 0;
  CHECK(disjoint(kBase, empty));
  CHECK(disjoint(empty, kBase));
  CHECK(distinct(empty));
}

TEST_CASE("overlap: column ranges of one matrix are recognized as disjoint") {
  const Described left = {support::kF32, {8, 3}, {10, 1}, 512};
  const Described right = {support::kF32, {8, 7}, {10, 1}, 512 + 12};
  CHECK(disjoint(left, right));
  CHECK(disjoint(right, left));
  CHECK_FALSE(disjoint(left, shifted(right, -4)));
  const Described backwards = {support::kF32, {8, 7}, {-10, 1}, 512 + 12 + 7 * 40};
  CHECK(disjoint(left, backwards));
  // Even and odd elements.
  CHECK(disjoint({support::kF32, {9}, {2}, 512}, {support::kF32, {9}, {2}, 516}));
  // Column ranges of a batch of matrices.
  CHECK(disjoint({support::kF32, {3, 4, 2}, {20, 5, 1}, 512},
                 {support::kF32, {3, 4, 3}, {20, 5, 1}, 520}));
}

TEST_CASE("overlap: an output whose elements share memory is refused") {
  CHECK(distinct(kBase));
  CHECK(distinct({support::kF32, {4, 6}, {-7, 1}, 1024}));
  CHECK(distinct({support::kF32, {6, 4}, {1, 6}, 1024}));
  CHECK(distinct({support::kF32, {1, 6}, {0, 1}, 1024}));
  CHECK_FALSE(distinct({support::kF32, {2, 6}, {0, 1}, 1024}));
  CHECK_FALSE(distinct({support::kF32, {4, 6}, {5, 1}, 1024}));
  CHECK_FALSE(distinct({support::kF32, {4, 4}, {1, 1}, 1024}));
  CHECK_FAILS(rbc::guard([&] {
                rbc::requireDistinctElements(
                    Described{support::kF32, {2, 6}, {0, 1}, 1024}.view("mask"), "mask");
              }),
              RBC_STATUS_INVALID_ARGUMENT, "mask:", "share memory", "[2,6]", "[0,1]");
}

// The largest possible distance between addresses. No memory is touched.
TEST_CASE("overlap: tensors as large as the address space are recognized as disjoint") {
  constexpr int64_t kFar = int64_t{1} << 61;
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const auto at = [](uint64_t address, std::vector<int64_t> shape, std::vector<int64_t> strides) {
    const rbcTensor t = {reinterpret_cast<void*>(address),
                         {RBC_DEVICE_CPU, 0},
                         static_cast<int32_t>(shape.size()),
                         support::kU8,
                         shape.data(),
                         strides.data(),
                         0};
    return rbc::normalize(&t, "values");
  };
  const auto apart = [](const rbc::View& a, const rbc::View& b) {
    const auto checked = [&](const rbc::View& x, const rbc::View& y) {
      return rbc::guard([&] { rbc::requireDisjoint(x, "out", y, "values"); }) == RBC_STATUS_SUCCESS;
    };
    CHECK(checked(a, b) == checked(b, a));
    return checked(a, b);
  };
  const rbc::View pair = at(4096, {2}, {kFar});
  CHECK(apart(pair, at(4097, {2}, {kFar})));
  CHECK(apart(pair, at(4095, {2}, {kFar})));
  CHECK(apart(pair, at(4096 + kFar - 1, {2}, {-(kFar - 2)})));
  CHECK(apart(pair, at(4097, {kFar - 1}, {1})));
  CHECK_FALSE(apart(pair, at(4097, {kFar}, {1})));
  // From a byte before the second one to past half of all addresses.
  CHECK_FALSE(apart(pair, at(4096 + kFar - 1, {kMost - 1}, {1})));
  CHECK_FALSE(apart(at(4096 + 2 * uint64_t{kFar}, {2}, {-kFar}), at(4097, {kMost - 1}, {1})));
  CHECK(apart(at(4096, {kFar}, {1}), at(4096 + kFar, {kMost - 1}, {1})));
  CHECK_FALSE(apart(at(4096, {kFar}, {1}), at(4095 + kFar, {kMost - 1}, {1})));

  const auto unique = [](const rbc::View& v) {
    return rbc::guard([&] { rbc::requireDistinctElements(v, "out"); }) == RBC_STATUS_SUCCESS;
  };
  CHECK(unique(pair));
  CHECK(unique(at(4096, {2, kFar}, {kFar, 1})));
  CHECK_FALSE(unique(at(4096, {2, kFar + 1}, {kFar, 1})));
}

TEST_CASE("overlap: random tensors are never reported as disjoint or distinct when they are not") {
  support::Random random(5);
  constexpr rbcDType kDTypes[] = {support::kU8, support::kI16, support::kF32};
  const auto any = [&] {
    Described d;
    d.dtype = random.pick(kDTypes);
    const int64_t ndim = random.below(4);
    for (int64_t i = 0; i < ndim; ++i) {
      d.shape.push_back(random.below(5));
      d.strides.push_back(random.below(25) - 8);
    }
    d.origin = 1024 + 4 * random.below(80);
    return d;
  };
  int disjoint_found = 0;
  int disjoint_there = 0;
  for (int i = 0; i < 30000; ++i) {
    const Described a = any();
    const Described b = any();
    const auto bytes_a = a.bytes();
    const auto bytes_b = b.bytes();
    const bool shared = std::any_of(bytes_a.begin(), bytes_a.end(),
                                    [&](int64_t k) { return bytes_b.count(k) > 0; });
    const bool twice = std::any_of(bytes_a.begin(), bytes_a.end(),
                                   [&](int64_t k) { return bytes_a.count(k) > 1; });
    const bool found = disjoint(a, b);
    if (found && shared) FAIL("case ", i, ": overlapping tensors are reported as disjoint");
    if (distinct(a) && twice)
      FAIL("case ", i, ": elements that share memory are reported as distinct");
    disjoint_there += shared ? 0 : 1;
    disjoint_found += found ? 1 : 0;
  }
  // Some interleavings are refused to be safe, but few.
  CHECK(disjoint_found > disjoint_there * 3 / 4);
}
