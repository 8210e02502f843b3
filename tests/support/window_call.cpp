// Makes calls of rbcWindows: places their tensors, and fetches the outputs.
#include "support/window_call.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace support {

PlacedWindows::PlacedWindows(const Context& context, const WindowCall& call)
    : cuda_(infoOf(context).backend == RBC_BACKEND_CUDA), params_(call.params) {
  episodes_ = place(context, call.episodes);
  anchors_ = place(context, call.anchors);
  resample_.resize(call.streams.size());
  for (size_t n = 0; n < call.streams.size(); ++n) {
    const WindowCall::Stream& from = call.streams[n];
    rbcWindowsStream s = from.fields;
    s.values = place(context, from.values);
    s.episode_offsets = place(context, from.episode_offsets);
    s.times = place(context, from.times);
    s.offsets = place(context, from.offsets);
    s.shift = place(context, from.shift);
    s.scale = place(context, from.scale);
    s.bias = place(context, from.bias);
    s.clip_min = place(context, from.low);
    s.clip_max = place(context, from.high);
    s.neutral = place(context, from.neutral);
    s.neutral_channels = place(context, from.neutral_channels);
    resample_[n] = from.params;
    resample_[n].sample_mask = place(context, from.sample_mask);
    resample_[n].arrivals = place(context, from.arrivals);
    resample_[n].groups = from.groups.empty() ? nullptr : from.groups.data();
    resample_[n].num_groups = static_cast<int32_t>(from.groups.size());
    s.params = &resample_[n];
    s.transforms = from.transforms.empty() ? nullptr : from.transforms.data();
    s.num_transforms = static_cast<int32_t>(from.transforms.size());
    rbcWindowsOutputs outputs = rbcWindowsOutputsInit();
    std::vector<int64_t> shape = {call.windows, from.num_offsets};
    if (from.has_valid)
      outputs.valid = placeOut(context, Array(kBool, shape, Layout::kContiguous, call.flush));
    if (from.values.ndim() != 0) shape.push_back(from.out_channels);
    if (from.has_out) {
      outputs.out = placeOut(context, Array(from.out_dtype, shape, from.out_layout, call.flush));
    }
    if (from.accumulates != 0) {
      const int64_t channels =
          from.accumulates == 1 ? from.out_channels : from.num_offsets * from.out_channels;
      accumulators_.push_back(makeAccumulator(context, channels, {0.5}, 8));
      outputs.accumulator = accumulators_.back().get();
      outputs.accumulate = from.accumulate;
    }
    streams_.push_back(s);
    outputs_.push_back(outputs);
  }
}

size_t PlacedWindows::workspaceSize(const Context& context) const {
  size_t bytes = 0;
  require(rbcWindowsWorkspaceSize(context.get(), streams_.data(),
                                  static_cast<int32_t>(streams_.size()), episodes_, anchors_,
                                  outputs_.data(), &params_, &bytes));
  return bytes;
}

WindowResult PlacedWindows::fetch(const Context& context) {
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

WindowResult resultOf(const Context& context, const WindowCall& call) {
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
