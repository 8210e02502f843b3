// Structs that begin with struct_size, as programs of other releases pass them: shorter, longer,
// and with sizes that no compiler produces. Tests every such struct of structs.inc, in a call that
// succeeds.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <deque>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "support/expect.h"
#include "support/run.h"

namespace {

using support::Array;
using support::kF32;
using support::kF64;
using support::kI32;
using support::kI64;
using support::kU8;
using Bytes = std::vector<std::byte>;

template <class T>
Bytes bytesOf(const T& object) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&object);
  return Bytes(bytes, bytes + sizeof object);
}

// A struct that the library reads, or an array of them.
struct Input {
  const char* type;
  const char* argument;  // the name in messages, without the index of an array
  std::vector<Bytes> elements;
  Bytes defaults;
  std::function<rbcStatus_t(const void*)> call;

  size_t size() const { return defaults.size(); }
  std::string name(size_t n) const {
    const bool array = elements.size() > 1;
    return argument + (array ? "[" + std::to_string(n) + "]" : std::string()) + ": ";
  }
  // The elements with another size, at the end of their memory.
  support::GuardedMemory resized(size_t size) const {
    support::GuardedMemory memory(elements.size() * size, support::Flush::kEnd);
    std::memset(memory.data(), 0, memory.bytes());
    const auto struct_size = static_cast<uint32_t>(size);
    for (size_t n = 0; n < elements.size(); ++n) {
      std::byte* const element = memory.data() + n * size;
      std::memcpy(element, elements[n].data(), std::min(size, elements[n].size()));
      std::memcpy(element, &struct_size, sizeof struct_size);
    }
    return memory;
  }
  // Returns whether all fields that a struct of this size lacks have their defaults.
  bool defaultsBeyond(size_t size) const {
    bool equal = true;
    for (const Bytes& element : elements) {
      for (size_t i = size; i < element.size(); ++i) equal = equal && element[i] == defaults[i];
    }
    return equal;
  }
};

// A struct that the library fills.
struct Output {
  const char* type;
  size_t size;
  std::function<rbcStatus_t(void*)> call;
};

class Calls {
 public:
  Calls() {
    addContext();
    addStreams();
    addVoxels();
    addClouds();
    addRotations();
    addTensors();
    addStatistics();
    addWindows();
    addLive();
  }

  // The status, and the output of the call.
  rbcStatus_t run(const Input& input, const void* object, std::vector<uint64_t>* written) {
    for (Array* array : outputs_) array->memory().poison();
    const rbcStatus_t status = input.call(object);
    written->clear();
    for (const Array* array : outputs_) {
      const std::vector<uint64_t> elements = array->elements();
      written->insert(written->end(), elements.begin(), elements.end());
    }
    return status;
  }

  std::vector<Input> inputs;
  std::vector<Output> filled;

 private:
  template <class T, class Call>
  void add(const char* type, T defaults, std::vector<T> elements, const char* argument, Call call) {
    std::vector<Bytes> bytes;
    for (const T& element : elements) bytes.push_back(bytesOf(element));
    inputs.push_back({type, argument, bytes, bytesOf(defaults),
                      [call](const void* object) { return call(static_cast<const T*>(object)); }});
  }

  template <class T, class Call>
  void addFilled(const char* type, Call call) {
    filled.push_back(
        {type, sizeof(T), [call](void* object) { return call(static_cast<T*>(object)); }});
  }

  const rbcTensor* keep(Array array) {
    arrays_.push_back(std::move(array));
    tensors_.push_back(arrays_.back().tensor());
    return &tensors_.back();
  }
  const rbcTensor* in(rbcDType dtype, std::vector<int64_t> shape, const std::vector<double>& of) {
    std::vector<uint64_t> elements;
    for (const double number : of) elements.push_back(support::encode(dtype, number));
    return keep(support::arrayOf(dtype, std::move(shape), elements));
  }
  const rbcTensor* out(rbcDType dtype, std::vector<int64_t> shape) {
    const rbcTensor* made = keep(Array(dtype, std::move(shape)));
    outputs_.push_back(&arrays_.back());
    return made;
  }

  void addContext() {
    rbcContextParams params = rbcContextParamsInit();
    params.backend = RBC_BACKEND_CPU;
    params.num_threads = 1;
    add("rbcContextParams", rbcContextParamsInit(), {params}, "params",
        [](const rbcContextParams* object) {
          rbcContext_t made = nullptr;
          const rbcStatus_t status = rbcContextCreate(object, &made);
          rbcContextDestroy(made);
          return status;
        });
    addFilled<rbcContextInfo>("rbcContextInfo",
                              [c = c](rbcContextInfo* info) { return rbcContextGetInfo(c, info); });
  }

