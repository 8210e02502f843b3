// rbcAccumulator...: statistics of samples that arrive piece by piece.

#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "fuse/sample_builder.h"
#include "guard.h"
#include "overlap.h"
#include "params.h"
#include "runtime/dtype_checks.h"
#include "statistics/accumulator.h"
#include "statistics/accumulator_state.h"
#include "status.h"

namespace rbc {
namespace {

using AccumulatorPointer = std::unique_ptr<rbcAccumulator, AccumulatorDestroyer>;

// ---- settings -----------------------------------------------------------------------------------

AccumulatorKind checkedKind(const rbcAccumulatorParams* input) {
  if (input == nullptr) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "params: is null, expected parameters with num_channels");
  }
  const rbcAccumulatorParams params = readParams(input, rbcAccumulatorParamsInit(), "params");
  AccumulatorKind kind;
  if (params.num_channels < 1 || params.num_channels > kMaxAccumulatorChannels) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "num_channels: is %" PRId64 ", expected 1 to 2^24",
         params.num_channels);
  }
  kind.channels = params.num_channels;
  kind.ddof = checkedDdof(params.ddof);
  kind.num_levels = readLevels(params.levels, kind.levels);
  if (params.bucket_bits != 0) {
    if (params.bucket_bits < kMinBucketBits || params.bucket_bits > kMaxBucketBits) {
      fail(RBC_STATUS_INVALID_ARGUMENT, "bucket_bits: is %d, expected %d to %d, or 0 for 16",
           params.bucket_bits, kMinBucketBits, kMaxBucketBits);
    }
    kind.bucket_bits = params.bucket_bits;
  }
  const rbcDType dtype = params.dtype;
  if (dtype.code != 0 || dtype.bits != 0 || dtype.lanes != 0) {
    kind.dtype = dtypeOf(dtype, "params.dtype");
    kind.has_dtype = true;
  }
  return kind;
}

// ---- samples ------------------------------------------------------------------------------------

struct UpdateArguments {
  rbcAccumulator_t accumulator;
  const rbcTensor* values;
  const rbcAccumulatorUpdateParams* params;
};

class AccumulateCall : public SampleBuilder {
 public:
  static constexpr const char* kOperation = "accumulate";

  AccumulateCall(const rbcContext& context, const UpdateArguments& call);
  const AccumulateProblem& problem() const { return problem_; }
  bool empty() const { return problem_.samples.total() == 0; }

  // From here on only the work itself can fail: it is interrupted, or the device fails.
  void check(rbcContext&, Scratch) const {
    accumulator_.half_added = true;
    accumulator_.settled.kind.has_dtype = true;
    accumulator_.settled.kind.dtype = problem_.samples.dtype;
    accumulator_.most_samples += problem_.samples.total();
  }
  void after(rbcContext&, Scratch) const { accumulator_.half_added = false; }

 private:
  rbcAccumulator& accumulator_;
  AccumulateProblem problem_ = {};
};

AccumulateCall::AccumulateCall(const rbcContext& context, const UpdateArguments& call)
    : SampleBuilder(context, problem_.samples),
      accumulator_(requireAccumulator(context, call.accumulator)) {
  const rbcAccumulatorUpdateParams params =
      readParams(call.params, rbcAccumulatorUpdateParamsInit(), "params");
  const AccumulatorKind& kind = accumulator_.settled.kind;
  if (kind.resolved) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "accumulator: its passes are over, and it takes no more samples");
  }
  addSamples({call.values, params.lengths, params.batch_offsets, params.sample_mask}, false);
  const Samples& samples = problem_.samples;
  if (samples.channels != kind.channels) {
    fail(RBC_STATUS_SHAPE_MISMATCH,
         "values: has %" PRId64 " channels, expected %" PRId64 " as the accumulator has",
         samples.channels, kind.channels);
  }
  if (kind.has_dtype && samples.dtype != kind.dtype) {
    fail(RBC_STATUS_DTYPE_MISMATCH, "values: dtype is %s, expected %s as the accumulator has",
         nameOf(samples.dtype), nameOf(kind.dtype));
  }
  requireRoom(accumulator_, samples.total(), "values");
  problem_.state = stateOf(accumulator_, samples.dtype);
}

// ---- merging ------------------------------------------------------------------------------------

bool sameLevels(const AccumulatorKind& one, const AccumulatorKind& other) {
  return one.num_levels == other.num_levels &&
         std::equal(one.levels, one.levels + one.num_levels, other.levels);
}

