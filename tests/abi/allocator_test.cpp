// A caller's allocator, and tests that a warm context allocates nothing.
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "abi/fuse_kinds.h"
#include "abi/malloc_counter.h"
#include "abi/voxelize_kinds.h"
#include "support/expect.h"
#include "support/run.h"

namespace {

using support::Context;

// Records the memory that a context allocates and frees.
struct Ledger {
  std::map<void*, size_t> held;
  int64_t allocations = 0;
  int64_t frees = 0;
  bool exhausted = false;
  std::string error;

  rbcAllocator allocator() {
    rbcAllocator a = {};
    a.user_data = this;
    a.alloc = [](void* user, size_t bytes, size_t alignment, void* stream) -> void* {
      auto& ledger = *static_cast<Ledger*>(user);
      if (ledger.exhausted) return nullptr;
      if (stream != nullptr) ledger.error = "a stream on the CPU";
      if (alignment == 0 || (alignment & (alignment - 1)) != 0) ledger.error = "an odd alignment";
      void* pointer =
          std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
      ledger.held[pointer] = bytes;
      ++ledger.allocations;
      return pointer;
    };
    a.free = [](void* user, void* pointer, size_t bytes, void* stream) {
      auto& ledger = *static_cast<Ledger*>(user);
      if (stream != nullptr) ledger.error = "a stream on the CPU";
      const auto found = ledger.held.find(pointer);
      if (found == ledger.held.end()) {
        ledger.error = "gave back what it did not take";
        return;
      }
      if (found->second != bytes) ledger.error = "gave back another size";
      ledger.held.erase(found);
      ++ledger.frees;
      std::free(pointer);
    };
    return a;
  }

  Context context(int32_t threads = 1) {
    rbcContextParams params = rbcContextParamsInit();
    params.backend = RBC_BACKEND_CPU;
    params.num_threads = threads;
    params.allocator = allocator();
    return support::makeContext(params);
  }
};

}  // namespace

TEST_CASE("allocator: workspace and owned tensors come from it, and all memory is freed") {
  Ledger ledger;
  Context context = ledger.context();
  CHECK_SUCCEEDS(rbcContextReserve(context.get(), 1000));
  CHECK(ledger.held.size() == 1);
  CHECK_SUCCEEDS(rbcContextReserve(context.get(), 1000000));
  CHECK(ledger.held.size() == 1);
  CHECK(ledger.allocations == 2);
  CHECK(ledger.held.begin()->second >= 1000000);

  const int64_t shape[] = {10, 20};
  rbcOwnedTensor_t tensor = nullptr;
  CHECK_SUCCEEDS(rbcOwnedTensorCreate(context.get(), support::kF64, 2, shape, nullptr, &tensor));
  CHECK(ledger.held.size() == 2);
  rbcTensor view = {};
  CHECK_SUCCEEDS(rbcOwnedTensorGetView(tensor, 1, &view));
  CHECK(ledger.held.count(view.data) == 1);
  CHECK(ledger.held[view.data] >= 1600);

  context.reset();  // the tensor still needs the allocator
  CHECK(ledger.held.count(view.data) == 1);
  CHECK_SUCCEEDS(rbcOwnedTensorDestroy(tensor));
  CHECK(ledger.held.empty());
  CHECK(ledger.allocations == ledger.frees);
  CHECK(ledger.error == "");
}

TEST_CASE("allocator: if it has no memory, the call fails and the context still works") {
  Ledger ledger;
  const Context context = ledger.context();
  CHECK_SUCCEEDS(rbcContextReserve(context.get(), 1000));
  const uint64_t held = support::infoOf(context).workspace_bytes;
  ledger.exhausted = true;
  CHECK_FAILS(rbcContextReserve(context.get(), 10000000), RBC_STATUS_OUT_OF_MEMORY, "memory",
              "allocator");
  CHECK(support::infoOf(context).workspace_bytes == held);
  const int64_t shape[] = {10};
  rbcOwnedTensor_t tensor = reinterpret_cast<rbcOwnedTensor_t>(1);
  CHECK_FAILS(rbcOwnedTensorCreate(context.get(), support::kF64, 1, shape, nullptr, &tensor),
              RBC_STATUS_OUT_OF_MEMORY, "80", "allocator");
  CHECK(tensor == nullptr);
  // Without workspace an operation needs no allocator.
  const support::ResampleInputs in = support::makeInputs({});
  const support::ResampleRun run = support::run(context, in);
  CHECK(run.status == RBC_STATUS_SUCCESS);
  CHECK(support::firstError(in, run.output) == "");
  ledger.exhausted = false;
  CHECK_SUCCEEDS(rbcContextReserve(context.get(), 10000000));
  CHECK(ledger.error == "");
}

