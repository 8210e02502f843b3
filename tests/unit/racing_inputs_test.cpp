// Offsets, lengths and masks that another thread writes during the calls. The results are
// unspecified, but nothing may be read or written outside the tensors: a call must use the values
// that it has checked.
#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "robocache/robocache.h"
#include "support/expect.h"
#include "support/random.h"
#include "support/run.h"
#include "support/sanitizers.h"

namespace {

using support::Array;
using support::Context;

constexpr int64_t kRows = 6000;
constexpr int64_t kBatch = 40;
constexpr int kCalls = support::kSanitized ? 400 : 1500;

// Rows divided evenly into kBatch parts, and a thread that corrupts and restores some of the
// entries.
class RacingOffsets {
 public:
  RacingOffsets() : array_(support::kI64, {kBatch + 1}) {
    for (int64_t i = 0; i <= kBatch; ++i) set(i, i * kRows / kBatch);
    writer_ = std::thread([this] {
      constexpr int64_t kWrong[] = {-1,        INT64_MIN, INT64_MAX, int64_t{1} << 33,
                                    kRows + 1, 0,         kRows};
      support::Random random(7);
      while (!stop_.load(std::memory_order_relaxed)) {
        const int64_t i = random.below(kBatch + 1);
        set(i, random.pick(kWrong));
        set(i, i * kRows / kBatch);
      }
    });
  }
  ~RacingOffsets() {
    stop_ = true;
    writer_.join();
  }

  rbcTensor tensor() const { return array_.tensor(); }

 private:
  void set(int64_t i, int64_t value) {
    auto* entry = reinterpret_cast<int64_t*>(array_.memory().data()) + i;
    __atomic_store_n(entry, value, __ATOMIC_RELAXED);
  }

  Array array_;
  std::atomic<bool> stop_{false};
  std::thread writer_;
};

Array randomFloats(std::vector<int64_t> shape) {
  Array array(support::kF32, std::move(shape));
  support::Random random(3);
  for (size_t i = 0; i < array.memory().bytes() / sizeof(float); ++i) {
    reinterpret_cast<float*>(array.memory().data())[i] = static_cast<float>(random.uniform(0, 16));
  }
  return array;
}

// Each call succeeds, or reports that the offsets are wrong.
template <class Call>
void checkCalls(const char* operation, Call&& call) {
  for (int i = 0; i < kCalls; ++i) {
    const rbcStatus_t status = call();
    if (status == RBC_STATUS_SUCCESS) continue;
    CHECK_MESSAGE(status == RBC_STATUS_INVALID_ARGUMENT, operation);
    CHECK_MESSAGE(support::tells(rbcGetLastError(), {"offsets"}), operation, ": ",
                  std::string(rbcGetLastError()));
  }
}

void setGrid(rbcVoxelGrid* grid) {
  for (int axis = 0; axis < 3; ++axis) {
    grid->voxel_size[axis] = 2;
    grid->shape[axis] = 8;
  }
}

}  // namespace