void requireSameKind(const AccumulatorKind& to, const AccumulatorKind& from) {
  if (from.channels != to.channels) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "other: has %" PRId64 " channels, expected %" PRId64,
         from.channels, to.channels);
  }
  if (!sameLevels(to, from)) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "other: its levels differ from the accumulator's levels");
  }
  if (from.ddof != to.ddof) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "other: ddof is %d, expected %d", from.ddof, to.ddof);
  }
  if (from.bucket_bits != to.bucket_bits) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "other: bucket_bits is %d, expected %d", from.bucket_bits,
         to.bucket_bits);
  }
  if (from.has_dtype && to.has_dtype && from.dtype != to.dtype) {
    fail(RBC_STATUS_DTYPE_MISMATCH, "other: dtype is %s, expected %s", nameOf(from.dtype),
         nameOf(to.dtype));
  }
  if (from.resolved || to.resolved) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "%s: its passes are over, and there is nothing to add",
         from.resolved ? "other" : "accumulator");
  }
  if (from.pass != to.pass) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "other: is in pass %d, expected %d", from.pass, to.pass);
  }
}

void merge(rbcAccumulator& to, rbcAccumulator& from) {
  if (&to == &from) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "other: is the accumulator itself, expected another");
  }
  requireSameKind(to.settled.kind, from.settled.kind);
  // Forged bytes can have equal digests. The tables are added, so their number must match the
  // buckets.
  if (to.digest != from.digest || to.settled.first_bucket != from.settled.first_bucket ||
      to.settled.buckets != from.settled.buckets) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "other: its samples in the previous pass differ from the accumulator's samples");
  }
  requireRoom(to, from.most_samples, "other");
  rbcContext& context = *to.context;
  const DType dtype = from.settled.kind.has_dtype ? from.settled.kind.dtype : to.settled.kind.dtype;
  const MergeProblem problem = {stateOf(to, dtype), stateOf(from, dtype)};
  const auto& operation = operationFor<MergeProblem>(*context.backend);
  const size_t bytes = operation.workspaceBytes(*context.state, problem);
  const Scratch scratch = {bytes > 0 ? workspace(context, bytes).data : nullptr, bytes};
  to.half_added = true;
  operation.run(*context.state, problem, scratch);
  to.half_added = false;
  to.most_samples += from.most_samples;
  if (from.settled.kind.has_dtype) {
    to.settled.kind.has_dtype = true;
    to.settled.kind.dtype = dtype;
  }
}

// ---- passes -------------------------------------------------------------------------------------

bool nextPass(rbcAccumulator& accumulator) {
  const AccumulatorKind& kind = accumulator.settled.kind;
  if (kind.num_levels == 0 || kind.resolved) return false;
  AccumulatorData data = fetch(accumulator);
  if (!kind.has_dtype || std::all_of(data.moments.begin(), data.moments.end(),
                                     [](const Moments& m) { return m.count + m.nonfinite == 0; })) {
    fail(RBC_STATUS_INVALID_ARGUMENT,
         "accumulator: has no samples, expected 1 or more before the next pass");
  }
  requireComplete(data);
  if (kind.passesAfterFirst() == 0) return false;  // more samples may follow
  AccumulatorData next = afterPass(data);
  const bool more = !next.kind.resolved;
  place(accumulator, std::move(next));
  return more;
}

// ---- results ------------------------------------------------------------------------------------

// The outputs of a call in host memory. At the end they are checked for overlap.
class HostOutputs {
 public:
  const View* add(const rbcOutput* tensor, const char* name, DType dtype, int ndim,
                  const int64_t* shape) {
    if (tensor == nullptr) return nullptr;
    View& view = views_[count_];
    view = normalize(tensor, name);
    requireHost(view, name);
    requireShape(view, name, ndim, shape);
    requireDType(view, name, dtype);
    requireDistinctElements(view, name);
    for (int i = 0; i < count_; ++i) requireDisjoint(view, name, views_[i], names_[i]);
    names_[count_++] = name;
    return &view;
  }

 private:
  static constexpr int kMax = 7;
  View views_[kMax];
  const char* names_[kMax];
  int count_ = 0;
};

template <class T>
void put(const View* view, int64_t row, int64_t column, T value) {
  if (view == nullptr) return;
  const int last = view->ndim - 1;
  const int64_t place = (last > 0 ? row * view->strides[0] : 0) + column * view->strides[last];
  reinterpret_cast<T*>(view->data)[place] = value;
}

