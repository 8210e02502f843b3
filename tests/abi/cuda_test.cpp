// CUDA: streams, capture, device memory, checks of data on the device.
#include "support/expect.h"

#if RBC_WITH_CUDA

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "abi/cuda_support.h"
#include "abi/malloc_counter.h"
#include "abi/voxelize_kinds.h"
#include "support/causal_cases.h"

namespace {

using cuda_support::Blocker;
using cuda_support::check;
using cuda_support::Stream;
using support::Array;
using support::Context;
using support::Placed;
using support::ResampleCase;
using support::ResampleInputs;

// A call whose tensors stay on the device.
struct DeviceCall {
  ResampleInputs in;
  Array out = in.makeOut();
  Array mask = in.makeMask();
  Placed values, times, query_times, lengths, query_lengths, offsets, sample_mask, arrivals;
  Placed placed_out, placed_mask;
  rbcResampleParams params;

  DeviceCall(const Context& context, const ResampleCase& c)
      : in(support::makeInputs(c)),
        values(context, in.values, true),
        times(context, in.times, true),
        query_times(context, in.query_times, true),
        lengths(context, in.lengths, true),
        query_lengths(context, in.query_lengths, true),
        offsets(context, in.offsets, true),
        sample_mask(context, in.sample_mask, true),
        arrivals(context, in.arrivals, true),
        placed_out(context, out, true),
        placed_mask(context, mask, true),
        params(support::paramsOf(c)) {
    if (c.lengths) params.lengths = lengths.get();
    if (c.query_lengths) params.query_lengths = query_lengths.get();
    if (c.packed) params.batch_offsets = offsets.get();
    if (c.missing != 0) params.sample_mask = sample_mask.get();
    if (c.arrivals) params.arrivals = arrivals.get();
  }
  DeviceCall(const DeviceCall&) = delete;

  rbcStatus_t run(const Context& context) const {
    return rbcResample(context.get(), values.get(), times.get(), query_times.get(),
                       placed_out.get(), in.c.mask ? placed_mask.get() : nullptr, &params);
  }
  size_t workspace(const Context& context) const {
    size_t bytes = 0;
    support::require(rbcResampleWorkspaceSize(
        context.get(), values.get(), times.get(), query_times.get(), placed_out.get(),
        in.c.mask ? placed_mask.get() : nullptr, &params, &bytes));
    return bytes;
  }
  std::string error(const Context& context) {
    if (!placed_out.fetch(context, out) || !placed_mask.fetch(context, mask))
      return "wrote outside its elements";
    return support::firstError(
        in, {out.elements(), in.c.mask ? mask.elements() : std::vector<uint64_t>{}});
  }
};

ResampleCase someCase(uint64_t seed) {
  ResampleCase c;
  c.name = "cuda";
  c.seed = seed;
  c.batch = 8;
  c.samples = 200;
  c.queries = 100;
  c.channels = 32;
  return c;
}

}  // namespace

TEST_CASE("cuda: info describes the device") {
  REQUIRE_CUDA();
  const rbcContextInfo info = support::infoOf(cuda);
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, 0));
  CHECK(info.backend == RBC_BACKEND_CUDA);
  CHECK(info.built_with_cuda == 1);
  CHECK(info.compute_capability == properties.major * 10 + properties.minor);
  CHECK(info.num_multiprocessors == properties.multiProcessorCount);
  CHECK(info.total_memory_bytes == properties.totalGlobalMem);
  CHECK(std::string(info.device_name) == properties.name);
  CHECK(info.num_threads == 0);
  CHECK(info.simd == 0);
}

