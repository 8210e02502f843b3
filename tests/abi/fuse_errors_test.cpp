// Errors of rbcFuse: the message names the stream and the argument.
#include <cstddef>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "abi/fuse_call.h"
#include "abi/struct_calls.h"
#include "abi/wrapper_size.h"

namespace {

using namespace fuse_call;
using support::checkDTypes;
using support::checkError;
using support::checkErrors;
using support::checkShapes;
using support::Seen;

const double kNaN = std::numeric_limits<double>::quiet_NaN();
const double kInfinity = std::numeric_limits<double>::infinity();

const support::StructCallsOf kFuseStructs([](support::StructCalls& calls) {
  const support::StructRecording recording = calls.recording();
  const rbcTensor* fused = calls.out(support::kF32, {2, 2});
  rbcResampleParams previous = rbcResampleParamsInit();
  previous.method = RBC_METHOD_PREVIOUS;
  rbcFuseStream stream = rbcFuseStreamInit();
  stream.values = recording.values;
  stream.times = recording.times;
  const std::vector<rbcFuseStream> streams(2, stream);
  const auto fuse = [=, c = calls.context()](const rbcFuseStream* of, const rbcFuseParams* params) {
    return rbcFuse(c, of, 2, recording.queries, fused, nullptr, params);
  };
  calls.add("rbcFuseStream", rbcFuseStreamInit(), streams, "streams",
            [=](const rbcFuseStream* object) { return fuse(object, nullptr); });
  calls.add("rbcResampleParams", rbcResampleParamsInit(), {previous}, "streams[1].params",
            [=](const rbcResampleParams* object) {
              std::vector<rbcFuseStream> copies = streams;
              copies[1].params = object;
              return fuse(copies.data(), nullptr);
            });
  rbcFuseParams params = rbcFuseParamsInit();
  params.flags = RBC_FLAG_CHECK_TIMES;
  calls.add("rbcFuseParams", rbcFuseParamsInit(), {params}, "params",
            [=](const rbcFuseParams* object) { return fuse(streams.data(), object); });
});

}  // namespace

COMMON_ERROR_TESTS("fuse", Call)
STRUCT_ERROR_TESTS("fuse", Call)

TEST_CASE("fuse errors: the good call is good, with every option") {
  Call checked;
  checked.params.flags = RBC_FLAG_CHECK_TIMES;
  CHECK_SUCCEEDS(checked.run());
  CHECK_SUCCEEDS(checked.workspace());
  checked.checkOutputs();
  Call bare;
  bare.used_mask = nullptr;
  bare.used_params = nullptr;
  CHECK_SUCCEEDS(bare.run());
  CHECK(bare.out.array.elements() == checked.out.array.elements());
  CHECK(bare.mask.array.untouched());
  Call ticks;
  ticks.tick();
  ticks.streams[1].clock_offset_ticks = std::numeric_limits<int64_t>::min();
  CHECK_SUCCEEDS(ticks.run());
}

TEST_CASE("fuse errors: the number of streams") {
  checkError<Call>({RBC_STATUS_INVALID_ARGUMENT, "num_streams: is 0, expected 1 to 64",
                    [](Call& c) { c.used_streams = nullptr, c.num_streams = 0; }});
  for (const int32_t count : {0, -1, RBC_FUSE_MAX_STREAMS + 1, std::numeric_limits<int32_t>::min(),
                              std::numeric_limits<int32_t>::max()}) {
    const std::string told = "num_streams: is " + std::to_string(count) + ", expected 1 to 64";
    checkError<Call>({RBC_STATUS_INVALID_ARGUMENT, told, [&](Call& c) { c.num_streams = count; }});
  }
}

TEST_CASE("fuse errors: struct_size of the streams") {
  constexpr auto kStatus = RBC_STATUS_INVALID_ARGUMENT;
  constexpr uint32_t kSize = sizeof(rbcFuseStream);
  for (const uint32_t size : {0u, 4u, kSize - 4, 0xffffffffu}) {
    const std::string told = std::to_string(size);
    checkError<Call>({kStatus, "streams[0]: struct_size is " + told,
                      [&](Call& c) { c.streams[0].struct_size = size; }});
  }
  for (const uint32_t size : {0u, kSize - 8, kSize + 8, 65536u}) {
    const std::string told =
        "is " + std::to_string(size) + ", expected " + std::to_string(kSize) + " as streams[0]";
    checkError<Call>({kStatus, "streams[2]: struct_size " + told,
                      [&](Call& c) { c.streams[2].struct_size = size; }});
  }
}