TEST_CASE("allocator: calls in steady state allocate nothing") {
  Ledger ledger;
  const Context context = ledger.context(3);
  std::vector<support::ResampleCase> cases = support::resampleCases();
  for (support::ResampleCase& c : cases) {
    if (c.flush == support::Flush::kBegin) continue;  // half of the cases are enough
    const support::ResampleInputs in = support::makeInputs(c);
    support::Array out = in.makeOut();
    support::Array mask = in.makeMask();
    const rbcTensor tensors[] = {
        in.values.tensor(), in.times.tensor(),   in.query_times.tensor(),   out.tensor(),
        mask.tensor(),      in.lengths.tensor(), in.query_lengths.tensor(), in.offsets.tensor()};
    rbcResampleParams params = support::paramsOf(c);
    if (c.lengths) params.lengths = &tensors[5];
    if (c.query_lengths) params.query_lengths = &tensors[6];
    if (c.packed) params.batch_offsets = &tensors[7];
    const auto call = [&] {
      return rbcResample(context.get(), &tensors[0], &tensors[1], &tensors[2], &tensors[3],
                         c.mask ? &tensors[4] : nullptr, &params);
    };
    size_t need = 99;
    CHECK_SUCCEEDS(rbcResampleWorkspaceSize(context.get(), &tensors[0], &tensors[1], &tensors[2],
                                            &tensors[3], c.mask ? &tensors[4] : nullptr, &params,
                                            &need));
    CHECK_SUCCEEDS(rbcContextReserve(context.get(), need));
    const int64_t reserved = ledger.allocations;
    CHECK_SUCCEEDS(call());
    CHECK_MESSAGE(ledger.allocations == reserved, support::describe(c),
                  ": allocates after its own reserve");
    CAPTURE(support::describe(c));
    CHECK_ALLOCATES_NOTHING(call());
  }
#if RBC_TEST_COUNTS_MALLOC
  const malloc_counter::Counts before = malloc_counter::counts();
  support::cpuContext(1);
  CHECK_MESSAGE(malloc_counter::counts().process > before.process, "nothing is counted");
  CHECK_MESSAGE(malloc_counter::counts().library > before.library, "the library is not known");
#endif
  CHECK(ledger.error == "");
}

TEST_CASE("allocator: a control loop's fuse allocates nothing, checked or not") {
  Ledger ledger;
  const Context context = ledger.context(3);
  // B = 1, T = 1: a pose of position, rotation and gripper; joints; ticks of a contact flag.
  support::Array pose(support::kF32, {1, 100, 8});
  support::Array joints(support::kF16, {1, 50, 7});
  support::Array contact(support::kBool, {1, 20, 1});
  support::Array times(support::kF64, {100});
  support::Array query(support::kF64, {1});
  const support::Array scale(support::kF32, {8});
  const support::Array out(support::kBF16, {1, 1, 16});
  const support::Array mask(support::kU8, {1, 1, 3});
  for (support::Array* array : {&pose, &joints, &contact}) {
    array->each([&](std::byte* p) { *p = std::byte{1}; });
  }
  double now = 0;
  times.each([&](std::byte* p) { std::memcpy(p, &(now += 0.01), sizeof now); });
  now = 0.123;
  query.each([&](std::byte* p) { std::memcpy(p, &now, sizeof now); });

  const support::Array* const values[] = {&pose, &joints, &contact};
  const rbcChannelGroup groups[] = {{0, 3, RBC_METHOD_PCHIP, 0, 0, 0, 0},
                                    {3, 4, RBC_METHOD_SLERP, 0, 0, 0, 0},
                                    {7, 1, RBC_METHOD_PREVIOUS, 0, 0, 0, 0}};
  const rbcTensor scale_tensor = scale.tensor();
  rbcTensor value_tensors[3];
  rbcTensor time_tensors[3];
  int64_t samples[3];
  rbcResampleParams params[3];
  rbcFuseStream streams[3];
  for (int n = 0; n < 3; ++n) {
    params[n] = rbcResampleParamsInit();
    value_tensors[n] = values[n]->tensor();
    samples[n] = values[n]->extent(1);
    time_tensors[n] = times.tensor();
    time_tensors[n].shape = &samples[n];
    streams[n] = rbcFuseStreamInit();
    streams[n].values = &value_tensors[n];
    streams[n].times = &time_tensors[n];
    streams[n].params = &params[n];
    streams[n].clock_offset = 0.001 * n;
  }
  params[0].groups = groups;
  params[0].num_groups = 3;
  params[0].shift = params[0].scale = &scale_tensor;
  params[1].method = RBC_METHOD_CUBIC;
  params[2].method = RBC_METHOD_NEAREST;
  params[2].tolerance = 0.02;
  const rbcTensor query_tensor = query.tensor();
  const rbcTensor out_tensor = out.tensor();
  const rbcTensor mask_tensor = mask.tensor();
  rbcFuseParams fuse_params = rbcFuseParamsInit();
  const auto call = [&] {
    return rbcFuse(context.get(), streams, 3, &query_tensor, &out_tensor, &mask_tensor,
                   &fuse_params);
  };
  for (const uint32_t flags : {0u, RBC_FLAG_CHECK_TIMES}) {
    fuse_params.flags = flags;
    size_t need = 99;
    CHECK_SUCCEEDS(rbcFuseWorkspaceSize(context.get(), streams, 3, &query_tensor, &out_tensor,
                                        &mask_tensor, &fuse_params, &need));
    CHECK_SUCCEEDS(rbcContextReserve(context.get(), need));
    const int64_t reserved = ledger.allocations;
    CHECK_SUCCEEDS(call());
    CHECK(ledger.allocations == reserved);
    CHECK_ALLOCATES_NOTHING(call());
  }
  CHECK(mask.elements() == std::vector<uint64_t>{1, 1, 1});
  CHECK(ledger.error == "");
}