TEST_CASE("cuda: info has the kernel of the last call") {
  REQUIRE_CUDA();
  const auto last = [&] { return std::string(support::infoOf(cuda).last_launch); };
  CHECK(last() == "");
  DeviceCall call(cuda, someCase(1));  // 32 channels of f32: whole rows
  CHECK_SUCCEEDS(call.run(cuda));
  CHECK_MESSAGE(last().rfind("resample: fuse_rows (line, 1 stream, 16 bytes), grid ", 0) == 0,
                last());
  CHECK_MESSAGE(last().find(" x 128, shared 0 bytes") != std::string::npos, last());
  CHECK_SUCCEEDS(rbcContextSynchronize(cuda.get()));
}

TEST_CASE("cuda: a call only enqueues, on the context's stream") {
  REQUIRE_CUDA();
  const Stream stream;
  DeviceCall call(cuda, someCase(1));
  CHECK_SUCCEEDS(rbcContextWarmUp(cuda.get()));
  CHECK_SUCCEEDS(rbcContextSetCudaStream(cuda.get(), stream.get()));
  void* got = nullptr;
  CHECK_SUCCEEDS(rbcContextGetCudaStream(cuda.get(), &got));
  CHECK(got == stream.get());
  Blocker blocker(stream.get());
  CHECK_SUCCEEDS(call.run(cuda));
  CHECK(cudaStreamQuery(stream.get()) == cudaErrorNotReady);
  blocker.open();
  CHECK_SUCCEEDS(rbcContextSynchronize(cuda.get()));
  CHECK_FALSE(blocker.timedOut());
  CHECK(cudaStreamQuery(stream.get()) == cudaSuccess);
  CHECK(call.error(cuda) == "");
  CHECK_SUCCEEDS(rbcContextSetCudaStream(cuda.get(), nullptr));
}

TEST_CASE("cuda: calls can be captured, one kernel each, and replayed") {
  REQUIRE_CUDA();
  const Stream stream;
  CHECK_SUCCEEDS(rbcContextWarmUp(cuda.get()));
  CHECK_SUCCEEDS(rbcContextSetCudaStream(cuda.get(), stream.get()));
  std::vector<std::unique_ptr<DeviceCall>> calls;
  for (const ResampleCase& c : support::resampleCases()) {
    if (!c.check_times && c.batch > 0 && c.queries > 0 && c.channels > 0 && calls.size() < 200) {
      calls.push_back(std::make_unique<DeviceCall>(cuda, c));
    }
  }
  cuda_support::beginCapture(stream);
  for (const auto& call : calls) CHECK_SUCCEEDS(call->run(cuda));
  cuda_support::Graph graph(stream);
  CHECK(graph.nodes() == calls.size());
  for (int i = 0; i < 2; ++i) graph.launch(stream);
  check(cudaStreamSynchronize(stream.get()));
  for (const auto& call : calls) {
    const std::string error = call->error(cuda);
    CHECK_MESSAGE(error == "", support::describe(call->in.c), ": ", error);
  }
  calls.clear();
  CHECK_SUCCEEDS(rbcContextSynchronize(cuda.get()));
  CHECK_SUCCEEDS(rbcContextSetCudaStream(cuda.get(), nullptr));
}

TEST_CASE("cuda: calls with arrivals can be captured once the workspace is reserved") {
  REQUIRE_CUDA();
  const Stream stream;
  std::vector<std::unique_ptr<DeviceCall>> calls;
  size_t bytes = 0;
  for (const ResampleCase& c : support::causalCases()) {
    const bool plain = c.batch > 0 && c.queries > 0 && c.channels > 0 && !c.shift && !c.scale;
    if (!plain || c.check_times || c.samples < 300 || calls.size() == 40) continue;
    calls.push_back(std::make_unique<DeviceCall>(cuda, c));
    bytes = std::max(bytes, calls.back()->workspace(cuda));
  }
  REQUIRE(bytes > 0);
  CHECK_SUCCEEDS(rbcContextWarmUp(cuda.get()));
  CHECK_SUCCEEDS(rbcContextSetCudaStream(cuda.get(), stream.get()));
  CHECK_SUCCEEDS(rbcContextReserve(cuda.get(), bytes));
  cuda_support::beginCapture(stream);
  for (const auto& call : calls) CHECK_SUCCEEDS(call->run(cuda));
  cuda_support::Graph graph(stream);
  for (int i = 0; i < 2; ++i) graph.launch(stream);
  check(cudaStreamSynchronize(stream.get()));
  for (const auto& call : calls) {
    const std::string error = call->error(cuda);
    CHECK_MESSAGE(error == "", support::describe(call->in.c), ": ", error);
  }
  calls.clear();
  CHECK_SUCCEEDS(rbcContextSynchronize(cuda.get()));
  CHECK_SUCCEEDS(rbcContextSetCudaStream(cuda.get(), nullptr));
}