void writeResult(rbcAccumulator& accumulator, const rbcStatisticsOutputs* input) {
  if (input == nullptr) fail(RBC_STATUS_INVALID_ARGUMENT, "outputs: is null");
  const rbcStatisticsOutputs tensors = readParams(input, rbcStatisticsOutputsInit(), "outputs");
  const AccumulatorKind& kind = accumulator.settled.kind;
  const int64_t shape[] = {kind.num_levels, kind.channels};
  HostOutputs outputs;
  const View* count = outputs.add(tensors.count, "count", DType::I64, 1, shape + 1);
  const View* nonfinite = outputs.add(tensors.nonfinite, "nonfinite", DType::I64, 1, shape + 1);
  const View* min = outputs.add(tensors.min, "min", DType::F64, 1, shape + 1);
  const View* max = outputs.add(tensors.max, "max", DType::F64, 1, shape + 1);
  const View* mean = outputs.add(tensors.mean, "mean", DType::F64, 1, shape + 1);
  const View* std = outputs.add(tensors.std, "std", DType::F64, 1, shape + 1);
  const View* quantiles = outputs.add(tensors.quantiles, "quantiles", DType::F64, 2, shape);
  AccumulatorData data = fetch(accumulator);
  const bool has_values = kind.has_dtype && kind.num_levels > 0;
  if (quantiles != nullptr && has_values && !kind.resolved) {
    requireComplete(data);
    data = afterPass(data);
  }
  for (int64_t c = 0; c < kind.channels; ++c) {
    const Moments& m = data.moments[c];
    put(count, 0, c, m.count);
    put(nonfinite, 0, c, m.nonfinite);
    put(min, 0, c, smallest(m));
    put(max, 0, c, largest(m));
    if (mean != nullptr) put(mean, 0, c, exactMean(m));
    if (std != nullptr) put(std, 0, c, exactStd(m, kind.ddof));
    for (int i = 0; i < kind.num_levels && quantiles != nullptr; ++i) {
      const double value = m.count > 0 ? quantileOf(data, c, kind.levels[i]) : notANumber();
      put(quantiles, i, c, value);
    }
  }
}

void writeInfoOf(const AccumulatorKind& kind, rbcAccumulatorInfo* info) {
  rbcAccumulatorInfo all = rbcAccumulatorInfoInit();
  all.current_pass = kind.pass;
  all.num_channels = kind.channels;
  all.num_levels = kind.num_levels;
  all.ddof = kind.ddof;
  all.bucket_bits = kind.bucket_bits;
  if (kind.has_dtype) all.dtype = describe(kind.dtype);
  writeInfo(info, all, "info", "rbcAccumulatorInfoInit");
}

// Returns the context that the accumulator was created with.
rbcContext_t contextOf(rbcAccumulator_t accumulator) {
  if (accumulator == nullptr) fail(RBC_STATUS_INVALID_ARGUMENT, "accumulator: is null");
  return accumulator->context;
}

template <class T>
T* requireResult(T* pointer, const char* argument) {
  if (pointer == nullptr) fail(RBC_STATUS_INVALID_ARGUMENT, "%s: is null", argument);
  return pointer;
}

}  // namespace
}  // namespace rbc

using rbc::guard;
using rbc::requireAccumulator;

rbcStatus_t rbcAccumulatorCreate(rbcContext_t context, const rbcAccumulatorParams* params,
                                 rbcAccumulator_t* accumulator) {
  return guard([&] {
    *rbc::requireResult(accumulator, "accumulator") = nullptr;
    const rbc::ContextUse use(context);
    rbc::AccumulatorData data = rbc::emptyData(rbc::checkedKind(params));
    rbc::AccumulatorPointer made(rbc::newAccumulator(*use));
    rbc::place(*made, std::move(data));
    *accumulator = made.release();
  });
}

rbcStatus_t rbcAccumulatorDestroy(rbcAccumulator_t accumulator) {
  return guard([&] {
    if (accumulator == nullptr) return;
    rbc::takeAccumulator(*accumulator);
    rbc::AccumulatorDestroyer{}(accumulator);
  });
}

rbcStatus_t rbcAccumulatorUpdate(rbcAccumulator_t accumulator, const rbcTensor* values,
                                 const rbcAccumulatorUpdateParams* params) {
  return guard([&] {
    rbc::Entry<rbc::AccumulateCall>(rbc::contextOf(accumulator),
                                    rbc::UpdateArguments{accumulator, values, params})
        .run();
  });
}

