// The workspace sizes of grids of up to 2^62 voxels are exact or refused, and never wrap. The
// volumes are only addresses.
#include <limits>
#include <utility>
#include <vector>

#include "abi/error_table.h"

namespace {

using support::Argument;
using support::kF32;
using support::kI64;

const support::Context& context() { return support::refusingContext(); }

constexpr int64_t power(int n) { return int64_t{1} << n; }
constexpr size_t kPoison = 12345;

// X, Y and Z of 2^n voxels.
void setShape(int n, int64_t* shape) {
  shape[0] = power(n / 3);
  shape[1] = power((n - n / 3) / 2);
  shape[2] = power(n) / shape[0] / shape[1];
}

rbcVoxelGrid gridOf(int n) {
  rbcVoxelGrid grid = {{0, 0, 0}, {1, 1, 1}, {0, 0, 0}};
  setShape(n, grid.shape);
  return grid;
}

// A tensor [...] of elements at an address that must not be accessed.
struct Elsewhere {
  std::vector<int64_t> shape;
  rbcTensor raw;

  Elsewhere(rbcDType dtype, std::vector<int64_t> extents, uintptr_t address)
      : shape(std::move(extents)),
        raw{reinterpret_cast<void*>(address),
            {RBC_DEVICE_CPU, 0},
            static_cast<int32_t>(shape.size()),
            dtype,
            shape.data(),
            nullptr,
            0} {}
};

struct Tsdf {
  Argument points{kF32, {1, 3}};
  Argument sensor{kF32, {3}};
  rbcVoxelizeTsdfParams params = rbcVoxelizeTsdfParamsInit();
  Elsewhere tsdf;
  Elsewhere weight;

  explicit Tsdf(int n)
      : tsdf(kF32, volumeOf(n), uintptr_t{1} << 62), weight(kF32, volumeOf(n), uintptr_t{1} << 63) {
    points.fill<float>({0.5f, 0.5f, 0.5f});
    sensor.fill<float>({-1, -1, -1});
    params.truncation = 1;
    params.grid = gridOf(n);
  }

  static std::vector<int64_t> volumeOf(int n) {
    std::vector<int64_t> shape(3);
    setShape(n, shape.data());
    return shape;
  }
  rbcStatus_t size(size_t* bytes) const {
    return rbcVoxelizeTsdfWorkspaceSize(context().get(), &points.raw, &sensor.raw, &tsdf.raw,
                                        &weight.raw, nullptr, &params, bytes);
  }
  rbcStatus_t run() const {
    return rbcVoxelizeTsdf(context().get(), &points.raw, &sensor.raw, &tsdf.raw, &weight.raw,
                           nullptr, &params);
  }
};

// Clouds without points, and features without columns: the grid has no memory.
struct Dense {
  Elsewhere points;
  Elsewhere features;
  Elsewhere out;
  rbcVoxelizeParams params = rbcVoxelizeParamsInit();

  Dense(int64_t clouds, int n)
      : points(kF32, {clouds, 0, 3}, 0),
        features(kF32, {clouds, 0, 0}, 0),
        out(kF32, {clouds, 0, 0, 0, 0}, 0) {
    params.reduction = RBC_REDUCE_MEAN;
    params.grid = gridOf(n);
    setShape(n, out.shape.data() + 1);
  }
  rbcStatus_t size(size_t* bytes) const {
    return rbcVoxelizeWorkspaceSize(context().get(), &points.raw, &features.raw, &out.raw, nullptr,
                                    &params, bytes);
  }
  rbcStatus_t run() const {
    return rbcVoxelize(context().get(), &points.raw, &features.raw, &out.raw, nullptr, &params);
  }
};

struct Sparse {
  Elsewhere points;
  Argument coords{support::kI32, {1, 4}};
  Argument num_voxels{kI64, {}};
  rbcVoxelizeSparseOutputs voxels = rbcVoxelizeSparseOutputsInit();
  rbcVoxelizeSparseParams params = rbcVoxelizeSparseParamsInit();

  Sparse(int64_t clouds, int n) : points(kF32, {clouds, 0, 3}, 0) {
    voxels.coords = &coords.raw;
    voxels.num_voxels = &num_voxels.raw;
    params.grid = gridOf(n);
  }
  rbcStatus_t size(size_t* bytes) const {
    return rbcVoxelizeSparseWorkspaceSize(context().get(), &points.raw, nullptr, &voxels, &params,
                                          bytes);
  }
  rbcStatus_t run() const {
    return rbcVoxelizeSparse(context().get(), &points.raw, nullptr, &voxels, &params);
  }
};

template <class Call>
void checkRefused(const Call& call, rbcStatus_t status, const char* words) {
  size_t bytes = kPoison;
  CHECK_FAILS(call.size(&bytes), status, words);
  CHECK(bytes == kPoison);
  CHECK_FAILS(call.run(), status, words);
}

}  // namespace

TEST_CASE("workspace sizes: the size for a tsdf volume is exact or refused") {
  for (const int n : {40, 54, 57}) {
    INFO("2^", n, " voxels");
    const Tsdf call(n);
    size_t bytes = kPoison;
    CHECK_SUCCEEDS(call.size(&bytes));
    CHECK(bytes >= size_t{16} << n);  // two sums of 64 bits for a voxel
    CHECK(bytes < size_t{17} << n);
    if (n > 40) CHECK_FAILS(call.run(), RBC_STATUS_OUT_OF_MEMORY, "bytes");
  }
  for (const int n : {58, 59, 60}) {
    INFO("2^", n, " voxels");
    checkRefused(Tsdf(n), RBC_STATUS_OUT_OF_MEMORY, "workspace: ");
  }
}

// A dense grid may have as many voxels as an output of f32.
TEST_CASE("workspace sizes: voxels of all clouds are counted up to 2^62") {
  const auto check = [](const auto& call) {
    size_t bytes = kPoison;
    CHECK_SUCCEEDS(call.size(&bytes));
    CHECK(bytes < size_t{1} << 20);
    CHECK_SUCCEEDS(call.run());
  };
  for (const int clouds : {0, 1, 2, 30}) {
    INFO("2^", clouds, " clouds");
    check(Dense(power(clouds), 60 - clouds));
    checkRefused(Dense(power(clouds), 62 - clouds), RBC_STATUS_SHAPE_MISMATCH, "out: shape [");
    const Sparse sparse(power(clouds), 62 - clouds);
    check(sparse);
    CHECK(sparse.num_voxels.array.elements() == std::vector<uint64_t>{0});
    if (clouds == 0) continue;  // 2^63 is not an extent
    checkRefused(Sparse(power(clouds), 63 - clouds), RBC_STATUS_INVALID_ARGUMENT, "shape: [");
  }
}
