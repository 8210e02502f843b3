// Everything that rbcVoxelize and rbcVoxelizeSparse must refuse, but for what is wrong with their
// outputs, which has a file of its own.
#include <cmath>
#include <limits>

#include "abi/voxelize_call.h"

namespace {

using namespace voxelize_call;

const double kNaN = std::numeric_limits<double>::quiet_NaN();
const double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

template <class Call>
std::vector<Named<Call>> everyTensor() {
  std::vector<Named<Call>> all(std::begin(kInputs<Call>), std::end(kInputs<Call>));
  all.insert(all.end(), kOutputs<Call>.begin(), kOutputs<Call>.end());
  return all;
}

template <class Call>
void checkDescriptors() {
  for (const Named<Call>& tensor : everyTensor<Call>()) {
    const std::string name = std::string(tensor.name) + ": ";
    const auto wrong = [&](rbcStatus_t status, const std::string& told, auto&& spoil) {
      const std::string message = name + told;
      refused<Call>(status, {message.c_str()}, [&](Call& c) { spoil(tensor.of(c)); });
    };
    Call good;
    const Argument& a = tensor.of(good);
    wrong(RBC_STATUS_INVALID_ARGUMENT,
          "data is null, expected " + std::to_string(a.array.count()) + " elements",
          [](Argument& b) { b.raw.data = nullptr; });
    wrong(RBC_STATUS_SHAPE_MISMATCH, "rank is 9, expected 0 to 8",
          [](Argument& b) { b.raw.ndim = RBC_MAX_NDIM + 1; });
    wrong(RBC_STATUS_SHAPE_MISMATCH, "rank is -1, expected 0 to 8",
          [](Argument& b) { b.raw.ndim = -1; });
    wrong(RBC_STATUS_DTYPE_MISMATCH, "dtype", [](Argument& b) { b.raw.dtype.lanes = 2; });
    wrong(RBC_STATUS_DTYPE_MISMATCH, "dtype", [](Argument& b) { b.raw.dtype = {5, 64, 1}; });
    wrong(RBC_STATUS_INVALID_ARGUMENT, "data + byte_offset is not aligned",
          [](Argument& b) { b.raw.byte_offset = 1; });
    for (const int32_t type : {RBC_DEVICE_CUDA, 0, 10, -1}) {
      wrong(RBC_STATUS_DEVICE_MISMATCH,
            "lives on device (type " + std::to_string(type) + ", id 0), expected the CPU",
            [&](Argument& b) { b.raw.device.type = type; });
    }
    if (a.shape.empty()) continue;
    wrong(RBC_STATUS_INVALID_ARGUMENT, "shape is null", [](Argument& b) { b.raw.shape = nullptr; });
    wrong(RBC_STATUS_SHAPE_MISMATCH, "extent 0 is -2, expected 0 or more",
          [](Argument& b) { b.shape[0] = -2; });
    wrong(RBC_STATUS_SHAPE_MISMATCH, "shape [9223372036854775807",
          [](Argument& b) { b.shape[0] = kMost; });
    wrong(RBC_STATUS_SHAPE_MISMATCH, "shape [",
          [](Argument& b) { b.restride(std::vector<int64_t>(b.shape.size(), kMost)); });
  }
}

// With fields that this library does not know; zeros ask for nothing.
template <class Params>
struct Newer {
  Params known;
  unsigned char more[24];
};

// Of a tensor that both functions take, given another shape.
void wrongInput(rbcStatus_t status, const char* message, Argument Clouds::*input,
                std::vector<int64_t> shape) {
  bothRefuse(status, {message}, [&](auto& c) { (c.*input).reshape(shape); });
}

}  // namespace

TEST_CASE("voxelize errors: the good calls are good, however they are made") {
  Dense::checkGood();
  Sparse::checkGood();
  const auto good = [](auto& call) {
    CHECK_SUCCEEDS(call.workspace());
    CHECK_SUCCEEDS(call.run());
    call.checkOutputs();
  };
  Dense dense;
  dense.pack();
  good(dense);
  Sparse sparse;
  sparse.pack();
  good(sparse);
  for (const int32_t type : {RBC_DEVICE_CUDA_HOST, RBC_DEVICE_CUDA_MANAGED}) {
    Dense reachable;
    for (const auto& tensor : everyTensor<Dense>()) tensor.of(reachable).raw.device = {type, 0};
    good(reachable);
    Sparse too;
    for (const auto& tensor : everyTensor<Sparse>()) tensor.of(too).raw.device = {type, 0};
    good(too);
  }
}