rbcStatus_t rbcAccumulatorUpdateWorkspaceSize(rbcAccumulator_t accumulator, const rbcTensor* values,
                                              const rbcAccumulatorUpdateParams* params,
                                              size_t* bytes) {
  return guard([&] {
    rbc::requireResult(bytes, "bytes");
    *bytes = rbc::Entry<rbc::AccumulateCall>(rbc::contextOf(accumulator),
                                             rbc::UpdateArguments{accumulator, values, params})
                 .workspaceBytes();
  });
}

rbcStatus_t rbcAccumulatorMerge(rbcAccumulator_t accumulator, rbcAccumulator_t other) {
  return guard([&] {
    const rbc::ContextUse use(rbc::contextOf(accumulator));
    rbcAccumulator& to = requireAccumulator(*use, accumulator);
    rbc::merge(to, requireAccumulator(*use, other, "other"));
  });
}

rbcStatus_t rbcAccumulatorNextPass(rbcAccumulator_t accumulator, int32_t* more) {
  return guard([&] {
    const rbc::ContextUse use(rbc::contextOf(accumulator));
    rbc::requireResult(more, "more");
    *more = rbc::nextPass(requireAccumulator(*use, accumulator)) ? 1 : 0;
  });
}

rbcStatus_t rbcAccumulatorExport(rbcAccumulator_t accumulator, void* data, size_t capacity,
                                 size_t* bytes) {
  return guard([&] {
    const rbc::ContextUse use(rbc::contextOf(accumulator));
    rbc::requireResult(bytes, "bytes");
    if (capacity > 0) rbc::requireResult(data, "data");
    rbcAccumulator& a = requireAccumulator(*use, accumulator);
    const std::vector<uint64_t> words = rbc::toWords(rbc::fetch(a));
    const size_t size = words.size() * sizeof(uint64_t);
    *bytes = size;
    if (data == nullptr) return;
    if (capacity < size) {
      rbc::fail(RBC_STATUS_BUFFER_TOO_SMALL, "capacity: is %zu bytes, expected %zu", capacity,
                size);
    }
    std::memcpy(data, words.data(), size);
  });
}

rbcStatus_t rbcAccumulatorImport(rbcContext_t context, const void* data, size_t bytes,
                                 rbcAccumulator_t* accumulator) {
  return guard([&] {
    *rbc::requireResult(accumulator, "accumulator") = nullptr;
    rbc::requireResult(data, "data");
    const rbc::ContextUse use(context);
    if (bytes % sizeof(uint64_t) != 0) {
      rbc::fail(RBC_STATUS_DAMAGED, "data: has %zu bytes, expected a multiple of 8", bytes);
    }
    std::vector<uint64_t> words(bytes / sizeof(uint64_t));
    if (bytes > 0) std::memcpy(words.data(), data, bytes);
    rbc::AccumulatorData read = rbc::fromWords(words.data(), words.size());
    rbc::AccumulatorPointer made(rbc::newAccumulator(*use));
    rbc::place(*made, std::move(read));
    *accumulator = made.release();
  });
}

rbcStatus_t rbcAccumulatorGetResult(rbcAccumulator_t accumulator,
                                    const rbcStatisticsOutputs* outputs) {
  return guard([&] {
    const rbc::ContextUse use(rbc::contextOf(accumulator));
    rbc::writeResult(requireAccumulator(*use, accumulator), outputs);
  });
}

rbcStatus_t rbcAccumulatorGetInfo(rbcAccumulator_t accumulator, rbcAccumulatorInfo* info) {
  return guard([&] {
    const rbc::AccumulatorUse use(*rbc::requireResult(accumulator, "accumulator"));
    rbc::writeInfoOf(use->settled.kind, info);
  });
}

rbcStatus_t rbcAccumulatorGetLevels(rbcAccumulator_t accumulator, double* levels, size_t capacity) {
  return guard([&] {
    const rbc::AccumulatorUse use(*rbc::requireResult(accumulator, "accumulator"));
    const rbc::AccumulatorKind& kind = use->settled.kind;
    if (capacity < static_cast<size_t>(kind.num_levels)) {
      rbc::fail(RBC_STATUS_BUFFER_TOO_SMALL, "capacity: is %zu, expected %d or more", capacity,
                kind.num_levels);
    }
    if (kind.num_levels > 0) rbc::requireResult(levels, "levels");
    std::copy_n(kind.levels, kind.num_levels, levels);
  });
}