TEST_CASE("fuse errors: an array is not read past its end, for any contents of an element") {
  Call call;
  support::GuardedMemory memory(sizeof call.streams, support::Flush::kEnd);
  auto* const streams = reinterpret_cast<rbcFuseStream*>(memory.data());
  std::memcpy(memory.data(), call.streams, sizeof call.streams);
  call.used_streams = streams;
  streams[2].struct_size = 4096;
  CHECK_FAILS(call.run(), RBC_STATUS_INVALID_ARGUMENT, "streams[2]: struct_size is 4096");
  streams[2].struct_size = sizeof(rbcFuseStream);
  CHECK_SUCCEEDS(call.run());
}

TEST_CASE("fuse errors: reserved fields of a stream, and fields that belong to the call") {
  constexpr auto kStatus = RBC_STATUS_INVALID_ARGUMENT;
  checkError<Call>(
      {kStatus, "streams[1]: reserved0 is not 0", [](Call& c) { c.streams[1].reserved0 = 1; }});
  checkErrors<Call>({{kStatus, "streams[1].params.flags:...rbcFuseParams",
                      [](Call& c) { c.stream_params[1].flags = RBC_FLAG_CHECK_TIMES; }},
                     {kStatus, "streams[0].params.query_lengths:...rbcFuseParams", [](Call& c) {
                        c.params.query_lengths = nullptr;
                        c.stream_params[0].query_lengths = &c.query_lengths.raw;
                      }}});
}

TEST_CASE("fuse errors: errors of rbcResample in a stream name the stream") {
  constexpr auto kStatus = RBC_STATUS_INVALID_ARGUMENT;
  checkErrors<Call>(
      {{kStatus, "streams[1].method: is 99", [](Call& c) { c.stream_params[1].method = 99; }},
       {kStatus, "streams[1].outside: is 3", [](Call& c) { c.stream_params[1].outside = 3; }},
       {kStatus, "streams[2].max_gap: is -1", [](Call& c) { c.stream_params[2].max_gap = -1; }},
       {kStatus, "streams[2].max_gap: is 0.05, less than one tick",
        [](Call& c) {
          c.tick();
          c.stream_params[2].max_gap = 0.05;
        }},
       {kStatus, "streams[2].tolerance:...nearest",
        [](Call& c) { c.stream_params[2].tolerance = 1; }},
       {kStatus, "streams[1].outside:...linear",
        [](Call& c) { c.stream_params[1].outside = RBC_OUTSIDE_EXTRAPOLATE; }},
       {kStatus, "streams[2].values: has 2 channels...slerp",
        [](Call& c) { c.stream_params[2].method = RBC_METHOD_SLERP; }},
       {kStatus, "streams[0].groups: channel 3 is in none",
        [](Call& c) {
          c.regroup(0, {{0, 3, RBC_METHOD_LINEAR, 0, 0, 0, 0}});
        }},
       {kStatus, "streams[2].groups[1]: shares channel 1 with groups[0]",
        [](Call& c) {
          c.regroup(2,
                    {{0, 2, RBC_METHOD_LINEAR, 0, 0, 0, 0}, {1, 1, RBC_METHOD_NEXT, 0, 0, 0, 0}});
        }},
       {kStatus, "streams[2].lengths:...batch_offsets",
        [](Call& c) { c.stream_params[2].lengths = &c.padded.lengths.raw; }},
       {RBC_STATUS_DTYPE_MISMATCH, "streams[1].values:...int32...method linear",
        [](Call& c) { c.stream_params[1].method = RBC_METHOD_LINEAR; }}});
}