TEST_CASE("voxelize errors: null pointers") {
  constexpr auto kStatus = RBC_STATUS_INVALID_ARGUMENT;
  const auto& context = support::refusingContext();
  size_t bytes = 0;
  const Dense d;
  CHECK_FAILS(
      rbcVoxelize(nullptr, d.used_points, d.used_features, d.used_out, d.used_dropped, &d.params),
      kStatus, "context: is null");
  CHECK_FAILS(rbcVoxelizeWorkspaceSize(nullptr, d.used_points, d.used_features, d.used_out,
                                       d.used_dropped, &d.params, &bytes),
              kStatus, "context: is null");
  CHECK_FAILS(rbcVoxelizeWorkspaceSize(context.get(), d.used_points, d.used_features, d.used_out,
                                       d.used_dropped, &d.params, nullptr),
              kStatus, "bytes: is null");
  CHECK_FAILS(rbcVoxelize(context.get(), d.used_points, d.used_features, d.used_out, d.used_dropped,
                          nullptr),
              kStatus, "params: is null, expected a grid");
  CHECK_FAILS(rbcVoxelizeWorkspaceSize(context.get(), d.used_points, d.used_features, d.used_out,
                                       d.used_dropped, nullptr, &bytes),
              kStatus, "params: is null, expected a grid");
  const Sparse s;
  CHECK_FAILS(rbcVoxelizeSparse(nullptr, s.used_points, s.used_features, &s.voxels, &s.params),
              kStatus, "context: is null");
  CHECK_FAILS(rbcVoxelizeSparseWorkspaceSize(nullptr, s.used_points, s.used_features, &s.voxels,
                                             &s.params, &bytes),
              kStatus, "context: is null");
  CHECK_FAILS(rbcVoxelizeSparseWorkspaceSize(context.get(), s.used_points, s.used_features,
                                             &s.voxels, &s.params, nullptr),
              kStatus, "bytes: is null");
  CHECK_FAILS(rbcVoxelizeSparse(context.get(), s.used_points, s.used_features, &s.voxels, nullptr),
              kStatus, "params: is null, expected a grid");
  CHECK_FAILS(rbcVoxelizeSparseWorkspaceSize(context.get(), s.used_points, s.used_features,
                                             &s.voxels, nullptr, &bytes),
              kStatus, "params: is null, expected a grid");
  CHECK(d.untouched());
  CHECK(s.untouched());
  CHECK(bytes == 0);

  bothRefuse(kStatus, {"points: is null"}, [](auto& c) { c.used_points = nullptr; });
  refused<Dense>(kStatus, {"out: is null"}, [](Dense& c) { c.used_out = nullptr; });
  refused<Sparse>(kStatus, {"voxels: is null"}, [](Sparse& c) { c.used_voxels = nullptr; });
  refused<Sparse>(kStatus, {"coords: is null"}, [](Sparse& c) { c.voxels.coords = nullptr; });
  refused<Sparse>(kStatus, {"num_voxels: is null"},
                  [](Sparse& c) { c.voxels.num_voxels = nullptr; });
}

TEST_CASE("voxelize errors: descriptors that no tensor can have, and memory out of reach") {
  checkDescriptors<Dense>();
  checkDescriptors<Sparse>();
  bothRefuse(RBC_STATUS_DEVICE_MISMATCH, {"offsets: lives on device (type 2, id 0)"}, [](auto& c) {
    c.pack();
    c.offsets.raw.device.type = RBC_DEVICE_CUDA;
  });
  bothRefuse(RBC_STATUS_INVALID_ARGUMENT, {"offsets: data is null, expected 3 elements"},
             [](auto& c) {
               c.pack();
               c.offsets.raw.data = nullptr;
             });
}

