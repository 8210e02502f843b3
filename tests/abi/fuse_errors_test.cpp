// Everything that rbcFuse must refuse: by a message that names the stream and the argument.
#include <limits>

#include "abi/fuse_call.h"

namespace {

using namespace fuse_call;

const double kNaN = std::numeric_limits<double>::quiet_NaN();
const double kInfinity = std::numeric_limits<double>::infinity();

std::vector<Named> everyTensor() {
  std::vector<Named> all(std::begin(kStreamTensors), std::end(kStreamTensors));
  all.insert(all.end(), std::begin(kOutputs), std::end(kOutputs));
  return all;
}

}  // namespace

TEST_CASE("fuse errors: the good call is good, with every option") {
  Call::checkGood();
  Call checked;
  checked.params.flags = RBC_CHECK_TIMES;
  CHECK_SUCCEEDS(checked.run());
  CHECK_SUCCEEDS(checked.workspace());
  checked.checkOutputs();
  const auto& context = support::refusingContext();
  Call bare;
  CHECK_SUCCEEDS(rbcFuse(context.get(), bare.streams, Call::kStreams, bare.used_queries,
                         bare.used_out, nullptr, nullptr));
  CHECK(bare.out.array.elements() == checked.out.array.elements());
  CHECK(bare.mask.array.untouched());
  Call ticks;
  ticks.tick();
  ticks.streams[1].clock_offset_ticks = std::numeric_limits<int64_t>::min();
  CHECK_SUCCEEDS(ticks.run());
}

TEST_CASE("fuse errors: null pointers") {
  constexpr auto kStatus = RBC_STATUS_INVALID_ARGUMENT;
  const Call call;
  const auto& context = support::refusingContext();
  size_t bytes = 0;
  CHECK_FAILS(rbcFuse(nullptr, call.streams, 3, call.used_queries, call.used_out, nullptr, nullptr),
              kStatus, "context: is null");
  CHECK_FAILS(rbcFuseWorkspaceSize(nullptr, call.streams, 3, call.used_queries, call.used_out,
                                   nullptr, nullptr, &bytes),
              kStatus, "context: is null");
  CHECK_FAILS(rbcFuseWorkspaceSize(context.get(), call.streams, 3, call.used_queries, call.used_out,
                                   nullptr, nullptr, nullptr),
              kStatus, "bytes: is null");
  refused(kStatus, {"num_streams: is 0"},
          [](Call& c) { c.used_streams = nullptr, c.num_streams = 0; });
  refused(kStatus, {"streams: is null"}, [](Call& c) { c.used_streams = nullptr; });
  refused(kStatus, {"query_times: is null"}, [](Call& c) { c.used_queries = nullptr; });
  refused(kStatus, {"out: is null"}, [](Call& c) { c.used_out = nullptr; });
  for (int n = 0; n < Call::kStreams; ++n) {
    const std::string stream = "streams[" + std::to_string(n) + "].";
    refused(kStatus, {(stream + "values: is null").c_str()},
            [&](Call& c) { c.streams[n].values = nullptr; });
    refused(kStatus, {(stream + "times: is null").c_str()},
            [&](Call& c) { c.streams[n].times = nullptr; });
  }
  for (const Named& tensor : everyTensor()) {
    const std::string name = std::string(tensor.name) + ":";
    refused(kStatus, {name.c_str(), "data is null"},
            [&](Call& c) { tensor.of(c).raw.data = nullptr; });
    refused(kStatus, {name.c_str(), "shape is null"},
            [&](Call& c) { tensor.of(c).raw.shape = nullptr; });
  }
}

TEST_CASE("fuse errors: descriptors that no tensor can have, and memory out of reach") {
  for (const Named& tensor : everyTensor()) {
    const std::string name = std::string(tensor.name) + ":";
    refused(RBC_STATUS_SHAPE_MISMATCH, {name.c_str(), "rank"},
            [&](Call& c) { tensor.of(c).raw.ndim = RBC_MAX_NDIM + 1; });
    refused(RBC_STATUS_SHAPE_MISMATCH, {name.c_str(), "overflow"},
            [&](Call& c) { tensor.of(c).shape[0] = std::numeric_limits<int64_t>::max(); });
    refused(RBC_STATUS_DTYPE_MISMATCH, {name.c_str(), "2 lanes"},
            [&](Call& c) { tensor.of(c).raw.dtype.lanes = 2; });
    refused(RBC_STATUS_DEVICE_MISMATCH, {name.c_str(), "device"},
            [&](Call& c) { tensor.of(c).raw.device.type = RBC_DEVICE_CUDA; });
  }
}

