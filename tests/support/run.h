// Runs cases through the C interface, on the CPU and, if available, on a GPU.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cases.h"
#include "reference.h"
#include "robocache/robocache.h"

namespace support {

struct DestroyContext {
  void operator()(rbcContext_t context) const { rbcContextDestroy(context); }
};
struct DestroyTensor {
  void operator()(rbcOwnedTensor_t tensor) const { rbcOwnedTensorDestroy(tensor); }
};
using Context = std::unique_ptr<rbcContext, DestroyContext>;
using OwnedTensor = std::unique_ptr<rbcOwnedTensor, DestroyTensor>;

// For calls that must succeed in a test.
void require(rbcStatus_t status);

Context makeContext(const rbcContextParams& params);

Context cpuContext(int32_t threads = 0, int32_t simd = RBC_SIMD_AUTO);

// Null, with the reason, if CUDA is not usable.
Context cudaContext(std::string* why = nullptr);

rbcContextInfo infoOf(const Context& context);

// The levels that this machine supports.
std::vector<int32_t> simdLevels();

// ---- tensors in a context's memory --------------------------------------------------------------

// An array's storage on a context's device: the array's own memory on the CPU, a copy on CUDA.
class Placed {
 public:
  Placed(const Context& context, const Array& array, bool cuda);

  const rbcTensor* get() const { return &tensor_; }

  // Copies the data on the device back to the array. Returns false if the guard zones were written.
  bool fetch(const Context& context, Array& array) const;

 private:
  static constexpr int64_t kGuard = 256;

  void transfer(const Context& context, std::vector<uint8_t>& image, bool to_device) const;

  OwnedTensor storage_;
  rbcTensor tensor_ = {};
};

// ---- one call -----------------------------------------------------------------------------------

// Without tensors; points into the case.
rbcResampleParams paramsOf(const StreamCase& c, rbcDType times);
rbcResampleParams paramsOf(const ResampleCase& c);

// A stream's tensors in a context's memory.
class PlacedStream {
 public:
  PlacedStream(const Context& context, const StreamInputs& in, bool cuda);

  const rbcTensor* values() const { return values_.get(); }
  const rbcTensor* times() const { return times_.get(); }
  // Sets the parameters for the tensors that the case has.
  void addTo(rbcResampleParams* params) const;

 private:
  Placed values_;
  Placed times_;
  std::optional<Placed> lengths_;
  std::optional<Placed> offsets_;
  std::optional<Placed> shift_;
  std::optional<Placed> scale_;
  std::optional<Placed> sample_mask_;
  std::optional<Placed> arrivals_;
};

// The tensors that a call's streams share.
class PlacedCall {
 public:
  PlacedCall(const Context& context, const SharedInputs& in, const SharedCase& c, Array out,
             Array mask, bool cuda);
  PlacedCall(const PlacedCall&) = delete;

  const rbcTensor* queryTimes() const { return query_times_.get(); }
  const rbcTensor* queryLengths() const { return query_lengths_ ? query_lengths_->get() : nullptr; }
  const rbcTensor* out() const { return placed_out_.get(); }
  const rbcTensor* mask() const { return has_mask_ ? placed_mask_.get() : nullptr; }

  // The output, and whether anything was written elsewhere.
  Output fetch(const Context& context, bool* stray_writes);

 private:
  bool has_mask_;
  Array out_;
  Array mask_;
  Placed query_times_;
  std::optional<Placed> query_lengths_;
  Placed placed_out_;
  Placed placed_mask_;
};

template <class Result>
struct RunOf {
  rbcStatus_t status = RBC_STATUS_SUCCESS;
  std::string message;
  Result output;
  bool stray_writes = false;  // outside the elements of the outputs
};
using Run = RunOf<Output>;
using ResampleRun = Run;

namespace detail {

// `placed` fetches the output of the call.
template <class Placed, class Around, class Call>
auto finish(const Context& context, Placed& placed, Around&& around, Call&& call) {
  RunOf<decltype(placed.fetch(context, nullptr))> result;
  result.status = around(call);
  if (result.status != RBC_STATUS_SUCCESS) result.message = rbcGetLastError();
  require(rbcContextSynchronize(context.get()));
  result.output = placed.fetch(context, &result.stray_writes);
  return result;
}

}  // namespace detail

// The tensors of a call, for any context of the device.
class PlacedResample {
 public:
  PlacedResample(const Context& context, const ResampleInputs& in)
      : PlacedResample(context, in, infoOf(context).backend == RBC_BACKEND_CUDA) {}
  PlacedResample(const PlacedResample&) = delete;

  rbcStatus_t call(const Context& context) const;
  size_t workspaceSize(const Context& context) const;
  Output fetch(const Context& context, bool* stray_writes) {
    return shared_.fetch(context, stray_writes);
  }

 private:
  PlacedResample(const Context& context, const ResampleInputs& in, bool cuda);

  PlacedCall shared_;
  PlacedStream stream_;
  rbcResampleParams params_;
};

class PlacedFuse {
 public:
  PlacedFuse(const Context& context, const FuseInputs& in)
      : PlacedFuse(context, in, infoOf(context).backend == RBC_BACKEND_CUDA) {}
  PlacedFuse(const PlacedFuse&) = delete;

  rbcStatus_t call(const Context& context) const;
  size_t workspaceSize(const Context& context) const;
  Output fetch(const Context& context, bool* stray_writes) {
    return shared_.fetch(context, stray_writes);
  }
  const PlacedCall& shared() const { return shared_; }
  const std::vector<rbcFuseStream>& streams() const { return streams_; }

 private:
  PlacedFuse(const Context& context, const FuseInputs& in, bool cuda);

  PlacedCall shared_;
  std::vector<PlacedStream> arrays_;
  std::vector<rbcResampleParams> stream_params_;
  std::vector<rbcFuseStream> streams_;
  rbcFuseParams params_;
};

inline PlacedResample placedOf(const Context& context, const ResampleInputs& in) {
  return PlacedResample(context, in);
}
inline PlacedFuse placedOf(const Context& context, const FuseInputs& in) {
  return PlacedFuse(context, in);
}

// `around` gets the call; it must make it and return its status.
template <class Inputs, class Around>
auto run(const Context& context, const Inputs& in, Around&& around) {
  auto placed = placedOf(context, in);
  return detail::finish(context, placed, around, [&] { return placed.call(context); });
}

template <class Inputs>
auto run(const Context& context, const Inputs& in) {
  return run(context, in, [](auto&& call) { return call(); });
}

}  // namespace support
