// Clouds on CUDA: capture and replay, streams, workspaces, bad data.
#include "support/expect.h"

#if RBC_WITH_CUDA

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <functional>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "abi/cuda_support.h"
#include "abi/malloc_counter.h"
#include "support/random.h"

namespace {

using cuda_support::beginCapture;
using cuda_support::Blocker;
using cuda_support::check;
using cuda_support::Graph;
using cuda_support::OnStream;
using cuda_support::Stream;
using support::Array;
using support::Context;
using support::kF16;
using support::kF32;
using support::kF64;
using support::kI32;
using support::kI64;
using support::kU16;
using support::kU8;
using support::Placed;
using support::Random;

enum class Operation { kUnproject, kFarthest, kTakeRows };

struct Kind {
  const char* name;
  Operation operation;
  rbcDType dtype;    // of depth, points or values
  int64_t clouds;    // images
  int64_t points;    // per cloud; rows of values
  int64_t count;     // points to choose, or the capacity of an image
  bool all_options;  // pose, colours, crop and pixels; packed, with starts and distances
};
constexpr Kind kKinds[] = {
    {"only depth", Operation::kUnproject, kF32, 3, 5000, 5000, false},
    {"depth, colours, pose, crop, small capacity", Operation::kUnproject, kU16, 2, 9000, 700, true},
    {"farthest of small clouds", Operation::kFarthest, kF32, 3, 500, 64, false},
    {"farthest of packed clouds", Operation::kFarthest, kF16, 2, 6000, 90, true},
    {"farthest of one cloud", Operation::kFarthest, kF64, 1, 9000, 70, false},
    {"farthest of a cloud beyond registers", Operation::kFarthest, kF32, 1, 400'000, 20, false},
    {"rows", Operation::kTakeRows, kF16, 3, 800, 300, false},
    {"rows of bytes", Operation::kTakeRows, kU8, 1, 800, 3000, true}};
constexpr int64_t kColumns = 100;  // of an image
constexpr int64_t kChannels = 3;

// The elements of an array in order.
void fill(Array& array, const std::function<double()>& next) {
  const rbcDType dtype = array.dtype();
  array.each([&](std::byte* p) {
    const double value = next();
    const uint64_t bits = dtype.code == RBC_DTYPE_FLOAT
                              ? support::encodeFloat(dtype, static_cast<long double>(value))
                              : static_cast<uint64_t>(static_cast<int64_t>(value));
    std::memcpy(p, &bits, static_cast<size_t>(support::sizeOf(dtype)));
  });
}

// The inputs of a kind, in the order of Call. Other seeds give other numbers with the same shapes.
std::deque<Array> inputsOf(const Kind& kind, uint64_t seed) {
  Random random(seed);
  std::deque<Array> inputs;
  const auto add = [&](rbcDType dtype, std::vector<int64_t> shape, const auto& next) {
    inputs.emplace_back(dtype, std::move(shape));
    fill(inputs.back(), next);
  };
  switch (kind.operation) {
    case Operation::kUnproject: {
      const int64_t rows = kind.points / kColumns;
      const double units = support::same(kind.dtype, kU16) ? 1000 : 1;
      add(kind.dtype, {kind.clouds, rows, kColumns},
          [&] { return random.chance(0.2) ? 0 : units * random.uniform(0.4, 4); });
      add(kF64, {kind.clouds, 4}, [&] { return random.uniform(40, 60); });
      if (!kind.all_options) break;
      add(kF32, {kind.clouds, 4, 4}, [&] { return random.uniform(-1, 1); });
      add(kU8, {kind.clouds, rows, kColumns, kChannels},
          [&] { return static_cast<double>(random.below(256)); });
      break;
    }
    case Operation::kFarthest:
      if (!kind.all_options) {
        add(kind.dtype, {kind.clouds, kind.points, 3}, [&] { return random.uniform(-5, 5); });
        break;
      }
      // Many ties, and some points that are not finite.
      add(kind.dtype, {kind.clouds * kind.points, 4}, [&] {
        return random.chance(0.01) ? std::numeric_limits<double>::quiet_NaN()
                                   : static_cast<double>(random.below(30));
      });
      add(kI32, {kind.clouds + 1},
          [&, next = int64_t{0}]() mutable { return static_cast<double>(next++ * kind.points); });
      add(kI64, {kind.clouds}, [&] { return static_cast<double>(random.below(kind.points)); });
      break;
    case Operation::kTakeRows:
      add(kind.dtype, {kind.clouds, kind.points, kChannels},
          [&] { return static_cast<double>(random.below(100)); });
      add(kind.all_options ? kI32 : kI64, {kind.clouds, kind.count},
          [&] { return static_cast<double>(random.below(kind.points + 1) - 1); });
      break;
  }
  return inputs;
}

std::vector<Array> outputsOf(const Kind& kind) {
  std::vector<Array> outputs;
  const int64_t clouds = kind.clouds;
  switch (kind.operation) {
    case Operation::kUnproject:
      outputs.emplace_back(
          kF32, std::vector<int64_t>{clouds, kind.count, 3 + (kind.all_options ? kChannels : 0)});
      outputs.emplace_back(kI64, std::vector<int64_t>{clouds});
      if (!kind.all_options) break;
      outputs.emplace_back(kI64, std::vector<int64_t>{clouds});
      outputs.emplace_back(kI32, std::vector<int64_t>{clouds, kind.count});
      break;
    case Operation::kFarthest:
      outputs.emplace_back(kI64, std::vector<int64_t>{clouds, kind.count});
      if (kind.all_options) outputs.emplace_back(kF32, std::vector<int64_t>{clouds, kind.count});
      break;
    case Operation::kTakeRows:
      outputs.emplace_back(kind.dtype, std::vector<int64_t>{clouds, kind.count, kChannels});
      break;
  }
  return outputs;
}

// A call whose tensors are in the context's memory, with guard zones around each of them.
class Call {
 public:
  Call(const Context& context, const std::deque<Array>& inputs, const Kind& kind)
      : kind_(kind), outputs_(outputsOf(kind)) {
    const bool cuda = support::infoOf(context).backend == RBC_BACKEND_CUDA;
    for (const Array& array : inputs) inputs_.emplace_back(context, array, cuda);
    for (const Array& array : outputs_) placed_.emplace_back(context, array, cuda);
    unproject_.crop_max[0] = kind.all_options ? 2 : unproject_.crop_max[0];
    unproject_.crop_min[2] = kind.all_options ? -1 : unproject_.crop_min[2];
    unproject_.color_divisor = 255;
    take_.fill_value = 7;
    if (kind.operation == Operation::kFarthest && kind.all_options) {
      farthest_.batch_offsets = inputs_[1].get();
      farthest_.start_indices = inputs_[2].get();
    }
  }
  Call(const Call&) = delete;

  rbcStatus_t run(const Context& context) const {
    rbcContext_t c = context.get();
    switch (kind_.operation) {
      case Operation::kUnproject:
        return rbcUnproject(c, in(0), in(1), in(2), in(3), out(0), out(1), out(2), out(3),
                            &unproject_);
      case Operation::kFarthest: return rbcFarthestPoints(c, in(0), out(0), out(1), &farthest_);
      case Operation::kTakeRows: return rbcTakeRows(c, in(0), in(1), out(0), &take_);
    }
    return RBC_STATUS_INTERNAL;
  }
  size_t workspace(const Context& context) const {
    rbcContext_t c = context.get();
    size_t bytes = std::numeric_limits<size_t>::max();
    switch (kind_.operation) {
      case Operation::kUnproject:
        support::require(rbcUnprojectWorkspaceSize(c, in(0), in(1), in(2), in(3), out(0), out(1),
                                                   out(2), out(3), &unproject_, &bytes));
        break;
      case Operation::kFarthest:
        support::require(
            rbcFarthestPointsWorkspaceSize(c, in(0), out(0), out(1), &farthest_, &bytes));
        break;
      case Operation::kTakeRows:
        support::require(rbcTakeRowsWorkspaceSize(c, in(0), in(1), out(0), &take_, &bytes));
        break;
    }
    return bytes;
  }

  // Overwrites the inputs with other numbers.
  void upload(const std::deque<Array>& inputs, const Stream& stream) const {
    for (size_t i = 0; i < inputs.size(); ++i) {
      cuda_support::upload(inputs[i], inputs_[i].get(), stream);
    }
  }
  void poisonOutputs(const Stream& stream) const {
    for (size_t i = 0; i < outputs_.size(); ++i) {
      check(cudaMemsetAsync(placed_[i].get()->data, support::kPoison, outputs_[i].memory().bytes(),
                            stream.get()));
    }
  }
  // Copies the outputs back. Returns false if memory around them was written.
  bool fetch(const Context& context) {
    bool clean = true;
    for (size_t i = 0; i < outputs_.size(); ++i) clean &= placed_[i].fetch(context, outputs_[i]);
    return clean;
  }
  std::vector<std::vector<uint64_t>> results() const {
    std::vector<std::vector<uint64_t>> all;
    for (const Array& output : outputs_) all.push_back(output.elements());
    return all;
  }

 private:
  const rbcTensor* in(size_t i) const { return i < inputs_.size() ? inputs_[i].get() : nullptr; }
  const rbcTensor* out(size_t i) const { return i < placed_.size() ? placed_[i].get() : nullptr; }

  Kind kind_;
  std::deque<Placed> inputs_;
  std::vector<Array> outputs_;
  std::deque<Placed> placed_;
  rbcUnprojectParams unproject_ = rbcUnprojectParamsInit();
  rbcFarthestPointsParams farthest_ = rbcFarthestPointsParamsInit();
  rbcTakeRowsParams take_ = rbcTakeRowsParamsInit();
};

const Context& cpu() {
  static const Context made = support::cpuContext(2);
  return made;
}

void checkSame(const Context& cuda, Call& call, const std::deque<Array>& inputs, const Kind& kind) {
  const Call expected(cpu(), inputs, kind);
  support::require(expected.run(cpu()));
  CHECK(call.fetch(cuda));
  CHECK((call.results() == expected.results()));
}

}  // namespace

TEST_CASE("clouds cuda: captured once the workspace is reserved, and replayed on other inputs") {
  REQUIRE_CUDA();
  const Stream stream;
  CHECK_SUCCEEDS(rbcContextWarmUp(cuda.get()));
  for (const Kind& kind : kKinds) {
    CAPTURE(std::string(kind.name));
    const std::deque<Array> first = inputsOf(kind, 1);
    const std::deque<Array> second = inputsOf(kind, 2);
    Call call(cuda, first, kind);
    CHECK_SUCCEEDS(rbcContextReserve(cuda.get(), call.workspace(cuda)));
    CHECK_SUCCEEDS(rbcContextSynchronize(cuda.get()));
    const OnStream on_stream(cuda, stream);
    beginCapture(stream);
    CHECK_SUCCEEDS(call.run(cuda));
    Graph graph(stream);
    CHECK(graph.nodes() > 0);
    CHECK(graph.waitsForNoHost());
    if (kind.operation == Operation::kTakeRows) CHECK(graph.nodes() == 1);
    for (const std::deque<Array>* inputs : {&first, &second, &first}) {
      call.upload(*inputs, stream);
      call.poisonOutputs(stream);
      graph.launch(stream);
      check(cudaStreamSynchronize(stream.get()));
      checkSame(cuda, call, *inputs, kind);
    }
  }
}

TEST_CASE("clouds cuda: without its workspace a call cannot be captured, and still works later") {
  REQUIRE_CUDA();
  const Stream stream;
  int needy = 0;
  for (const Kind& kind : kKinds) {
    CAPTURE(std::string(kind.name));
    const Context fresh = support::cudaContext();
    const std::deque<Array> inputs = inputsOf(kind, 1);
    Call call(fresh, inputs, kind);
    if (call.workspace(fresh) == 0) continue;
    ++needy;
    const auto before = call.results();
    const OnStream on_stream(fresh, stream);
    beginCapture(stream);
    CHECK_FAILS(call.run(fresh), RBC_STATUS_WORKSPACE_TOO_SMALL, "workspace:", "captured",
                "rbcContextReserve");
    CHECK(Graph(stream).nodes() == 0);
    CHECK(call.fetch(fresh));
    CHECK((call.results() == before));
    CHECK_SUCCEEDS(call.run(fresh));
    checkSame(fresh, call, inputs, kind);
  }
  CHECK(needy > 0);
}

TEST_CASE("clouds cuda: a call only enqueues, on the context's stream") {
  REQUIRE_CUDA();
  const Stream stream;
  CHECK_SUCCEEDS(rbcContextWarmUp(cuda.get()));
  for (const Kind& kind : kKinds) {
    CAPTURE(std::string(kind.name));
    const std::deque<Array> inputs = inputsOf(kind, 3);
    Call call(cuda, inputs, kind);
    CHECK_SUCCEEDS(rbcContextReserve(cuda.get(), call.workspace(cuda)));
    check(cudaDeviceSynchronize());
    const OnStream on_stream(cuda, stream);
    Blocker blocker(stream.get());
    CHECK_SUCCEEDS(call.run(cuda));
    CHECK(cudaStreamQuery(stream.get()) == cudaErrorNotReady);
    blocker.open();
    CHECK_SUCCEEDS(rbcContextSynchronize(cuda.get()));
    CHECK_FALSE(blocker.timedOut());
    checkSame(cuda, call, inputs, kind);
  }
}

TEST_CASE("clouds cuda: calls on two streams share the workspace in turn") {
  REQUIRE_CUDA();
  const Stream a;
  const Stream b;
  CHECK_SUCCEEDS(rbcContextWarmUp(cuda.get()));
  for (size_t i = 0; i + 1 < std::size(kKinds); ++i) {
    const Kind& first = kKinds[i];
    const Kind& second = kKinds[i + 1];
    CAPTURE(std::string(first.name));
    CAPTURE(std::string(second.name));
    const std::deque<Array> first_in = inputsOf(first, 4);
    const std::deque<Array> second_in = inputsOf(second, 5);
    Call one(cuda, first_in, first);
    Call two(cuda, second_in, second);
    CHECK_SUCCEEDS(
        rbcContextReserve(cuda.get(), std::max(one.workspace(cuda), two.workspace(cuda))));
    check(cudaDeviceSynchronize());
    {
      const OnStream on_stream(cuda, a);
      Blocker blocker(a.get());
      CHECK_SUCCEEDS(one.run(cuda));
      support::require(rbcContextSetCudaStream(cuda.get(), b.get()));
      CHECK_SUCCEEDS(two.run(cuda));
      blocker.open();
      check(cudaStreamSynchronize(a.get()));
      check(cudaStreamSynchronize(b.get()));
      CHECK_FALSE(blocker.timedOut());
    }
    checkSame(cuda, one, first_in, first);
    checkSame(cuda, two, second_in, second);
  }
}

TEST_CASE("clouds cuda: a call in steady state allocates nothing on the host") {
  REQUIRE_CUDA();
  for (const Kind& kind : kKinds) {
    CAPTURE(std::string(kind.name));
    const std::deque<Array> inputs = inputsOf(kind, 6);
    Call call(cuda, inputs, kind);
    for (int i = 0; i < 3; ++i) CHECK_SUCCEEDS(call.run(cuda));
    CHECK_ALLOCATES_NOTHING_ITSELF(call.run(cuda));
    checkSame(cuda, call, inputs, kind);
  }
}

TEST_CASE("clouds cuda: inputs of any bits touch nothing outside the tensors") {
  REQUIRE_CUDA();
  Random random(7);
  for (const Kind& kind : kKinds) {
    CAPTURE(std::string(kind.name));
    for (int i = 0; i < 5; ++i) {
      std::deque<Array> inputs = inputsOf(kind, 8);
      // For the first input the numbers; for the others offsets, starts, indices, cameras.
      for (Array& array : inputs) {
        const auto size = static_cast<size_t>(support::sizeOf(array.dtype()));
        array.each([&](std::byte* p) {
          const uint64_t bits = random.bits();
          std::memcpy(p, &bits, size);
        });
      }
      Call call(cuda, inputs, kind);
      CHECK_SUCCEEDS(call.run(cuda));
      CHECK_SUCCEEDS(rbcContextSynchronize(cuda.get()));
      CHECK(call.fetch(cuda));
    }
  }
}

TEST_CASE("clouds cuda: farthest points of overlapping clouds terminate, and touch nothing else") {
  REQUIRE_CUDA();
  // Wrong offsets: two large clouds share rows. The larger one has finite points only in the rows
  // of the other one, so it overwrites the other one's data in the workspace. Their results are
  // unspecified.
  constexpr int64_t kRows = 100'000;
  constexpr int64_t kBegin = 50'000;
  constexpr int64_t kEnd = 65'000;
  constexpr int64_t kClouds = 100;
  constexpr int64_t kCount = 12'000;
  Array points(kF32, {kRows, 3});
  Random random(9);
  fill(points, [&, element = int64_t{0}]() mutable {
    const int64_t row = element++ / 3;
    return row >= kBegin && row < kEnd ? random.uniform(-1, 1)
                                       : std::numeric_limits<double>::quiet_NaN();
  });
  for (const int64_t small : {int64_t{0}, int64_t{2}}) {  // before the larger one and after it
    CAPTURE(small);
    Array offsets(kI64, {kClouds + 1});
    fill(offsets, [&, i = int64_t{0}]() mutable {
      const int64_t at = i++;
      const int64_t large = small == 0 ? 2 : 0;
      if (at == small) return double{kBegin};
      if (at == small + 1) return double{kEnd};
      if (at == large) return 0.0;
      return at < large ? double{0} : double{kRows};
    });
    Array indices(kI64, {kClouds, kCount});
    const Placed on_points(cuda, points, true);
    const Placed on_offsets(cuda, offsets, true);
    Placed on_indices(cuda, indices, true);
    rbcFarthestPointsParams params = rbcFarthestPointsParamsInit();
    params.batch_offsets = on_offsets.get();
    CHECK_SUCCEEDS(
        rbcFarthestPoints(cuda.get(), on_points.get(), on_indices.get(), nullptr, &params));
    CHECK_SUCCEEDS(rbcContextSynchronize(cuda.get()));
    CHECK(on_indices.fetch(cuda, indices));
  }
}

#endif  // RBC_WITH_CUDA
