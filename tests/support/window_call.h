// A call of rbcWindows with its arrays, and its result on a backend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "accumulator.h"
#include "robocache/windows.h"
#include "run.h"

namespace support {

// A call with arrays on the host; pointers to them are filled in for a context.
struct WindowCall {
  struct Stream {
    rbcWindowsStream fields = rbcWindowsStreamInit();  // without the pointers
    rbcResampleParams params = rbcResampleParamsInit();
    std::vector<rbcWindowsTransform> transforms;
    std::vector<rbcChannelGroup> groups;
    Array values, episode_offsets, times, offsets, sample_mask, arrivals;
    Array shift, scale, bias, low, high, neutral, neutral_channels;
    rbcDType out_dtype = kF32;
    Layout out_layout = Layout::kContiguous;
    int64_t num_offsets = 0;
    int64_t out_channels = 0;
    bool has_out = true;
    bool has_valid = true;
    int accumulates = 0;  // 1: by channel, 2: by offset and channel
    int32_t accumulate = RBC_WINDOWS_ACCUMULATE_ALL;
  };

  std::deque<Stream> streams;
  Array episodes, anchors;
  rbcWindowsParams params = rbcWindowsParamsInit();
  int64_t windows = 0;
  Flush flush = Flush::kEnd;  // for outputs
};

using Bits = std::vector<uint64_t>;

// The outputs of a call: for each stream out, valid, and the accumulator's bytes.
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

// A call's tensors in a context's memory.
class PlacedWindows {
 public:
  PlacedWindows(const Context& context, const WindowCall& call);
  PlacedWindows(const PlacedWindows&) = delete;

  rbcWindowsParams& params() { return params_; }
  std::vector<rbcWindowsStream>& streams() { return streams_; }
  std::vector<rbcWindowsOutputs>& outputs() { return outputs_; }
  // For the streams that have one.
  const std::deque<Accumulator>& accumulators() const { return accumulators_; }

  rbcStatus_t call(const Context& context) const {
    return rbcWindows(context.get(), streams_.data(), static_cast<int32_t>(streams_.size()),
                      episodes_, anchors_, outputs_.data(), &params_);
  }
  size_t workspaceSize(const Context& context) const;
  WindowResult fetch(const Context& context);

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
  std::vector<rbcWindowsStream> streams_;
  std::vector<rbcWindowsOutputs> outputs_;
  const rbcTensor* episodes_ = nullptr;
  const rbcTensor* anchors_ = nullptr;
  rbcWindowsParams params_;
};

WindowResult resultOf(const Context& context, const WindowCall& call);

}  // namespace support