TEST_CASE("fuse errors: the number of streams") {
  for (const int32_t count : {0, -1, RBC_FUSE_MAX_STREAMS + 1, std::numeric_limits<int32_t>::min(),
                              std::numeric_limits<int32_t>::max()}) {
    const std::string told = "num_streams: is " + std::to_string(count) + ", expected 1 to 64";
    refused(RBC_STATUS_INVALID_ARGUMENT, {told.c_str()}, [&](Call& c) { c.num_streams = count; });
  }
}

TEST_CASE("fuse errors: struct_size of the streams and of the parameters") {
  constexpr auto kStatus = RBC_STATUS_INVALID_ARGUMENT;
  constexpr uint32_t kSize = sizeof(rbcFuseStream);
  constexpr uint32_t kFirstSize = 64;
  for (const uint32_t size : {0u, 4u, kFirstSize - 8, 0xffffffffu}) {
    const std::string told = std::to_string(size);
    refused(kStatus, {"streams[0]:", "struct_size", told.c_str()},
            [&](Call& c) { c.streams[0].struct_size = size; });
  }
  for (const uint32_t size : {0u, kSize - 8, kSize + 8, 65536u}) {
    const std::string told =
        "is " + std::to_string(size) + ", expected " + std::to_string(kSize) + " as streams[0]";
    refused(kStatus, {"streams[2]: struct_size", told.c_str()},
            [&](Call& c) { c.streams[2].struct_size = size; });
  }
  for (const uint32_t size : {0u, 120u}) {
    refused(kStatus, {"streams[1].params:", "struct_size"},
            [&](Call& c) { c.stream_params[1].struct_size = size; });
  }
  for (const uint32_t size : {0u, 40u, 0xffffffffu}) {
    refused(kStatus, {"params:", "struct_size"}, [&](Call& c) { c.params.struct_size = size; });
  }
}

TEST_CASE("fuse errors: an array of a newer caller is walked by the caller's size") {
  struct Newer {
    rbcFuseStream known;
    unsigned char more[24];
  };
  Call call;
  Newer newer[Call::kStreams] = {};
  for (int n = 0; n < Call::kStreams; ++n) {
    newer[n].known = call.streams[n];
    newer[n].known.struct_size = sizeof(Newer);
  }
  call.used_streams = &newer[0].known;
  for (const int n : {0, 1, 2}) {
    for (const int i : {0, 23}) {
      newer[n].more[i] = 1;
      const std::string stream = "streams[" + std::to_string(n) + "]: ";
      const std::string byte =
          "byte " + std::to_string(static_cast<int>(sizeof(rbcFuseStream)) + i) + " is set";
      CHECK_FAILS(call.run(), RBC_STATUS_INVALID_ARGUMENT, stream.c_str(), byte.c_str());
      CHECK(call.untouched());
      newer[n].more[i] = 0;
    }
  }
  CHECK_SUCCEEDS(call.run());
  call.checkOutputs();
}

