// Errors of accumulators, which must not change their state.
#include <cmath>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "abi/struct_calls.h"
#include "robocache/robocache.hpp"
#include "support/accumulator.h"
#include "support/expect.h"
#include "support/sanitizers.h"
#include "support/share.h"

namespace {

using support::Accumulator;
using support::Array;
using support::Bytes;
using support::Context;
using support::exported;
using support::imported;
using support::makeAccumulator;
using support::require;

constexpr auto kInvalid = RBC_STATUS_INVALID_ARGUMENT;
constexpr auto kDamaged = RBC_STATUS_DAMAGED;
const std::vector<double> kLevels = {0.5};

Array numbers(rbcDType dtype, std::vector<int64_t> shape, double step = 1) {
  Array array(dtype, std::move(shape));
  double next = 0;
  array.each([&](std::byte* p) {
    const uint64_t bits = support::encode(dtype, next += step);
    std::memcpy(p, &bits, static_cast<size_t>(support::sizeOf(dtype)));
  });
  return array;
}

// Makes an accumulator, and adds some samples and ends a pass as often as requested.
Accumulator inPass(const Context& context, int pass) {
  Accumulator accumulator = makeAccumulator(context, 2, kLevels);
  for (int i = 1; i < pass; ++i) {
    require(support::update(context, accumulator, numbers(support::kF32, {10, 2})));
    support::nextPass(accumulator);
  }
  return accumulator;
}

// FNV-1a over words, as in exported states, and its inverse step.
constexpr uint64_t kFirstHash = 0xcbf29ce484222325;
constexpr uint64_t kPrime = 0x100000001b3;
uint64_t hashed(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * kPrime;
  return hash ^ hash >> 32;
}
uint64_t wordBetween(uint64_t before, uint64_t after) {
  uint64_t inverse = kPrime;
  for (int i = 0; i < 6; ++i) inverse *= 2 - kPrime * inverse;
  return ((after ^ after >> 32) * inverse) ^ before;
}

using Words = std::vector<uint64_t>;

Words wordsOf(const Bytes& bytes) {
  Words words(bytes.size() / 8);
  std::memcpy(words.data(), bytes.data(), bytes.size());
  return words;
}

uint64_t hashOf(const Words& words, size_t begin, size_t end) {
  uint64_t hash = kFirstHash;
  for (size_t i = begin; i < end; ++i) hash = hashed(hash, words[i]);
  return hash;
}

// Writes the digest at the end of the bytes, so that a test can change the bytes that it covers.
void seal(Bytes* bytes) {
  const Words words = wordsOf(*bytes);
  const uint64_t hash = hashOf(words, 0, words.size() - 1);
  std::memcpy(bytes->data() + bytes->size() - 8, &hash, 8);
}

void checkRefused(const Context& context, const Bytes& bytes, rbcStatus_t status,
                  const char* word) {
  auto* made = reinterpret_cast<rbcAccumulator_t>(uintptr_t{8});
  CHECK_FAILS(rbcAccumulatorImport(context.get(), bytes.data(), bytes.size(), &made), status,
              "data: ", word);
  CHECK(made == nullptr);
}

const support::StructCallsOf kAccumulatorStructs([](support::StructCalls& calls) {
  const rbcTensor* values = calls.in(support::kF32, {4, 1}, {1, 2, 99, 6});
  rbcStatisticsOutputs result = rbcStatisticsOutputsInit();
  result.mean = calls.out(support::kF64, {1});
  rbcAccumulatorParams of = rbcAccumulatorParamsInit();
  of.num_channels = 1;
  rbcAccumulatorUpdateParams update = rbcAccumulatorUpdateParamsInit();
  update.sample_mask = calls.in(support::kU8, {4}, {1, 1, 0, 1});
  const auto accumulate = [=, c = calls.context()](const rbcAccumulatorParams* made_of,
                                                   const rbcAccumulatorUpdateParams* updated_by,
                                                   rbcAccumulatorInfo* info) {
    rbcAccumulator_t made = nullptr;
    rbcStatus_t status = rbcAccumulatorCreate(c, made_of, &made);
    if (status == RBC_STATUS_SUCCESS) {
      status = rbcAccumulatorUpdate(made, values, updated_by);
    }
    if (status == RBC_STATUS_SUCCESS) {
      status = info != nullptr ? rbcAccumulatorGetInfo(made, info)
                               : rbcAccumulatorGetResult(made, &result);
    }
    rbcAccumulatorDestroy(made);
    return status;
  };
  calls.add(
      "rbcAccumulatorParams", rbcAccumulatorParamsInit(), {of}, "params",
      [=](const rbcAccumulatorParams* object) { return accumulate(object, &update, nullptr); });
  calls.add(
      "rbcAccumulatorUpdateParams", rbcAccumulatorUpdateParamsInit(), {update}, "params",
      [=](const rbcAccumulatorUpdateParams* object) { return accumulate(&of, object, nullptr); });
  calls.addFilled<rbcAccumulatorInfo>("rbcAccumulatorInfo", [=](rbcAccumulatorInfo* info) {
    return accumulate(&of, &update, info);
  });
});

}  // namespace

