// Everything that rbcResample must refuse, but for methods, groups of channels and the affine part,
// which have a file of their own.
#include <limits>

#include "abi/resample_call.h"

namespace {

using namespace resample_call;
using support::Array;
using support::kF16;

const double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr rbcDevice kOtherDevice = {RBC_DEVICE_CUDA, 0};

}  // namespace

TEST_CASE("errors: the good call is good, with every option") {
  Call::checkGood();
  Call packed;
  packed.pack();
  packed.params.flags = RBC_CHECK_TIMES;
  CHECK_SUCCEEDS(packed.run());
  CHECK_SUCCEEDS(packed.workspace());
  Call bare;
  bare.used[4] = nullptr;
  CHECK_SUCCEEDS(rbcResample(support::refusingContext().get(), bare.used[0], bare.used[1],
                             bare.used[2], bare.used[3], nullptr, nullptr));
  CHECK(bare.mask.array.untouched());
  for (const int32_t type : {RBC_DEVICE_CUDA_HOST, RBC_DEVICE_CUDA_MANAGED}) {
    Call shared;  // memory that the host reaches as well
    for (const Named& tensor : kTensors) (shared.*tensor.member).raw.device = {type, 0};
    CHECK_SUCCEEDS(shared.run());
  }
}

TEST_CASE("errors: null pointers") {
  Call call;
  size_t bytes = 0;
  CHECK_FAILS(rbcResample(nullptr, call.used[0], call.used[1], call.used[2], call.used[3], nullptr,
                          nullptr),
              RBC_STATUS_INVALID_ARGUMENT, "context: is null");
  CHECK_FAILS(rbcResampleWorkspaceSize(nullptr, call.used[0], call.used[1], call.used[2],
                                       call.used[3], nullptr, nullptr, &bytes),
              RBC_STATUS_INVALID_ARGUMENT, "context: is null");
  CHECK_FAILS(rbcResampleWorkspaceSize(support::refusingContext().get(), call.used[0], call.used[1],
                                       call.used[2], call.used[3], nullptr, nullptr, nullptr),
              RBC_STATUS_INVALID_ARGUMENT, "bytes: is null");
  for (int i = 0; i < 4; ++i) {
    const std::string told = std::string(kTensors[i].name) + ": is null";
    refused(RBC_STATUS_INVALID_ARGUMENT, {told.c_str()}, [&](Call& c) { c.used[i] = nullptr; });
  }
  for (const Named& tensor : kTensors) {
    const std::string name = std::string(tensor.name) + ":";
    refused(RBC_STATUS_INVALID_ARGUMENT, {name.c_str(), "data is null"},
            [&](Call& c) { (c.*tensor.member).raw.data = nullptr; });
    refused(RBC_STATUS_INVALID_ARGUMENT, {name.c_str(), "shape is null"},
            [&](Call& c) { (c.*tensor.member).raw.shape = nullptr; });
  }
}

TEST_CASE("errors: descriptors that no tensor can have") {
  for (const Named& tensor : kTensors) {
    const std::string name = std::string(tensor.name) + ":";
    const auto spoilt = [&](rbcStatus_t status, const char* word, auto&& spoil) {
      refused(status, {name.c_str(), word}, [&](Call& c) { spoil(c.*tensor.member); });
    };
    spoilt(RBC_STATUS_SHAPE_MISMATCH, "rank", [](Argument& a) { a.raw.ndim = RBC_MAX_NDIM + 1; });
    spoilt(RBC_STATUS_SHAPE_MISMATCH, "rank", [](Argument& a) { a.raw.ndim = -1; });
    spoilt(RBC_STATUS_SHAPE_MISMATCH, "extent 0 is -2", [](Argument& a) { a.shape[0] = -2; });
    spoilt(RBC_STATUS_SHAPE_MISMATCH, "overflow",
           [](Argument& a) { a.shape[0] = std::numeric_limits<int64_t>::max(); });
    spoilt(RBC_STATUS_SHAPE_MISMATCH, "overflow", [](Argument& a) {
      a.restride(std::vector<int64_t>(a.shape.size(), std::numeric_limits<int64_t>::max()));
    });
    spoilt(RBC_STATUS_DTYPE_MISMATCH, "2 lanes", [](Argument& a) { a.raw.dtype.lanes = 2; });
    spoilt(RBC_STATUS_DTYPE_MISMATCH, "0 lanes", [](Argument& a) { a.raw.dtype.lanes = 0; });
    spoilt(RBC_STATUS_DTYPE_MISMATCH, "dtype", [](Argument& a) { a.raw.dtype = {5, 64, 1}; });
    spoilt(RBC_STATUS_DTYPE_MISMATCH, "dtype", [](Argument& a) { a.raw.dtype.bits = 4; });
    if (support::sizeOf((Call().*tensor.member).array.dtype()) > 1) {
      spoilt(RBC_STATUS_INVALID_ARGUMENT, "aligned", [](Argument& a) { a.raw.byte_offset = 1; });
    }
  }
}