TEST_CASE("racing inputs: offsets of points") {
  if (support::kThreadSanitizer)
    SKIP_BECAUSE("the race is intended, and ThreadSanitizer would report it");
  for (const int threads : {1, 3}) {
    const Context context = support::cpuContext(threads);
    const RacingOffsets racing;
    const rbcTensor offsets = racing.tensor();
    const Array points = randomFloats({kRows, 3});
    const Array sensors = randomFloats({kBatch, 3});
    const Array dropped(support::kI64, {kBatch});
    const Array counts(support::kI32, {kBatch, 8, 8, 8});
    const Array means(support::kF32, {kBatch, 8, 8, 8, 3});
    const Array volumes[] = {Array(support::kF32, {8, 8, 8}), Array(support::kF32, {8, 8, 8})};
    const Array coords(support::kI32, {kRows, 4});
    const Array num_voxels(support::kI64, {});
    const Array point_to_voxel(support::kI32, {kRows});
    const rbcTensor points_tensor = points.tensor();
    const rbcTensor sensors_tensor = sensors.tensor();
    const rbcTensor dropped_tensor = dropped.tensor();

    rbcVoxelizeParams dense = rbcVoxelizeParamsInit();
    setGrid(&dense.grid);
    dense.batch_offsets = &offsets;
    const std::pair<int32_t, const Array*> modes[] = {{RBC_REDUCE_COUNT, &counts},
                                                      {RBC_REDUCE_MEAN, &means}};
    for (const auto& [mode, out] : modes) {
      dense.reduction = mode;
      const rbcTensor out_tensor = out->tensor();
      checkCalls("rbcVoxelize", [&] {
        return rbcVoxelize(context.get(), &points_tensor, nullptr, &out_tensor, &dropped_tensor,
                           &dense);
      });
    }

    rbcVoxelizeSparseParams sparse = rbcVoxelizeSparseParamsInit();
    setGrid(&sparse.grid);
    sparse.batch_offsets = &offsets;
    rbcVoxelizeSparseOutputs voxels = rbcVoxelizeSparseOutputsInit();
    const rbcTensor outputs[] = {coords.tensor(), num_voxels.tensor(), point_to_voxel.tensor()};
    voxels.coords = &outputs[0];
    voxels.num_voxels = &outputs[1];
    voxels.point_to_voxel = &outputs[2];
    voxels.num_points_outside = &dropped_tensor;
    checkCalls("rbcVoxelizeSparse", [&] {
      return rbcVoxelizeSparse(context.get(), &points_tensor, nullptr, &voxels, &sparse);
    });

    rbcVoxelizeTsdfParams tsdf = rbcVoxelizeTsdfParamsInit();
    setGrid(&tsdf.grid);
    tsdf.batch_offsets = &offsets;
    tsdf.truncation = 2;
    for (const Array& volume : volumes) {
      std::memset(volume.memory().data(), 0, volume.memory().bytes());
    }
    const rbcTensor volume_tensors[] = {volumes[0].tensor(), volumes[1].tensor()};
    checkCalls("rbcVoxelizeTsdf", [&] {
      return rbcVoxelizeTsdf(context.get(), &points_tensor, &sensors_tensor, &volume_tensors[0],
                             &volume_tensors[1], &dropped_tensor, &tsdf);
    });
  }
}

TEST_CASE("racing inputs: offsets of samples") {
  if (support::kThreadSanitizer)
    SKIP_BECAUSE("the race is intended, and ThreadSanitizer would report it");
  for (const int threads : {1, 3}) {
    const Context context = support::cpuContext(threads);
    const RacingOffsets racing;
    const rbcTensor offsets = racing.tensor();
    const Array values = randomFloats({kRows, 2});
    Array times(support::kF64, {kRows});
    for (int64_t i = 0; i < kRows; ++i) {
      reinterpret_cast<double*>(times.memory().data())[i] = static_cast<double>(i);
    }
    Array queries(support::kF64, {20});
    std::memset(queries.memory().data(), 0, queries.memory().bytes());
    const Array out(support::kF32, {kBatch, 20, 2});
    const rbcTensor tensors[] = {values.tensor(), times.tensor(), queries.tensor(), out.tensor()};
    rbcResampleParams params = rbcResampleParamsInit();
    params.batch_offsets = &offsets;
    for (const uint32_t flags : {uint32_t{0}, uint32_t{RBC_FLAG_CHECK_TIMES}}) {
      params.flags = flags;
      checkCalls("rbcResample", [&] {
        return rbcResample(context.get(), &tensors[0], &tensors[1], &tensors[2], &tensors[3],
                           nullptr, &params);
      });
    }
  }
}