  void addStreams() {
    const rbcTensor* values = in(kF32, {3, 1}, {0, 2, 6});
    const rbcTensor* times = in(kF64, {3}, {0, 1, 3});
    const rbcTensor* queries = in(kF64, {2}, {0.5, 2});
    const rbcTensor* resampled = out(kF32, {2, 1});
    const rbcTensor* fused = out(kF32, {2, 2});
    rbcResampleParams previous = rbcResampleParamsInit();
    previous.method = RBC_METHOD_PREVIOUS;
    add("rbcResampleParams", rbcResampleParamsInit(), {previous}, "params",
        [=, c = c](const rbcResampleParams* object) {
          return rbcResample(c, values, times, queries, resampled, nullptr, object);
        });
    rbcFuseStream stream = rbcFuseStreamInit();
    stream.values = values;
    stream.times = times;
    const std::vector<rbcFuseStream> streams(2, stream);
    const auto fuse = [=, c = c](const rbcFuseStream* of, const rbcFuseParams* params) {
      return rbcFuse(c, of, 2, queries, fused, nullptr, params);
    };
    add("rbcFuseStream", rbcFuseStreamInit(), streams, "streams",
        [=](const rbcFuseStream* object) { return fuse(object, nullptr); });
    add("rbcResampleParams", rbcResampleParamsInit(), {previous}, "streams[1].params",
        [=](const rbcResampleParams* object) {
          std::vector<rbcFuseStream> copies = streams;
          copies[1].params = object;
          return fuse(copies.data(), nullptr);
        });
    rbcFuseParams params = rbcFuseParamsInit();
    params.flags = RBC_FLAG_CHECK_TIMES;
    add("rbcFuseParams", rbcFuseParamsInit(), {params}, "params",
        [=](const rbcFuseParams* object) { return fuse(streams.data(), object); });
  }

  void addVoxels() {
    const rbcVoxelGrid grid = {{0, 0, 0}, {1, 1, 1}, {2, 2, 2}};
    const rbcTensor* points = in(kF32, {2, 3}, {1.5, 0.5, 0.5, 0.5, 0.5, 0.25});
    const rbcTensor* dense = out(kI32, {2, 2, 2});
    rbcVoxelizeParams count = rbcVoxelizeParamsInit();
    count.reduction = RBC_REDUCE_COUNT;
    count.grid = grid;
    add("rbcVoxelizeParams", rbcVoxelizeParamsInit(), {count}, "params",
        [=, c = c](const rbcVoxelizeParams* object) {
          return rbcVoxelize(c, points, nullptr, dense, nullptr, object);
        });

    rbcVoxelizeSparseParams sparse = rbcVoxelizeSparseParamsInit();
    sparse.grid = grid;
    rbcVoxelizeSparseOutputs voxels = rbcVoxelizeSparseOutputsInit();
    voxels.coords = out(kI32, {3, 4});
    voxels.num_voxels = out(kI64, {});
    const auto voxelize = [=, c = c](const rbcVoxelizeSparseOutputs* to,
                                     const rbcVoxelizeSparseParams* params) {
      return rbcVoxelizeSparse(c, points, nullptr, to, params);
    };
    add("rbcVoxelizeSparseParams", rbcVoxelizeSparseParamsInit(), {sparse}, "params",
        [=](const rbcVoxelizeSparseParams* object) { return voxelize(&voxels, object); });
    add("rbcVoxelizeSparseOutputs", rbcVoxelizeSparseOutputsInit(), {voxels}, "outputs",
        [=](const rbcVoxelizeSparseOutputs* object) { return voxelize(object, &sparse); });

    const rbcTensor* sensor = in(kF32, {3}, {-0.5, 0.5, 0.5});
    const rbcTensor* distance = out(kF32, {2, 2, 2});
    const rbcTensor* weight = out(kF32, {2, 2, 2});
    rbcVoxelizeTsdfParams tsdf = rbcVoxelizeTsdfParamsInit();
    tsdf.truncation = 1;
    tsdf.grid = grid;
    add("rbcVoxelizeTsdfParams", rbcVoxelizeTsdfParamsInit(), {tsdf}, "params",
        [=, c = c](const rbcVoxelizeTsdfParams* object) {
          std::memset(distance->data, 0, 8 * sizeof(float));
          std::memset(weight->data, 0, 8 * sizeof(float));
          return rbcVoxelizeTsdf(c, points, sensor, distance, weight, nullptr, object);
        });
  }