TEST_CASE("voxelize errors: struct_size of the parameters") {
  constexpr auto kStatus = RBC_STATUS_INVALID_ARGUMENT;
  const auto wrong = [&](uint32_t first, size_t known, const char* name, auto&& check) {
    for (const uint32_t size : {0u, 4u, first - 8, first - 1}) {
      const std::string told = std::string(name) + ": struct_size is " + std::to_string(size) +
                               ", expected at least " + std::to_string(first);
      check(size, told.c_str());
    }
    const std::string told =
        std::string(name) + ": struct_size is 4294967295, expected " + std::to_string(known);
    check(0xffffffffu, told.c_str());
  };
  wrong(144, sizeof(rbcVoxelizeParams), "params", [&](uint32_t size, const char* told) {
    refused<Dense>(kStatus, {told}, [&](Dense& c) { c.params.struct_size = size; });
  });
  wrong(136, sizeof(rbcVoxelizeSparseParams), "params", [&](uint32_t size, const char* told) {
    refused<Sparse>(kStatus, {told}, [&](Sparse& c) { c.params.struct_size = size; });
  });
  wrong(104, sizeof(rbcSparseVoxels), "voxels", [&](uint32_t size, const char* told) {
    refused<Sparse>(kStatus, {told}, [&](Sparse& c) { c.voxels.struct_size = size; });
  });
}

TEST_CASE("voxelize errors: what a newer caller asks for") {
  const auto check = [](const auto& known, const char* name, auto&& run, auto&& untouched) {
    Newer<std::decay_t<decltype(known)>> newer = {known, {}};
    newer.known.struct_size = sizeof newer;
    for (const size_t i : {size_t{0}, size_t{23}}) {
      newer.more[i] = 1;
      const std::string told =
          std::string(name) + ": byte " + std::to_string(sizeof known + i) + " is set";
      CHECK_FAILS(run(&newer.known), RBC_STATUS_INVALID_ARGUMENT, told.c_str());
      CHECK(untouched());
      newer.more[i] = 0;
    }
    CHECK_SUCCEEDS(run(&newer.known));
  };
  const auto& context = support::refusingContext();
  const Dense d;
  check(
      d.params, "params",
      [&](const rbcVoxelizeParams* p) {
        return rbcVoxelize(context.get(), d.used_points, d.used_features, d.used_out,
                           d.used_dropped, p);
      },
      [&] { return d.untouched(); });
  d.checkOutputs();
  const Sparse by_params;
  check(
      by_params.params, "params",
      [&](const rbcVoxelizeSparseParams* p) {
        const Sparse& s = by_params;
        return rbcVoxelizeSparse(context.get(), s.used_points, s.used_features, &s.voxels, p);
      },
      [&] { return by_params.untouched(); });
  by_params.checkOutputs();
  const Sparse by_voxels;
  check(
      by_voxels.voxels, "voxels",
      [&](const rbcSparseVoxels* v) {
        const Sparse& s = by_voxels;
        return rbcVoxelizeSparse(context.get(), s.used_points, s.used_features, v, &s.params);
      },
      [&] { return by_voxels.untouched(); });
  by_voxels.checkOutputs();
}

TEST_CASE("voxelize errors: flags, reserved fields and constants out of range") {
  constexpr auto kStatus = RBC_STATUS_INVALID_ARGUMENT;
  bothRefuse(kStatus, {"flags: 0x1 has unknown bits, expected 0"},
             [](auto& c) { c.params.flags = 1; });
  bothRefuse(kStatus, {"flags: 0x80000000 has unknown bits, expected 0"},
             [](auto& c) { c.params.flags = 0x80000000u; });
  refused<Dense>(kStatus, {"params: reserved is not 0"}, [](Dense& c) { c.params.reserved0 = 1; });
  refused<Sparse>(kStatus, {"voxels: reserved is not 0"},
                  [](Sparse& c) { c.voxels.reserved0 = 1; });
  for (int i = 0; i < 4; ++i) {
    bothRefuse(kStatus, {"params: reserved is not 0"}, [&](auto& c) { c.params.reserved[i] = 1; });
    refused<Sparse>(kStatus, {"voxels: reserved is not 0"},
                    [&](Sparse& c) { c.voxels.reserved[i] = uint64_t{1} << 63; });
  }
  for (const int32_t value : {-1, 6, 99, std::numeric_limits<int32_t>::min()}) {
    const std::string is = ": is " + std::to_string(value) + ", expected ";
    const std::string mode = "mode" + is + "RBC_VOXEL_OCCUPANCY to _MIN";
    refused<Dense>(kStatus, {mode.c_str()}, [&](Dense& c) { c.params.mode = value; });
    const std::string order = "order" + is + "RBC_VOXEL_ORDER_LEXICOGRAPHIC or _FIRST_POINT";
    refused<Sparse>(kStatus, {order.c_str()}, [&](Sparse& c) { c.params.order = value; });
  }
  refused<Sparse>(kStatus, {"order: is 2"}, [](Sparse& c) { c.params.order = 2; });
  for (const int32_t value : {-1, RBC_VOXEL_OCCUPANCY, RBC_VOXEL_COUNT, 6}) {
    const std::string reduce =
        "reduce: is " + std::to_string(value) + ", expected RBC_VOXEL_SUM, _MEAN, _MAX or _MIN";
    refused<Sparse>(kStatus, {reduce.c_str()}, [&](Sparse& c) { c.params.reduce = value; });
  }
}