TEST_CASE("cuda: a call that cannot be captured fails, and the capture continues") {
  REQUIRE_CUDA();
  const Stream stream;
  DeviceCall good(cuda, someCase(2));
  ResampleCase c = someCase(3);
  c.check_times = true;
  DeviceCall checked(cuda, c);
  float host[4] = {};
  int64_t extent = 4;
  const rbcTensor on_host = {host, {RBC_DEVICE_CPU, 0}, 1, support::kF32, &extent, nullptr, 0};
  rbcTensor on_device = *good.values.get();
  on_device.ndim = 1;
  on_device.shape = &extent;
  on_device.strides = nullptr;

  CHECK_SUCCEEDS(rbcContextWarmUp(cuda.get()));
  CHECK_SUCCEEDS(rbcContextSetCudaStream(cuda.get(), stream.get()));
  for (const bool reserved : {false, true}) {
    if (reserved) CHECK_SUCCEEDS(rbcContextReserve(cuda.get(), checked.workspace(cuda)));
    check(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal));
    CHECK_FAILS(checked.run(cuda), RBC_STATUS_UNSUPPORTED, "captur");
    CHECK_FAILS(rbcContextSynchronize(cuda.get()), RBC_STATUS_UNSUPPORTED, "captur");
    CHECK_FAILS(rbcContextReserve(cuda.get(), 100000000), RBC_STATUS_WORKSPACE_TOO_SMALL,
                "workspace:", "captur");
    CHECK_FAILS(rbcTensorCopy(cuda.get(), &on_device, &on_host), RBC_STATUS_UNSUPPORTED, "captur");
    CHECK_SUCCEEDS(good.run(cuda));
    cudaGraph_t graph = nullptr;
    REQUIRE(cudaStreamEndCapture(stream.get(), &graph) == cudaSuccess);
    size_t nodes = 0;
    check(cudaGraphGetNodes(graph, nullptr, &nodes));
    CHECK(nodes == 1);
    check(cudaGraphDestroy(graph));
  }
  CHECK_SUCCEEDS(checked.run(cuda));
  CHECK(checked.error(cuda) == "");
  CHECK_SUCCEEDS(rbcContextSetCudaStream(cuda.get(), nullptr));
}

TEST_CASE("cuda: switching streams keeps calls that share the workspace apart, without waiting") {
  REQUIRE_CUDA();
  const Stream a;
  const Stream b;
  ResampleCase c = someCase(4);
  c.check_times = true;
  DeviceCall first(cuda, c);
  DeviceCall second(cuda, someCase(5));
  CHECK_SUCCEEDS(rbcContextSetCudaStream(cuda.get(), a.get()));
  CHECK_SUCCEEDS(first.run(cuda));
  Blocker blocker(a.get());
  CHECK_SUCCEEDS(rbcContextSetCudaStream(cuda.get(), b.get()));
  CHECK_SUCCEEDS(second.run(cuda));
  blocker.open();
  CHECK_SUCCEEDS(rbcContextSynchronize(cuda.get()));
  CHECK_FALSE(blocker.timedOut());
  CHECK_SUCCEEDS(first.run(cuda));  // checked, now on the other stream
  CHECK(first.error(cuda) == "");
  CHECK(second.error(cuda) == "");
  CHECK_SUCCEEDS(rbcContextSetCudaStream(cuda.get(), nullptr));
}

