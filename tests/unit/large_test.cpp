// Sizes and offsets beyond 32 bits. On the CPU most of the address space is never touched.
#include <unistd.h>
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "robocache/robocache.hpp"
#include "support/expect.h"
#include "support/run.h"
#include "support/sanitizers.h"
#include "support/sparse_array.h"

namespace {

using robocache::ResampleOptions;
using robocache::Tensor;
using support::SparseArray;

constexpr int64_t kTwo31 = int64_t{1} << 31;

}  // namespace

TEST_CASE("large: strides that reach beyond 32 bits") {
  constexpr int64_t B = 3, S = 2, T = 4, D = 3;
  constexpr int64_t kValues[] = {5000000011, kTwo31 + 7, 1};
  constexpr int64_t kTimes[] = {3000000007, kTwo31 + 1};
  constexpr int64_t kQueries[] = {3000000019, -(kTwo31 / 4 + 1)};
  constexpr int64_t kOut[] = {9000000041, kTwo31 + 9, 2};
  constexpr int64_t kMask[] = {9000000001, kTwo31 + 3};
  const SparseArray<float> values(kValues[0] * (B - 1) + kValues[1] * (S - 1) + D);
  const SparseArray<double> times(kTimes[0] * (B - 1) + kTimes[1] * (S - 1) + 1);
  const SparseArray<double> queries(kQueries[0] * (B - 1) - kQueries[1] * (T - 1) + 1);
  const SparseArray<float> out(kOut[0] * (B - 1) + kOut[1] * (T - 1) + 2 * D);
  const SparseArray<uint8_t> mask(kMask[0] * (B - 1) + kMask[1] * (T - 1) + 1);
  if (!values || !times || !queries || !out || !mask) SKIP_BECAUSE("not enough address space");
  double* const first_query = queries.data() - kQueries[1] * (T - 1);

  for (int64_t b = 0; b < B; ++b) {
    for (int64_t s = 0; s < S; ++s) {
      times[b * kTimes[0] + s * kTimes[1]] = static_cast<double>(10 * b + 2 * s);
      for (int64_t d = 0; d < D; ++d) {
        values[b * kValues[0] + s * kValues[1] + d] = static_cast<float>(1000 * b + 100 * s + d);
      }
    }
    for (int64_t t = 0; t < T; ++t)
      first_query[b * kQueries[0] + t * kQueries[1]] =
          static_cast<double>(10 * b) + 0.5 * static_cast<double>(t);
  }
  for (const int32_t level : support::simdLevels()) {
    for (int64_t b = 0; b < B; ++b) {
      for (int64_t t = 0; t < T; ++t) {
        for (int64_t d = 0; d < D; ++d) out[b * kOut[0] + t * kOut[1] + d * kOut[2]] = -1;
      }
    }
    rbcContextParams params = rbcContextParamsInit();
    params.backend = RBC_BACKEND_CPU;
    params.simd = level;
    ResampleOptions options;
    options.check_times = true;
    options.valid = Tensor(mask.data(), {B, T}, {kMask[0], kMask[1]});
    robocache::resample(robocache::Context(params),
                        {values.data(), {B, S, D}, {kValues[0], kValues[1], kValues[2]}},
                        {times.data(), {B, S}, {kTimes[0], kTimes[1]}},
                        {first_query, {B, T}, {kQueries[0], kQueries[1]}},
                        {out.data(), {B, T, D}, {kOut[0], kOut[1], kOut[2]}}, options);
    for (int64_t b = 0; b < B; ++b) {
      for (int64_t t = 0; t < T; ++t) {
        CHECK(mask[b * kMask[0] + t * kMask[1]] == 1);
        for (int64_t d = 0; d < D; ++d) {
          CHECK(out[b * kOut[0] + t * kOut[1] + d * kOut[2]] ==
                static_cast<float>(1000 * b + 25 * t + d));
        }
      }
    }
  }
}

TEST_CASE("large: a broadcast batch of more than 2^31 elements") {
  constexpr int64_t B = 200000, S = 20000, T = 2, D = 3;
  static_assert(B * S * D > 4 * kTwo31, "more elements than 32 bits count");
  std::vector<float> values(S * D);
  std::vector<float> times(S);
  for (int64_t s = 0; s < S; ++s) {
    times[static_cast<size_t>(s)] = static_cast<float>(s);
    for (int64_t d = 0; d < D; ++d)
      values[static_cast<size_t>(s * D + d)] = static_cast<float>(s + d);
  }
  const float queries[] = {S - 1.5f, 0.5f};
  std::vector<float> out(B * T * D, -1);
  robocache::resample(robocache::Context::cpu(), {values.data(), {B, S, D}, {0, D, 1}},
                      {times.data(), {B, S}, {0, 1}}, {queries, {T}}, {out.data(), {B, T, D}});
  int64_t wrong = 0;
  for (int64_t i = 0; i < B * T * D; ++i) {
    wrong += out[static_cast<size_t>(i)] == queries[i / D % T] + static_cast<float>(i % D) ? 0 : 1;
  }
  CHECK(wrong == 0);
}

