// Edge cases of rbcFuse: empty calls, the fewest streams, and the most.
#include <cstring>
#include <vector>

#include "abi/fuse_call.h"

namespace {

using namespace fuse_call;

rbcStatus_t resampleFirst(const Call& c, const Argument& out, const Argument& mask) {
  rbcResampleParams params = c.stream_params[0];
  params.query_lengths = c.params.query_lengths;
  return rbcResample(support::refusingContext().get(), c.streams[0].values, c.streams[0].times,
                     c.used_queries, &out.raw, &mask.raw, &params);
}

}  // namespace

TEST_CASE("fuse: one stream gives the result of rbcResample") {
  Call call;
  call.num_streams = 1;
  call.out.reshape({2, 2, 4});
  call.mask.reshape({2, 2, 1});
  CHECK_SUCCEEDS(call.run());
  const Argument out(kF32, {2, 2, 4});
  const Argument mask(kU8, {2, 2});
  CHECK_SUCCEEDS(resampleFirst(call, out, mask));
  CHECK(std::memcmp(call.out.raw.data, out.raw.data, out.array.memory().bytes()) == 0);
  CHECK(std::memcmp(call.mask.raw.data, mask.raw.data, mask.array.memory().bytes()) == 0);
}

TEST_CASE("fuse: the most streams, all in one array") {
  Call call;
  const std::vector<rbcFuseStream> streams(RBC_FUSE_MAX_STREAMS, call.streams[0]);
  const Argument out(kF32, {2, 2, 4 * RBC_FUSE_MAX_STREAMS});
  const Argument mask(support::kBool, {2, 2, RBC_FUSE_MAX_STREAMS});
  call.used_streams = streams.data();
  call.num_streams = RBC_FUSE_MAX_STREAMS;
  call.used_out = &out.raw;
  call.used_mask = &mask.raw;
  CHECK_SUCCEEDS(call.run());
  const Argument one(kF32, {2, 2, 4});
  const Argument one_mask(kU8, {2, 2});
  CHECK_SUCCEEDS(resampleFirst(call, one, one_mask));
  for (const int64_t b : {0, 1}) {
    for (const int64_t t : {0, 1}) {
      for (int64_t n = 0; n < RBC_FUSE_MAX_STREAMS; ++n) {
        CHECK(mask.array.get({b, t, n}) == one_mask.array.get({b, t}));
        for (int64_t d = 0; d < 4; ++d) {
          CHECK(out.array.get({b, t, 4 * n + d}) == one.array.get({b, t, d}));
        }
      }
    }
  }
}

TEST_CASE("fuse: without a batch") {
  Call call;
  call.num_streams = 2;
  call.params.query_lengths = nullptr;
  call.stream_params[0].lengths = nullptr;
  call.padded.values.reshape({3, 4});
  call.padded.times.reshape({3});
  call.shared.values.reshape({4, 1});
  call.query_times.reshape({2});
  const Argument out(kF32, {2, 5});
  const Argument mask(kU8, {2, 2});
  call.used_out = &out.raw;
  call.used_mask = &mask.raw;
  CHECK_SUCCEEDS(call.run());
  const float expected[] = {5, 6, 2, 4, 7, 20, 21, 17, 11.5f, 8};
  CHECK(std::memcmp(out.raw.data, expected, sizeof expected) == 0);
  CHECK(mask.array.elements() == std::vector<uint64_t>{1, 1, 1, 1});
}

TEST_CASE("fuse: an empty batch and no queries write nothing") {
  for (const uint32_t flags : {0u, RBC_FLAG_CHECK_TIMES}) {
    Call empty;
    empty.params.flags = flags;
    empty.padded.values.reshape({0, 3, 4});
    empty.padded.times.reshape({0, 3});
    empty.padded.lengths.reshape({0});
    empty.shared.values.reshape({0, 4, 1});
    empty.packed.offsets.reshape({1});
    empty.query_times.reshape({0, 2});
    empty.query_lengths.reshape({0});
    empty.out.reshape({0, 2, 7});
    empty.mask.reshape({0, 2, 3});
    CHECK_SUCCEEDS(empty.workspace());
    CHECK_SUCCEEDS(empty.run());
    CHECK(empty.untouched());

    Call silent;
    silent.params.flags = flags;
    silent.query_lengths.fill<int32_t>({0, 0});
    silent.query_times.reshape({2, 0});
    silent.out.reshape({2, 0, 7});
    silent.mask.reshape({2, 0, 3});
    CHECK_SUCCEEDS(silent.workspace());
    CHECK_SUCCEEDS(silent.run());
    CHECK(silent.untouched());
  }
}

TEST_CASE("fuse: a stream without channels still has its valid") {
  for (const uint32_t flags : {0u, RBC_FLAG_CHECK_TIMES}) {
    Call call;
    call.params.flags = flags;
    call.shared.values.reshape({2, 4, 0});
    call.out.reshape({2, 2, 6});
    CHECK_SUCCEEDS(call.run());
    const float expected[] = {5, 6, 2, 4, 2,  3,  20, 21, 17, 11.5f, 3,     4,
                              6, 6, 1, 3, 11, 21, 6,  6,  1,  3,     11.5f, 21.5f};
    CHECK(std::memcmp(call.out.raw.data, expected, sizeof expected) == 0);
    CHECK(call.mask.array.elements() == std::vector<uint64_t>{1, 1, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1});
  }
  // All streams without channels: only the mask is written, if any.
  Call bare;
  bare.num_streams = 2;
  bare.padded.values.reshape({2, 3, 0});
  bare.shared.values.reshape({2, 4, 0});
  bare.stream_params[0].shift = bare.stream_params[0].scale = nullptr;
  bare.out.reshape({2, 2, 0});
  bare.mask.reshape({2, 2, 2});
  bare.used_mask = nullptr;
  CHECK_SUCCEEDS(bare.run());
  CHECK(bare.untouched());
  bare.used_mask = &bare.mask.raw;
  CHECK_SUCCEEDS(bare.run());
  CHECK(bare.out.array.untouched());
  const uint8_t expected[] = {1, 1, 1, 1, 1, 1, 0, 1};
  CHECK(std::memcmp(bare.mask.raw.data, expected, sizeof expected) == 0);
}

TEST_CASE("fuse: an absent stream gives its fill value, the others do not change") {
  Call call;
  call.padded.lengths.fill<int64_t>({0, 2});
  call.stream_params[0].fill_value = -3;
  call.packed.offsets.fill<int32_t>({0, 0, 3});
  call.stream_params[2].fill_value = -4;
  call.packed.times.fill<double>({0, 1, 3, 0, 0});
  call.packed.values.fill<float>({10, 20, 11, 21, 13, 23, 0, 0, 0, 0});
  CHECK_SUCCEEDS(call.run());
  const float expected[] = {-3, -3, -3, -3, 7, -4, -4, -3, -3, -3, -3, 8,  -4,    -4,
                            6,  6,  1,  3,  9, 11, 21, 6,  6,  1,  3,  10, 11.5f, 21.5f};
  CHECK(std::memcmp(call.out.raw.data, expected, sizeof expected) == 0);
  CHECK(call.mask.array.elements() == std::vector<uint64_t>{0, 1, 0, 0, 1, 0, 1, 1, 1, 0, 1, 1});
}