TEST_CASE("cuda: memory that a context cannot reach is refused, shared memory is not") {
  REQUIRE_CUDA();
  const Context cpu = support::cpuContext(1);
  DeviceCall call(cuda, someCase(6));
  CHECK_FAILS(call.run(cpu), RBC_STATUS_DEVICE_MISMATCH, "values:");
  const rbcTensor on_host = call.in.times.tensor();
  CHECK_FAILS(rbcResample(cuda.get(), call.values.get(), &on_host, call.query_times.get(),
                          call.placed_out.get(), nullptr, &call.params),
              RBC_STATUS_DEVICE_MISMATCH, "times:");
  rbcTensor elsewhere = *call.placed_out.get();
  elsewhere.device.id = 63;
  CHECK_FAILS(rbcResample(cuda.get(), call.values.get(), call.times.get(), call.query_times.get(),
                          &elsewhere, nullptr, &call.params),
              RBC_STATUS_DEVICE_MISMATCH, "out:");

  for (const bool managed : {false, true}) {
    void* allocated = nullptr;
    check(managed ? cudaMallocManaged(&allocated, 24, cudaMemAttachGlobal)
                  : cudaMallocHost(&allocated, 24));
    auto* memory = static_cast<float*>(allocated);  // times 0 1, values 10 20, query 0.5, out
    const float given[] = {0, 1, 10, 20, 0.5f, -1};
    const rbcDevice device = {managed ? RBC_DEVICE_CUDA_MANAGED : RBC_DEVICE_CUDA_HOST, 0};
    int64_t two[] = {2, 1};
    int64_t one[] = {1, 1};
    const rbcTensor times = {memory, device, 1, support::kF32, two, nullptr, 0};
    const rbcTensor values = {memory + 2, device, 2, support::kF32, two, nullptr, 0};
    const rbcTensor query = {memory + 4, device, 1, support::kF32, one, nullptr, 0};
    const rbcTensor out = {memory + 5, device, 2, support::kF32, one, nullptr, 0};
    for (const Context* context : {&cuda, &cpu}) {
      std::copy(given, given + 6, memory);
      CHECK_SUCCEEDS(rbcResample(context->get(), &values, &times, &query, &out, nullptr, nullptr));
      CHECK_SUCCEEDS(rbcContextSynchronize(context->get()));
      CHECK(memory[5] == 15);
    }
    check(managed ? cudaFree(memory) : cudaFreeHost(memory));
  }
}