TEST_CASE("voxelize errors: a grid must have a finite place and size") {
  constexpr auto kStatus = RBC_STATUS_INVALID_ARGUMENT;
  const auto wrong = [&](rbcDType points, const std::string& told, auto&& spoil) {
    bothRefuse(kStatus, {told.c_str()}, [&](auto& c) {
      c.points.raw.dtype = points;
      spoil(c.params.grid);
    });
  };
  for (int axis = 0; axis < 3; ++axis) {
    const std::string at = "[" + std::to_string(axis) + "]: is ";
    const auto origin = [&](rbcDType points, double x, const char* told) {
      wrong(points, "origin" + at + told, [&](rbcVoxelGrid& grid) { grid.origin[axis] = x; });
    };
    origin(kF32, kNaN, "nan, expected a finite float32");
    origin(kF32, -kInfinity, "-inf, expected a finite float32");
    origin(kF32, 1e39, "1e+39, expected a finite float32");  // finite, but not in f32
    origin(support::kBF16, 1e39, "1e+39, expected a finite float32");

    const auto size = [&](rbcDType points, double x, const char* told) {
      wrong(points, "voxel_size" + at + told,
            [&](rbcVoxelGrid& grid) { grid.voxel_size[axis] = x; });
    };
    size(kF32, 0, "0, expected more than 0 and finite");
    size(kF32, -0.0, "-0, expected more than 0 and finite");
    size(kF32, -0.1, "-0.1, expected more than 0 and finite");
    size(kF32, kNaN, "nan, expected more than 0 and finite");
    size(kF32, kInfinity, "inf, expected more than 0 and finite");
    size(kF32, 1e-40, "1e-40, expected one whose inverse is a finite float32 above 0");
    size(support::kF16, 1e-40, "1e-40, expected one whose inverse is a finite float32 above 0");
    size(kF32, 1e50, "1e+50, expected one whose inverse is a finite float32 above 0");

    for (const int64_t extent : {int64_t{0}, int64_t{-1}, int64_t{1} << 31, kMost, -kMost - 1}) {
      const std::string told = "shape" + at + std::to_string(extent) + ", expected 1 to 2^31 - 1";
      wrong(kF32, told, [&](rbcVoxelGrid& grid) { grid.shape[axis] = extent; });
    }
  }
}

TEST_CASE("voxelize errors: in f64 a grid may be where f32 cannot be") {
  constexpr auto kStatus = RBC_STATUS_INVALID_ARGUMENT;
  const auto wide = [](Dense& c) {
    c.points.array = support::Array(kF64, {2, 4, 4});
    c.points.restore();
    c.points.array.each([](std::byte* p) { std::memset(p, 0, sizeof(double)); });
  };
  const auto wrong = [&](const char* told, auto&& spoil) {
    refused<Dense>(kStatus, {told}, [&](Dense& c) {
      wide(c);
      spoil(c.params.grid);
    });
  };
  wrong("origin[1]: is nan, expected a finite float64", [](auto& g) { g.origin[1] = kNaN; });
  wrong("origin[2]: is inf, expected a finite float64", [](auto& g) { g.origin[2] = kInfinity; });
  wrong("voxel_size[0]: is 4.94066e-324, expected one whose inverse is a finite float64 above 0",
        [](auto& g) { g.voxel_size[0] = 0x1p-1074; });
  Dense fine;
  wide(fine);
  fine.params.grid.origin[0] = -1e300;
  fine.params.grid.voxel_size[1] = 1e-40;
  fine.params.grid.voxel_size[2] = 1e50;
  CHECK_SUCCEEDS(fine.run());
}