TEST_CASE("large: a row of more than 2^32 samples") {
  constexpr int64_t S = 2 * kTwo31 + 12345;
  const SparseArray<int64_t> times(S);  // all 0 except the last ones
  const SparseArray<uint8_t> values(S);
  if (!times || !values) SKIP_BECAUSE("not enough address space");
  times[S - 2] = 10;
  times[S - 1] = 20;
  values[0] = 1;
  values[S - 3] = 2;
  values[S - 2] = 3;
  values[S - 1] = 4;
  const int64_t queries[] = {-5, 0, 5, 10, 15, 20, 25};
  for (const int32_t level : support::simdLevels()) {
    rbcContextParams params = rbcContextParamsInit();
    params.backend = RBC_BACKEND_CPU;
    params.simd = level;
    const robocache::Context context(params);
    uint8_t out[7] = {};
    ResampleOptions options;
    options.method = robocache::Method::kPrevious;
    robocache::resample(context, {values.data(), {S, 1}}, {times.data(), {S}}, {queries, {7}},
                        {out, {7, 1}}, options);
    const std::vector<int> expected = {1, 2, 2, 3, 3, 4, 4};
    CHECK(std::vector<int>(out, out + 7) == expected);
    // With a stride of 0 all times are the same: the last sample is used.
    robocache::resample(context, {values.data(), {S, 1}}, {times.data(), {S}, {0}},
                        {queries + 1, {1}}, {out, {1, 1}}, options);
    CHECK(out[0] == 4);
  }
}

TEST_CASE("large: an output of more than 2^31 elements") {
#if RBC_TEST_SANITIZED
  SKIP_BECAUSE("sanitizers would need a minute for it");
#endif
  constexpr int64_t T = 65537, D = 32801;
  static_assert(T * D > kTwo31, "more elements than 31 bits count");
  if (sysconf(_SC_AVPHYS_PAGES) * sysconf(_SC_PAGESIZE) < int64_t{5} << 30)
    SKIP_BECAUSE("less than 5 GiB of free memory");
  const SparseArray<uint8_t> out(T * D);
  REQUIRE(out);
  std::vector<uint8_t> values(2 * D);
  for (int64_t d = 0; d < D; ++d) {
    values[static_cast<size_t>(d)] = static_cast<uint8_t>(d * 7 + 1);
    values[static_cast<size_t>(D + d)] = static_cast<uint8_t>(d * 11 + 3);
  }
  const float times[] = {0, 1};
  std::vector<float> queries(T);
  for (int64_t t = 0; t < T; ++t)
    queries[static_cast<size_t>(t)] = static_cast<float>(t * 5 % 7 % 2);
  ResampleOptions options;
  options.method = robocache::Method::kNearest;
  robocache::resample(robocache::Context::cpu(), {values.data(), {2, D}}, {times, {2}},
                      {queries.data(), {T}}, {out.data(), {T, D}}, options);
  int64_t wrong = 0;
  for (int64_t t = 0; t < T; ++t) {
    const auto row = static_cast<int64_t>(queries[static_cast<size_t>(t)]);
    wrong += std::memcmp(&out[t * D], &values[static_cast<size_t>(row * D)], D) == 0 ? 0 : 1;
  }
  CHECK(wrong == 0);
}

TEST_CASE("large: tensors of more than 2^31 elements on CUDA") {
  std::string why;
  if (support::cudaContext(&why) == nullptr) SKIP_BECAUSE(why);
  const auto context = robocache::Context::cuda();
  if (context.info().total_memory_bytes < uint64_t{24} << 30)
    SKIP_BECAUSE("less than 24 GiB of device memory");
  constexpr int64_t S = 131101, D = 16411, T = 131101;
  static_assert(S * D > kTwo31 && T * D > kTwo31, "more elements than 31 bits count");
  // Only two rows of the values are set: the last ones. All queries fall between them.
  robocache::OwnedTensor values(context, robocache::kBFloat16, {S, D});
  robocache::OwnedTensor times(context, support::kF64, {S});
  robocache::OwnedTensor queries(context, support::kF64, {T});
  robocache::OwnedTensor out(context, robocache::kBFloat16, {T, D});
  std::vector<double> host(S);
  for (int64_t i = 0; i < S; ++i) host[static_cast<size_t>(i)] = static_cast<double>(i);
  robocache::copy(context, {host.data(), {S}}, times.view());
  for (int64_t i = 0; i < T; ++i) host[static_cast<size_t>(i)] = S - 2 + (i % 2 == 0 ? 0.5 : 0.25);
  robocache::copy(context, {host.data(), {T}}, queries.view());
  std::vector<uint16_t> rows(2 * D, 0x4000);                  // 2
  std::fill(rows.begin() + D, rows.end(), uint16_t{0x40C0});  // 6
  const rbcDevice device = values.view().device();
  auto* last_rows = static_cast<uint16_t*>(values.view().data()) + (S - 2) * D;
  robocache::copy(context, {rows.data(), robocache::kBFloat16, {2, D}},
                  {static_cast<void*>(last_rows), robocache::kBFloat16, {2, D}, {}, device});
  robocache::resample(context, values.view(), times.view(), queries.view(), out.view());
  std::vector<uint16_t> got(D);
  for (const int64_t t : {int64_t{0}, int64_t{1}, kTwo31 / D, kTwo31 / D + 1, T - 2, T - 1}) {
    auto* row = static_cast<uint16_t*>(out.view().data()) + t * D;
    robocache::copy(context, {static_cast<const void*>(row), robocache::kBFloat16, {D}, {}, device},
                    {static_cast<void*>(got.data()), robocache::kBFloat16, {D}});
    const uint16_t expected = t % 2 == 0 ? 0x4080 : 0x4040;  // 4 and 3
    CHECK(std::count(got.begin(), got.end(), expected) == D);
  }
}