TEST_CASE("cuda: a checked call reports bad data as the CPU does, and writes nothing") {
  REQUIRE_CUDA();
  const Context cpu = support::cpuContext(1);
  support::Random random(23);
  int refused = 0;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    ResampleCase c = support::randomResampleCase(seed);
    c.check_times = true;
    c.mask = true;
    ResampleInputs in = support::makeInputs(c);
    // Spoil one array: a copy of it with some elements that may be out of order or range.
    std::vector<Array*> present = {&in.times};
    for (Array* array : {&in.lengths, &in.query_lengths, &in.offsets}) {
      if (array->ndim() != 0) present.push_back(array);
    }
    Array* spoilt =
        present[static_cast<size_t>(random.below(static_cast<int64_t>(present.size())))];
    const bool is_time = spoilt == &in.times;
    Array bad(spoilt->dtype(), spoilt->placement().shape);
    const std::vector<uint64_t> elements = spoilt->elements();
    const auto any = [&] {
      return elements[static_cast<size_t>(random.below(static_cast<int64_t>(elements.size())))];
    };
    size_t next = 0;
    bad.each([&](std::byte* p) {
      uint64_t bits = elements[next++];
      if (random.chance(is_time ? 0.02 : 0.3)) {
        bits = is_time ? any() : static_cast<uint64_t>(random.below(200) - 40);
      }
      std::memcpy(p, &bits, static_cast<size_t>(support::sizeOf(bad.dtype())));
    });
    *spoilt = std::move(bad);
    const auto run = [&](const Context& context, bool device) {
      Array out = in.makeOut();
      Array mask = in.makeMask();
      const Placed placed[] = {{context, in.values, device},
                               {context, in.times, device},
                               {context, in.query_times, device},
                               {context, out, device},
                               {context, mask, device},
                               {context, in.lengths, device},
                               {context, in.query_lengths, device},
                               {context, in.offsets, device}};
      rbcResampleParams params = support::paramsOf(c);
      if (c.lengths) params.lengths = placed[5].get();
      if (c.query_lengths) params.query_lengths = placed[6].get();
      if (c.packed) params.batch_offsets = placed[7].get();
      const rbcStatus_t status =
          rbcResample(context.get(), placed[0].get(), placed[1].get(), placed[2].get(),
                      placed[3].get(), placed[4].get(), &params);
      support::require(rbcContextSynchronize(context.get()));
      CHECK(placed[3].fetch(context, out));
      CHECK(placed[4].fetch(context, mask));
      if (status != RBC_STATUS_SUCCESS) {
        CHECK(out.untouched());
        CHECK(mask.untouched());
        ++refused;
        return support::nameOf(status) + ": " + rbcGetLastError();
      }
      return std::string("fine");
    };
    const std::string expected = run(cpu, false);
    const std::string got = run(cuda, true);
    CHECK_MESSAGE(got == expected, support::describe(c));
  }
  CHECK(refused > 100);  // on both
}

TEST_CASE("cuda: a check of any number of entries with equal times terminates") {
  REQUIRE_CUDA();
  int64_t zero = 0;
  double numbers[] = {0, 1};
  void* memory = nullptr;
  check(cudaMalloc(&memory, 64));
  auto* const bytes = static_cast<std::byte*>(memory);
  check(cudaMemset(bytes, 0, 64));
  check(cudaMemcpy(bytes + 16, numbers, sizeof numbers, cudaMemcpyHostToDevice));
  const rbcDevice device = {RBC_DEVICE_CUDA, 0};
  const auto tensor = [&](void* data, rbcDType dtype, int64_t* shape, int32_t ndim,
                          int64_t* strides) {
    return rbcTensor{data, device, ndim, dtype, shape, strides, 0};
  };
  constexpr int64_t kBatch = int64_t{1} << 58;
  int64_t batch = kBatch;
  int64_t ends = kBatch + 1;
  int64_t two = 2;
  int64_t one = 1;
  int64_t packed[] = {2, 0};
  int64_t padded[] = {kBatch, 2, 0};
  int64_t all_out[] = {kBatch, 1, 0};
  int64_t strides[] = {0, 0, 0};
  const rbcTensor values = tensor(nullptr, support::kF32, packed, 2, nullptr);
  const rbcTensor rows = tensor(nullptr, support::kF32, padded, 3, nullptr);
  const rbcTensor times = tensor(bytes + 16, support::kF64, &two, 1, nullptr);
  const rbcTensor queries = tensor(bytes, support::kF64, &one, 1, nullptr);
  const rbcTensor out = tensor(nullptr, support::kF32, all_out, 3, nullptr);
  const rbcTensor offsets = tensor(bytes, support::kI64, &ends, 1, strides);
  const rbcTensor lengths = tensor(bytes, support::kI64, &batch, 1, strides);
  rbcResampleParams params = rbcResampleParamsInit();
  params.flags = RBC_FLAG_CHECK_TIMES;
  params.batch_offsets = &offsets;
  params.query_lengths = &lengths;
  const auto resample = [&](const rbcTensor& from, const rbcTensor& at, const rbcTensor& to) {
    return rbcResample(cuda.get(), &from, &at, &queries, &to, nullptr, &params);
  };
  CHECK_SUCCEEDS(resample(values, times, out));
  params.batch_offsets = nullptr;
  params.lengths = &lengths;
  CHECK_SUCCEEDS(resample(rows, times, out));
  params.lengths = params.query_lengths = nullptr;

  int64_t long_row[] = {int64_t{1} << 56, 1};
  int64_t few[] = {1, 1};
  const rbcTensor alike = tensor(bytes, support::kF32, long_row, 2, strides);
  const rbcTensor clock = tensor(bytes, support::kF64, long_row, 1, strides);
  const rbcTensor taken = tensor(bytes + 40, support::kF32, few, 2, nullptr);
  CHECK_SUCCEEDS(resample(alike, clock, taken));

  zero = -1;
  check(cudaMemcpy(bytes, &zero, sizeof zero, cudaMemcpyHostToDevice));
  params.batch_offsets = &offsets;
  CHECK_FAILS(resample(values, times, out), RBC_STATUS_INVALID_ARGUMENT,
              "batch_offsets: index 0 is -1");
  check(cudaFree(memory));
}