TEST_CASE("fuse errors: too many groups of channels in all") {
  constexpr int64_t kHalf = RBC_FUSE_MAX_CHANNEL_GROUPS / 2;
  support::Argument wide(kF32, {2, 3, kHalf});
  wide.array.each([](std::byte* p) { std::memset(p, 0, 4); });
  support::Argument out(kF32, {2, 2, 2 * kHalf + 2});
  const auto set = [&](Call& c, bool grouped) {
    std::vector<rbcChannelGroup> groups;
    for (int64_t i = 0; i < kHalf; ++i) groups.push_back({i, 1, i % 2 == 0 ? 0 : 2, 0, 0, 0, 0});
    for (const int n : {0, 1}) {
      c.streams[n].values = &wide.raw;
      c.streams[n].times = &c.padded.times.raw;
      c.stream_params[n] = rbcResampleParamsInit();
      c.regroup(n, groups);
    }
    // Even one more method is one more group.
    if (grouped) c.regroup(2, {{0, 2, RBC_METHOD_LINEAR, 0, 0, 0, 0}});
    c.used_out = &out.raw;
  };
  for (const bool grouped : {false, true}) {
    checkError<Call>({RBC_STATUS_INVALID_ARGUMENT, "streams[2].groups:...256...in all",
                      [&](Call& c) { set(c, grouped); }});
    CHECK(out.array.untouched());
  }
  Call call;
  set(call, false);
  call.num_streams = 2;
  out.reshape({2, 2, 2 * kHalf});
  call.mask.reshape({2, 2, 2});
  CHECK_SUCCEEDS(call.run());
}

TEST_CASE("fuse errors: streams of different batches") {
  constexpr auto kStatus = RBC_STATUS_SHAPE_MISMATCH;
  checkErrors<Call>({{kStatus, "streams[1].values: batch is 1, expected 2 as streams[0]",
                      [](Call& c) {
                        c.shared.values.reshape({1, 4, 1});
                      }},
                     {kStatus, "streams[2].batch_offsets: batch is 3, expected 2 as streams[0]",
                      [](Call& c) {
                        c.packed.offsets.array = support::Array(kI32, {4});
                        c.packed.offsets.restore();
                        c.packed.offsets.reshape({4});
                      }},
                     {kStatus, "streams[1].values: has no batch, expected one as in streams[0]",
                      [](Call& c) {
                        c.shared.values.reshape({4, 1});
                      }},
                     {kStatus, "streams[2].values: has no batch, expected one as in streams[0]",
                      [](Call& c) { c.stream_params[2].batch_offsets = nullptr; }},
                     {kStatus, "streams[1].values: has a batch, expected none as in streams[0]",
                      [](Call& c) {
                        c.stream_params[0].lengths = nullptr;
                        c.padded.values.reshape({3, 4});
                        c.padded.times.reshape({3});
                      }},
                     // A batch of one and a stream without a batch do not fit either.
                     {kStatus, "streams[1].values: has no batch, expected one", [](Call& c) {
                        c.num_streams = 2;
                        c.stream_params[0].lengths = nullptr;
                        c.padded.values.reshape({1, 3, 4});
                        c.padded.times.reshape({1, 3});
                        c.shared.values.reshape({4, 1});
                      }}});
}

TEST_CASE("fuse errors: times of different dtypes") {
  constexpr auto kStatus = RBC_STATUS_DTYPE_MISMATCH;
  checkErrors<Call>({{kStatus, "streams[1].times:...float32...float64 as streams[0]",
                      [](Call& c) { c.shared.times.raw.dtype = kF32; }},
                     {kStatus, "streams[2].times:...int64...float64",
                      [](Call& c) { c.packed.times.raw.dtype = kI64; }},
                     {kStatus, "streams[0].times:...int32...float32, float64 or int64",
                      [](Call& c) { c.padded.times.raw.dtype = kI32; }},
                     {kStatus, "query_times:...int64...float64",
                      [](Call& c) { c.query_times.raw.dtype = kI64; }}});
}