TEST_CASE("errors: memory of another device") {
  for (const Named& tensor : kTensors) {
    const std::string name = std::string(tensor.name) + ":";
    for (const int32_t type : {RBC_DEVICE_CUDA, 0, 10, -1, 99}) {
      refused(RBC_STATUS_DEVICE_MISMATCH, {name.c_str(), "device"},
              [&](Call& c) { (c.*tensor.member).raw.device.type = type; });
    }
  }
  refused(RBC_STATUS_DEVICE_MISMATCH, {"offsets:"}, [](Call& c) {
    c.pack();
    c.offsets.raw.device = kOtherDevice;
  });
  // Where all are elsewhere, the values are told: the context is the wrong one.
  refused(RBC_STATUS_DEVICE_MISMATCH, {"values:", "device"}, [&](Call& c) {
    for (const Named& tensor : kTensors) (c.*tensor.member).raw.device = kOtherDevice;
  });
}

TEST_CASE("errors: dtypes that do not go together") {
  constexpr auto kStatus = RBC_STATUS_DTYPE_MISMATCH;
  refused(kStatus, {"times:", "int32", "float32, float64 or int64"},
          [](Call& c) { c.times.raw.dtype = c.query_times.raw.dtype = kI32; });
  refused(kStatus, {"times:", "float16"}, [](Call& c) { c.times.raw.dtype = kF16; });
  refused(kStatus, {"query_times:", "int64", "float64"},
          [](Call& c) { c.query_times.raw.dtype = kI64; });
  refused(kStatus, {"out:", "int32", "float"}, [](Call& c) { c.out.raw.dtype = kI32; });
  refused(kStatus, {"mask:", "int8", "bool or uint8"},
          [](Call& c) { c.mask.raw.dtype = support::kI8; });
  refused(kStatus, {"lengths:", "float64", "int32 or int64"},
          [](Call& c) { c.lengths.raw.dtype = kF64; });
  refused(kStatus, {"query_lengths:", "uint32", "int32 or int64"},
          [](Call& c) { c.query_lengths.raw.dtype = support::kU32; });
  refused(kStatus, {"offsets:", "float64", "int32 or int64"}, [](Call& c) {
    c.pack();
    c.offsets.raw.dtype = kF64;
  });
  refused(kStatus, {"mean:", "float16", "float32 or float64"},
          [](Call& c) { c.mean.raw.dtype = kF16; });
  refused(kStatus, {"inv_std:", "int64", "float32 or float64"},
          [](Call& c) { c.inv_std.raw.dtype = kI64; });
}