TEST_CASE("accumulator errors: creation with bad parameters") {
  const Context context = support::cpuContext(1);
  rbcAccumulator_t made = nullptr;
  double levels[65] = {0.5, 0.5};
  int64_t extent = 2;
  const rbcTensor tensor = support::vectorTensor(levels, support::kF64, &extent);
  rbcAccumulatorParams params = rbcAccumulatorParamsInit();
  const auto create = [&] { return rbcAccumulatorCreate(context.get(), &params, &made); };
  CHECK_FAILS(rbcAccumulatorCreate(context.get(), nullptr, &made), kInvalid, "params");
  CHECK_FAILS(rbcAccumulatorCreate(nullptr, &params, &made), kInvalid, "context");
  CHECK_FAILS(rbcAccumulatorCreate(context.get(), &params, nullptr), kInvalid,
              "accumulator: is null");
  CHECK_FAILS(create(), kInvalid, "channels: is 0");
  params.num_channels = -1;
  CHECK_FAILS(create(), kInvalid, "channels: is -1");
  params.num_channels = 2;
  params.levels = &tensor;
  for (const double bad : {-0.1, 1.5, std::nan(""), HUGE_VAL}) {
    levels[1] = bad;
    CHECK_FAILS(create(), kInvalid, "levels: number 1 is ", "expected 0 to 1");
  }
  levels[1] = 1;
  extent = 65;
  CHECK_FAILS(create(), RBC_STATUS_SHAPE_MISMATCH, "levels: got 65, expected at most 64");
  extent = 2;
  for (const int32_t bits : {-1, 1, 7, 21}) {
    params.bucket_bits = bits;
    CHECK_FAILS(create(), kInvalid, "bucket_bits: is ");
  }
  params.bucket_bits = 0;
  for (const int32_t ddof : {-1, 2}) {
    params.ddof = ddof;
    CHECK_FAILS(create(), kInvalid, "ddof: is ");
  }
  params.ddof = 0;
  params.dtype = {RBC_DTYPE_FLOAT, 8, 1};
  CHECK_FAILS(create(), RBC_STATUS_DTYPE_MISMATCH, "params.dtype: ");
  CHECK(made == nullptr);
  params.dtype = support::kF16;
  CHECK_SUCCEEDS(create());
  rbcAccumulatorInfo info = rbcAccumulatorInfoInit();
  CHECK_SUCCEEDS(rbcAccumulatorGetInfo(made, &info));
  CHECK(info.current_pass == 1);
  CHECK(info.num_channels == 2);
  CHECK(info.num_levels == 2);
  double kept[3] = {-1, -1, -1};
  CHECK_FAILS(rbcAccumulatorGetLevels(made, kept, 1), RBC_STATUS_BUFFER_TOO_SMALL,
              "capacity: is 1, expected 2 or more");
  CHECK(kept[0] == -1);
  CHECK_FAILS(rbcAccumulatorGetLevels(made, nullptr, 2), kInvalid, "levels: is null");
  CHECK_FAILS(rbcAccumulatorGetLevels(nullptr, kept, 2), kInvalid, "accumulator: is null");
  CHECK_SUCCEEDS(rbcAccumulatorGetLevels(made, kept, 3));
  CHECK(kept[1] == 1);
  CHECK(kept[2] == -1);
  CHECK(info.bucket_bits == 16);
  CHECK(support::same(info.dtype, support::kF16));
  CHECK_SUCCEEDS(rbcAccumulatorDestroy(made));
  CHECK_SUCCEEDS(rbcAccumulatorDestroy(nullptr));
}