TEST_CASE(
    "allocator: fusion of any number of streams allocates nothing once reserved, on any number of "
    "threads") {
  constexpr int64_t kQueries = 1000;  // enough to be split over threads
  for (const int threads : {1, 3}) {
    for (const int count : {3, 8, 40}) {
      CAPTURE(threads);
      CAPTURE(count);
      Ledger ledger;
      const Context context = ledger.context(threads);
      const fuse_kinds::Arrays arrays(count, kQueries);
      const fuse_kinds::Call call(context, arrays);
      CHECK_SUCCEEDS(rbcContextReserve(context.get(), call.workspace(context)));
      const int64_t placed = ledger.allocations;
      CHECK_SUCCEEDS(call.run(context));
      CHECK_ALLOCATES_NOTHING(call.run(context));
      CHECK(ledger.allocations == placed);
    }
  }
}

TEST_CASE("allocator: voxelization allocates nothing once reserved, on any number of threads") {
  for (const int threads : {1, 3}) {
    for (const voxelize_kinds::Kind& kind : voxelize_kinds::kKinds) {
      CAPTURE(threads);
      CAPTURE(std::string(kind.name));
      Ledger ledger;
      const Context context = ledger.context(threads);
      const voxelize_kinds::Inputs in(kind);
      const voxelize_kinds::Call call(context, in, kind);
      CHECK_SUCCEEDS(rbcContextReserve(context.get(), call.workspace(context)));
      const int64_t reserved = ledger.allocations;
      CHECK_SUCCEEDS(call.run(context));
      CHECK_ALLOCATES_NOTHING(call.run(context));
      CHECK(ledger.allocations == reserved);
      CHECK(ledger.error == "");
    }
  }
}

TEST_CASE("allocator: voxelization without memory writes nothing, and the context still works") {
  int needy = 0;
  for (const voxelize_kinds::Kind& kind : voxelize_kinds::kKinds) {
    CAPTURE(std::string(kind.name));
    Ledger ledger;
    const Context context = ledger.context(2);
    const voxelize_kinds::Inputs in(kind);
    const voxelize_kinds::Call call(context, in, kind);
    if (call.workspace(context) == 0) continue;
    ++needy;
    const auto before = call.results();
    ledger.exhausted = true;
    CHECK_FAILS(call.run(context), RBC_STATUS_OUT_OF_MEMORY, "memory", "allocator");
    CHECK((call.results() == before));
    ledger.exhausted = false;
    CHECK_SUCCEEDS(call.run(context));
    CHECK_FALSE((call.results() == before));
    CHECK(ledger.error == "");
  }
  CHECK(needy > 0);
}