TEST_CASE("errors: ranks and shapes that do not go together") {
  constexpr auto kStatus = RBC_STATUS_SHAPE_MISMATCH;
  const auto wrong = [&](const char* name, Member member, std::vector<int64_t> shape) {
    refused(kStatus, {name}, [&](Call& c) { (c.*member).reshape(shape); });
  };
  wrong("values:", &Call::values, {24});
  wrong("values:", &Call::values, {});
  wrong("values:", &Call::values, {1, 2, 3, 4});
  wrong("times:", &Call::times, {});
  wrong("times:", &Call::times, {2, 3, 1});
  wrong("times:", &Call::times, {2, 2});
  wrong("times:", &Call::times, {1, 3});
  wrong("times:", &Call::times, {2});
  wrong("query_times:", &Call::query_times, {});
  wrong("query_times:", &Call::query_times, {1, 2});
  wrong("query_times:", &Call::query_times, {2, 2, 1});
  wrong("out:", &Call::out, {2, 2, 3});
  wrong("out:", &Call::out, {2, 1, 4});
  wrong("out:", &Call::out, {1, 2, 4});
  wrong("out:", &Call::out, {4, 4});
  wrong("mask:", &Call::mask, {2});
  wrong("mask:", &Call::mask, {2, 1});
  wrong("mask:", &Call::mask, {2, 2, 1});
  wrong("lengths:", &Call::lengths, {1});
  wrong("lengths:", &Call::lengths, {2, 1});
  wrong("query_lengths:", &Call::query_lengths, {1});
  wrong("query_lengths:", &Call::query_lengths, {});
  wrong("mean:", &Call::mean, {3});
  wrong("mean:", &Call::mean, {1});
  wrong("mean:", &Call::mean, {2, 4});
  wrong("inv_std:", &Call::inv_std, {3});
  wrong("inv_std:", &Call::inv_std, {4, 1});
  // Without a batch nothing else may have one.
  refused(kStatus, {"times:"}, [](Call& c) { c.values.reshape({3, 4}); });
  refused(kStatus, {"lengths:"}, [](Call& c) {
    c.values.reshape({3, 4});
    c.times.reshape({3});
  });
  refused(kStatus, {"query_times:"}, [](Call& c) {
    c.values.reshape({3, 4});
    c.times.reshape({3});
    c.params.lengths = nullptr;
  });
  // Packed values are [N,D], with one time each, and at least one offset.
  refused(kStatus, {"values:"}, [](Call& c) {
    c.pack();
    c.values.reshape({1, 6, 4});
  });
  refused(kStatus, {"times:"}, [](Call& c) {
    c.pack();
    c.times.reshape({5});
  });
  refused(kStatus, {"times:"}, [](Call& c) {
    c.pack();
    c.times.reshape({2, 3});
  });
  refused(kStatus, {"offsets:"}, [](Call& c) {
    c.pack();
    c.offsets.reshape({0});
  });
  refused(kStatus, {"offsets:"}, [](Call& c) {
    c.pack();
    c.offsets.reshape({3, 1});
  });
  refused(kStatus, {"query_times:"}, [](Call& c) {
    c.pack();
    c.offsets.reshape({2});
  });
}