TEST_CASE("accumulator errors: samples that do not fit leave the state unchanged") {
  const Context context = support::cpuContext(1);
  const Accumulator accumulator = makeAccumulator(context, 2, kLevels);
  require(support::update(context, accumulator, numbers(support::kF32, {10, 2})));
  const Bytes before = exported(accumulator);
  const auto update = [&](const Array& array) {
    return support::update(context, accumulator, array);
  };
  CHECK_FAILS(update(numbers(support::kF32, {10, 3})), RBC_STATUS_SHAPE_MISMATCH,
              "values: has 3 channels, expected 2");
  CHECK_FAILS(update(numbers(support::kF64, {10, 2})), RBC_STATUS_DTYPE_MISMATCH,
              "values: dtype is float64, expected float32");
  CHECK_FAILS(update(numbers(support::kF32, {10})), RBC_STATUS_SHAPE_MISMATCH, "values: ");
  const Array values = numbers(support::kF32, {2, 5, 2});
  const Array mask = numbers(support::kU8, {2, 4});
  const Array lengths = numbers(support::kI64, {2}, 4);  // 4 and 8
  const rbcTensor values_tensor = values.tensor();
  const rbcTensor mask_tensor = mask.tensor();
  const rbcTensor lengths_tensor = lengths.tensor();
  rbcAccumulatorUpdateParams params = rbcAccumulatorUpdateParamsInit();
  params.sample_mask = &mask_tensor;
  CHECK_FAILS(rbcAccumulatorUpdate(accumulator.get(), &values_tensor, &params),
              RBC_STATUS_SHAPE_MISMATCH, "sample_mask: shape is [2,4], expected [2,5]");
  params.sample_mask = nullptr;
  params.lengths = &lengths_tensor;
  CHECK_FAILS(rbcAccumulatorUpdate(accumulator.get(), &values_tensor, &params), kInvalid,
              "lengths");
  CHECK_FAILS(rbcAccumulatorUpdate(accumulator.get(), nullptr, nullptr), kInvalid,
              "values: is null");
  CHECK_FAILS(rbcAccumulatorUpdate(nullptr, &values_tensor, nullptr), kInvalid,
              "accumulator: is null");
  CHECK(exported(accumulator) == before);
}