  void addClouds() {
    const rbcTensor* depth = in(kF32, {1, 2}, {1, 2});
    const rbcTensor* camera = in(kF32, {4}, {1, 2, 0, 0});
    const rbcTensor* cloud = out(kF32, {2, 3});
    const rbcTensor* count = out(kI64, {});
    rbcUnprojectParams unproject = rbcUnprojectParamsInit();
    unproject.depth_scale = 0.5;
    add("rbcUnprojectParams", rbcUnprojectParamsInit(), {unproject}, "params",
        [=, c = c](const rbcUnprojectParams* object) {
          return rbcUnproject(c, depth, camera, nullptr, nullptr, cloud, count, nullptr, nullptr,
                              object);
        });
    const rbcTensor* corners = in(kF32, {3, 3}, {0, 0, 0, 1, 0, 0, 0, 3, 0});
    const rbcTensor* farthest = out(kI64, {2});
    rbcFarthestPointsParams from = rbcFarthestPointsParamsInit();
    from.start_index = 1;
    add("rbcFarthestPointsParams", rbcFarthestPointsParamsInit(), {from}, "params",
        [=, c = c](const rbcFarthestPointsParams* object) {
          return rbcFarthestPoints(c, corners, farthest, nullptr, object);
        });
    const rbcTensor* rows = in(kI64, {2}, {2, -1});
    const rbcTensor* taken = out(kF32, {2, 3});
    rbcTakeRowsParams take = rbcTakeRowsParamsInit();
    take.fill_value = 7;
    add("rbcTakeRowsParams", rbcTakeRowsParamsInit(), {take}, "params",
        [=, c = c](const rbcTakeRowsParams* object) {
          return rbcTakeRows(c, corners, rows, taken, object);
        });
  }

  void addRotations() {
    const rbcTensor* quaternions = in(kF32, {1, 4}, {0, 0, 1, 0});
    const rbcTensor* vectors = out(kF32, {1, 4});
    rbcConvertRotationsParams params = rbcConvertRotationsParamsInit();
    params.target = RBC_ROTATION_QUAT_WXYZ;
    add("rbcConvertRotationsParams", rbcConvertRotationsParamsInit(), {params}, "params",
        [=, c = c](const rbcConvertRotationsParams* object) {
          return rbcConvertRotations(c, quaternions, vectors, object);
        });
  }

  void addTensors() {
    addFilled<rbcTensorInfo>(
        "rbcTensorInfo", [=, values = in(kF32, {2, 3}, {1, 2, 3, 4, 5, 6})](rbcTensorInfo* info) {
          return rbcTensorGetInfo(values, info);
        });
    add("rbcOwnedTensorParams", rbcOwnedTensorParamsInit(), {rbcOwnedTensorParamsInit()}, "params",
        [=, c = c](const rbcOwnedTensorParams* object) {
          const int64_t shape[] = {2, 3};
          rbcOwnedTensor_t made = nullptr;
          const rbcStatus_t status = rbcOwnedTensorCreate(c, kF32, 2, shape, object, &made);
          rbcOwnedTensorDestroy(made);
          return status;
        });
  }

