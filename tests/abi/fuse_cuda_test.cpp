// rbcFuse on CUDA: one launch, capture and replay, streams, memory out of reach.
#include "support/expect.h"

#if RBC_WITH_CUDA

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "abi/cuda_support.h"
#include "abi/fuse_kinds.h"
#include "abi/malloc_counter.h"

namespace {

using cuda_support::beginCapture;
using cuda_support::Blocker;
using cuda_support::check;
using cuda_support::Graph;
using cuda_support::OnStream;
using cuda_support::Stream;
using fuse_kinds::Arrays;
using fuse_kinds::Call;
using support::Array;
using support::Context;
using support::Placed;

void checkSame(const Context& cuda, Call& call, const Arrays& arrays) {
  const Context cpu = support::cpuContext(1);
  const Call expected(cpu, arrays);
  support::require(expected.run(cpu));
  CHECK(call.fetch(cuda));
  CHECK((call.out.elements() == expected.out.elements()));
  CHECK((call.mask.elements() == expected.mask.elements()));
}

}  // namespace

TEST_CASE("fuse cuda: one kernel for any number of streams, captured without a workspace") {
  REQUIRE_CUDA();
  const Stream stream;
  CHECK_SUCCEEDS(rbcContextWarmUp(cuda.get()));
  for (const int count : {1, 2, 3, 8, 17, 33, RBC_FUSE_MAX_STREAMS}) {
    CAPTURE(count);
    Arrays arrays(count);
    Call call(cuda, arrays);
    CHECK(call.workspace(cuda) == 0);
    const OnStream on_stream(cuda, stream);
    beginCapture(stream);
    CHECK_SUCCEEDS(call.run(cuda));
    Graph graph(stream);
    CHECK(graph.isOneKernel());

    // The graph does not use the host's descriptors, and reads the data present when it runs.
    std::memset(static_cast<void*>(call.streams.data()), 0xA5,
                call.streams.size() * sizeof call.streams[0]);
    std::memset(static_cast<void*>(call.params.data()), 0xA5,
                call.params.size() * sizeof call.params[0]);
    for (int i = 0; i < 2; ++i) {
      graph.launch(stream);
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
    // The arrays are freed in the order of another stream, which does not wait for the last copy.
    check(cudaStreamSynchronize(stream.get()));
  }
}

TEST_CASE("fuse cuda: a call in steady state allocates nothing on the host") {
  REQUIRE_CUDA();
  for (const int count : {3, 8, 40}) {
    CAPTURE(count);
    const Arrays arrays(count);
    const Call call(cuda, arrays);
    for (int i = 0; i < 3; ++i) CHECK_SUCCEEDS(call.run(cuda));
    CHECK_ALLOCATES_NOTHING_ITSELF(call.run(cuda));
    check(cudaDeviceSynchronize());
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
  checked.fuse_params.flags = RBC_FLAG_CHECK_TIMES;
  CHECK_SUCCEEDS(rbcContextWarmUp(cuda.get()));
  {
    const OnStream on_stream(cuda, stream);
    beginCapture(stream);
    CHECK_FAILS(checked.run(cuda), RBC_STATUS_UNSUPPORTED, "flags: RBC_FLAG_CHECK_TIMES", "captur");
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

TEST_CASE("fuse cuda: a checked call reports bad data as the CPU does, and writes nothing") {
  REQUIRE_CUDA();
  const auto wrong = [&](const char* told, auto&& spoil) {
    Arrays arrays(4);
    spoil(arrays);
    const Context cpu = support::cpuContext(1);
    for (const Context* context : {&cpu, &cuda}) {
      Call call(*context, arrays);
      call.fuse_params.flags = RBC_FLAG_CHECK_TIMES;
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
  const rbcTensor mean_on_host = arrays.sensors[0].shift.tensor();

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
  refused("streams[0].shift:", [&] { call.params[0].shift = &mean_on_host; });
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