TEST_CASE("accumulator errors: states that do not merge") {
  const Context context = support::cpuContext(1);
  const Context elsewhere = support::cpuContext(1);
  const Accumulator accumulator = inPass(context, 1);
  require(support::update(context, accumulator, numbers(support::kF32, {10, 2})));
  const Bytes before = exported(accumulator);
  const auto merge = [&](const Accumulator& other) {
    return rbcAccumulatorMerge(accumulator.get(), other.get());
  };
  CHECK_FAILS(merge(Accumulator()), kInvalid, "other: is null");
  CHECK_FAILS(merge(accumulator), kInvalid, "other: is the accumulator itself");
  CHECK_FAILS(merge(makeAccumulator(elsewhere, 2, kLevels)), kInvalid, "other: ", "context");
  CHECK_FAILS(merge(makeAccumulator(context, 3, kLevels)), kInvalid,
              "other: has 3 channels, expected 2");
  CHECK_FAILS(merge(makeAccumulator(context, 2, {0.25})), kInvalid, "other: its levels differ");
  CHECK_FAILS(merge(makeAccumulator(context, 2, {})), kInvalid, "other: its levels differ");
  CHECK_FAILS(merge(makeAccumulator(context, 2, kLevels, 15)), kInvalid,
              "other: bucket_bits is 15, expected 16");
  CHECK_FAILS(merge(makeAccumulator(context, 2, kLevels, 16, 1)), kInvalid, "other: ddof is 1");
  const Accumulator wide = makeAccumulator(context, 2, kLevels);
  require(support::update(context, wide, numbers(support::kF64, {10, 2})));
  CHECK_FAILS(merge(wide), RBC_STATUS_DTYPE_MISMATCH, "other: dtype is float64");
  CHECK_FAILS(merge(inPass(context, 2)), kInvalid, "other: is in pass 2, expected 1");
  CHECK(exported(accumulator) == before);

  // Other data in the first pass.
  const Accumulator later = inPass(context, 2);
  const Accumulator other = makeAccumulator(context, 2, kLevels);
  require(support::update(context, other, numbers(support::kF32, {10, 2}, 2)));
  CHECK(support::nextPass(other));
  CHECK_FAILS(rbcAccumulatorMerge(later.get(), other.get()), kInvalid,
              "other: its samples in the previous pass differ");
  // Exported in one pass, merged in another.
  CHECK_FAILS(rbcAccumulatorMerge(later.get(), imported(context, before).get()), kInvalid,
              "other: is in pass 1, expected 2");
  // An empty accumulator adds nothing.
  CHECK_SUCCEEDS(merge(makeAccumulator(context, 2, kLevels)));
  CHECK(exported(accumulator) == before);
}

// A caller can forge the words that a state's digest covers, and the tables of two states are
// added.
TEST_CASE(
    "accumulator errors: states made up to have one digest, but not as many buckets, do not "
    "merge") {
  constexpr size_t kSettled = 3;  // where the digest's words begin: channels, kind, the level,
  constexpr size_t kMinKey =
      8;                   // counts of values and of others, keys of the least and the greatest,
  size_t buckets_at = 10;  // the sum and the squares, each of a head and limbs, two a word
  const Context context = support::cpuContext(1);
  const Accumulator honest = makeAccumulator(context, 1, kLevels);
  require(support::update(context, honest, numbers(support::kF32, {200, 1})));
  REQUIRE(support::nextPass(honest));
  const Words good = wordsOf(exported(honest));
  for (int i = 0; i < 2; ++i) buckets_at += 1 + ((good[buckets_at] & 0xffffffff) + 1) / 2;

  const auto settledWith = [&](uint64_t buckets) {
    Words words(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(buckets_at));
    words.push_back(buckets);
    for (uint64_t b = 0; b < buckets; ++b) {
      words.insert(words.end(), {b + 1, b, buckets == 1 ? uint64_t{200} : uint64_t{1}});
    }
    return words;
  };
  Words many = settledWith(128);
  Words one = settledWith(1);
  uint64_t hash = hashOf(many, kSettled, many.size());
  for (size_t i = one.size(); --i > kMinKey;) hash = wordBetween(one[i], hash);
  one[kMinKey] = wordBetween(hashOf(one, kSettled, kMinKey), hash);
  REQUIRE(hashOf(one, kSettled, one.size()) == hashOf(many, kSettled, many.size()));

  const auto madeOf = [&](Words words, size_t buckets) {
    words.resize(words.size() + 2 + buckets + 1);  // zero counts, empty tables, the checksum
    words[2] = words.size();
    Bytes bytes(8 * words.size());
    std::memcpy(bytes.data(), words.data(), bytes.size());
    seal(&bytes);
    return imported(context, bytes);
  };
  const Accumulator to = madeOf(many, 128);
  const Accumulator from = madeOf(one, 1);
  for (const auto& [into, other] : {std::pair(&to, &from), std::pair(&from, &to)}) {
    CHECK_FAILS(rbcAccumulatorMerge(into->get(), other->get()), kInvalid,
                "other: its samples in the previous pass differ");
  }
}