  void addStatistics() {
    const rbcTensor* values = in(kF32, {4, 1}, {1, 2, 99, 6});
    const rbcTensor* mask = in(kU8, {4}, {1, 1, 0, 1});
    rbcStatisticsParams params = rbcStatisticsParamsInit();
    params.sample_mask = mask;
    rbcStatisticsOutputs result = rbcStatisticsOutputsInit();
    result.mean = out(kF64, {1});
    const auto statistics = [=, c = c](const rbcStatisticsParams* of,
                                       const rbcStatisticsOutputs* to) {
      return rbcStatistics(c, values, to, of);
    };
    add("rbcStatisticsParams", rbcStatisticsParamsInit(), {params}, "params",
        [=](const rbcStatisticsParams* object) { return statistics(object, &result); });
    add("rbcStatisticsOutputs", rbcStatisticsOutputsInit(), {result}, "outputs",
        [=](const rbcStatisticsOutputs* object) { return statistics(&params, object); });

    rbcAccumulatorParams of = rbcAccumulatorParamsInit();
    of.num_channels = 1;
    rbcAccumulatorUpdateParams update = rbcAccumulatorUpdateParamsInit();
    update.sample_mask = mask;
    const auto accumulate = [=, c = c](const rbcAccumulatorParams* made_of,
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
    add("rbcAccumulatorParams", rbcAccumulatorParamsInit(), {of}, "params",
        [=](const rbcAccumulatorParams* object) { return accumulate(object, &update, nullptr); });
    add("rbcAccumulatorUpdateParams", rbcAccumulatorUpdateParamsInit(), {update}, "params",
        [=](const rbcAccumulatorUpdateParams* object) { return accumulate(&of, object, nullptr); });
    addFilled<rbcAccumulatorInfo>("rbcAccumulatorInfo", [=](rbcAccumulatorInfo* info) {
      return accumulate(&of, &update, info);
    });
  }

  void addWindows() {
    const rbcTensor* episodes = in(kI32, {2}, {0, 1});
    const rbcTensor* anchors = in(kI64, {2}, {0, 1});
    rbcWindowsStream stream = rbcWindowsStreamInit();
    stream.values = in(kF32, {4, 1}, {1, 2, 4, 8});
    stream.episode_offsets = in(kI64, {3}, {0, 2, 4});
    stream.offsets = in(kI32, {2}, {0, 1});
    const std::vector<rbcWindowsStream> streams(2, stream);
    std::vector<rbcWindowsOutputs> outputs(2, rbcWindowsOutputsInit());
    for (rbcWindowsOutputs& each : outputs) each.out = out(kF32, {2, 2, 1});
    const auto windows = [=, c = c](const rbcWindowsStream* of, const rbcWindowsOutputs* to,
                                    const rbcWindowsParams* params) {
      return rbcWindows(c, of, 2, episodes, anchors, to, params);
    };
    add("rbcWindowsStream", rbcWindowsStreamInit(), streams, "streams",
        [=](const rbcWindowsStream* object) { return windows(object, outputs.data(), nullptr); });
    add("rbcWindowsOutputs", rbcWindowsOutputsInit(), outputs, "outputs",
        [=](const rbcWindowsOutputs* object) { return windows(streams.data(), object, nullptr); });
    rbcWindowsParams params = rbcWindowsParamsInit();
    params.flags = RBC_FLAG_CHECK_TIMES;
    add("rbcWindowsParams", rbcWindowsParamsInit(), {params}, "params",
        [=](const rbcWindowsParams* object) {
          return windows(streams.data(), outputs.data(), object);
        });
  }

  void addLive() {
    const rbcTensor* rows = in(kF32, {3, 1}, {10, 20, 40});
    const rbcTensor* times = in(kF64, {3}, {0, 1, 2});
    const rbcTensor* queries = in(kF64, {2}, {0.5, 1.5});
    const rbcTensor* fused = out(kF32, {2, 2});
    rbcLiveStream stream = rbcLiveStreamInit();
    stream.num_channels = 1;
    stream.capacity = 3;
    const std::vector<rbcLiveStream> streams(2, stream);
    const auto live = [=, c = c](const rbcLiveStream* of, const rbcLiveParams* params,
                                 rbcLiveCounters* counters,
                                 const rbcLiveFuseParams* how = nullptr) {
      rbcLive_t made = nullptr;
      rbcStatus_t status = rbcLiveCreate(c, of, 2, params, &made);
      for (int32_t n = 0; n < 2 && status == RBC_STATUS_SUCCESS; ++n) {
        status = rbcLivePush(made, n, rows, times);
      }
      if (status == RBC_STATUS_SUCCESS) {
        status = counters != nullptr ? rbcLiveGetCounters(made, 0, counters)
                                     : rbcLiveFuse(made, queries, fused, nullptr, nullptr, how);
      }
      rbcLiveDestroy(made);
      return status;
    };
    add("rbcLiveStream", rbcLiveStreamInit(), streams, "streams",
        [=](const rbcLiveStream* object) { return live(object, nullptr, nullptr); });
    add("rbcLiveParams", rbcLiveParamsInit(), {rbcLiveParamsInit()}, "params",
        [=](const rbcLiveParams* object) { return live(streams.data(), object, nullptr); });
    add("rbcLiveFuseParams", rbcLiveFuseParamsInit(), {rbcLiveFuseParamsInit()}, "params",
        [=](const rbcLiveFuseParams* object) {
          return live(streams.data(), nullptr, nullptr, object);
        });
    addFilled<rbcLiveCounters>("rbcLiveCounters", [=](rbcLiveCounters* counters) {
      return live(streams.data(), nullptr, counters);
    });
  }

  const support::Context context_ = support::cpuContext(1);
  const rbcContext_t c = context_.get();
  std::deque<Array> arrays_;
  std::deque<rbcTensor> tensors_;
  std::vector<Array*> outputs_;
};

}  // namespace

TEST_CASE("struct sizes: every struct that begins with its size is tested") {
  std::set<std::string> expected;
#define SIZE(type, bytes) static_assert(true)
#define GROWS(type, bytes) expected.insert(#type)
#define FIELD(type, name, offset, ctype) static_assert(sizeof(ctype) > 0)
#include "structs.inc"
#undef FIELD
#undef GROWS
#undef SIZE
  const Calls calls;
  std::set<std::string> tested;
  for (const Input& input : calls.inputs) tested.insert(input.type);
  for (const Output& output : calls.filled) tested.insert(output.type);
  CHECK(tested == expected);
}

