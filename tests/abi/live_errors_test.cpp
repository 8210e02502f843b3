// Errors of live fusion.
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstddef>
#include <string>
#include <utility>

#include "abi/live_call.h"
#include "abi/struct_calls.h"

namespace {

using live_call::countersOf;
using live_call::hostTensor;
using live_call::Live;
using live_call::make;
using support::Context;

// A group at the end of its page: reading past it ends the program.
class GroupAtTheEnd {
 public:
  GroupAtTheEnd() : page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))) {
    memory_ = mmap(nullptr, 2 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory_ != MAP_FAILED);
    REQUIRE(mprotect(static_cast<char*>(memory_) + page_, page_, PROT_NONE) == 0);
    *get() = {0, 3, RBC_METHOD_LINEAR, 0, 0, 0, 0};
  }
  ~GroupAtTheEnd() { munmap(memory_, 2 * page_); }
  GroupAtTheEnd(const GroupAtTheEnd&) = delete;

  rbcChannelGroup* get() const {
    return reinterpret_cast<rbcChannelGroup*>(static_cast<char*>(memory_) + page_) - 1;
  }

 private:
  size_t page_;
  void* memory_;
};

const support::StructCallsOf kLiveStructs([](support::StructCalls& calls) {
  const support::StructRecording recording = calls.recording();
  const rbcTensor* fused = calls.out(support::kF32, {2, 2});
  rbcLiveStream stream = rbcLiveStreamInit();
  stream.num_channels = 1;
  stream.capacity = 3;
  const std::vector<rbcLiveStream> streams(2, stream);
  const auto live = [=, c = calls.context()](const rbcLiveStream* of, const rbcLiveParams* params,
                                             rbcLiveCounters* counters,
                                             const rbcLiveFuseParams* how = nullptr) {
    rbcLive_t made = nullptr;
    rbcStatus_t status = rbcLiveCreate(c, of, 2, params, &made);
    for (int32_t n = 0; n < 2 && status == RBC_STATUS_SUCCESS; ++n) {
      status = rbcLivePush(made, n, recording.values, recording.times, nullptr);
    }
    if (status == RBC_STATUS_SUCCESS) {
      status = counters != nullptr
                   ? rbcLiveGetCounters(made, 0, counters)
                   : rbcLiveFuse(made, recording.queries, fused, nullptr, nullptr, how);
    }
    rbcLiveDestroy(made);
    return status;
  };
  calls.add("rbcLiveStream", rbcLiveStreamInit(), streams, "streams",
            [=](const rbcLiveStream* object) { return live(object, nullptr, nullptr); });
  calls.add("rbcLiveParams", rbcLiveParamsInit(), {rbcLiveParamsInit()}, "params",
            [=](const rbcLiveParams* object) { return live(streams.data(), object, nullptr); });
  calls.add("rbcLiveFuseParams", rbcLiveFuseParamsInit(), {rbcLiveFuseParamsInit()}, "params",
            [=](const rbcLiveFuseParams* object) {
              return live(streams.data(), nullptr, nullptr, object);
            });
  calls.addFilled<rbcLiveCounters>("rbcLiveCounters", [=](rbcLiveCounters* counters) {
    return live(streams.data(), nullptr, counters);
  });
});

}  // namespace