TEST_CASE("errors: parameters") {
  constexpr auto kStatus = RBC_STATUS_INVALID_ARGUMENT;
  const auto wrong = [&](std::initializer_list<const char*> words, auto&& spoil) {
    refused(kStatus, words, [&](Call& c) { spoil(c.params); });
  };
  for (const int32_t bounds : {-1, 3}) {
    const std::string told = std::to_string(bounds);
    wrong({"bounds", told.c_str()}, [&](auto& p) { p.bounds = bounds; });
  }
  for (const uint32_t flags : {2u, 3u, 0x80000000u})
    wrong({"flags"}, [&](auto& p) { p.flags = flags; });
  wrong({"params", "reserved"}, [&](auto& p) { p.reserved0 = 1; });
  for (int i = 0; i < 4; ++i) wrong({"params", "reserved"}, [&](auto& p) { p.reserved[i] = 1; });
  for (const double limit : {-1.0, -0x1p-1074, kNaN, -std::numeric_limits<double>::infinity()}) {
    wrong({"max_gap"}, [&](auto& p) { p.max_gap = limit; });
    wrong({"tolerance"}, [&](auto& p) {
      p.method = RBC_METHOD_NEAREST;
      p.tolerance = limit;
    });
  }
  // Seconds beside ticks, which rounded down would be 0. Floats may have such limits, and ticks 0.
  for (const double limit : {0.05, 0x1p-1074, 0x1.fffffffffffffp-1}) {
    refused(kStatus, {"max_gap: is ", "less than one tick", "whole ticks"}, [&](Call& c) {
      c.times.raw.dtype = c.query_times.raw.dtype = kI64;
      c.params.max_gap = limit;
    });
    refused(kStatus, {"tolerance: is ", "less than one tick", "whole ticks"}, [&](Call& c) {
      c.times.raw.dtype = c.query_times.raw.dtype = kI64;
      c.params.method = RBC_METHOD_NEAREST;
      c.params.tolerance = limit;
    });
    Call seconds;
    seconds.params.max_gap = limit;
    CHECK_SUCCEEDS(seconds.run());
  }
  for (const double limit : {0.0, 1.0, 1.5}) {
    Call ticks;
    ticks.times.raw.dtype = ticks.query_times.raw.dtype = kI64;
    ticks.params.max_gap = limit;
    CHECK_SUCCEEDS(ticks.run());
  }
  for (const uint32_t size : {0u, 4u, 127u, 0xffffffffu}) {
    wrong({"params", "struct_size"}, [&](auto& p) { p.struct_size = size; });
  }
  refused(kStatus, {"lengths", "offsets"}, [](Call& c) {
    c.pack();
    c.params.lengths = &c.lengths.raw;
  });
}

TEST_CASE("errors: parameters of a newer caller") {
  struct Newer {
    rbcResampleParams known = rbcResampleParamsInit();
    unsigned char more[40] = {};
  } newer;
  newer.known.struct_size = sizeof newer;
  Call call;
  const auto run = [&] {
    return rbcResample(support::refusingContext().get(), call.used[0], call.used[1], call.used[2],
                       call.used[3], call.used[4], &newer.known);
  };
  for (const size_t i : {size_t{0}, size_t{17}, size_t{39}}) {
    newer.more[i] = 1;
    CHECK_FAILS(run(), RBC_STATUS_INVALID_ARGUMENT, "params",
                std::to_string(sizeof(rbcResampleParams) + i).c_str());
    CHECK(call.out.array.untouched());
    newer.more[i] = 0;
  }
  CHECK_SUCCEEDS(run());
}

TEST_CASE("errors: a fill value that the output cannot hold") {
  struct Row {
    rbcDType dtype;
    double bad[4];
    double good[3];
  };
  const Row rows[] = {
      {support::kU8, {-1, 256, 0.5, kNaN}, {0, 255, 1}},
      {support::kI8, {-129, 128, -0.5, INFINITY}, {-128, 127, -0.0}},
      {support::kBool, {2, -1, 0.5, kNaN}, {0, 1, 1}},
      {kI32, {2147483648.0, -2147483649.0, 1e300, kNaN}, {2147483647.0, -2147483648.0, 0}},
      {kI64, {0x1p63, -0x1.8p63, -INFINITY, kNaN}, {-0x1p63, 0x1p62, 0}},
      {support::kU64, {0x1p64, -1, INFINITY, kNaN}, {0x1p63, 0, 1}},
  };
  for (const Row& row : rows) {
    const auto set = [&](Call& c, double fill) {
      c.params.method = RBC_METHOD_PREVIOUS;
      c.params.fill_value = fill;
      c.withoutAffine();
      // Enough memory for every dtype: the same descriptors on larger arrays.
      c.values.array = Array(row.dtype, {2, 3, 4});
      c.out.array = Array(row.dtype, {2, 2, 4});
      c.values.restore();
      c.out.restore();
    };
    for (const double fill : row.bad) {
      refused(RBC_STATUS_INVALID_ARGUMENT, {"fill_value"}, [&](Call& c) { set(c, fill); });
    }
    for (const double fill : row.good) {
      Call call;
      set(call, fill);
      CHECK_SUCCEEDS(call.run());
    }
  }
}