TEST_CASE("fuse errors: an array is not read past its end, whatever an element says") {
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

TEST_CASE("fuse errors: flags, reserved fields, and what belongs to the call") {
  constexpr auto kStatus = RBC_STATUS_INVALID_ARGUMENT;
  for (const uint32_t flags : {2u, 3u, 0x80000000u}) {
    refused(kStatus, {"flags:"}, [&](Call& c) { c.params.flags = flags; });
  }
  for (int i = 0; i < 4; ++i) {
    refused(kStatus, {"params:", "reserved"}, [&](Call& c) { c.params.reserved[i] = 1; });
    refused(kStatus, {"streams[2].params:", "reserved"},
            [&](Call& c) { c.stream_params[2].reserved[i] = 1; });
  }
  refused(kStatus, {"streams[1]: reserved"}, [](Call& c) { c.streams[1].reserved0 = 1; });
  for (int i = 0; i < 2; ++i) {
    refused(kStatus, {"streams[1]: reserved"}, [&](Call& c) { c.streams[1].reserved[i] = 1; });
  }
  refused(kStatus, {"streams[1].params.flags:", "rbcFuseParams"},
          [](Call& c) { c.stream_params[1].flags = RBC_CHECK_TIMES; });
  refused(kStatus, {"streams[0].params.query_lengths:", "rbcFuseParams"}, [](Call& c) {
    c.params.query_lengths = nullptr;
    c.stream_params[0].query_lengths = &c.query_lengths.raw;
  });
}

TEST_CASE("fuse errors: what rbcResample refuses of a stream names the stream") {
  constexpr auto kStatus = RBC_STATUS_INVALID_ARGUMENT;
  refused(kStatus, {"streams[1].method: is 99"}, [](Call& c) { c.stream_params[1].method = 99; });
  refused(kStatus, {"streams[1].bounds: is 3"}, [](Call& c) { c.stream_params[1].bounds = 3; });
  refused(kStatus, {"streams[2].max_gap: is -1"}, [](Call& c) { c.stream_params[2].max_gap = -1; });
  refused(kStatus, {"streams[2].max_gap: is 0.05, less than one tick"}, [](Call& c) {
    c.tick();
    c.stream_params[2].max_gap = 0.05;
  });
  refused(kStatus, {"streams[2].tolerance:", "nearest"},
          [](Call& c) { c.stream_params[2].tolerance = 1; });
  refused(kStatus, {"streams[1].bounds:", "linear"},
          [](Call& c) { c.stream_params[1].bounds = RBC_BOUNDS_EXTRAPOLATE; });
  refused(kStatus, {"streams[2].values: has 2 channels", "slerp"},
          [](Call& c) { c.stream_params[2].method = RBC_METHOD_SLERP; });
  refused(kStatus, {"streams[0].groups: channel 3 is in none"}, [](Call& c) {
    c.regroup(0, {{0, 3, RBC_METHOD_LINEAR, 0}});
  });
  refused(kStatus, {"streams[2].groups[1]: shares channel 1 with groups[0]"}, [](Call& c) {
    c.regroup(2, {{0, 2, RBC_METHOD_LINEAR, 0}, {1, 1, RBC_METHOD_NEXT, 0}});
  });
  refused(kStatus, {"streams[2].lengths:", "offsets"},
          [](Call& c) { c.stream_params[2].lengths = &c.padded.lengths.raw; });
  refused(RBC_STATUS_DTYPE_MISMATCH, {"streams[1].values:", "int32", "method linear"},
          [](Call& c) { c.stream_params[1].method = RBC_METHOD_LINEAR; });
  refused(RBC_STATUS_DTYPE_MISMATCH, {"streams[0].lengths:", "float64", "int32 or int64"},
          [](Call& c) { c.padded.lengths.raw.dtype = kF64; });
  refused(RBC_STATUS_DTYPE_MISMATCH, {"streams[0].mean:", "float16", "float32 or float64"},
          [](Call& c) { c.padded.mean.raw.dtype = support::kF16; });
  refused(RBC_STATUS_SHAPE_MISMATCH, {"streams[0].inv_std:"},
          [](Call& c) { c.padded.inv_std.reshape({3}); });
  refused(RBC_STATUS_SHAPE_MISMATCH, {"streams[1].times:"},
          [](Call& c) { c.shared.times.reshape({3}); });
  refused(RBC_STATUS_SHAPE_MISMATCH, {"streams[0].values:"},
          [](Call& c) { c.padded.values.reshape({24}); });
}

TEST_CASE("fuse errors: too many groups of channels in all") {
  constexpr int64_t kHalf = RBC_MAX_CHANNEL_GROUPS / 2;
  support::Argument wide(kF32, {2, 3, kHalf});
  wide.array.each([](std::byte* p) { std::memset(p, 0, 4); });
  support::Argument out(kF32, {2, 2, 2 * kHalf + 2});
  const auto set = [&](Call& c, bool grouped) {
    std::vector<rbcChannelGroup> groups;
    for (int64_t i = 0; i < kHalf; ++i) groups.push_back({i, 1, i % 2 == 0 ? 0 : 2, 0});
    for (const int n : {0, 1}) {
      c.streams[n].values = &wide.raw;
      c.streams[n].times = &c.padded.times.raw;
      c.stream_params[n] = rbcResampleParamsInit();
      c.regroup(n, groups);
    }
    // Even one more method is one more group.
    if (grouped) c.regroup(2, {{0, 2, RBC_METHOD_LINEAR, 0}});
    c.used_out = &out.raw;
  };
  for (const bool grouped : {false, true}) {
    refused(RBC_STATUS_INVALID_ARGUMENT, {"streams[2].groups:", "256", "in all"},
            [&](Call& c) { set(c, grouped); });
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
  refused(kStatus, {"streams[1].values: batch is 1, expected 2 as streams[0]"}, [](Call& c) {
    c.shared.values.reshape({1, 4, 1});
  });
  refused(kStatus, {"streams[2].offsets: batch is 3, expected 2 as streams[0]"}, [](Call& c) {
    c.packed.offsets.array = support::Array(kI32, {4});
    c.packed.offsets.restore();
    c.packed.offsets.reshape({4});
  });
  refused(kStatus, {"streams[1].values: have no batch, expected one as streams[0]"}, [](Call& c) {
    c.shared.values.reshape({4, 1});
  });
  refused(kStatus, {"streams[2].values: have no batch, expected one as streams[0]"},
          [](Call& c) { c.stream_params[2].offsets = nullptr; });
  refused(kStatus, {"streams[1].values: have a batch, expected none as streams[0]"}, [](Call& c) {
    c.stream_params[0].lengths = nullptr;
    c.padded.values.reshape({3, 4});
    c.padded.times.reshape({3});
  });
  // A batch of one beside none is a mistake too.
  refused(kStatus, {"streams[1].values: have no batch"}, [](Call& c) {
    c.num_streams = 2;
    c.stream_params[0].lengths = nullptr;
    c.padded.values.reshape({1, 3, 4});
    c.padded.times.reshape({1, 3});
    c.shared.values.reshape({4, 1});
  });
}

TEST_CASE("fuse errors: times of different dtypes") {
  constexpr auto kStatus = RBC_STATUS_DTYPE_MISMATCH;
  refused(kStatus, {"streams[1].times:", "float32", "float64 as streams[0]"},
          [](Call& c) { c.shared.times.raw.dtype = kF32; });
  refused(kStatus, {"streams[2].times:", "int64", "float64"},
          [](Call& c) { c.packed.times.raw.dtype = kI64; });
  refused(kStatus, {"streams[0].times:", "int32", "float32, float64 or int64"},
          [](Call& c) { c.padded.times.raw.dtype = kI32; });
  refused(kStatus, {"query_times:", "int64", "float64"},
          [](Call& c) { c.query_times.raw.dtype = kI64; });
}

TEST_CASE("fuse errors: outputs of a wrong shape or dtype") {
  constexpr auto kShape = RBC_STATUS_SHAPE_MISMATCH;
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{2, 2, 6}, {2, 2, 4}, {2, 1, 7}, {1, 2, 7}, {4, 7}, {2, 2, 7, 1}}) {
    refused(kShape, {"out:"}, [&](Call& c) { c.out.reshape(shape); });
  }
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{2, 2}, {2, 2, 2}, {2, 2, 1}, {2, 1, 3}, {1, 2, 3}, {12}}) {
    refused(kShape, {"mask:"}, [&](Call& c) { c.mask.reshape(shape); });
  }
  refused(kShape, {"query_times:"}, [](Call& c) { c.query_times.reshape({2, 2, 1}); });
  refused(kShape, {"query_times:"}, [](Call& c) { c.query_times.reshape({1, 2}); });
  refused(kShape, {"query_lengths:"}, [](Call& c) { c.query_lengths.reshape({1}); });

  constexpr auto kDType = RBC_STATUS_DTYPE_MISMATCH;
  refused(kDType, {"out:", "int32", "float"}, [](Call& c) { c.out.raw.dtype = kI32; });
  refused(kDType, {"out:", "int32", "float"}, [](Call& c) {  // though the stream's own dtype
    c.used_streams += 1;
    c.num_streams = 1;
    c.out.raw.dtype = kI32;
    c.out.reshape({2, 2, 1});
    c.mask.reshape({2, 2, 1});
  });
  refused(kDType, {"mask:", "int8", "bool or uint8"},
          [](Call& c) { c.mask.raw.dtype = support::kI8; });
  refused(kDType, {"query_lengths:", "uint32", "int32 or int64"},
          [](Call& c) { c.query_lengths.raw.dtype = support::kU32; });
}