TEST_CASE("accumulator errors: passes over other data") {
  const Context context = support::cpuContext(1);
  const Accumulator empty = makeAccumulator(context, 2, kLevels);
  int32_t more = 7;
  CHECK_FAILS(rbcAccumulatorNextPass(empty.get(), &more), kInvalid, "has no samples");
  CHECK_FAILS(rbcAccumulatorNextPass(empty.get(), nullptr), kInvalid, "more: is null");

  const Accumulator accumulator = inPass(context, 2);
  CHECK_FAILS(rbcAccumulatorNextPass(accumulator.get(), &more), kInvalid,
              "accumulator: pass 2 has seen 0 finite");
  CHECK(resultOf(accumulator).status == kInvalid);
  require(support::update(context, accumulator, numbers(support::kF32, {10, 2}, 3)));
  CHECK_FAILS(rbcAccumulatorNextPass(accumulator.get(), &more), kInvalid,
              "pass 2 has other values");
  require(support::update(context, accumulator, numbers(support::kF32, {1, 2})));
  CHECK_FAILS(rbcAccumulatorNextPass(accumulator.get(), &more), kInvalid,
              "pass 2 has seen 11 finite");
  CHECK(more == 7);

  const Accumulator done = inPass(context, 3);
  CHECK_FAILS(support::update(context, done, numbers(support::kF32, {10, 2})), kInvalid,
              "accumulator: its passes are over");
  CHECK_FAILS(rbcAccumulatorMerge(done.get(), inPass(context, 3).get()), kInvalid,
              "passes are over");
  CHECK(!support::nextPass(done));
  CHECK(resultOf(done).status == RBC_STATUS_SUCCESS);
}

TEST_CASE("accumulator errors: bytes that are not an accumulator") {
  if (support::kThreadSanitizer) SKIP_BECAUSE("ThreadSanitizer finds nothing in one thread");
  const Context context = support::cpuContext(1);
  for (int pass = 1; pass <= 3; ++pass) {
    const Accumulator accumulator = inPass(context, pass);
    if (pass < 3) require(support::update(context, accumulator, numbers(support::kF32, {10, 2})));
    const Bytes good = exported(accumulator);
    for (size_t size = 0; size < good.size(); ++size) {
      const Bytes part(good.begin(), good.begin() + static_cast<int64_t>(size));
      rbcAccumulator_t made = nullptr;
      CHECK(rbcAccumulatorImport(context.get(), good.data(), size, &made) == kDamaged);
    }
    for (size_t i = 0; i < 3 * good.size(); ++i) {
      if (!support::inShare(i)) continue;
      Bytes bad = good;
      uint8_t& byte = bad[i / 3];
      byte = i % 3 == 0 ? byte ^ 0x10 : i % 3 == 1 ? 0 : 0xff;
      if (bad == good) continue;
      rbcAccumulator_t made = nullptr;
      CHECK(rbcAccumulatorImport(context.get(), bad.data(), bad.size(), &made) !=
            RBC_STATUS_SUCCESS);
      // For any contents, even with a correct checksum, no other memory is read or written.
      seal(&bad);
      if (rbcAccumulatorImport(context.get(), bad.data(), bad.size(), &made) ==
          RBC_STATUS_SUCCESS) {
        const Accumulator strange(made);
        resultOf(strange);
        int32_t more = 0;
        rbcAccumulatorNextPass(made, &more);
      }
    }
    Bytes longer = good;
    longer.resize(longer.size() + 8);
    checkRefused(context, longer, kDamaged, "expected");
    Bytes newer = good;
    newer[8] = 2;
    checkRefused(context, newer, RBC_STATUS_UNSUPPORTED, "version 2");
    Bytes foreign = good;
    foreign[0] = 'x';
    checkRefused(context, foreign, kDamaged, "not the state of an accumulator");
    Bytes corrupted = good;
    corrupted[60] ^= 1;
    checkRefused(context, corrupted, kDamaged, "checksum");
    Bytes sealed = good;
    seal(&sealed);
    CHECK(sealed == good);
  }
}

