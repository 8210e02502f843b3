// Contexts, and the tensors of calls.
#include "support/run.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace support {

void require(rbcStatus_t status) {
  if (status != RBC_STATUS_SUCCESS) {
    throw std::runtime_error(std::string(rbcStatusName(status)) + ": " + rbcGetLastError());
  }
}

Context makeContext(const rbcContextParams& params) {
  rbcContext_t context = nullptr;
  require(rbcContextCreate(&params, &context));
  return Context(context);
}

Context cpuContext(int32_t threads, int32_t simd) {
  rbcContextParams params = rbcContextParamsInit();
  params.backend = RBC_BACKEND_CPU;
  params.num_threads = threads;
  params.simd = simd;
  return makeContext(params);
}

Context cudaContext(std::string* why) {
  rbcContextParams params = rbcContextParamsInit();
  params.backend = RBC_BACKEND_CUDA;
  rbcContext_t context = nullptr;
  if (rbcContextCreate(&params, &context) != RBC_STATUS_SUCCESS && why != nullptr)
    *why = rbcGetLastError();
  return Context(context);
}

rbcContextInfo infoOf(const Context& context) {
  rbcContextInfo info = rbcContextInfoInit();
  require(rbcContextGetInfo(context.get(), &info));
  return info;
}

std::vector<int32_t> simdLevels() {
  std::vector<int32_t> levels;
  rbcContextParams params = rbcContextParamsInit();
  params.backend = RBC_BACKEND_CPU;
  for (int32_t level = RBC_SIMD_PORTABLE; level <= RBC_SIMD_NEON; ++level) {
    params.simd = level;
    rbcContext_t context = nullptr;
    const rbcStatus_t status = rbcContextCreate(&params, &context);
    if (status == RBC_STATUS_SUCCESS)
      levels.push_back(level);
    else if (status != RBC_STATUS_NOT_AVAILABLE)
      require(status);
    rbcContextDestroy(context);
  }
  return levels;
}

// ---- one call -----------------------------------------------------------------------------------

namespace {

void setLag(const SharedCase& c, double* lag, int64_t* ticks) {
  if (same(c.times, kI64)) {
    *ticks = lagOf<int64_t>(c);
  } else {
    *lag = lagOf<double>(c);
  }
}

}  // namespace

rbcResampleParams paramsOf(const StreamCase& c, rbcDType times) {
  const double unit = same(times, kI64) ? kPeriod * 1e9 : kPeriod;
  rbcResampleParams params = rbcResampleParamsInit();
  params.method = c.method;
  params.outside = c.outside;
  params.fill_value = c.fill_value;
  params.max_gap = c.max_gap * unit;
  params.tolerance = c.tolerance * unit;
  params.flags = c.causal ? RBC_FLAG_CAUSAL : 0;
  params.max_age = c.max_age * unit;
  params.groups = c.groups.empty() ? nullptr : c.groups.data();
  params.num_groups = static_cast<int32_t>(c.groups.size());
  return params;
}

rbcResampleParams paramsOf(const ResampleCase& c) {
  rbcResampleParams params = paramsOf(c, c.times);
  if (c.check_times) params.flags |= RBC_FLAG_CHECK_TIMES;
  setLag(c, &params.lag, &params.lag_ticks);
  return params;
}

Placed::Placed(const Context& context, const Array& array, bool cuda) {
  if (!cuda) {
    tensor_ = array.tensor();
    return;
  }
  const auto bytes = static_cast<int64_t>(array.memory().bytes());
  const int64_t total = bytes + 2 * kGuard;
  rbcOwnedTensor_t owned = nullptr;
  require(rbcOwnedTensorCreate(context.get(), kU8, 1, &total, nullptr, &owned));
  storage_.reset(owned);
  std::vector<uint8_t> image(static_cast<size_t>(total), kPoison);
  if (bytes > 0)
    std::memcpy(image.data() + kGuard, array.memory().data(), static_cast<size_t>(bytes));
  transfer(context, image, true);
  rbcTensor view = {};
  require(rbcOwnedTensorGetView(owned, 1, &view));
  tensor_ = array.tensorAt(static_cast<std::byte*>(view.data) + kGuard, view.device);
}

bool Placed::fetch(const Context& context, Array& array) const {
  if (storage_ == nullptr) return true;
  const size_t bytes = array.memory().bytes();
  std::vector<uint8_t> image(bytes + 2 * kGuard);
  transfer(context, image, false);
  if (bytes > 0) std::memcpy(array.memory().data(), image.data() + kGuard, bytes);
  const auto* first = reinterpret_cast<const std::byte*>(image.data());
  return Array::isPoison(first, kGuard) && Array::isPoison(first + kGuard + bytes, kGuard);
}

void Placed::transfer(const Context& context, std::vector<uint8_t>& image, bool to_device) const {
  rbcTensor device = {};
  require(rbcOwnedTensorGetView(storage_.get(), 1, &device));
  int64_t extent = static_cast<int64_t>(image.size());
  const rbcTensor host = {image.data(), {RBC_DEVICE_CPU, 0}, 1, kU8, &extent, nullptr, 0};
  require(rbcTensorCopy(context.get(), to_device ? &host : &device, to_device ? &device : &host));
}

