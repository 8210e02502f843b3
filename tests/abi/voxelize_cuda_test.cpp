// Voxelization on CUDA: capture and replay, streams, memory out of reach.
#include "support/expect.h"

#if RBC_WITH_CUDA

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "abi/cuda_support.h"
#include "abi/malloc_counter.h"
#include "abi/voxelize_kinds.h"

namespace {

using cuda_support::beginCapture;
using cuda_support::Blocker;
using cuda_support::check;
using cuda_support::Graph;
using cuda_support::OnStream;
using cuda_support::Stream;
using cuda_support::upload;
using support::Array;
using support::Context;
using support::Placed;
using voxelize_kinds::Call;
using voxelize_kinds::Inputs;
using voxelize_kinds::Kind;
using voxelize_kinds::kKinds;

const Context& cpu() {
  static const Context made = support::cpuContext(2);
  return made;
}

void checkSame(const Context& cuda, Call& call, const Inputs& in, const Kind& kind) {
  const Call expected(cpu(), in, kind);
  support::require(expected.run(cpu()));
  CHECK(call.fetch(cuda));
  CHECK((call.results() == expected.results()));
}

}  // namespace

TEST_CASE("voxelize cuda: the same bits as on the CPU") {
  REQUIRE_CUDA();
  for (const Kind& kind : kKinds) {
    CAPTURE(std::string(kind.name));
    const Inputs in(kind);
    Call call(cuda, in, kind);
    CHECK_SUCCEEDS(call.run(cuda));
    checkSame(cuda, call, in, kind);
  }
}

TEST_CASE("voxelize cuda: captured once the workspace is reserved, and replayed on other points") {
  REQUIRE_CUDA();
  const Stream stream;
  CHECK_SUCCEEDS(rbcContextWarmUp(cuda.get()));
  for (const Kind& kind : kKinds) {
    CAPTURE(std::string(kind.name));
    const Inputs first(kind, 1);
    const Inputs second(kind, 2);
    const Call untouched(cpu(), first, kind);
    Call call(cuda, first, kind);
    CHECK_SUCCEEDS(rbcContextReserve(cuda.get(), call.workspace(cuda)));
    CHECK_SUCCEEDS(rbcContextSynchronize(cuda.get()));
    const OnStream on_stream(cuda, stream);
    beginCapture(stream);
    CHECK_SUCCEEDS(call.run(cuda));
    Graph graph(stream);
    CHECK(graph.nodes() > 0);
    CHECK(graph.waitsForNoHost());
    for (const Inputs* in : {&first, &second, &first}) {
      upload(in->points, call.placedPoints(), stream);
      upload(in->sensors, call.placedSensors(), stream);
      for (size_t i = 0; i < untouched.outputs().size(); ++i) {
        upload(untouched.outputs()[i], call.placedOutput(i), stream);
      }
      graph.launch(stream);
      check(cudaStreamSynchronize(stream.get()));
      Inputs used(kind, in == &second ? 2 : 1);
      used.features = Inputs(kind, 1).features;  // these do not change
      checkSame(cuda, call, used, kind);
    }
  }
}

TEST_CASE("voxelize cuda: without its workspace a call cannot be captured, and still works later") {
  REQUIRE_CUDA();
  const Stream stream;
  int needy = 0;
  for (const Kind& kind : kKinds) {
    CAPTURE(std::string(kind.name));
    const Context fresh = support::cudaContext();
    const Inputs in(kind);
    Call call(fresh, in, kind);
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
    checkSame(fresh, call, in, kind);
  }
  CHECK(needy > 0);
}

TEST_CASE("voxelize cuda: an error from another stream's capture does not affect later calls") {
  REQUIRE_CUDA();
  cudaStream_t blocking = nullptr;  // with the legacy stream, which the context is on
  check(cudaStreamCreate(&blocking));
  check(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeGlobal));
  CHECK_FAILS(rbcContextSynchronize(cuda.get()), RBC_STATUS_UNSUPPORTED, "stream:", "captured");
  cudaGraph_t graph = nullptr;
  cudaStreamEndCapture(blocking, &graph);
  cudaGetLastError();
  if (graph != nullptr) check(cudaGraphDestroy(graph));
  check(cudaStreamDestroy(blocking));
  for (const Kind& kind : kKinds) {
    CAPTURE(std::string(kind.name));
    const Inputs in(kind);
    Call call(cuda, in, kind);
    CHECK_SUCCEEDS(call.run(cuda));
    checkSame(cuda, call, in, kind);
  }
}

