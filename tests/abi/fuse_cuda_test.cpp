// What is CUDA's alone of rbcFuse: one launch, capture and replay, streams, memory out of reach.
#include "support/expect.h"

#if RBC_WITH_CUDA

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "abi/cuda_support.h"

namespace {

using cuda_support::Blocker;
using cuda_support::check;
using cuda_support::OnStream;
using cuda_support::Stream;
using support::Array;
using support::Context;
using support::Placed;

constexpr int64_t kBatch = 5;
constexpr int64_t kQueries = 33;

// How a stream differs from its neighbours.
struct Kind {
  rbcDType dtype;
  int64_t samples;
  int64_t channels;
  int32_t method;
  bool lengths;
  bool affine;
};
constexpr Kind kKinds[] = {{support::kF32, 40, 7, RBC_METHOD_LINEAR, false, true},
                           {support::kBF16, 100, 64, RBC_METHOD_LINEAR, true, false},
                           {support::kF16, 31, 8, RBC_METHOD_SLERP, false, false},
                           {support::kI32, 12, 1, RBC_METHOD_PREVIOUS, true, false},
                           {support::kF32, 55, 13, RBC_METHOD_PCHIP, false, true},
                           {support::kF64, 20, 3, RBC_METHOD_CUBIC, true, false},
                           {support::kF32, 77, 2, RBC_METHOD_ANGLE, false, false},
                           {support::kU8, 9, 2, RBC_METHOD_NEAREST, false, true}};

// The arrays of a call with any number of streams, in host memory.
struct Arrays {
  struct Sensor {
    const Kind* kind;
    Array values, times, lengths, mean, inv_std;
  };
  std::vector<Sensor> sensors;
  Array queries{support::kF64, {kBatch, kQueries}};
  int64_t channels = 0;

  explicit Arrays(int count) {
    support::Random random(static_cast<uint64_t>(count));
    const auto fill = [&](Array& array, double low, double high) {
      array.each([&](std::byte* p) {
        const uint64_t bits = support::encode(array.dtype(), random.uniform(low, high));
        std::memcpy(p, &bits, static_cast<size_t>(support::sizeOf(array.dtype())));
      });
    };
    for (int n = 0; n < count; ++n) {
      const Kind& kind = kKinds[static_cast<size_t>(n) % std::size(kKinds)];
      Sensor s{&kind,
               Array(kind.dtype, {kBatch, kind.samples, kind.channels}),
               Array(support::kF64, {kBatch, kind.samples}),
               Array(support::kI64, {kBatch}),
               Array(support::kF32, {kind.channels}),
               Array(support::kF64, {kind.channels})};
      fill(s.values, support::isFloat(kind.dtype) ? -2 : 0, 3);
      fill(s.lengths, 0, static_cast<double>(kind.samples));
      fill(s.mean, -1, 1);
      fill(s.inv_std, 0.5, 2);
      double time = 0;
      int64_t i = 0;
      s.times.each([&](std::byte* p) {
        time = i++ % kind.samples == 0 ? 0 : time + random.uniform(0.5, 1.5) / kind.samples;
        std::memcpy(p, &time, sizeof time);
      });
      channels += kind.channels;
      sensors.push_back(std::move(s));
    }
    fill(queries, -0.1, 1.1);
  }
};

// A call on them, where the context wants them.
struct Call {
  Array out, mask;
  std::vector<Placed> placed;
  std::vector<rbcResampleParams> params;
  std::vector<rbcFuseStream> streams;
  rbcFuseParams fuse_params = rbcFuseParamsInit();

  Call(const Context& context, const Arrays& arrays)
      : out(support::kF32, {kBatch, kQueries, arrays.channels}),
        mask(support::kBool, {kBatch, kQueries, static_cast<int64_t>(arrays.sensors.size())}) {
    const bool cuda = support::infoOf(context).backend == RBC_BACKEND_CUDA;
    const size_t count = arrays.sensors.size();
    placed.reserve(5 * count + 3);  // streams point into it
    params.reserve(count);
    const auto place = [&](const Array& array) {
      placed.emplace_back(context, array, cuda);
      return placed.back().get();
    };
    queries_ = place(arrays.queries);
    out_ = place(out);
    mask_ = place(mask);
    for (const Arrays::Sensor& sensor : arrays.sensors) {
      params.push_back(rbcResampleParamsInit());
      rbcResampleParams& p = params.back();
      p.method = sensor.kind->method;
      p.max_gap = 1.2 / static_cast<double>(sensor.kind->samples);  // some are longer
      p.fill_value = -7;
      if (sensor.kind->lengths) p.lengths = place(sensor.lengths);
      if (sensor.kind->affine) {
        p.mean = place(sensor.mean);
        p.inv_std = place(sensor.inv_std);
      }
      rbcFuseStream stream = rbcFuseStreamInit();
      stream.values = place(sensor.values);
      stream.times = place(sensor.times);
      stream.params = &p;
      stream.clock_offset = 0.01 * static_cast<double>(streams.size() % 3);
      streams.push_back(stream);
    }
  }
  Call(const Call&) = delete;