TEST_CASE("voxelize errors: more voxels than 2^62") {
  const auto grid = [](auto& c, int64_t x, int64_t y, int64_t z) {
    const int64_t shape[] = {x, y, z};
    std::copy(shape, shape + 3, c.params.grid.shape);
  };
  constexpr int64_t kMostExtent = (int64_t{1} << 31) - 1;
  constexpr int64_t kHalf = int64_t{1} << 30;
  const auto wrong = [&](const char* told, int64_t x, int64_t y, int64_t z) {
    bothRefuse(RBC_STATUS_INVALID_ARGUMENT, {told}, [&](auto& c) { grid(c, x, y, z); });
  };
  wrong("shape: [2147483647,2147483647,1] for 2 clouds, expected at most 2^62 voxels in all",
        kMostExtent, kMostExtent, 1);
  wrong("shape: [1073741824,1073741824,3] for 2 clouds, expected at most 2^62 voxels in all", kHalf,
        kHalf, 3);
  wrong("shape: [2147483647,2147483647,2147483647] for 2 clouds", kMostExtent, kMostExtent,
        kMostExtent);
  Sparse most;  // 2^62 voxels
  grid(most, kHalf, kHalf, 2);
  CHECK_SUCCEEDS(most.workspace());
  CHECK_SUCCEEDS(most.run());
  CHECK(most.num_voxels.array.elements() == bitsOf(kI64, {2}));
}

TEST_CASE("voxelize errors: points, lengths and offsets of a wrong rank, shape or dtype") {
  constexpr auto kShape = RBC_STATUS_SHAPE_MISMATCH;
  wrongInput(kShape, "points: rank is 1 (shape [32]), expected 2 or 3", &Clouds::points, {32});
  wrongInput(kShape, "points: rank is 0 (shape []), expected 2 or 3", &Clouds::points, {});
  wrongInput(kShape, "points: rank is 4 (shape [1,2,4,4]), expected 2 or 3", &Clouds::points,
             {1, 2, 4, 4});
  wrongInput(kShape, "points: shape is [2,4,2], expected 3 columns or more: x, y, z",
             &Clouds::points, {2, 4, 2});
  wrongInput(kShape, "points: shape is [2,4,0], expected 3 columns or more: x, y, z",
             &Clouds::points, {2, 4, 0});
  wrongInput(kShape, "lengths: shape is [1], expected [2]", &Clouds::lengths, {1});
  wrongInput(kShape, "lengths: shape is [2,1], expected [2]", &Clouds::lengths, {2, 1});
  wrongInput(kShape, "lengths: shape is [], expected [2]", &Clouds::lengths, {});
  bothRefuse(kShape, {"lengths: shape is [2], expected [1]"}, [](auto& c) {
    c.points.reshape({4, 4});  // one cloud without a batch
  });
  bothRefuse(kShape, {"points: are 2147483648, expected at most 2^31 - 1"}, [](auto& c) {
    c.points.reshape({2, int64_t{1} << 30, 4});
    c.points.restride({0, 0, 1});
  });
  bothRefuse(kShape, {"points: are 2147483648, expected at most 2^31 - 1"}, [](auto& c) {
    c.pack();
    c.points.reshape({int64_t{1} << 31, 4});
    c.points.restride({0, 1});
  });
  bothRefuse(kShape, {"points: rank is 3 (shape [2,4,4]), expected 2"}, [](auto& c) {
    c.pack();
    c.points.reshape({2, 4, 4});
  });
  bothRefuse(kShape, {"offsets: rank is 2 (shape [3,1]), expected 1"}, [](auto& c) {
    c.pack();
    c.offsets.reshape({3, 1});
  });
  bothRefuse(kShape, {"offsets: rank is 0 (shape []), expected 1"}, [](auto& c) {
    c.pack();
    c.offsets.reshape({});
  });
  bothRefuse(kShape, {"offsets: shape is [0], expected [B+1]"}, [](auto& c) {
    c.pack();
    c.offsets.reshape({0});
  });
  bothRefuse(RBC_STATUS_INVALID_ARGUMENT,
             {"lengths: are for padded points, expected null beside offsets"}, [](auto& c) {
               c.pack();
               c.params.lengths = &c.lengths.raw;
             });

  constexpr auto kDType = RBC_STATUS_DTYPE_MISMATCH;
  bothRefuse(kDType, {"points: dtype is int32, expected a float"},
             [](auto& c) { c.points.raw.dtype = kI32; });
  bothRefuse(kDType, {"points: dtype is bool, expected a float"},
             [](auto& c) { c.points.raw.dtype = support::kBool; });
  bothRefuse(kDType, {"lengths: dtype is uint32, expected int32 or int64"},
             [](auto& c) { c.lengths.raw.dtype = support::kU32; });
  bothRefuse(kDType, {"lengths: dtype is float32, expected int32 or int64"},
             [](auto& c) { c.lengths.raw.dtype = kF32; });
  bothRefuse(kDType, {"offsets: dtype is float64, expected int32 or int64"}, [](auto& c) {
    c.pack();
    c.offsets.raw.dtype = kF64;
  });
}