PlacedStream::PlacedStream(const Context& context, const StreamInputs& in, bool cuda)
    : values_(context, in.values, cuda), times_(context, in.times, cuda) {
  const auto place = [&](std::optional<Placed>& placed, const Array& array) {
    if (array.ndim() != 0) placed.emplace(context, array, cuda);
  };
  place(lengths_, in.lengths);
  place(offsets_, in.offsets);
  place(shift_, in.shift);
  place(scale_, in.scale);
  place(sample_mask_, in.sample_mask);
  place(arrivals_, in.arrivals);
}

void PlacedStream::addTo(rbcResampleParams* params) const {
  params->lengths = lengths_ ? lengths_->get() : nullptr;
  params->batch_offsets = offsets_ ? offsets_->get() : nullptr;
  params->shift = shift_ ? shift_->get() : nullptr;
  params->scale = scale_ ? scale_->get() : nullptr;
  params->sample_mask = sample_mask_ ? sample_mask_->get() : nullptr;
  params->arrivals = arrivals_ ? arrivals_->get() : nullptr;
}

PlacedCall::PlacedCall(const Context& context, const SharedInputs& in, const SharedCase& c,
                       Array out, Array mask, bool cuda)
    : has_mask_(c.mask),
      out_(std::move(out)),
      mask_(std::move(mask)),
      query_times_(context, in.query_times, cuda),
      placed_out_(context, out_, cuda),
      placed_mask_(context, mask_, cuda) {
  if (in.query_lengths.ndim() != 0) query_lengths_.emplace(context, in.query_lengths, cuda);
}

Output PlacedCall::fetch(const Context& context, bool* stray_writes) {
  const bool guards = placed_out_.fetch(context, out_) && placed_mask_.fetch(context, mask_);
  *stray_writes =
      !guards || !out_.gapsArePoison() || (has_mask_ ? !mask_.gapsArePoison() : !mask_.untouched());
  return {out_.elements(), has_mask_ ? mask_.elements() : std::vector<uint64_t>{}};
}

rbcStatus_t PlacedResample::call(const Context& context) const {
  return rbcResample(context.get(), stream_.values(), stream_.times(), shared_.queryTimes(),
                     shared_.out(), shared_.mask(), &params_);
}

size_t PlacedResample::workspaceSize(const Context& context) const {
  size_t bytes = 0;
  require(rbcResampleWorkspaceSize(context.get(), stream_.values(), stream_.times(),
                                   shared_.queryTimes(), shared_.out(), shared_.mask(), &params_,
                                   &bytes));
  return bytes;
}

PlacedResample::PlacedResample(const Context& context, const ResampleInputs& in, bool cuda)
    : shared_(context, in, in.c, in.makeOut(), in.makeMask(), cuda),
      stream_(context, in, cuda),
      params_(paramsOf(in.c)) {
  stream_.addTo(&params_);
  params_.query_lengths = shared_.queryLengths();
}

rbcStatus_t PlacedFuse::call(const Context& context) const {
  return rbcFuse(context.get(), streams_.data(), static_cast<int32_t>(streams_.size()),
                 shared_.queryTimes(), shared_.out(), shared_.mask(), &params_);
}

size_t PlacedFuse::workspaceSize(const Context& context) const {
  size_t bytes = 0;
  require(rbcFuseWorkspaceSize(context.get(), streams_.data(),
                               static_cast<int32_t>(streams_.size()), shared_.queryTimes(),
                               shared_.out(), shared_.mask(), &params_, &bytes));
  return bytes;
}

PlacedFuse::PlacedFuse(const Context& context, const FuseInputs& in, bool cuda)
    : shared_(context, in, in.c, in.makeOut(), in.makeMask(), cuda), params_(rbcFuseParamsInit()) {
  arrays_.reserve(in.streams.size());
  stream_params_.reserve(in.streams.size());
  for (size_t n = 0; n < in.streams.size(); ++n) {
    const StreamCase& c = in.c.streams[n];
    arrays_.emplace_back(context, in.streams[n], cuda);
    stream_params_.push_back(paramsOf(c, in.c.times));
    arrays_[n].addTo(&stream_params_[n]);
    rbcFuseStream stream = rbcFuseStreamInit();
    stream.values = arrays_[n].values();
    stream.times = arrays_[n].times();
    stream.params = &stream_params_[n];
    stream.clock_offset = c.clock_offset;
    stream.clock_offset_ticks = c.clock_offset_ticks;
    streams_.push_back(stream);
  }
  params_.flags = in.c.check_times ? RBC_FLAG_CHECK_TIMES : 0;
  setLag(in.c, &params_.lag, &params_.lag_ticks);
  params_.query_lengths = shared_.queryLengths();
}

}  // namespace support