  rbcStatus_t run(const Context& context) const {
    return rbcFuse(context.get(), streams.data(), static_cast<int32_t>(streams.size()), queries_,
                   out_, mask_, &fuse_params);
  }
  size_t workspace(const Context& context) const {
    size_t bytes = 99;
    support::require(rbcFuseWorkspaceSize(context.get(), streams.data(),
                                          static_cast<int32_t>(streams.size()), queries_, out_,
                                          mask_, &fuse_params, &bytes));
    return bytes;
  }
  // Brings the outputs back. False if something beside them was written.
  bool fetch(const Context& context) {
    return placed[1].fetch(context, out) && placed[2].fetch(context, mask);
  }
  void* queryData() const { return queries_->data; }

 private:
  const rbcTensor* queries_;
  const rbcTensor* out_;
  const rbcTensor* mask_;
};

void checkSame(const Context& cuda, Call& call, const Arrays& arrays) {
  const Context cpu = support::cpuContext(1);
  const Call expected(cpu, arrays);
  support::require(expected.run(cpu));
  CHECK(call.fetch(cuda));
  CHECK((call.out.elements() == expected.out.elements()));
  CHECK((call.mask.elements() == expected.mask.elements()));
}

}  // namespace

TEST_CASE("fuse cuda: one kernel whatever the number of streams, captured without any workspace") {
  REQUIRE_CUDA();
  const Stream stream;
  CHECK_SUCCEEDS(rbcContextWarmUp(cuda.get()));
  for (const int count : {1, 2, 3, 8, 17, 33, RBC_FUSE_MAX_STREAMS}) {
    CAPTURE(count);
    Arrays arrays(count);
    Call call(cuda, arrays);
    CHECK(call.workspace(cuda) == 0);
    const OnStream on_stream(cuda, stream);
    check(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal));
    CHECK_SUCCEEDS(call.run(cuda));
    cudaGraph_t graph = nullptr;
    REQUIRE(cudaStreamEndCapture(stream.get(), &graph) == cudaSuccess);
    size_t nodes = 0;
    check(cudaGraphGetNodes(graph, nullptr, &nodes));
    REQUIRE(nodes == 1);
    cudaGraphNode_t node = nullptr;
    check(cudaGraphGetNodes(graph, &node, &nodes));
    cudaGraphNodeType type;
    check(cudaGraphNodeGetType(node, &type));
    CHECK(type == cudaGraphNodeTypeKernel);

    // The graph needs nothing of the host's descriptors, and reads the data that is there by then.
    std::memset(static_cast<void*>(call.streams.data()), 0xA5,
                call.streams.size() * sizeof call.streams[0]);
    std::memset(static_cast<void*>(call.params.data()), 0xA5,
                call.params.size() * sizeof call.params[0]);
    cudaGraphExec_t exec = nullptr;
    check(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    for (int i = 0; i < 2; ++i) {
      check(cudaGraphLaunch(exec, stream.get()));
      check(cudaStreamSynchronize(stream.get()));
      checkSame(cuda, call, arrays);
      arrays.queries.each([](std::byte* p) {
        double query;
        std::memcpy(&query, p, sizeof query);
        query = 1 - query;
        std::memcpy(p, &query, sizeof query);
      });
      check(cudaMemcpyAsync(call.queryData(), arrays.queries.memory().data(),
                            arrays.queries.memory().bytes(), cudaMemcpyHostToDevice, stream.get()));
    }
    check(cudaGraphExecDestroy(exec));
    check(cudaGraphDestroy(graph));
  }
}

TEST_CASE("fuse cuda: a call only enqueues, on the context's stream") {
  REQUIRE_CUDA();
  const Stream stream;
  const Arrays arrays(8);
  Call call(cuda, arrays);
  CHECK_SUCCEEDS(rbcContextWarmUp(cuda.get()));
  const OnStream on_stream(cuda, stream);
  Blocker blocker(stream.get());
  CHECK_SUCCEEDS(call.run(cuda));
  CHECK(cudaStreamQuery(stream.get()) == cudaErrorNotReady);
  blocker.open();
  CHECK_SUCCEEDS(rbcContextSynchronize(cuda.get()));
  CHECK_FALSE(blocker.timedOut());
  checkSame(cuda, call, arrays);
}