TEST_CASE("fuse errors: outputs that overlap an input, each other or themselves") {
  constexpr auto kStatus = RBC_STATUS_INVALID_ARGUMENT;
  for (const Named& input : kStreamTensors) {
    for (const Named& output : kOutputs) {
      const std::string name = std::string(input.name) + ":";
      const std::string told = std::string("overlaps ") + output.name;
      refused(kStatus, {name.c_str(), told.c_str()},
              [&](Call& c) { output.of(c).raw.data = input.of(c).raw.data; });
    }
  }
  refused(kStatus, {"streams[2].values:", "overlaps out"}, [](Call& c) {  // by its last element
    c.out.raw.data = static_cast<std::byte*>(c.packed.values.raw.data) + 36;
  });
  refused(kStatus, {"mask:", "overlaps out"}, [](Call& c) { c.mask.raw.data = c.out.raw.data; });
  refused(kStatus, {"out:", "share memory"}, [](Call& c) { c.out.restride({0, 7, 1}); });
  refused(kStatus, {"out:", "share memory"}, [](Call& c) { c.out.restride({12, 6, 1}); });
  refused(kStatus, {"mask:", "share memory"}, [](Call& c) { c.mask.restride({6, 3, 0}); });
}

TEST_CASE("fuse errors: clock offsets") {
  constexpr auto kStatus = RBC_STATUS_INVALID_ARGUMENT;
  for (const double offset : {kNaN, kInfinity, -kInfinity}) {
    refused(kStatus, {"streams[2].clock_offset:", "finite"},
            [&](Call& c) { c.streams[2].clock_offset = offset; });
  }
  refused(kStatus, {"streams[0].clock_offset: is 1e+300", "finite float32"}, [](Call& c) {
    for (Argument* a : {&c.padded.times, &c.shared.times, &c.packed.times, &c.query_times}) {
      a->raw.dtype = kF32;
    }
    c.streams[0].clock_offset = 1e300;
  });
  refused(kStatus, {"streams[1].clock_offset_ticks: is 7", "clock_offset", "float64"},
          [](Call& c) { c.streams[1].clock_offset_ticks = 7; });
  for (const double offset : {0.5, kNaN}) {
    refused(kStatus, {"streams[1].clock_offset:", "clock_offset_ticks", "int64"}, [&](Call& c) {
      c.tick();
      c.streams[1].clock_offset = offset;
    });
  }
}

