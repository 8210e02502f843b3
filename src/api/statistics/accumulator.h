// The accumulator: its settings, and its memory on the context's device.
#pragma once

#include <atomic>

#include "context.h"
#include "robocache/statistics.h"
#include "statistics/accumulator_state.h"

struct rbcAccumulator {
  rbcContext* context = nullptr;  // holds a reference
  rbc::InUse in_use;
  // The part that does not change during a pass; the rest is in `memory`.
  rbc::AccumulatorData settled;
  uint64_t digest = 0;       // of `settled`, in passes after the first
  int64_t most_samples = 0;  // the limit per channel
  void* memory = nullptr;    // on the device
  size_t bytes = 0;
  void* stream = nullptr;   // the stream that used it last
  bool half_added = false;  // a call that adds to it began and has not ended
};

namespace rbc {

struct AccumulatorDestroyer {
  void operator()(rbcAccumulator* accumulator) const noexcept;
};

// For functions without a context argument: reserves the accumulator for this thread. Fails if it
// is in use.
void takeAccumulator(rbcAccumulator& accumulator);

class AccumulatorUse {
 public:
  explicit AccumulatorUse(rbcAccumulator& accumulator) : accumulator_(accumulator) {
    takeAccumulator(accumulator);
  }
  ~AccumulatorUse() { accumulator_.in_use.busy.store(false, std::memory_order_release); }
  AccumulatorUse(const AccumulatorUse&) = delete;
  AccumulatorUse& operator=(const AccumulatorUse&) = delete;

  const rbcAccumulator* operator->() const { return &accumulator_; }

 private:
  rbcAccumulator& accumulator_;
};

// Reserves an accumulator until the context's call ends. Fails if it belongs to another context, is
// in use elsewhere, or was left incomplete by a call that failed.
rbcAccumulator& requireAccumulator(const rbcContext& context, rbcAccumulator_t accumulator,
                                   const char* argument = "accumulator");

// Makes an accumulator without memory, of a context that is in use.
rbcAccumulator* newAccumulator(rbcContext& context);

// These use the context's stream, which waits for earlier users of the memory.

// The memory in the form that a backend uses, for samples of a dtype.
AccumulatorState stateOf(rbcAccumulator& accumulator, DType dtype);
// Copies the whole state to the host. Synchronizes.
AccumulatorData fetch(rbcAccumulator& accumulator);
// Stores a state in new memory. Nothing changes if it fails. Synchronizes.
void place(rbcAccumulator& accumulator, AccumulatorData data);

// Fails if the samples so far and these would be more than kMaxSamples.
void requireRoom(rbcAccumulator& accumulator, int64_t samples, const char* argument);

}  // namespace rbc
