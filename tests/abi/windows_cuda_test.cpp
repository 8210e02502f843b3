// rbcWindows on CUDA: one launch, capture and replay, streams, checked calls, bad data.
#include "support/expect.h"

#if RBC_WITH_CUDA

#include <algorithm>
#include <cstring>

#include "abi/cuda_support.h"
#include "abi/malloc_counter.h"
#include "support/random_windows.h"

namespace {

using cuda_support::beginCapture;
using cuda_support::Blocker;
using cuda_support::check;
using cuda_support::Graph;
using cuda_support::OnStream;
using cuda_support::Stream;
using support::Context;
using support::PlacedWindows;
using support::RandomWindows;
using support::WindowCall;
using support::WindowResult;

// Calls that launch a kernel, including the kernels for rows and for any windows.
std::vector<WindowCall> someCalls(uint64_t first, size_t count) {
  std::vector<WindowCall> calls;
  for (uint64_t seed = first; calls.size() < count; ++seed) {
    WindowCall call = RandomWindows(seed).make(support::varietyOf(seed));
    const bool writes =
        std::any_of(call.streams.begin(), call.streams.end(), [](const WindowCall::Stream& s) {
          return s.num_offsets > 0 && (s.has_valid || (s.has_out && s.out_channels > 0));
        });
    if (call.windows > 0 && writes) calls.push_back(std::move(call));
  }
  return calls;
}

void checkSame(const Context& cuda, const WindowCall& call, PlacedWindows& placed) {
  const Context cpu = support::cpuContext(1);
  const WindowResult expected = support::resultOf(cpu, call);
  CHECK_MESSAGE(expected.status == RBC_STATUS_SUCCESS, expected.message);
  const WindowResult got = placed.fetch(cuda);
  CHECK_FALSE(got.stray);
  CHECK((got.written == expected.written));
}

}  // namespace

TEST_CASE("windows cuda: one kernel for any number of streams, captured without a workspace") {
  REQUIRE_CUDA();
  const Stream stream;
  CHECK_SUCCEEDS(rbcContextWarmUp(cuda.get()));
  for (const WindowCall& call : someCalls(100, 40)) {
    CAPTURE(call.streams.size());
    PlacedWindows placed(cuda, call);
    CHECK(placed.workspaceSize(cuda) == 0);
    const OnStream on_stream(cuda, stream);
    beginCapture(stream);
    CHECK_SUCCEEDS(placed.call(cuda));
    Graph graph(stream);
    CHECK(graph.isOneKernel());
    // The graph does not use the host's descriptors.
    std::memset(static_cast<void*>(placed.streams().data()), 0xA5,
                placed.streams().size() * sizeof placed.streams()[0]);
    for (int i = 0; i < 2; ++i) graph.launch(stream);
    check(cudaStreamSynchronize(stream.get()));
    checkSame(cuda, call, placed);
    check(cudaStreamSynchronize(stream.get()));
  }
}

TEST_CASE("windows cuda: a call in steady state allocates nothing on the host") {
  REQUIRE_CUDA();
  for (const WindowCall& call : someCalls(200, 6)) {
    const PlacedWindows placed(cuda, call);
    for (int i = 0; i < 3; ++i) CHECK_SUCCEEDS(placed.call(cuda));
    CHECK_ALLOCATES_NOTHING_ITSELF(placed.call(cuda));
    check(cudaDeviceSynchronize());
  }
}

TEST_CASE("windows cuda: a call only enqueues, on the context's stream") {
  REQUIRE_CUDA();
  const Stream stream;
  CHECK_SUCCEEDS(rbcContextWarmUp(cuda.get()));
  for (const WindowCall& call : someCalls(300, 4)) {
    PlacedWindows placed(cuda, call);
    check(cudaDeviceSynchronize());
    const OnStream on_stream(cuda, stream);
    Blocker blocker(stream.get());
    CHECK_SUCCEEDS(placed.call(cuda));
    CHECK(cudaStreamQuery(stream.get()) == cudaErrorNotReady);
    blocker.open();
    CHECK_SUCCEEDS(rbcContextSynchronize(cuda.get()));
    CHECK_FALSE(blocker.timedOut());
    checkSame(cuda, call, placed);
  }
}