TEST_CASE("live errors: creation") {
  const Context context = support::cpuContext(1);
  rbcResampleParams params = rbcResampleParamsInit();
  rbcLiveStream good = rbcLiveStreamInit();
  good.num_channels = 3;
  good.capacity = 8;
  good.params = &params;
  rbcLiveParams live_params = rbcLiveParamsInit();
  rbcLive_t live = nullptr;
  const auto refuse = [&](rbcStatus_t status, const char* told, const rbcLiveStream& bad) {
    const rbcLiveStream streams[] = {good, bad};
    live = reinterpret_cast<rbcLive_t>(&live);
    CHECK_FAILS(rbcLiveCreate(context.get(), streams, 2, &live_params, &live), status, "streams[1]",
                told);
    CHECK(live == nullptr);
  };
  constexpr rbcStatus_t kInvalid = RBC_STATUS_INVALID_ARGUMENT;
  const auto with = [&](auto&& change) {
    rbcLiveStream bad = good;
    change(bad);
    return bad;
  };
  refuse(kInvalid, "num_channels: is 0", with([](auto& s) { s.num_channels = 0; }));
  refuse(kInvalid, "capacity: is 1, expected at least 2", with([](auto& s) { s.capacity = 1; }));
  refuse(kInvalid, "at most 2^24", with([](auto& s) { s.capacity = (1 << 24) + 1; }));
  refuse(kInvalid, "late_bound: is -1", with([](auto& s) { s.late_bound = -1; }));
  refuse(kInvalid, "late_bound: is 8", with([](auto& s) { s.late_bound = 8; }));
  refuse(kInvalid, "max_ahead: is 0, expected more than 0", with([](auto& s) { s.max_ahead = 0; }));
  refuse(kInvalid, "max_ahead: is -1", with([](auto& s) { s.max_ahead = -1; }));
  refuse(kInvalid, "max_ahead: is nan", with([](auto& s) { s.max_ahead = std::nan(""); }));
  for (const double offset : {HUGE_VAL, -HUGE_VAL, std::nan("")}) {
    refuse(kInvalid, "clock_offset: is ", with([&](auto& s) { s.clock_offset = offset; }));
  }
  refuse(kInvalid, "clock_offset_ticks", with([](auto& s) { s.clock_offset_ticks = 1; }));
  refuse(kInvalid, "struct_size", with([](auto& s) { s.struct_size = 44; }));
  refuse(RBC_STATUS_DTYPE_MISMATCH, "dtype", with([](auto& s) { s.dtype = {0, 7, 1}; }));
  refuse(RBC_STATUS_DTYPE_MISMATCH, "values", with([](auto& s) { s.dtype = support::kI32; }));

  // Limits that times of other dtypes cannot have.
  for (const auto& [dtype, limit] : {std::pair(support::kF32, 1e-50), {support::kI64, 0.5}}) {
    rbcLiveStream bad = good;
    bad.max_ahead = limit;
    live_params.time_dtype = dtype;
    CHECK_FAILS(rbcLiveCreate(context.get(), &bad, 1, &live_params, &live), kInvalid,
                "streams[0].max_ahead: is ");
  }
  live_params.time_dtype = support::kF64;
  // A program whose struct has no clock_offset.
  rbcLiveStream older = good;
  older.struct_size = offsetof(rbcLiveStream, clock_offset);
  older.clock_offset = std::nan("");
  CHECK_SUCCEEDS(rbcLiveCreate(context.get(), &older, 1, &live_params, &live));
  CHECK_SUCCEEDS(rbcLiveDestroy(live));

  rbcResampleParams cubic = params;
  cubic.method = RBC_METHOD_CUBIC;
  refuse(kInvalid, "capacity: is 3, expected at least 4",
         with([&](auto& s) { s.params = &cubic, s.capacity = 3; }));
  rbcResampleParams previous = params;
  previous.method = RBC_METHOD_PREVIOUS;
  refuse(kInvalid, "capacity: is 0, expected at least 1",
         with([&](auto& s) { s.params = &previous, s.capacity = 0; }));
  refuse(kInvalid, "late_bound: is 1, expected less than the capacity, 1",
         with([&](auto& s) { s.params = &previous, s.capacity = 1, s.late_bound = 1; }));
  rbcChannelGroup mixed[] = {{0, 1, RBC_METHOD_PREVIOUS, 0, 0, 0, 0},
                             {1, 2, RBC_METHOD_ANGLE, 0, 0, 0, 0}};
  rbcResampleParams grouped = params;
  grouped.groups = mixed;
  grouped.num_groups = 2;
  refuse(kInvalid, "capacity: is 1, expected at least 2",
         with([&](auto& s) { s.params = &grouped, s.capacity = 1; }));
  rbcResampleParams strange = params;
  strange.method = 99;
  refuse(kInvalid, "method", with([&](auto& s) { s.params = &strange; }));
  // The number of groups is too large, so no group is read.
  const GroupAtTheEnd group;
  rbcResampleParams endless = params;
  endless.groups = group.get();
  for (const int32_t count : {INT32_MAX, RBC_FUSE_MAX_CHANNEL_GROUPS + 1, -1, INT32_MIN}) {
    endless.num_groups = count;
    refuse(kInvalid, "num_groups: is ", with([&](auto& s) { s.params = &endless; }));
  }
  int64_t extent = 1;
  const rbcTensor tensor = hostTensor(&extent, support::kI64, 1, &extent);
  for (const rbcTensor* rbcResampleParams::*field :
       {&rbcResampleParams::lengths, &rbcResampleParams::batch_offsets,
        &rbcResampleParams::sample_mask, &rbcResampleParams::query_lengths,
        &rbcResampleParams::shift}) {
    rbcResampleParams bad = params;
    bad.*field = &tensor;
    const rbcLiveStream stream = with([&](auto& s) { s.params = &bad; });
    const rbcLiveStream streams[] = {good, stream};
    const rbcStatus_t status = rbcLiveCreate(context.get(), streams, 2, nullptr, &live);
    CHECK(status != RBC_STATUS_SUCCESS);
    CHECK(std::string(rbcGetLastError()).find("streams[1].params.") == 0);
  }

  CHECK_FAILS(rbcLiveCreate(nullptr, &good, 1, nullptr, &live), kInvalid, "context");
  CHECK_FAILS(rbcLiveCreate(context.get(), nullptr, 1, nullptr, &live), kInvalid, "streams");
  CHECK_FAILS(rbcLiveCreate(context.get(), &good, 0, nullptr, &live), kInvalid, "num_streams");
  CHECK_FAILS(rbcLiveCreate(context.get(), &good, 65, nullptr, &live), kInvalid, "num_streams");
  CHECK_FAILS(rbcLiveCreate(context.get(), &good, 1, nullptr, nullptr), kInvalid, "live");
  live_params.time_dtype = support::kI32;
  CHECK_FAILS(rbcLiveCreate(context.get(), &good, 1, &live_params, &live),
              RBC_STATUS_DTYPE_MISMATCH, "params.time_dtype");
  CHECK_SUCCEEDS(rbcLiveDestroy(nullptr));
}

