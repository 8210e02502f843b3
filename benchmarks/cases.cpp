#include "cases.h"

#include <algorithm>
#include <utility>

namespace bench {
namespace {

using support::kBF16;
using support::kF32;
using support::kF64;
using support::kI64;
using support::kU8;

Case oneStream(const char* op, int64_t batch, int64_t samples, int64_t queries, int64_t channels,
               rbcDType dtype, const std::string& trait) {
  Case c;
  c.op = op;
  c.name = std::to_string(batch) + "," + std::to_string(samples) + "," + std::to_string(queries) +
           "," + std::to_string(channels) + " " + support::nameOf(dtype) +
           (trait.empty() ? "" : " " + trait);
  c.batch = batch;
  c.queries = queries;
  c.out = dtype;
  c.variant = !trait.empty();
  c.streams = {{samples, channels, dtype}};
  return c;
}

}  // namespace

std::vector<Case> resampleCases() {
  std::vector<Case> cases;
  const auto add = [&](int64_t batch, int64_t samples, int64_t queries, int64_t channels,
                       rbcDType dtype, const std::string& trait = "") -> Case& {
    cases.push_back(oneStream("resample", batch, samples, queries, channels, dtype, trait));
    return cases.back();
  };
  add(1, 500, 1, 32, kF32);
  add(64, 4096, 1024, 32, kF32);
  add(64, 4096, 1024, 32, kBF16);
  add(256, 500, 250, 32, kBF16);
  add(32, 500, 250, 256, kBF16);
  add(32, 500, 250, 256, kF32);
  add(1024, 500, 250, 256, kBF16);
  add(2048, 1000, 500, 512, kBF16);
  add(4096, 4096, 1024, 32, kF32);
  // Intervals that vary more than those of any recording here.
  add(64, 4096, 1024, 32, kBF16, "wild").wild = true;
  add(256, 500, 250, 32, kBF16, "wild").wild = true;
  add(32, 500, 250, 256, kBF16, "wild").wild = true;
  // One thing at a time that may cost more: each is to be held against the first of them.
  add(256, 2000, 1000, 32, kF32);
  for (const int64_t channels : {1, 3, 7, 13}) add(256, 2000, 1000, channels, kF32, "unaligned");
  add(256, 2000, 1000, 13, kBF16, "unaligned");
  add(256, 2000, 1000, 32, kF32, "random").random = true;
  add(256, 2000, 1000, 32, kF32, "times_f64").times = kF64;
  add(256, 2000, 1000, 32, kF32, "times_i64").times = kI64;
  add(256, 2000, 1000, 32, kF32, "nearest").streams[0].method = RBC_METHOD_NEAREST;
  add(256, 2000, 1000, 32, kF32, "previous").streams[0].method = RBC_METHOD_PREVIOUS;
  add(256, 2000, 1000, 32, kF32, "mask").mask = true;
  add(256, 2000, 1000, 32, kF32, "lengths").streams[0].lengths = true;
  add(256, 2000, 1000, 32, kF32, "packed").streams[0].packed = true;
  add(256, 2000, 1000, 32, kF32, "to_bf16").out = kBF16;
  return cases;
}

std::vector<Case> fuseCases() {
  std::vector<Case> cases;
  const auto add = [&](const char* name, int64_t batch, int64_t queries, rbcDType out,
                       std::vector<StreamCase> streams) -> Case& {
    Case c;
    c.op = "fuse";
    c.name = name;
    c.batch = batch;
    c.queries = queries;
    c.out = out;
    c.streams = std::move(streams);
    cases.push_back(std::move(c));
    return cases.back();
  };
  const auto arms = [](size_t count, int64_t samples) {
    return std::vector<StreamCase>(count, {samples, 7, kF32});
  };
  // Features of a camera and two faster sensors.
  add("B=4: 30x512, 100x64, 200x12 -> 50 bf16", 4, 50, kBF16,
      {{30, 512, kBF16}, {100, 64, kBF16}, {200, 12, kBF16}});
  add("B=256: 100x512, 200x128, 300x64 -> 128 bf16", 256, 128, kBF16,
      {{100, 512, kBF16}, {200, 128, kBF16}, {300, 64, kBF16}});
  add("B=512: 150x512, 500x64, 1000x16 -> 250 bf16", 512, 250, kBF16,
      {{150, 512, kBF16}, {500, 64, kBF16}, {1000, 16, kBF16}});
  // One tick of a control loop.
  add("B=1: 3 streams 100x7 -> 1 f32", 1, 1, kF32, arms(3, 100));
  add("B=1: 8 streams 100x7 -> 1 f32", 1, 1, kF32, arms(8, 100));
  // Many small streams.
  add("B=32: 16 streams 200x7 -> 100 f32", 32, 100, kF32, arms(16, 200));
  // What a robot records, each in its own way: pose (position, quaternion, gripper), inertial
  // sensor with an affine, contacts of u8, joint angles; and the mask.
  const StreamCase pose{
      300,
      8,
      kF32,
      RBC_METHOD_LINEAR,
      {{0, 3, RBC_METHOD_LINEAR, 0}, {3, 4, RBC_METHOD_SLERP, 0}, {7, 1, RBC_METHOD_PREVIOUS, 0}}};
  const StreamCase inertial{2000, 6, kF32, RBC_METHOD_LINEAR, {}, true};
  const StreamCase contacts{500, 2, kU8, RBC_METHOD_PREVIOUS};
  const StreamCase joints{1000, 7, kF32, RBC_METHOD_ANGLE};
  add("B=64: pose 300x8, IMU 2000x6, contacts 500x2, joints 1000x7 -> 500 f32", 64, 500, kF32,
      {pose, inertial, contacts, joints})
      .mask = true;
  return cases;
}

std::vector<Case> methodCases(int64_t batch, int64_t samples, int64_t queries, int64_t channels,
                              rbcDType dtype) {
  std::vector<Case> cases;
  const auto add = [&](const char* name, int32_t method, bool affine = false) {
    cases.push_back(oneStream("methods", batch, samples, queries, channels, dtype, name));
    cases.back().streams[0].method = method;
    cases.back().streams[0].affine = affine;
  };
  add("linear", RBC_METHOD_LINEAR);
  add("linear+affine", RBC_METHOD_LINEAR, true);
  add("nearest", RBC_METHOD_NEAREST);
  add("angle", RBC_METHOD_ANGLE);
  add("slerp", RBC_METHOD_SLERP);
  add("cubic", RBC_METHOD_CUBIC);
  add("pchip", RBC_METHOD_PCHIP);
  return cases;
}

std::vector<Case> sweepCases() {
  constexpr int64_t kBatch = 256, kSamples = 1000, kQueries = 500, kChannels = 32;  // 50 MB
  std::vector<Case> cases;
  const auto add = [&](const char* axis, int64_t value, int64_t batch, int64_t samples,
                       int64_t queries, int64_t channels, rbcDType dtype) -> Case& {
    cases.push_back(oneStream("sweep", batch, samples, queries, channels, dtype, ""));
    Case& c = cases.back();
    c.name = std::string(axis) + "=" + std::to_string(value) + ": " + c.name;
    return c;
  };
  // A smaller batch where values or results would be more than half a gigabyte.
  const auto fitting = [=](int64_t samples, int64_t queries, int64_t channels) {
    constexpr int64_t kMostElements = int64_t{1} << 27;
    return std::min(kBatch, kMostElements / (std::max(samples, queries) * channels));
  };
  for (const rbcDType dtype : {kF32, kBF16}) {
    for (const int64_t d : {1, 2, 3, 4, 7, 8, 13, 16, 32, 64, 128, 256, 1024, 4096})
      add("D", d, fitting(kSamples, kQueries, d), kSamples, kQueries, d, dtype);
  }
  // With as many queries a sample as ever, for otherwise the floor would be times that none needs.
  for (const int64_t s : {2, 10, 100, 1000, 10000, 100000, 1000000})
    add("S", s, fitting(s, s / 2, kChannels), s, s / 2, kChannels, kF32);
  for (const int64_t t : {1, 10, 100, 1000, 10000, 100000, 1000000})
    add("T", t, fitting(kSamples, t, kChannels), kSamples, t, kChannels, kF32);
  for (const int64_t b : {1, 16, 256, 4096, 65536, 262144}) add("B", b, b, 64, 32, kChannels, kF32);
  // The same channels in ever more streams.
  constexpr int64_t kMostStreams = 64;
  for (int64_t n = 1; n <= kMostStreams; n *= 2) {
    Case& c = add("N", n, kBatch, kSamples, kQueries, kMostStreams, kF32);
    c.streams.assign(static_cast<size_t>(n), {kSamples, kMostStreams / n, kF32});
  }
  return cases;
}

}  // namespace bench