TEST_CASE("cuda: an unchecked call on bad data touches nothing outside the tensors") {
  REQUIRE_CUDA();
  support::Random random(29);
  for (uint64_t seed = 0; seed < 200; ++seed) {
    ResampleCase c = support::randomResampleCase(seed);
    c.check_times = false;
    ResampleInputs in = support::makeInputs(c);
    for (Array* array : {&in.times, &in.lengths, &in.query_lengths, &in.offsets}) {
      Array bad(array->dtype(), array->placement().shape);
      bad.each([&](std::byte* p) {
        const uint64_t bits = random.bits();
        std::memcpy(p, &bits, static_cast<size_t>(support::sizeOf(bad.dtype())));
      });
      *array = std::move(bad);
    }
    const support::ResampleRun run = support::run(cuda, in);
    CHECK_MESSAGE(run.status == RBC_STATUS_SUCCESS, support::describe(c), ": ", run.message);
    CHECK_MESSAGE(!run.stray_writes, support::describe(c));
  }
}

TEST_CASE("cuda: a caller's allocator gets the stream, and no call allocates once reserved") {
  REQUIRE_CUDA();
  struct Ledger {
    std::map<void*, std::pair<size_t, void*>> held;
    int allocations = 0;
    bool exhausted = false;
    bool wrong = false;
  } ledger;
  const Stream stream;
  rbcContextParams params = rbcContextParamsInit();
  params.backend = RBC_BACKEND_CUDA;
  params.cuda_stream = stream.get();
  params.allocator.user_data = &ledger;
  params.allocator.alloc = [](void* user, size_t bytes, size_t, void* on) -> void* {
    auto& book = *static_cast<Ledger*>(user);
    void* pointer = nullptr;
    if (book.exhausted || cudaMalloc(&pointer, bytes) != cudaSuccess) return nullptr;
    book.held[pointer] = {bytes, on};
    ++book.allocations;
    return pointer;
  };
  params.allocator.free = [](void* user, void* pointer, size_t bytes, void* on) {
    auto& book = *static_cast<Ledger*>(user);
    const auto found = book.held.find(pointer);
    if (found == book.held.end() || found->second != std::make_pair(bytes, on)) book.wrong = true;
    book.held.erase(pointer);
    cudaFree(pointer);
  };
  {
    const Context context = support::makeContext(params);
    ResampleCase c = someCase(7);
    c.check_times = true;
    DeviceCall call(context, c);
    CHECK_SUCCEEDS(rbcContextReserve(context.get(), call.workspace(context)));
    CHECK(support::infoOf(context).workspace_bytes >= call.workspace(context));
    const int before = ledger.allocations;
    for (int i = 0; i < 5; ++i) CHECK_SUCCEEDS(call.run(context));
    CHECK_ALLOCATES_NOTHING_ITSELF(call.run(context));
    CHECK(ledger.allocations == before);
    for (const auto& [pointer, entry] : ledger.held) CHECK(entry.second == stream.get());
    ledger.exhausted = true;
    const int64_t extent = 1000;
    rbcOwnedTensor_t tensor = nullptr;
    CHECK_FAILS(rbcOwnedTensorCreate(context.get(), support::kF32, 1, &extent, nullptr, &tensor),
                RBC_STATUS_OUT_OF_MEMORY, "device memory", "4000");
    CHECK_SUCCEEDS(call.run(context));
    CHECK(call.error(context) == "");
  }
  CHECK(ledger.held.empty());
  CHECK_FALSE(ledger.wrong);
}