TEST_CASE("fuse errors: lengths and offsets out of range") {
  constexpr auto kStatus = RBC_STATUS_INVALID_ARGUMENT;
  for (const uint32_t flags : {0u, RBC_CHECK_TIMES}) {  // the CPU always looks
    const auto wrong = [&](std::initializer_list<const char*> words, auto&& spoil) {
      refused(
          kStatus, words,
          [&](Call& c) {
            c.params.flags = flags;
            spoil(c);
          },
          Seen::kByTheCallAlone);
    };
    wrong({"streams[0].lengths: row 1 is 4, expected 0 to 3"}, [](Call& c) {
      c.padded.lengths.fill<int64_t>({3, 4});
    });
    wrong({"streams[0].lengths: row 0 is -1"}, [](Call& c) {
      c.padded.lengths.fill<int64_t>({-1, 4});
    });
    wrong({"streams[2].offsets:", "index 2", "6", "5 samples"}, [](Call& c) {
      c.packed.offsets.fill<int32_t>({0, 2, 6});
    });
    wrong({"streams[2].offsets: decrease at index 2 (3 -> 2)"}, [](Call& c) {
      c.packed.offsets.fill<int32_t>({0, 3, 2});
    });
    wrong({"query_lengths: row 1 is 3, expected 0 to 2"}, [](Call& c) {
      c.query_lengths.fill<int32_t>({2, 3});
    });
    wrong({"query_lengths: row 0 is -7"}, [](Call& c) { c.query_lengths.fill<int32_t>({-7, 9}); });
  }
}

TEST_CASE("fuse errors: bad times, where checking is on") {
  const auto wrong = [&](std::initializer_list<const char*> words, auto&& spoil) {
    refused(
        RBC_STATUS_INVALID_ARGUMENT, words,
        [&](Call& c) {
          c.params.flags = RBC_CHECK_TIMES;
          spoil(c);
        },
        Seen::kByTheCallAlone);
  };
  const auto late = [](Call& c) { c.shared.times.fill<double>({0, 1, 5, 4}); };
  const auto nan = [](Call& c) { c.packed.times.fill<double>({0, 1, 0, kNaN, 3}); };
  wrong({"streams[1].times: row 0 decreases at index 3 (5 -> 4)"}, late);
  wrong({"streams[2].times: row 1 is NaN at index 1"}, nan);
  wrong({"streams[0].times: row 1 decreases at index 1 (1 -> 0.5)"}, [](Call& c) {
    c.padded.times.fill<double>({0, 1, 2, 1, 0.5, 2});
  });
  wrong({"streams[1].times:"}, [&](Call& c) {  // the first stream's defect is told
    late(c);
    nan(c);
  });
  wrong({"streams[2].times: row 1 decreases at index 2 (9 -> 3)"}, [](Call& c) {
    c.tick();
    c.packed.times.array = support::Array(kI64, {5});
    c.packed.times.restore();
    c.packed.times.fill<int64_t>({4, 5, 1, 9, 3});
  });
  // What lies beyond a length is nobody's, and the order of rows to each other is free.
  Call fine;
  fine.params.flags = RBC_CHECK_TIMES;
  fine.padded.times.fill<double>({0, 1, 2, 0, 1, -9});
  CHECK_SUCCEEDS(fine.run());
  fine.checkOutputs();
}