TEST_CASE("accumulator errors: export and result") {
  const Context context = support::cpuContext(1);
  const Accumulator accumulator = inPass(context, 1);
  size_t bytes = 0;
  CHECK_SUCCEEDS(rbcAccumulatorExport(accumulator.get(), nullptr, 0, &bytes));
  Bytes room(bytes, 0x77);
  size_t told = 0;
  CHECK_FAILS(rbcAccumulatorExport(accumulator.get(), room.data(), bytes - 8, &told),
              RBC_STATUS_BUFFER_TOO_SMALL, "capacity: is ");
  CHECK(told == bytes);
  CHECK(room == Bytes(bytes, 0x77));
  CHECK_FAILS(rbcAccumulatorExport(accumulator.get(), nullptr, 8, &told), kInvalid,
              "data: is null");
  CHECK_FAILS(rbcAccumulatorExport(accumulator.get(), room.data(), bytes, nullptr), kInvalid,
              "bytes: is null");

  rbcStatisticsOutputs result = rbcStatisticsOutputsInit();
  CHECK_FAILS(rbcAccumulatorGetResult(accumulator.get(), nullptr), kInvalid, "outputs: is null");
  double numbers_of[4] = {};
  int64_t extent = 2;
  rbcTensor mean = support::vectorTensor(numbers_of, support::kF64, &extent);
  rbcTensor max = support::vectorTensor(numbers_of + 1, support::kF64, &extent);
  result.mean = &mean;
  const auto run = [&] { return rbcAccumulatorGetResult(accumulator.get(), &result); };
  mean.device.type = RBC_DEVICE_CUDA;
  CHECK_FAILS(run(), RBC_STATUS_DEVICE_MISMATCH, "mean: ", "host memory");
  mean.device.type = RBC_DEVICE_CPU;
  mean.dtype = support::kF32;
  CHECK_FAILS(run(), RBC_STATUS_DTYPE_MISMATCH, "mean: dtype is float32, expected float64");
  mean.dtype = support::kF64;
  extent = 3;
  CHECK_FAILS(run(), RBC_STATUS_SHAPE_MISMATCH, "mean: shape is [3], expected [2]");
  extent = 2;
  result.max = &max;
  CHECK_FAILS(run(), kInvalid, "overlaps");
  result.max = nullptr;
  for (const double x : numbers_of) CHECK(x == 0);
  CHECK_SUCCEEDS(run());
  CHECK(std::isnan(numbers_of[0]));
  const auto all = resultOf(accumulator);
  CHECK(all.count[0] == 0);
  CHECK(std::isnan(all.quantiles[0]));
}

TEST_CASE("wrapper: the workspace of an update has the size of its size function") {
  constexpr int64_t kRows = 20000;
  std::vector<float> ramp(3 * kRows);
  std::iota(ramp.begin(), ramp.end(), 0.0f);
  const robocache::Tensor rows(ramp, {kRows, 3});
  robocache::Context context = robocache::Context::cpu(2);
  auto accumulator = robocache::Accumulator::create(context, 3);
  context.reserve(accumulator.updateWorkspaceSize(rows));
  const int64_t reserved = context.info().workspace_bytes;
  accumulator.update(rows);
  CHECK(context.info().workspace_bytes == reserved);
}