TEST_CASE("errors: lengths and offsets out of range") {
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
    wrong({"lengths:", "row 1", "4"}, [](Call& c) { c.lengths.fill<int64_t>({3, 4}); });
    wrong({"lengths:", "row 0", "-1"}, [](Call& c) { c.lengths.fill<int64_t>({-1, 2}); });
    wrong({"lengths:", "row 1"}, [](Call& c) { c.lengths.fill<int64_t>({3, int64_t{1} << 32}); });
    wrong({"query_lengths:", "row 0", "3"}, [](Call& c) { c.query_lengths.fill<int32_t>({3, 0}); });
    wrong({"query_lengths:", "row 1", "-7"}, [](Call& c) {
      c.query_lengths.fill<int32_t>({0, -7});
    });
    const auto offsets = [&](std::initializer_list<const char*> words,
                             std::initializer_list<int64_t> given) {
      wrong(words, [&](Call& c) {
        c.pack();
        c.offsets.fill<int64_t>(given);
      });
    };
    offsets({"offsets:", "decrease", "index 2", "4 -> 3"}, {0, 4, 3});
    offsets({"offsets:", "index 2", "7", "6"}, {0, 3, 7});
    offsets({"offsets:", "index 0", "-1"}, {-1, 3, 6});
    offsets({"offsets:", "index 0"}, {7, 7, 7});
  }
}

TEST_CASE("errors: bad times, where checking is on") {
  const auto wrong = [&](std::initializer_list<const char*> words, auto&& spoil) {
    refused(
        RBC_STATUS_INVALID_ARGUMENT, words,
        [&](Call& c) {
          c.params.flags = RBC_CHECK_TIMES;
          spoil(c);
        },
        Seen::kByTheCallAlone);
  };
  wrong({"times:", "row 0", "index 2", "1 -> 0.5"}, [](Call& c) {
    c.times.fill<double>({0, 1, 0.5, 0, 1, 2});
  });
  wrong({"times:", "row 1", "index 1", "NaN"}, [](Call& c) {
    c.times.fill<double>({0, 1, 2, 0, kNaN, 2});
  });
  wrong({"times:", "row 0", "index 0", "NaN"}, [](Call& c) {
    c.times.fill<double>({kNaN, 1, 2, 0, 1, 2});
  });
  // The first defect is told.
  wrong({"times:", "row 0", "index 1"}, [](Call& c) { c.times.fill<double>({3, 2, 1, 2, 1, 0}); });
  wrong({"times:", "row 1", "index 1"}, [](Call& c) { c.times.fill<double>({0, 0, 0, 2, 1, 0}); });
  wrong({"times:", "row 1", "index 1", "2 -> 1"}, [](Call& c) {
    c.pack();
    c.times.fill<double>({0, 1, 2, 2, 1, 2});
  });
  // In f32 and in ticks.
  wrong({"times:", "row 0", "index 2", "9223372036854775807 -> -9223372036854775808"}, [](Call& c) {
    c.times.raw.dtype = c.query_times.raw.dtype = kI64;
    constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
    c.times.fill<int64_t>({0, kMost, -kMost - 1, 0, 1, 2});
  });
  // Equal times are fine, and so is anything beyond a row's length or between packed rows.
  Call fine;
  fine.params.flags = RBC_CHECK_TIMES;
  fine.times.fill<double>({1, 1, 1, -3, -3, kNaN});
  CHECK_SUCCEEDS(fine.run());
  Call packed;
  packed.pack();
  packed.params.flags = RBC_CHECK_TIMES;
  packed.offsets.fill<int64_t>({1, 3, 5});
  packed.times.fill<double>({kNaN, 5, 6, 0, 1, -9});
  CHECK_SUCCEEDS(packed.run());
}