TEST_CASE("voxelize errors: features") {
  constexpr auto kShape = RBC_STATUS_SHAPE_MISMATCH;
  wrongInput(kShape, "features: shape is [2,3,2], expected [2,4,2]", &Clouds::features, {2, 3, 2});
  wrongInput(kShape, "features: shape is [1,4,2], expected [2,4,2]", &Clouds::features, {1, 4, 2});
  wrongInput(kShape, "features: rank is 2 (shape [8,2]), expected 3", &Clouds::features, {8, 2});
  wrongInput(kShape, "features: rank is 2 (shape [2,4]), expected 3", &Clouds::features, {2, 4});
  bothRefuse(kShape, {"features: shape is [7,2], expected [8,2]"}, [](auto& c) {
    c.pack();
    c.features.reshape({7, 2});
  });
  bothRefuse(kShape, {"features: rank is 3 (shape [2,4,2]), expected 2"}, [](auto& c) {
    c.pack();
    c.features.reshape({2, 4, 2});
  });
  bothRefuse(RBC_STATUS_DTYPE_MISMATCH, {"features: dtype is int32, expected a float"},
             [](auto& c) { c.features.raw.dtype = kI32; });
  for (const int32_t mode : {RBC_VOXEL_OCCUPANCY, RBC_VOXEL_COUNT}) {
    refused<Dense>(RBC_STATUS_INVALID_ARGUMENT,
                   {"features: are for sum, mean, max and min, expected null"}, [&](Dense& c) {
                     c.tell(mode, kI32);
                     c.used_features = &c.features.raw;
                   });
  }
}

TEST_CASE("voxelize errors: lengths and offsets out of range") {
  constexpr auto kStatus = RBC_STATUS_INVALID_ARGUMENT;
  const auto lengths = [&](const char* told, std::initializer_list<int32_t> given) {
    bothRefuse(kStatus, {told}, [&](auto& c) { c.lengths.template fill<int32_t>(given); });
  };
  lengths("lengths: row 1 is 5, expected 0 to 4", {4, 5});
  lengths("lengths: row 0 is -1, expected 0 to 4", {-1, 5});
  const auto offsets = [&](const char* told, std::initializer_list<int64_t> given) {
    bothRefuse(kStatus, {told}, [&](auto& c) {
      c.pack();
      c.offsets.template fill<int64_t>(given);
    });
  };
  offsets("offsets: decrease at index 2 (4 -> 3)", {0, 4, 3});
  offsets("offsets: index 2 is 9, past the 8 points", {0, 4, 9});
  offsets("offsets: index 0 is -1, expected 0 or more", {-1, 4, 6});
  offsets("offsets: index 0 is 9, past the 8 points", {9, 9, 9});
  offsets("offsets: index 1 is 4294967296, past the 8 points", {0, int64_t{1} << 32, 8});
}