TEST_CASE("fuse errors: outputs of a wrong shape or dtype") {
  checkShapes<Call>({{"out", {2, 2, 6}, "shape is [2,2,6], expected [2,2,7]"},
                     {"out", {2, 2, 4}, "shape is [2,2,4], expected [2,2,7]"},
                     {"out", {2, 1, 7}, "shape is [2,1,7], expected [2,2,7]"},
                     {"out", {1, 2, 7}, "shape is [1,2,7], expected [2,2,7]"},
                     {"out", {4, 7}, "shape is [4,7], expected [2,2,7]"},
                     {"out", {2, 2, 7, 1}, "shape is [2,2,7,1], expected [2,2,7]"},
                     {"valid", {2, 2}, "shape is [2,2], expected [2,2,3]"},
                     {"valid", {2, 2, 2}, "shape is [2,2,2], expected [2,2,3]"},
                     {"valid", {2, 2, 1}, "shape is [2,2,1], expected [2,2,3]"},
                     {"valid", {2, 1, 3}, "shape is [2,1,3], expected [2,2,3]"},
                     {"valid", {1, 2, 3}, "shape is [1,2,3], expected [2,2,3]"},
                     {"valid", {12}, "shape is [12], expected [2,2,3]"},
                     {"query_times", {2, 2, 1}, "rank is 3 (shape [2,2,1]), expected 1 or 2"},
                     {"query_times", {1, 2}, "shape is [1,2], expected [2,2]"},
                     {"query_lengths", {1}, "shape is [1], expected [2]"},
                     {"streams[0].scale", {3}, "shape is [3], expected [4]"},
                     {"streams[0].values", {24}, "rank is 1 (shape [24]), expected 2 or 3"},
                     {"streams[1].times", {3}, "shape is [3], expected [4]"}});
  checkDTypes<Call>(
      {{"out", kI32, "dtype is int32, expected a float"},
       {"valid", support::kI8, "dtype is int8, expected bool or uint8"},
       {"query_lengths", support::kU32, "dtype is uint32, expected int32 or int64"},
       {"streams[0].lengths", kF64, "dtype is float64, expected int32 or int64"},
       {"streams[0].shift", support::kF16, "dtype is float16, expected float32 or float64"}});
  // An integer output is wrong even if it is the one stream's own dtype.
  checkError<Call>({RBC_STATUS_DTYPE_MISMATCH, "out: ...int32...float", [](Call& c) {
                      c.used_streams += 1;
                      c.num_streams = 1;
                      c.out.raw.dtype = kI32;
                      c.out.reshape({2, 2, 1});
                      c.mask.reshape({2, 2, 1});
                    }});
}

TEST_CASE("fuse errors: outputs that overlap an input, each other or themselves") {
  constexpr auto kStatus = RBC_STATUS_INVALID_ARGUMENT;
  checkErrors<Call>(
      {{kStatus, "streams[2].values:...overlaps out",
        [](Call& c) {  // by its last element
          c.out.raw.data = static_cast<std::byte*>(c.packed.values.raw.data) + 36;
        }},
       {kStatus, "valid:...overlaps out", [](Call& c) { c.mask.raw.data = c.out.raw.data; }},
       {kStatus, "out:...share memory",
        [](Call& c) {
          c.out.restride({0, 7, 1});
        }},
       {kStatus, "out:...share memory",
        [](Call& c) {
          c.out.restride({12, 6, 1});
        }},
       {kStatus, "valid:...share memory", [](Call& c) {
          c.mask.restride({6, 3, 0});
        }}});
}

TEST_CASE("fuse errors: clock offsets") {
  constexpr auto kStatus = RBC_STATUS_INVALID_ARGUMENT;
  for (const double offset : {kNaN, kInfinity, -kInfinity}) {
    checkError<Call>({kStatus, "streams[2].clock_offset:...finite",
                      [&](Call& c) { c.streams[2].clock_offset = offset; }});
  }
  checkErrors<Call>(
      {{kStatus, "streams[0].clock_offset: is 1e+300...finite float32",
        [](Call& c) {
          for (Argument* a : {&c.padded.times, &c.shared.times, &c.packed.times, &c.query_times}) {
            a->raw.dtype = kF32;
          }
          c.streams[0].clock_offset = 1e300;
        }},
       {kStatus, "streams[1].clock_offset_ticks: is 7...clock_offset...float64",
        [](Call& c) { c.streams[1].clock_offset_ticks = 7; }}});
  for (const double offset : {0.5, kNaN}) {
    checkError<Call>(
        {kStatus, "streams[1].clock_offset:...clock_offset_ticks...int64", [&](Call& c) {
           c.tick();
           c.streams[1].clock_offset = offset;
         }});
  }
}

