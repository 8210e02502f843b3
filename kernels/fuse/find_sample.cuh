// The search of one query, for kernels.
//
// Index is int64_t, or int32_t where indexes and steps fit, which makes an address one
// multiplication and saves registers. The rest of a search is memory latency: independent loads are
// issued together.
#pragma once

#include "fuse_problem.h"

namespace rbc::cuda {

// ---- addresses ----------------------------------------------------------------------------------

// `data` plus i steps, written out: the compiler does not see that the sign was extended elsewhere,
// and would multiply in 64 bits.
template <class Byte>
__device__ __forceinline__ Byte* stepped(Byte* data, int32_t i, int32_t step) {
  auto address = reinterpret_cast<uint64_t>(data);
  asm("mad.wide.s32 %0, %1, %2, %0;" : "+l"(address) : "r"(i), "r"(step));
  return reinterpret_cast<Byte*>(address);
}
template <class Byte>
__device__ __forceinline__ Byte* stepped(Byte* data, int64_t i, int64_t step) {
  return data + i * step;
}

// The same for a step that may be long, for i >= 0.
template <class Byte>
__device__ __forceinline__ Byte* steppedFar(Byte* data, int32_t i, int64_t step) {
  auto address = reinterpret_cast<uint64_t>(data);
  const auto low = static_cast<uint32_t>(step);
  const auto high = static_cast<uint32_t>(step >> 32);
  asm("{\n\t"
      ".reg .b32 l, h;\n\t"
      "mad.wide.u32 %0, %1, %2, %0;\n\t"
      "mov.b64 {l, h}, %0;\n\t"
      "mad.lo.u32 h, %1, %3, h;\n\t"
      "mov.b64 %0, {l, h};\n\t"
      "}"
      : "+l"(address)
      : "r"(i), "r"(low), "r"(high));
  return reinterpret_cast<Byte*>(address);
}
template <class Byte>
__device__ __forceinline__ Byte* steppedFar(Byte* data, int64_t i, int64_t step) {
  return data + i * step;
}

// ---- arguments of a kernel, in bytes ------------------------------------------------------------

// Rows of a batch in memory.
template <class Byte, class Index>
struct BatchRows {
  Byte* data;  // may be null
  int64_t batch_step;
  Index step;

  __device__ __forceinline__ Byte* at(Index b, Index i) const {
    return stepped(steppedFar(data, b, batch_step), i, step);
  }
};

// For elements of `size` bytes; strides count elements.
template <class Index, class Byte>
RBC_HD BatchRows<Byte, Index> batchRows(Byte* data, int64_t batch_stride, int64_t stride,
                                        int64_t size) {
  return {data, batch_stride * size, static_cast<Index>(stride * size)};
}

template <class Index>
struct QueryRows {
  BatchRows<const char, Index> times;
  IndexArray lengths;
};

template <class Time, class Index>
RBC_HD QueryRows<Index> queryRowsOf(const PlainFuse& p) {
  return {batchRows<Index>(static_cast<const char*>(p.query_times), p.query_stride[0],
                           p.query_stride[1], sizeof(Time)),
          p.query_lengths};
}

template <class Index>
struct SampleRows {
  BatchRows<const char, Index> times;
  IndexArray lengths;
  IndexArray offsets;
  Index most;   // samples per row
  float pace;   // see paceOf() of stream_checks.h
  bool ragged;  // lengths or offsets give the samples of a row
};

template <class Time, class Index>
RBC_HD SampleRows<Index> sampleRowsOf(const FuseStream& s, float pace) {
  return {batchRows<Index>(static_cast<const char*>(s.times), s.times_stride[0], s.times_stride[1],
                           sizeof(Time)),
          s.lengths,
          s.offsets,
          static_cast<Index>(s.samples),
          pace,
          s.lengths.data != nullptr || s.offsets.data != nullptr};
}

// ---- the search ---------------------------------------------------------------------------------

// The times of some samples.
template <class Time, class Index>
struct TimesAt {
  const char* first;
  Index step;  // in bytes