TEST_CASE("windows cuda: a checked call cannot be captured, and the capture continues") {
  REQUIRE_CUDA();
  const Stream stream;
  const WindowCall call = std::move(someCalls(400, 1)[0]);
  const PlacedWindows good(cuda, call);
  PlacedWindows checked(cuda, call);
  checked.params().flags |= RBC_FLAG_CHECK_TIMES;
  CHECK_SUCCEEDS(rbcContextWarmUp(cuda.get()));
  CHECK_SUCCEEDS(rbcContextReserve(cuda.get(), checked.workspaceSize(cuda)));
  check(cudaDeviceSynchronize());
  {
    const OnStream on_stream(cuda, stream);
    beginCapture(stream);
    CHECK_FAILS(checked.call(cuda), RBC_STATUS_UNSUPPORTED, "flags: RBC_FLAG_CHECK_TIMES",
                "captur");
    CHECK_SUCCEEDS(good.call(cuda));
    cudaGraph_t graph = nullptr;
    REQUIRE(cudaStreamEndCapture(stream.get(), &graph) == cudaSuccess);
    size_t nodes = 0;
    check(cudaGraphGetNodes(graph, nullptr, &nodes));
    CHECK(nodes == 1);
    check(cudaGraphDestroy(graph));
    CHECK_SUCCEEDS(checked.call(cuda));
    CHECK_SUCCEEDS(rbcContextSynchronize(cuda.get()));
  }
  checkSame(cuda, call, checked);
}

TEST_CASE("windows cuda: a checked call reports bad data as the CPU does, and writes nothing") {
  REQUIRE_CUDA();
  const Context cpu = support::cpuContext(1);
  int told = 0;
  for (uint64_t seed = 500; seed < 560; ++seed) {
    WindowCall call = RandomWindows(seed).make(support::varietyOf(seed));
    if (call.windows == 0) continue;
    call.params.flags |= RBC_FLAG_CHECK_TIMES;
    const int kind = static_cast<int>(seed / 3 % 3);
    WindowCall::Stream& s = call.streams[0];
    for (support::Array* array : {&call.episodes, &s.episode_offsets, &s.times}) {
      array->memory().allowWrites();
    }
    if (kind == 0) {
      call.episodes.set({0}, 99);
    } else if (kind == 1) {
      s.episode_offsets.set({0}, 5'000);
    } else {
      if (s.times.ndim() == 0 || s.times.extent(0) < 3) continue;
      // Adjacent rows may be in any order only if they belong to two episodes.
      const bool ticks = support::same(s.times.dtype(), support::kI64);
      s.times.set({1}, ticks ? static_cast<uint64_t>(-1'000'000)
                             : support::encodeFloat(s.times.dtype(), -1e6));
      s.times.set({0}, ticks ? 0 : support::encodeFloat(s.times.dtype(), 0));
    }
    const WindowResult expected = support::resultOf(cpu, call);
    if (expected.status == RBC_STATUS_SUCCESS) continue;  // the two rows belong to two episodes
    ++told;
    PlacedWindows placed(cuda, call);
    CHECK_FAILS(placed.call(cuda), expected.status, expected.message.c_str());
    CHECK_SUCCEEDS(rbcContextSynchronize(cuda.get()));
    for (const support::Bits& written : placed.fetch(cuda).written) {
      for (const uint64_t bits : written) CHECK((bits & 0xff) == support::kPoison);
    }
  }
  CHECK(told > 30);
}

TEST_CASE("windows cuda: bad data unchecked touches nothing outside the tensors") {
  REQUIRE_CUDA();
  for (uint64_t seed = 600; seed < 700; ++seed) {
    WindowCall call = RandomWindows(seed).make(support::varietyOf(seed));
    support::Random random(seed);
    const auto spoil = [&](support::Array& array) {
      array.memory().allowWrites();
      array.each([&](std::byte* p) {
        const uint64_t bits = random.bits();
        std::memcpy(p, &bits, static_cast<size_t>(support::sizeOf(array.dtype())));
      });
    };
    spoil(call.episodes);
    spoil(call.anchors);
    for (WindowCall::Stream& s : call.streams) {
      for (support::Array* array : {&s.episode_offsets, &s.times, &s.offsets}) {
        if (array->ndim() != 0) spoil(*array);
      }
    }
    PlacedWindows placed(cuda, call);
    CHECK_SUCCEEDS(placed.call(cuda));
    CHECK_SUCCEEDS(rbcContextSynchronize(cuda.get()));
    CHECK_FALSE(placed.fetch(cuda).stray);
  }
}

#endif  // RBC_WITH_CUDA