TEST_CASE("voxelize cuda: a call only enqueues, also the number of sparse voxels") {
  REQUIRE_CUDA();
  const Stream stream;
  CHECK_SUCCEEDS(rbcContextWarmUp(cuda.get()));
  for (const Kind& kind : kKinds) {
    CAPTURE(std::string(kind.name));
    const Inputs in(kind);
    Call call(cuda, in, kind);
    CHECK_SUCCEEDS(rbcContextReserve(cuda.get(), call.workspace(cuda)));
    CHECK_SUCCEEDS(rbcContextSynchronize(cuda.get()));
    const OnStream on_stream(cuda, stream);
    Blocker blocker(stream.get());
    CHECK_SUCCEEDS(call.run(cuda));
    CHECK(cudaStreamQuery(stream.get()) == cudaErrorNotReady);
    blocker.open();
    CHECK_SUCCEEDS(rbcContextSynchronize(cuda.get()));
    CHECK_FALSE(blocker.timedOut());
    checkSame(cuda, call, in, kind);
  }
}

TEST_CASE(
    "voxelize cuda: calls on two streams share the workspace in turn, without the host waiting") {
  REQUIRE_CUDA();
  const Stream a;
  const Stream b;
  CHECK_SUCCEEDS(rbcContextWarmUp(cuda.get()));
  for (size_t i = 0; i + 1 < std::size(kKinds); ++i) {
    const Kind& first = kKinds[i];
    const Kind& second = kKinds[i + 1];
    CAPTURE(std::string(first.name));
    CAPTURE(std::string(second.name));
    const Inputs first_in(first);
    const Inputs second_in(second);
    Call one(cuda, first_in, first);
    Call two(cuda, second_in, second);
    const size_t bytes[] = {one.workspace(cuda), two.workspace(cuda)};
    CHECK_SUCCEEDS(rbcContextReserve(cuda.get(), std::max(bytes[0], bytes[1])));
    CHECK_SUCCEEDS(rbcContextSynchronize(cuda.get()));
    {
      const OnStream on_a(cuda, a);
      Blocker blocker(a.get());
      CHECK_SUCCEEDS(one.run(cuda));
      const OnStream on_b(cuda, b);
      CHECK_SUCCEEDS(two.run(cuda));
      if (bytes[0] > 0 && bytes[1] > 0) CHECK(cudaStreamQuery(b.get()) == cudaErrorNotReady);
      blocker.open();
      check(cudaStreamSynchronize(a.get()));
      check(cudaStreamSynchronize(b.get()));
      CHECK_FALSE(blocker.timedOut());
    }
    checkSame(cuda, one, first_in, first);
    checkSame(cuda, two, second_in, second);
  }
}

