// A call of rbcWindows with its arrays, and what a backend makes of it.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "accumulator.h"
#include "robocache/windows.h"

namespace support {

// A call whose arrays are the host's; pointers to them are filled in for a context.
struct WindowCall {
  struct Stream {
    rbcWindowStream fields = rbcWindowStreamInit();  // but for the pointers
    rbcResampleParams params = rbcResampleParamsInit();
    std::vector<rbcWindowTransform> transforms;
    std::vector<rbcChannelGroup> groups;
    Array values, episode_offsets, times, offsets, sample_mask;
    Array shift, scale, bias, low, high, neutral, neutral_channels;
    rbcDType out_dtype = kF32;
    Layout out_layout = Layout::kContiguous;
    int64_t num_offsets = 0;
    int64_t out_channels = 0;
    bool has_out = true;
    bool has_valid = true;
    int accumulates = 0;  // 1: by channel, 2: by offset and channel
  };

  std::deque<Stream> streams;
  Array episodes, anchors;
  rbcWindowsParams params = rbcWindowsParamsInit();
  int64_t windows = 0;
  Flush flush = Flush::kEnd;  // of outputs
};

using Bits = std::vector<uint64_t>;

// What a call wrote: of each stream out, valid, and the accumulator's bytes.
struct WindowResult {
  rbcStatus_t status = RBC_STATUS_SUCCESS;
  std::string message;
  std::vector<Bits> written;
  std::vector<Bytes> accumulated;
  bool stray = false;

  bool operator==(const WindowResult& other) const {
    return written == other.written && accumulated == other.accumulated;
  }
};

// A call's tensors where a context wants them.
class PlacedWindows {
 public:
  PlacedWindows(const Context& context, const WindowCall& call)
      : cuda_(infoOf(context).backend == RBC_BACKEND_CUDA), params_(call.params) {
    episodes_ = place(context, call.episodes);
    anchors_ = place(context, call.anchors);
    resample_.resize(call.streams.size());
    for (size_t n = 0; n < call.streams.size(); ++n) {
      const WindowCall::Stream& from = call.streams[n];
      rbcWindowStream s = from.fields;
      s.values = place(context, from.values);
      s.episode_offsets = place(context, from.episode_offsets);
      s.times = place(context, from.times);
      s.offsets = place(context, from.offsets);
      s.shift = place(context, from.shift);
      s.scale = place(context, from.scale);
      s.bias = place(context, from.bias);
      s.low = place(context, from.low);
      s.high = place(context, from.high);
      s.neutral = place(context, from.neutral);
      s.neutral_channels = place(context, from.neutral_channels);
      resample_[n] = from.params;
      resample_[n].sample_mask = place(context, from.sample_mask);
      resample_[n].groups = from.groups.empty() ? nullptr : from.groups.data();
      resample_[n].num_groups = static_cast<int32_t>(from.groups.size());
      s.params = &resample_[n];
      s.transforms = from.transforms.empty() ? nullptr : from.transforms.data();
      s.num_transforms = static_cast<int32_t>(from.transforms.size());
      std::vector<int64_t> shape = {call.windows, from.num_offsets};
      if (from.has_valid)
        s.valid = placeOut(context, Array(kBool, shape, Layout::kContiguous, call.flush));
      if (from.values.ndim() != 0) shape.push_back(from.out_channels);
      if (from.has_out) {
        s.out = placeOut(context, Array(from.out_dtype, shape, from.out_layout, call.flush));
      }
      if (from.accumulates != 0) {
        const int64_t channels =
            from.accumulates == 1 ? from.out_channels : from.num_offsets * from.out_channels;
        accumulators_.push_back(makeAccumulator(context, channels, {0.5}, 8));
        s.accumulator = accumulators_.back().get();
      }
      streams_.push_back(s);
    }
  }
  PlacedWindows(const PlacedWindows&) = delete;

  rbcWindowsParams& params() { return params_; }
  std::vector<rbcWindowStream>& streams() { return streams_; }
  // Of the streams that have one.
  const std::deque<Accumulator>& accumulators() const { return accumulators_; }

  rbcStatus_t call(const Context& context) const {
    return rbcWindows(context.get(), streams_.data(), static_cast<int32_t>(streams_.size()),
                      episodes_, anchors_, &params_);
  }
  size_t workspaceSize(const Context& context) const {
    size_t bytes = 0;
    require(rbcWindowsWorkspaceSize(context.get(), streams_.data(),
                                    static_cast<int32_t>(streams_.size()), episodes_, anchors_,
                                    &params_, &bytes));
    return bytes;
  }
  WindowResult fetch(const Context& context) {
    WindowResult result;
    for (size_t i = 0; i < outs_.size(); ++i) {
      result.stray |= !placed_outs_[i].fetch(context, outs_[i]) || !outs_[i].gapsArePoison();
      result.written.push_back(outs_[i].elements());
    }
    for (const Accumulator& accumulator : accumulators_) {
      result.accumulated.push_back(exported(accumulator));
    }
    return result;
  }

 private:
  const rbcTensor* place(const Context& context, const Array& array) {
    if (array.ndim() == 0) return nullptr;
    return placed_.emplace_back(context, array, cuda_).get();
  }
  const rbcOutput* placeOut(const Context& context, Array array) {
    outs_.push_back(std::move(array));
    return placed_outs_.emplace_back(context, outs_.back(), cuda_).get();
  }

  bool cuda_;
  std::deque<Placed> placed_;
  std::deque<Array> outs_;
  std::deque<Placed> placed_outs_;
  std::deque<Accumulator> accumulators_;
  std::vector<rbcResampleParams> resample_;
  std::vector<rbcWindowStream> streams_;
  const rbcTensor* episodes_ = nullptr;
  const rbcTensor* anchors_ = nullptr;
  rbcWindowsParams params_;
};

inline WindowResult resultOf(const Context& context, const WindowCall& call) {
  PlacedWindows placed(context, call);
  const rbcStatus_t status = placed.call(context);
  const std::string message = status == RBC_STATUS_SUCCESS ? "" : rbcGetLastError();
  require(rbcContextSynchronize(context.get()));
  WindowResult result = placed.fetch(context);
  result.status = status;
  result.message = message;
  return result;
}

}  // namespace support
