// Calls of rbcFuse with any number of streams of different kinds, in the context's memory.
#pragma once

#include <cstddef>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

#include "support/random.h"
#include "support/run.h"

namespace fuse_kinds {

using support::Array;
using support::Context;
using support::Placed;

constexpr int64_t kBatch = 5;

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
    Array values, times, lengths, shift, scale;
  };
  std::vector<Sensor> sensors;
  Array queries;
  int64_t channels = 0;

  explicit Arrays(int count, int64_t queries_of_row = 33)
      : queries(support::kF64, {kBatch, queries_of_row}) {
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
      fill(s.shift, -1, 1);
      fill(s.scale, 0.5, 2);
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

// A call on these arrays, in the context's memory.
struct Call {
  Array out, mask;
  std::vector<Placed> placed;
  std::vector<rbcResampleParams> params;
  std::vector<rbcFuseStream> streams;
  rbcFuseParams fuse_params = rbcFuseParamsInit();

  Call(const Context& context, const Arrays& arrays)
      : out(support::kF32, {kBatch, arrays.queries.extent(1), arrays.channels}),
        mask(support::kBool,
             {kBatch, arrays.queries.extent(1), static_cast<int64_t>(arrays.sensors.size())}) {
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
        p.shift = place(sensor.shift);
        p.scale = place(sensor.scale);
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
  // Copies the outputs back. Returns false if memory around them was written.
  bool fetch(const Context& context) {
    return placed[1].fetch(context, out) && placed[2].fetch(context, mask);
  }
  void* queryData() const { return queries_->data; }

 private:
  const rbcTensor* queries_;
  const rbcTensor* out_;
  const rbcTensor* mask_;
};

}  // namespace fuse_kinds