TEST_CASE("fuse errors: lengths and offsets out of range") {
  constexpr auto kStatus = RBC_STATUS_INVALID_ARGUMENT;
  for (const uint32_t flags : {0u, RBC_FLAG_CHECK_TIMES}) {  // the CPU always checks
    const auto wrong = [&](const support::ErrorText& message, auto&& spoil) {
      checkError<Call>({kStatus, message,
                        [&](Call& c) {
                          c.params.flags = flags;
                          spoil(c);
                        },
                        Seen::kByTheCallAlone});
    };
    wrong("streams[0].lengths: row 1 is 4, expected 0 to 3", [](Call& c) {
      c.padded.lengths.fill<int64_t>({3, 4});
    });
    wrong("streams[0].lengths: row 0 is -1", [](Call& c) {
      c.padded.lengths.fill<int64_t>({-1, 4});
    });
    wrong("streams[2].batch_offsets:...index 2...6...5 samples", [](Call& c) {
      c.packed.offsets.fill<int32_t>({0, 2, 6});
    });
    wrong("streams[2].batch_offsets: decrease at index 2 (3 -> 2)", [](Call& c) {
      c.packed.offsets.fill<int32_t>({0, 3, 2});
    });
    wrong("query_lengths: row 1 is 3, expected 0 to 2", [](Call& c) {
      c.query_lengths.fill<int32_t>({2, 3});
    });
    wrong("query_lengths: row 0 is -7", [](Call& c) { c.query_lengths.fill<int32_t>({-7, 9}); });
  }
}

TEST_CASE("fuse errors: bad times, with checking") {
  const auto wrong = [&](const support::ErrorText& message, auto&& spoil) {
    checkError<Call>({RBC_STATUS_INVALID_ARGUMENT, message,
                      [&](Call& c) {
                        c.params.flags = RBC_FLAG_CHECK_TIMES;
                        spoil(c);
                      },
                      Seen::kByTheCallAlone});
  };
  const auto late = [](Call& c) { c.shared.times.fill<double>({0, 1, 5, 4}); };
  const auto nan = [](Call& c) { c.packed.times.fill<double>({0, 1, 0, kNaN, 3}); };
  wrong("streams[1].times: row 0 decreases at index 3 (5 -> 4)", late);
  wrong("streams[2].times: row 1 is NaN at index 1", nan);
  wrong("streams[0].times: row 1 decreases at index 1 (1 -> 0.5)", [](Call& c) {
    c.padded.times.fill<double>({0, 1, 2, 1, 0.5, 2});
  });
  wrong("streams[1].times:", [&](Call& c) {  // the first stream's error is reported
    late(c);
    nan(c);
  });
  wrong("streams[2].times: row 1 decreases at index 2 (9 -> 3)", [](Call& c) {
    c.tick();
    c.packed.times.array = support::Array(kI64, {5});
    c.packed.times.restore();
    c.packed.times.fill<int64_t>({4, 5, 1, 9, 3});
  });
  // Data past a length is not used, and rows need no order among each other.
  Call fine;
  fine.params.flags = RBC_FLAG_CHECK_TIMES;
  fine.padded.times.fill<double>({0, 1, 2, 0, 1, -9});
  CHECK_SUCCEEDS(fine.run());
  fine.checkOutputs();
}

TEST_CASE("wrapper: the workspace of fuse has the size of its size function") {
  constexpr int64_t kRows = 20000;
  std::vector<float> ramp(kRows);
  std::iota(ramp.begin(), ramp.end(), 0.0f);
  std::vector<float> written(kRows);
  const robocache::Tensor values(ramp, {kRows, 1});
  const robocache::Tensor times(ramp.data(), {kRows});
  CHECK(CHECKED_WRAPPER_SIZE(fuse, {robocache::FuseStream(values, times)}, times,
                             {written, {kRows, 1}}) == 0);
}