TEST_CASE("voxelize cuda: a context changes streams during a capture, into it and out of it") {
  REQUIRE_CUDA();
  const Stream a;
  const Stream b;
  const Stream outside;
  cudaEvent_t fork = nullptr;
  cudaEvent_t join = nullptr;
  check(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  check(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
  CHECK_SUCCEEDS(rbcContextWarmUp(cuda.get()));
  for (const Kind& kind : kKinds) {
    CAPTURE(std::string(kind.name));
    const Inputs in(kind);
    Call one(cuda, in, kind);
    Call two(cuda, in, kind);
    Call eager(cuda, in, kind);
    CHECK_SUCCEEDS(rbcContextReserve(cuda.get(), one.workspace(cuda)));
    CHECK_SUCCEEDS(rbcContextSynchronize(cuda.get()));
    const OnStream on_a(cuda, a);
    check(cudaStreamBeginCapture(a.get(), cudaStreamCaptureModeRelaxed));
    check(cudaEventRecord(fork, a.get()));
    check(cudaStreamWaitEvent(b.get(), fork, 0));
    CHECK_SUCCEEDS(one.run(cuda));
    {
      const OnStream on_outside(cuda, outside);
      CHECK_SUCCEEDS(eager.run(cuda));
      CHECK_SUCCEEDS(rbcContextSynchronize(cuda.get()));
      support::require(rbcContextSetCudaStream(cuda.get(), b.get()));
      CHECK_SUCCEEDS(two.run(cuda));
    }
    check(cudaEventRecord(join, b.get()));
    check(cudaStreamWaitEvent(a.get(), join, 0));
    Graph graph(a);
    CHECK(graph.waitsForNoHost());
    // If both use the workspace, no nodes of the two calls may run concurrently.
    if (one.workspace(cuda) > 0) CHECK(graph.roots() == 1);
    graph.launch(a);
    check(cudaStreamSynchronize(a.get()));
    for (Call* call : {&one, &two, &eager}) checkSame(cuda, *call, in, kind);
  }
  check(cudaEventDestroy(fork));
  check(cudaEventDestroy(join));
}

// A captured call does not run, so its stream has not waited for earlier work.
TEST_CASE(
    "voxelize cuda: a context that leaves a stream after a capture waits for what ran before") {
  REQUIRE_CUDA();
  const Stream busy;
  const Stream captured;
  const Stream last;
  CHECK_SUCCEEDS(rbcContextWarmUp(cuda.get()));
  const Kind& kind = kKinds[5];
  const Inputs in(kind);
  Call before(cuda, in, kind);
  Call in_graph(cuda, in, kind);
  Call after(cuda, in, kind);
  REQUIRE(before.workspace(cuda) > 0);
  CHECK_SUCCEEDS(rbcContextReserve(cuda.get(), before.workspace(cuda)));
  CHECK_SUCCEEDS(rbcContextSynchronize(cuda.get()));
  const OnStream on_busy(cuda, busy);
  Blocker blocker(busy.get());
  CHECK_SUCCEEDS(before.run(cuda));
  support::require(rbcContextSetCudaStream(cuda.get(), captured.get()));
  beginCapture(captured);
  CHECK_SUCCEEDS(in_graph.run(cuda));
  Graph graph(captured);
  support::require(rbcContextSetCudaStream(cuda.get(), last.get()));
  CHECK_SUCCEEDS(after.run(cuda));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  CHECK(cudaStreamQuery(last.get()) == cudaErrorNotReady);
  blocker.open();
  check(cudaStreamSynchronize(last.get()));
  CHECK_FALSE(blocker.timedOut());
  graph.launch(last);
  check(cudaStreamSynchronize(last.get()));
  for (Call* call : {&before, &in_graph, &after}) checkSame(cuda, *call, in, kind);
}

TEST_CASE("voxelize cuda: a caller's allocator serves the workspace, and no call allocates after") {
  REQUIRE_CUDA();
  struct Ledger {
    int allocations = 0;
    int held = 0;
  } ledger;
  rbcContextParams params = rbcContextParamsInit();
  params.backend = RBC_BACKEND_CUDA;
  params.allocator.user_data = &ledger;
  params.allocator.alloc = [](void* user, size_t bytes, size_t, void*) -> void* {
    void* pointer = nullptr;
    if (cudaMalloc(&pointer, bytes) != cudaSuccess) return nullptr;
    ++static_cast<Ledger*>(user)->allocations;
    ++static_cast<Ledger*>(user)->held;
    return pointer;
  };
  params.allocator.free = [](void* user, void* pointer, size_t, void*) {
    --static_cast<Ledger*>(user)->held;
    cudaFree(pointer);
  };
  for (const Kind& kind : kKinds) {
    CAPTURE(std::string(kind.name));
    const Context context = support::makeContext(params);
    const Inputs in(kind);
    Call call(context, in, kind);
    CHECK_SUCCEEDS(rbcContextReserve(context.get(), call.workspace(context)));
    const int reserved = ledger.allocations;
    CHECK_SUCCEEDS(call.run(context));
    CHECK(ledger.allocations == reserved);
    checkSame(context, call, in, kind);
    // A distance field adds to the volume: the following results do not matter.
    CHECK_ALLOCATES_NOTHING_ITSELF(call.run(context));
    CHECK(ledger.allocations == reserved);
  }
  CHECK(ledger.held == 0);
}

TEST_CASE("voxelize cuda: memory of cudaMalloc, and memory out of reach") {
  REQUIRE_CUDA();
  // Points, counts, coords, num_voxels in one allocation.
  const float points[] = {0.5f, 0.5f, 0.5f, 1.5f, 0.5f, 0.5f, 1.25f, 0.5f, 0.5f, 7, 0, 0};
  void* allocated = nullptr;
  check(cudaMalloc(&allocated, 1024));
  auto* const memory = static_cast<std::byte*>(allocated);
  check(cudaMemcpy(memory, points, sizeof points, cudaMemcpyHostToDevice));
  const rbcDevice device = {RBC_DEVICE_CUDA, 0};
  int64_t points_shape[] = {4, 3};
  int64_t grid_shape[] = {2, 1, 1};
  int64_t coords_shape[] = {3, 4};
  const rbcTensor cloud = {memory, device, 2, support::kF32, points_shape, nullptr, 0};
  const rbcTensor out = {memory + 256, device, 3, support::kI32, grid_shape, nullptr, 0};
  const rbcTensor coords = {memory + 512, device, 2, support::kI32, coords_shape, nullptr, 0};
  const rbcTensor num_voxels = {memory + 768, device, 0, support::kI64, nullptr, nullptr, 0};
  rbcVoxelizeParams dense = rbcVoxelizeParamsInit();
  dense.reduction = RBC_REDUCE_COUNT;
  dense.grid = {{0, 0, 0}, {1, 1, 1}, {2, 1, 1}};
  rbcVoxelizeSparseParams sparse = rbcVoxelizeSparseParamsInit();
  sparse.grid = dense.grid;
  rbcVoxelizeSparseOutputs voxels = rbcVoxelizeSparseOutputsInit();
  voxels.coords = &coords;
  voxels.num_voxels = &num_voxels;

  // The same descriptor for memory of the host, and of another device.
  rbcTensor on_host = cloud;
  on_host.data = const_cast<float*>(points);
  on_host.device = {RBC_DEVICE_CPU, 0};
  rbcTensor elsewhere = out;
  elsewhere.device.id = 63;
  rbcTensor counted_elsewhere = num_voxels;
  counted_elsewhere.device.type = RBC_DEVICE_CPU;
  constexpr auto kStatus = RBC_STATUS_DEVICE_MISMATCH;
  CHECK_FAILS(rbcVoxelize(cuda.get(), &on_host, nullptr, &out, nullptr, &dense), kStatus,
              "points: lives on device (type 1, id 0), expected CUDA (type 2, id 0)");
  CHECK_FAILS(rbcVoxelize(cuda.get(), &cloud, nullptr, &elsewhere, nullptr, &dense), kStatus,
              "out: lives on device (type 2, id 63)");
  CHECK_FAILS(rbcVoxelizeSparse(cuda.get(), &cloud, &on_host, &voxels, &sparse), kStatus,
              "features: lives on device (type 1, id 0)");
  voxels.num_voxels = &counted_elsewhere;
  CHECK_FAILS(rbcVoxelizeSparse(cuda.get(), &cloud, nullptr, &voxels, &sparse), kStatus,
              "num_voxels: lives on device (type 1, id 0)");
  voxels.num_voxels = &num_voxels;
  CHECK_FAILS(rbcVoxelize(cpu().get(), &cloud, nullptr, &out, nullptr, &dense), kStatus,
              "out: lives on device (type 2, id 0), expected the CPU");

  CHECK_SUCCEEDS(rbcVoxelize(cuda.get(), &cloud, nullptr, &out, nullptr, &dense));
  CHECK_SUCCEEDS(rbcVoxelizeSparse(cuda.get(), &cloud, nullptr, &voxels, &sparse));
  CHECK_SUCCEEDS(rbcContextSynchronize(cuda.get()));
  int32_t counts[2] = {};
  int32_t places[12] = {};
  int64_t found = 0;
  check(cudaMemcpy(counts, out.data, sizeof counts, cudaMemcpyDeviceToHost));
  check(cudaMemcpy(places, coords.data, sizeof places, cudaMemcpyDeviceToHost));
  check(cudaMemcpy(&found, num_voxels.data, sizeof found, cudaMemcpyDeviceToHost));
  CHECK(counts[0] == 1);
  CHECK(counts[1] == 2);
  CHECK(found == 2);
  const int32_t expected[] = {0, 0, 0, 0, 0, 1, 0, 0, -1, -1, -1, -1};
  for (int i = 0; i < 12; ++i) CHECK(places[i] == expected[i]);
  check(cudaFree(allocated));
}

TEST_CASE("voxelize cuda: lengths and offsets out of range touch nothing outside the tensors") {
  REQUIRE_CUDA();
  support::Random random(41);
  for (const Kind& kind : kKinds) {
    CAPTURE(std::string(kind.name));
    for (int i = 0; i < 5; ++i) {
      Inputs in(kind);
      for (Array* array : {&in.lengths, &in.offsets}) {
        const auto size = static_cast<size_t>(support::sizeOf(array->dtype()));
        array->each([&](std::byte* p) {
          const uint64_t bits = random.bits();
          std::memcpy(p, &bits, size);
        });
      }
      Call call(cuda, in, kind);
      CHECK_SUCCEEDS(call.run(cuda));
      CHECK_SUCCEEDS(rbcContextSynchronize(cuda.get()));
      CHECK(call.fetch(cuda));
    }
  }
}

#endif  // RBC_WITH_CUDA