TEST_CASE("racing inputs: offsets of the episodes of windows") {
  if (support::kThreadSanitizer)
    SKIP_BECAUSE("the race is intended, and ThreadSanitizer would report it");
  constexpr int64_t kWindows = 50;
  constexpr int64_t kOffsets = 9;
  for (const int threads : {1, 3}) {
    const Context context = support::cpuContext(threads);
    const RacingOffsets racing;
    const Array values = randomFloats({kRows, 5});
    Array times(support::kF64, {kRows});
    for (int64_t i = 0; i < kRows; ++i) {
      reinterpret_cast<double*>(times.memory().data())[i] = static_cast<double>(i);
    }
    std::vector<uint64_t> episode_of;
    std::vector<uint64_t> rows;
    for (int64_t b = 0; b < kWindows; ++b) episode_of.push_back(static_cast<uint64_t>(b % kBatch));
    for (int64_t o = 0; o < kOffsets; ++o) rows.push_back(static_cast<uint64_t>(o * 40 - 90));
    const Array episodes = support::arrayOf(support::kI32, {kWindows}, episode_of);
    const Array offsets = support::arrayOf(support::kI64, {kOffsets}, rows);
    const Array anchors = support::arrayOf(support::kI64, {kWindows}, episode_of);
    const Array at = support::arrayOf(support::kF64, {kOffsets},
                                      std::vector<uint64_t>(kOffsets, 0x3fe0000000000000));
    const Array out[] = {Array(support::kF32, {kWindows, kOffsets, 5}),
                         Array(support::kF32, {kWindows, kOffsets, 5})};
    const rbcTensor tensors[] = {values.tensor(), racing.tensor(),   offsets.tensor(),
                                 times.tensor(),  episodes.tensor(), anchors.tensor(),
                                 out[0].tensor(), out[1].tensor(),   at.tensor()};
    const rbcWindowsTransform transform = {0, 5, RBC_WINDOWS_TRANSFORM_SUBTRACT, 0, 1, 1, 0, 0, 0,
                                           0, 0};
    rbcWindowsStream streams[2] = {rbcWindowsStreamInit(), rbcWindowsStreamInit()};
    rbcWindowsOutputs outputs[2];
    for (int n = 0; n < 2; ++n) {
      streams[n].values = &tensors[0];
      streams[n].episode_offsets = &tensors[1];
      streams[n].times = &tensors[3];
      streams[n].offsets = &tensors[n == 0 ? 2 : 8];
      outputs[n] = rbcWindowsOutputsInit();
      outputs[n].out = &tensors[6 + n];
    }
    streams[0].transforms = &transform;
    streams[0].num_transforms = 1;
    streams[1].mode = RBC_WINDOWS_MODE_INTERPOLATE;
    rbcWindowsParams params = rbcWindowsParamsInit();
    for (const uint32_t flags : {uint32_t{0}, uint32_t{RBC_FLAG_CHECK_TIMES}}) {
      params.flags = flags;
      checkCalls("rbcWindows", [&] {
        return rbcWindows(context.get(), streams, 2, &tensors[4], &tensors[5], outputs, &params);
      });
    }
  }
}

TEST_CASE("racing inputs: masks of samples") {
  if (support::kThreadSanitizer)
    SKIP_BECAUSE("the race is intended, and ThreadSanitizer would report it");
  constexpr int64_t kSamples = 100;
  constexpr int64_t kQueries = 300;
  const Array mask(support::kU8, {kSamples});
  std::memset(mask.memory().data(), 1, mask.memory().bytes());
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    support::Random random(9);
    auto* const bytes = reinterpret_cast<uint8_t*>(mask.memory().data());
    while (!stop.load(std::memory_order_relaxed)) {
      // A whole run at a time, at the ends as often as between them; sometimes the whole mask.
      const int64_t begin = random.chance(0.3) ? 0 : random.below(kSamples);
      const int64_t end =
          random.chance(0.3) ? kSamples : begin + random.below(kSamples - begin + 1);
      const auto byte = static_cast<uint8_t>(random.chance(0.5) ? 1 : 0);
      for (int64_t i = begin; i < end; ++i) __atomic_store_n(bytes + i, byte, __ATOMIC_RELAXED);
    }
  });
  // Inaccessible pages are right before and after the values.
  for (const auto flush : {support::Flush::kBegin, support::Flush::kEnd}) {
    const Array values(support::kF32, {kSamples, 1024}, support::Layout::kContiguous, flush);
    std::memset(values.memory().data(), 0, values.memory().bytes());
    Array times(support::kF64, {kSamples}, support::Layout::kContiguous, flush);
    for (int64_t i = 0; i < kSamples; ++i) {
      reinterpret_cast<double*>(times.memory().data())[i] = static_cast<double>(i);
    }
    Array queries(support::kF64, {kQueries});
    for (int64_t i = 0; i < kQueries; ++i) {
      reinterpret_cast<double*>(queries.memory().data())[i] = static_cast<double>(i) / 2 - 20;
    }
    const Array out(support::kF32, {kQueries, 1024});
    const rbcTensor tensors[] = {values.tensor(), times.tensor(), queries.tensor(), out.tensor(),
                                 mask.tensor()};
    const Context context = support::cpuContext(1);
    for (int32_t method = RBC_METHOD_LINEAR; method <= RBC_METHOD_ANGLE; ++method) {
      rbcResampleParams params = rbcResampleParamsInit();
      params.method = method;
      params.sample_mask = &tensors[4];
      if (method == RBC_METHOD_LINEAR) params.outside = RBC_OUTSIDE_EXTRAPOLATE;
      if (method == RBC_METHOD_ANGLE) params.max_gap = 30;
      for (int i = 0; i < 100; ++i) {
        CHECK(rbcResample(context.get(), &tensors[0], &tensors[1], &tensors[2], &tensors[3],
                          nullptr, &params) == RBC_STATUS_SUCCESS);
      }
    }
  }
  stop = true;
  writer.join();
}