TEST_CASE("cuda: more memory than available") {
  REQUIRE_CUDA();
  const int64_t extent = int64_t{1} << 50;
  rbcOwnedTensor_t tensor = nullptr;
  CHECK_FAILS(rbcOwnedTensorCreate(cuda.get(), support::kF32, 1, &extent, nullptr, &tensor),
              RBC_STATUS_OUT_OF_MEMORY, "memory");
  CHECK_FAILS(rbcContextReserve(cuda.get(), size_t{1} << 50), RBC_STATUS_OUT_OF_MEMORY, "memory");
  CHECK(cudaGetLastError() == cudaSuccess);
  DeviceCall call(cuda, someCase(8));
  CHECK_SUCCEEDS(call.run(cuda));
  CHECK(call.error(cuda) == "");
}

TEST_CASE(
    "cuda: copies on the device allow any strides, copies with host memory need contiguous ones") {
  REQUIRE_CUDA();
  for (const rbcDType dtype : {support::kU8, support::kBF16, support::kF32, support::kI64}) {
    for (const support::Layout from : support::kLayouts) {
      for (const support::Layout to : support::kLayouts) {
        if (to == support::Layout::kBroadcast) continue;
        Array source(dtype, {3, 4, 5}, from);
        Array destination(dtype, {3, 4, 5}, to);
        uint8_t next = 0;
        source.each([&](std::byte* p) { *p = static_cast<std::byte>(++next); });
        const Placed a(cuda, source, true);
        const Placed b(cuda, destination, true);
        CHECK_SUCCEEDS(rbcTensorCopy(cuda.get(), a.get(), b.get()));
        CHECK(b.fetch(cuda, destination));
        CHECK(source.elements() == destination.elements());
        CHECK(destination.gapsArePoison());
        const rbcTensor on_host = destination.tensor();
        if (from != support::Layout::kContiguous && from != support::Layout::kMisaligned) {
          CHECK_FAILS(rbcTensorCopy(cuda.get(), a.get(), &on_host), RBC_STATUS_INVALID_ARGUMENT,
                      "source:", "contiguous");
        } else if (to != support::Layout::kContiguous && to != support::Layout::kMisaligned) {
          CHECK_FAILS(rbcTensorCopy(cuda.get(), a.get(), &on_host), RBC_STATUS_INVALID_ARGUMENT,
                      "destination:", "contiguous");
        }
      }
    }
  }
}

TEST_CASE("cuda: calls do not change the current device") {
  REQUIRE_CUDA();
  int count = 0;
  check(cudaGetDeviceCount(&count));
  if (count < 2) SKIP_BECAUSE("one device only");
  rbcContextParams params = rbcContextParamsInit();
  params.backend = RBC_BACKEND_CUDA;
  params.device_id = 1;
  const Context second = support::makeContext(params);
  DeviceCall call(second, someCase(9));
  CHECK_SUCCEEDS(call.run(second));
  CHECK(call.error(second) == "");
  int current = -1;
  check(cudaGetDevice(&current));
  CHECK(current == 0);
  DeviceCall other(cuda, someCase(9));
  CHECK_FAILS(other.run(second), RBC_STATUS_DEVICE_MISMATCH, "values:");
}