TEST_CASE("fuse cuda: a checked call cannot be captured, and the capture goes on") {
  REQUIRE_CUDA();
  const Stream stream;
  const Arrays arrays(3);
  const Call good(cuda, arrays);
  Call checked(cuda, arrays);
  checked.fuse_params.flags = RBC_CHECK_TIMES;
  CHECK_SUCCEEDS(rbcContextWarmUp(cuda.get()));
  {
    const OnStream on_stream(cuda, stream);
    check(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal));
    CHECK_FAILS(checked.run(cuda), RBC_STATUS_UNSUPPORTED, "flags: RBC_CHECK_TIMES", "captur");
    CHECK_SUCCEEDS(good.run(cuda));
    cudaGraph_t graph = nullptr;
    REQUIRE(cudaStreamEndCapture(stream.get(), &graph) == cudaSuccess);
    size_t nodes = 0;
    check(cudaGraphGetNodes(graph, nullptr, &nodes));
    CHECK(nodes == 1);
    check(cudaGraphDestroy(graph));
    CHECK_SUCCEEDS(rbcContextReserve(cuda.get(), checked.workspace(cuda)));
    CHECK_SUCCEEDS(checked.run(cuda));
    CHECK_SUCCEEDS(rbcContextSynchronize(cuda.get()));
  }
  checkSame(cuda, checked, arrays);
}

TEST_CASE("fuse cuda: a checked call tells of bad data as the CPU does, and writes nothing") {
  REQUIRE_CUDA();
  const auto wrong = [&](const char* told, auto&& spoil) {
    Arrays arrays(4);
    spoil(arrays);
    const Context cpu = support::cpuContext(1);
    for (const Context* context : {&cpu, &cuda}) {
      Call call(*context, arrays);
      call.fuse_params.flags = RBC_CHECK_TIMES;
      CHECK_FAILS(call.run(*context), RBC_STATUS_INVALID_ARGUMENT, told);
      CHECK(call.fetch(*context));
      CHECK(call.out.untouched());
      CHECK(call.mask.untouched());
    }
  };
  const auto set = [](Array& array, std::initializer_list<int64_t> index, auto value) {
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    array.set(index, bits);
  };
  wrong("streams[2].times: row 4 is NaN at index 9", [&](Arrays& arrays) {
    set(arrays.sensors[2].times, {4, 9}, std::numeric_limits<double>::quiet_NaN());
  });
  wrong("streams[0].times: row 0 decreases at index 3", [&](Arrays& arrays) {
    set(arrays.sensors[0].times, {0, 3}, -1.0);
    set(arrays.sensors[2].times, {0, 1}, -1.0);
  });
  wrong("streams[3].lengths: row 1 is 13, expected 0 to 12",
        [&](Arrays& arrays) { set(arrays.sensors[3].lengths, {1}, int64_t{13}); });
  wrong("streams[1].lengths: row 0 is -1",
        [&](Arrays& arrays) { set(arrays.sensors[1].lengths, {0}, int64_t{-1}); });
}

TEST_CASE("fuse cuda: memory that the context cannot reach is refused, by its stream") {
  REQUIRE_CUDA();
  const Arrays arrays(3);
  Call call(cuda, arrays);
  const rbcTensor on_host = arrays.sensors[1].values.tensor();
  rbcTensor elsewhere = *call.streams[2].times;
  elsewhere.device.id = 63;
  const rbcTensor mean_on_host = arrays.sensors[0].mean.tensor();

  const rbcFuseStream streams[] = {call.streams[0], call.streams[1], call.streams[2]};
  const rbcResampleParams params = call.params[0];
  const auto refused = [&](const char* told, auto&& spoil) {
    spoil();
    CHECK_FAILS(call.run(cuda), RBC_STATUS_DEVICE_MISMATCH, told);
    std::copy(std::begin(streams), std::end(streams), call.streams.begin());
    call.params[0] = params;
  };
  refused("streams[1].values:", [&] { call.streams[1].values = &on_host; });
  refused("streams[2].times:", [&] { call.streams[2].times = &elsewhere; });
  refused("streams[0].mean:", [&] { call.params[0].mean = &mean_on_host; });
  CHECK_FAILS(call.run(support::cpuContext(1)), RBC_STATUS_DEVICE_MISMATCH, "device");
  CHECK_SUCCEEDS(call.run(cuda));
  checkSame(cuda, call, arrays);
}

TEST_CASE("fuse cuda: bad data unchecked touches nothing outside the tensors") {
  REQUIRE_CUDA();
  for (const int count : {1, 4, 8, 64}) {
    Arrays arrays(count);
    support::Random random(static_cast<uint64_t>(count) + 100);
    for (Arrays::Sensor& sensor : arrays.sensors) {
      for (Array* array : {&sensor.times, &sensor.lengths}) {
        array->each([&](std::byte* p) {
          const uint64_t bits = random.bits();
          std::memcpy(p, &bits, sizeof bits);
        });
      }
    }
    Call call(cuda, arrays);
    CHECK_SUCCEEDS(call.run(cuda));
    CHECK_SUCCEEDS(rbcContextSynchronize(cuda.get()));
    CHECK(call.fetch(cuda));
  }
}

#endif  // RBC_WITH_CUDA