TEST_CASE("errors: bad times without checking write something, but nothing elsewhere") {
  support::Random random(17);
  for (int i = 0; i < 200; ++i) {
    support::ResampleCase c = support::randomResampleCase(static_cast<uint64_t>(7000 + i));
    c.check_times = false;
    support::ResampleInputs in = support::makeInputs(c);
    support::Array times(
        c.times, in.times.placement().shape,
        c.times_layout == support::Layout::kBroadcast ? support::Layout::kStrided : c.times_layout,
        c.flush);
    times.each([&](std::byte* p) {
      const uint64_t bits = random.bits();
      std::memcpy(p, &bits, static_cast<size_t>(support::sizeOf(c.times)));
    });
    in.times = std::move(times);
    const support::ResampleRun run = support::run(support::refusingContext(), in);
    CHECK_MESSAGE(run.status == RBC_STATUS_SUCCESS, support::describe(c), ": ", run.message);
    CHECK_MESSAGE(!run.stray_writes, support::describe(c));
  }
}

TEST_CASE("errors: outputs that overlap") {
  constexpr auto kStatus = RBC_STATUS_INVALID_ARGUMENT;
  // All inputs but one live apart from the output.
  const auto onto = [&](const char* output, Member out, const char* other, Member from,
                        int64_t bytes) {
    const std::string told = std::string("overlaps ") + output;
    refused(kStatus, {other, told.c_str()}, [&](Call& c) {
      (c.*out).raw.data = static_cast<std::byte*>((c.*from).raw.data) + bytes;
    });
  };
  onto("out", &Call::out, "values:", &Call::values, 0);
  onto("out", &Call::out, "values:", &Call::values, 92);   // by its last element
  onto("out", &Call::out, "values:", &Call::values, -60);  // by its first
  onto("out", &Call::out, "times:", &Call::times, 0);
  onto("out", &Call::out, "query_times:", &Call::query_times, 0);
  onto("out", &Call::out, "lengths:", &Call::lengths, 0);
  onto("out", &Call::out, "query_lengths:", &Call::query_lengths, 4);
  onto("out", &Call::out, "mean:", &Call::mean, 0);
  onto("out", &Call::out, "inv_std:", &Call::inv_std, 0);
  onto("mask", &Call::mask, "mean:", &Call::mean, 15);
  onto("mask", &Call::mask, "inv_std:", &Call::inv_std, 31);
  onto("mask", &Call::mask, "values:", &Call::values, 95);
  onto("mask", &Call::mask, "times:", &Call::times, 1);
  onto("mask", &Call::mask, "query_times:", &Call::query_times, 1);
  onto("mask", &Call::mask, "lengths:", &Call::lengths, 0);
  onto("mask", &Call::mask, "query_lengths:", &Call::query_lengths, 0);
  onto("out", &Call::mask, "mask:", &Call::out, 63);
  refused(kStatus, {"offsets:", "overlaps out"}, [](Call& c) {
    c.pack();
    c.out.raw.data = c.offsets.raw.data;
  });
}

TEST_CASE("errors: an output whose elements share memory") {
  constexpr auto kStatus = RBC_STATUS_INVALID_ARGUMENT;
  refused(kStatus, {"out:", "share memory"}, [](Call& c) { c.out.restride({0, 4, 1}); });
  refused(kStatus, {"out:", "share memory"}, [](Call& c) { c.out.restride({8, 0, 1}); });
  refused(kStatus, {"out:", "share memory"}, [](Call& c) { c.out.restride({4, 3, 1}); });
  refused(kStatus, {"mask:", "share memory"}, [](Call& c) { c.mask.restride({0, 1}); });
  refused(kStatus, {"mask:", "share memory"}, [](Call& c) { c.mask.restride({1, 1}); });
}

TEST_CASE("errors: inputs may share memory with each other") {
  Call call;
  call.params.lengths = call.params.query_lengths = nullptr;
  call.query_times.raw = call.times.raw;
  call.query_times.reshape({2, 2});
  CHECK_SUCCEEDS(call.run());
}