TEST_CASE("struct sizes: a field that an older program does not have has its default") {
  Calls calls;
  int all_shorter = 0;
  for (const Input& input : calls.inputs) {
    CAPTURE(std::string(input.type));
    std::vector<uint64_t> expected;
    std::vector<uint64_t> written;
    CHECK_SUCCEEDS(calls.run(input, input.resized(input.size()).data(), &expected));
    const bool ends_with_a_value = !input.defaultsBeyond(input.size() - 8);
    int shorter = 0;
    for (size_t size = input.size() - 8; size >= 8 && input.defaultsBeyond(size); size -= 8) {
      CAPTURE(size);
      CHECK_SUCCEEDS(calls.run(input, input.resized(size).data(), &written));
      CHECK(written == expected);
      ++shorter;
    }
    CHECK((shorter > 0 || ends_with_a_value || input.size() == 8));
    all_shorter += shorter;
  }
  CHECK(all_shorter > 60);
}

TEST_CASE("struct sizes: a field that only a newer program has must be zero") {
  constexpr size_t kMore = 24;
  Calls calls;
  for (const Input& input : calls.inputs) {
    CAPTURE(std::string(input.type));
    std::vector<uint64_t> expected;
    std::vector<uint64_t> written;
    CHECK_SUCCEEDS(calls.run(input, input.resized(input.size()).data(), &expected));
    const support::GuardedMemory newer = input.resized(input.size() + kMore);
    CHECK_SUCCEEDS(calls.run(input, newer.data(), &written));
    CHECK(written == expected);
    for (size_t n = 0; n < input.elements.size(); ++n) {
      for (const size_t more : {size_t{0}, kMore / 2 + 1, kMore - 1}) {
        std::byte& byte = newer.data()[n * (input.size() + kMore) + input.size() + more];
        byte = std::byte{1};
        const std::string message =
            input.name(n) + "byte " + std::to_string(input.size() + more) + " is set";
        CHECK_FAILS(calls.run(input, newer.data(), &written), RBC_STATUS_INVALID_ARGUMENT,
                    message.c_str());
        byte = std::byte{0};
      }
    }
  }
}

TEST_CASE("struct sizes: a size that cuts a field, or that no struct has, is refused") {
  Calls calls;
  for (const Input& input : calls.inputs) {
    CAPTURE(std::string(input.type));
    const auto known = static_cast<uint32_t>(input.size());
    for (const uint32_t size : {0u, 4u, known - 4, known - 1, known + 4, 65544u, 0xffffffffu}) {
      const support::GuardedMemory memory = input.resized(known);
      std::memcpy(memory.data(), &size, sizeof size);
      const std::string message = input.name(0) + "struct_size is " + std::to_string(size) +
                                  ", expected " + std::to_string(known);
      std::vector<uint64_t> written;
      CHECK_FAILS(calls.run(input, memory.data(), &written), RBC_STATUS_INVALID_ARGUMENT,
                  message.c_str());
    }
  }
}

TEST_CASE("struct sizes: the library fills a struct as far as the program knows it") {
  const Calls calls;
  for (const Output& output : calls.filled) {
    CAPTURE(std::string(output.type));
    Bytes complete(output.size);
    for (const size_t size : {output.size, output.size + 24, output.size - 8, size_t{8}}) {
      CAPTURE(size);
      const support::GuardedMemory memory(size, support::Flush::kEnd);
      std::memset(memory.data(), 0x5a, size);
      const auto struct_size = static_cast<uint32_t>(size);
      std::memcpy(memory.data(), &struct_size, sizeof struct_size);
      CHECK_SUCCEEDS(output.call(memory.data()));
      if (size == output.size) std::memcpy(complete.data(), memory.data(), size);
      CHECK(std::memcmp(memory.data(), &struct_size, sizeof struct_size) == 0);
      const size_t known = std::min(size, output.size);
      CHECK(std::memcmp(memory.data() + 4, complete.data() + 4, known - 4) == 0);
      for (size_t i = known; i < size; ++i) CHECK(memory.data()[i] == std::byte{0x5a});
    }
    const uint32_t none = 0;
    uint64_t memory = 0;
    std::memcpy(&memory, &none, sizeof none);
    CHECK_FAILS(output.call(&memory), RBC_STATUS_INVALID_ARGUMENT, "struct_size is 0");
  }
}