  __device__ __forceinline__ Time operator[](Index i) const {
    return *reinterpret_cast<const Time*>(stepped(first, i, step));
  }
};

// The samples of one member of the batch.
template <class Time, class Index>
struct Recording {
  TimesAt<Time, Index> times;
  Index begin;  // relative to the stream's rows
  Index count;
};

template <class Time, class Index>
__device__ __forceinline__ Recording<Time, Index> recordingOf(const SampleRows<Index>& s, Index b) {
  Index begin = 0;
  Index count = s.most;
  if (s.ragged) {
    const RowRange range = rangeOf(s.lengths, s.offsets, s.most, b);
    begin = static_cast<Index>(range.begin);
    count = static_cast<Index>(range.count);
  }
  return {{s.times.at(b, begin), s.times.step}, begin, count};
}

// A recording that may have missing samples.
template <class Time, class Index>
struct MaskedRecording : Recording<Time, Index> {
  ValidSamples<Index> valid;

  // Restricts it to samples begin .. begin + count - 1.
  __device__ __forceinline__ void cut(const SampleRange<Index>& part) {
    this->times.first = stepped(this->times.first, part.begin, this->times.step);
    this->begin += part.begin;
    this->count = part.count;
    valid = valid.shifted(part.begin);
  }
};

template <class Time, class Index>
__device__ __forceinline__ MaskedRecording<Time, Index> recordingOf(
    const SampleRows<Index>& s, const BatchRows<const uint8_t, Index>& mask, Index b) {
  MaskedRecording<Time, Index> recording = {recordingOf<Time>(s, b), {nullptr, 0}};
  if (mask.data != nullptr) recording.valid = {mask.at(b, recording.begin), mask.step};
  return recording;
}

template <class Index>
RBC_HD BatchRows<const uint8_t, Index> sampleMaskOf(const FuseStream& s) {
  return batchRows<Index>(s.sample_mask, s.sample_mask_stride[0], s.sample_mask_stride[1], 1);
}

// Prefetches the times of query t as if queries and samples were spread evenly over a recording,
// while the ends of the row are read. Only a hint, but always within the row.
template <class Index>
__device__ __forceinline__ void prefetchTimes(const SampleRows<Index>& s, Index b, Index t) {
  if (s.pace == 0) return;
  const Index near = min(static_cast<Index>(static_cast<float>(t) * s.pace), s.most - 1);
  asm volatile("prefetch.global.L2 [%0];" ::"l"(s.times.at(b, near)));
}

// `offset` is the clock offset of the stream. For `guess` see positionOf().
template <class Time, class Index>
__device__ __forceinline__ SamplePosition<Time, Index> findSample(
    const QueryRows<Index>& queries, Index b, Index t, Time offset,
    const Recording<Time, Index>* samples, const Rules<Time>& rules, Index* guess) {
  const bool valid = queries.lengths.data == nullptr || t < queries.lengths[b];
  if (!valid || samples->count <= 0) return SamplePosition<Time, Index>::none();
  const Time q = *reinterpret_cast<const Time*>(queries.times.at(b, t));
  const Ends<Time> ends = {samples->times[0], samples->times[samples->count - 1]};
  return positionOf(samples->times, samples->count, ends, TimeMath<Time>::shifted(q, offset), rules,
                    guess);
}

// The same if samples may be missing. The recording is cut to its first and last valid sample, and
// the position is relative to the first.
template <class Time, class Index>
__device__ __forceinline__ SamplePosition<Time, Index> findSample(
    const QueryRows<Index>& queries, Index b, Index t, Time offset,
    MaskedRecording<Time, Index>* samples, const Rules<Time>& rules, Index* guess) {
  const bool valid = queries.lengths.data == nullptr || t < queries.lengths[b];
  if (!valid || samples->count <= 0) return SamplePosition<Time, Index>::none();
  const Time q = *reinterpret_cast<const Time*>(queries.times.at(b, t));
  Ends<Time> ends = {samples->times[0], samples->times[samples->count - 1]};
  const bool begins = samples->valid.counts(0);
  const bool finishes = samples->valid.counts(samples->count - 1);
  if (!(begins & finishes)) {
    samples->cut(trimmed(samples->valid, samples->count));
    if (samples->count <= 0) return SamplePosition<Time, Index>::none();
    ends = {samples->times[0], samples->times[samples->count - 1]};
  }
  return positionOf(samples->times, samples->count, ends, TimeMath<Time>::shifted(q, offset), rules,
                    guess, samples->valid);
}

}  // namespace rbc::cuda