TEST_CASE("live errors: pushing and fusing") {
  const Context context = support::cpuContext(1);
  rbcLiveStream stream = rbcLiveStreamInit();
  stream.num_channels = 2;
  stream.capacity = 4;
  const Live live = make(context, {stream}, rbcLiveParamsInit());
  double memory[8] = {};
  int64_t one[] = {1, 2};
  int64_t three[] = {1, 3};
  int64_t two[] = {2};
  const rbcTensor times = hostTensor(memory, support::kF64, 1, one);
  const rbcTensor values = hostTensor(memory, support::kF32, 2, one);
  rbcTensor device = values;
  device.device = {RBC_DEVICE_CUDA, 0};
  const rbcTensor ticks = hostTensor(memory, support::kI64, 1, one);
  const rbcTensor doubles = hostTensor(memory, support::kF64, 2, one);
  const rbcTensor wide = hostTensor(memory, support::kF32, 2, three);
  const rbcTensor several = hostTensor(memory, support::kF64, 1, two);
  constexpr rbcStatus_t kInvalid = RBC_STATUS_INVALID_ARGUMENT;
  rbcLive_t l = live.get();
  CHECK_FAILS(rbcLivePush(nullptr, 0, &values, &times, nullptr), kInvalid, "live: is null");
  CHECK_FAILS(rbcLivePush(l, 1, &values, &times, nullptr), kInvalid,
              "stream_index: is 1, expected 0 to 0");
  CHECK_FAILS(rbcLivePush(l, -1, &values, &times, nullptr), kInvalid, "stream_index: is -1");
  CHECK_FAILS(rbcLivePush(l, 0, &values, nullptr, nullptr), kInvalid, "times");
  CHECK_FAILS(rbcLivePush(l, 0, nullptr, &times, nullptr), kInvalid, "values");
  CHECK_FAILS(rbcLivePush(l, 0, &values, &ticks, nullptr), RBC_STATUS_DTYPE_MISMATCH, "times");
  CHECK_FAILS(rbcLivePush(l, 0, &doubles, &times, nullptr), RBC_STATUS_DTYPE_MISMATCH, "values");
  CHECK_FAILS(rbcLivePush(l, 0, &wide, &times, nullptr), RBC_STATUS_SHAPE_MISMATCH, "values");
  CHECK_FAILS(rbcLivePush(l, 0, &values, &several, nullptr), RBC_STATUS_SHAPE_MISMATCH, "values");
  CHECK_FAILS(rbcLivePush(l, 0, &device, &times, nullptr), RBC_STATUS_DEVICE_MISMATCH, "values");
  CHECK_FAILS(rbcLivePush(l, 0, &values, &times, &ticks), RBC_STATUS_DTYPE_MISMATCH, "arrivals");
  CHECK_FAILS(rbcLivePush(l, 0, &values, &times, &several), RBC_STATUS_SHAPE_MISMATCH, "arrivals");
  CHECK_FAILS(rbcLivePush(l, 0, &values, &times, &device), RBC_STATUS_DEVICE_MISMATCH, "arrivals");
  CHECK(countersOf(live, 0).kept == 0);

  alignas(8) float out[2] = {-5, -5};
  uint8_t mask = 9;
  int64_t mask_shape[] = {1, 1};
  const rbcTensor outs = hostTensor(out, support::kF32, 2, one);
  const rbcTensor masks = hostTensor(&mask, support::kU8, 2, mask_shape);
  double age = -5;
  const rbcTensor ages = hostTensor(&age, support::kF64, 1, mask_shape);
  const rbcTensor wrong_ages = hostTensor(&age, support::kI64, 1, mask_shape);
  const rbcTensor shared_ages = hostTensor(out, support::kF64, 1, mask_shape);
  CHECK_FAILS(rbcLiveFuse(nullptr, &times, &outs, &masks, nullptr, nullptr), kInvalid,
              "live: is null");
  CHECK_FAILS(rbcLiveFuse(l, nullptr, &outs, &masks, nullptr, nullptr), kInvalid, "query_times");
  CHECK_FAILS(rbcLiveFuse(l, &ticks, &outs, &masks, nullptr, nullptr), RBC_STATUS_DTYPE_MISMATCH,
              "query_times");
  CHECK_FAILS(rbcLiveFuse(l, &times, &wide, &masks, nullptr, nullptr), RBC_STATUS_SHAPE_MISMATCH,
              "out");
  CHECK_FAILS(rbcLiveFuse(l, &times, nullptr, &masks, nullptr, nullptr), kInvalid, "out");
  CHECK_FAILS(rbcLiveFuse(l, &several, &outs, &masks, nullptr, nullptr), RBC_STATUS_SHAPE_MISMATCH,
              "out");
  const rbcTensor shared_mask = hostTensor(out, support::kU8, 2, mask_shape);
  CHECK_FAILS(rbcLiveFuse(l, &times, &outs, &shared_mask, &ages, nullptr), kInvalid, "valid");
  CHECK_FAILS(rbcLiveFuse(l, &times, &outs, &masks, &wrong_ages, nullptr),
              RBC_STATUS_DTYPE_MISMATCH, "ages");
  CHECK_FAILS(rbcLiveFuse(l, &times, &outs, &masks, &shared_ages, nullptr), kInvalid, "ages",
              "out");
  rbcLiveFuseParams params = rbcLiveFuseParamsInit();
  params.lag = std::nan("");
  CHECK_FAILS(rbcLiveFuse(l, &times, &outs, &masks, nullptr, &params), kInvalid,
              "params.lag: is nan, expected a finite float64");
  params.lag = 0;
  params.lag_ticks = 3;
  CHECK_FAILS(rbcLiveFuse(l, &times, &outs, &masks, nullptr, &params), kInvalid,
              "params.lag_ticks: is 3, expected params.lag for times of float64");
  CHECK(out[0] == -5);
  CHECK(mask == 9);
  CHECK(age == -5);
  CHECK_SUCCEEDS(rbcLiveFuse(l, &times, &outs, &masks, &ages, nullptr));  // an empty ring
  CHECK(mask == 0);
  CHECK(age != age);

  rbcLiveCounters counters = rbcLiveCountersInit();
  CHECK_FAILS(rbcLiveGetCounters(l, 0, nullptr), kInvalid, "counters");
  CHECK_FAILS(rbcLiveGetCounters(l, 2, &counters), kInvalid, "stream_index: is 2");
  counters.struct_size = 2;
  CHECK_FAILS(rbcLiveGetCounters(l, 0, &counters), kInvalid, "counters", "struct_size");
}