TEST_CASE("cuda: contexts on two devices at once, one thread each") {
  REQUIRE_CUDA();
  int count = 0;
  check(cudaGetDeviceCount(&count));
  if (count < 2) SKIP_BECAUSE("one device only");
  struct Worker {
    Context context;
    std::unique_ptr<DeviceCall> resample;
    const voxelize_kinds::Kind& kind;
    voxelize_kinds::Inputs clouds;
    std::unique_ptr<voxelize_kinds::Call> voxelize;
    int failures = 0;
    int current = -1;

    // The sixth kind is sparse, and needs a workspace.
    explicit Worker(int device) : kind(voxelize_kinds::kKinds[5]), clouds(kind, 1 + device) {
      rbcContextParams params = rbcContextParamsInit();
      params.backend = RBC_BACKEND_CUDA;
      params.device_id = device;
      context = support::makeContext(params);
      resample = std::make_unique<DeviceCall>(context, someCase(10 + device));
      voxelize = std::make_unique<voxelize_kinds::Call>(context, clouds, kind);
    }
    // The thread's current device is the first, for any device of the context.
    void work() {
      for (int i = 0; i < 100; ++i) {
        failures += resample->run(context) == RBC_STATUS_SUCCESS ? 0 : 1;
        failures += voxelize->run(context) == RBC_STATUS_SUCCESS ? 0 : 1;
      }
      failures += rbcContextSynchronize(context.get()) == RBC_STATUS_SUCCESS ? 0 : 1;
      cudaGetDevice(&current);
    }
  };
  Worker workers[] = {Worker(0), Worker(1)};
  std::vector<std::thread> threads;
  for (Worker& worker : workers) threads.emplace_back([&worker] { worker.work(); });
  for (std::thread& thread : threads) thread.join();
  const Context cpu = support::cpuContext(1);
  for (Worker& worker : workers) {
    CHECK(worker.failures == 0);
    CHECK(worker.current == 0);
    CHECK(worker.resample->error(worker.context) == "");
    const voxelize_kinds::Call expected(cpu, worker.clouds, worker.kind);
    CHECK_SUCCEEDS(expected.run(cpu));
    CHECK(worker.voxelize->fetch(worker.context));
    CHECK((worker.voxelize->results() == expected.results()));
  }
}

// The device does not recover from the fault, so a separate process runs this test.
TEST_CASE("cuda: device fault" * doctest::skip()) {
  const Context cuda = support::cudaContext();
  int64_t shape[] = {2, 1};
  float* const nowhere = reinterpret_cast<float*>(uintptr_t{1} << 20);
  const rbcDevice device = {RBC_DEVICE_CUDA, 0};
  const rbcTensor values = {nowhere, device, 2, support::kF32, shape, nullptr, 0};
  const rbcTensor times = {nowhere + 64, device, 1, support::kF32, shape, nullptr, 0};
  const rbcTensor out = {nowhere + 128, device, 2, support::kF32, shape, nullptr, 0};
  int reported =
      rbcResample(cuda.get(), &values, &times, &times, &out, nullptr, nullptr) == RBC_STATUS_SUCCESS
          ? 1
          : 0;
  for (int i = 0; i < 2; ++i) {
    const bool right = rbcContextSynchronize(cuda.get()) == RBC_STATUS_CUDA_ERROR &&
                       support::tells(rbcGetLastError(), {"CUDA:", "cudaError"});
    reported += right ? 1 : 0;
  }
  _exit(40 + reported);
}

TEST_CASE("cuda: a fault on the device is reported and not fatal") {
  std::string why;
  if (support::cudaContext(&why) == nullptr) SKIP_BECAUSE(why);
  char self[4096] = {};
  REQUIRE(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
  const int status =
      std::system((std::string(self) + " --no-skip --test-case='cuda: device fault'").c_str());
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 43);
}

#endif  // RBC_WITH_CUDA
