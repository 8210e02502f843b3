// The accumulator: what it is for, and its memory on the context's device.
#pragma once

#include <atomic>

#include "context.h"
#include "robocache/statistics.h"
#include "statistics/accumulator_state.h"

struct rbcAccumulator {
  rbcContext* context = nullptr;  // holds a reference
  rbc::InUse in_use;
  // What does not change during a pass; the rest of it lies in memory.
  rbc::AccumulatorData settled;
  uint64_t digest = 0;       // of that, in passes after the first
  int64_t most_samples = 0;  // of a channel: no more than this
  void* memory = nullptr;    // of the device
  size_t bytes = 0;
  void* stream = nullptr;   // that used it last
  bool half_added = false;  // a call that adds to it began, and has not come to its end
};

namespace rbc {

struct AccumulatorDestroyer {
  void operator()(rbcAccumulator* accumulator) const noexcept;
};

// For functions that take no context: nobody else uses it from here on. Fails if it is in use.
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

// Uses it until the context's call ends. Fails unless it is one of the context, not in use elsewhere,
// and whole.
rbcAccumulator& requireAccumulator(const rbcContext& context, rbcAccumulator_t accumulator,
                                   const char* argument = "accumulator");

// An accumulator of a context that is in use, empty of memory.
rbcAccumulator* newAccumulator(rbcContext& context);

// These use the context's stream, which waits for what used the memory before.

// Its memory as a backend gets it, for samples of a dtype.
AccumulatorState stateOf(rbcAccumulator& accumulator, DType dtype);
// All of it. Synchronizes.
AccumulatorData fetch(rbcAccumulator& accumulator);
// Gives it a state, in new memory. Nothing has changed if it fails. Synchronizes.
void place(rbcAccumulator& accumulator, AccumulatorData data);

// Fails if more than kMaxSamples would come together, of as many as these in addition.
void requireRoom(rbcAccumulator& accumulator, int64_t samples, const char* argument);

}  // namespace rbc
