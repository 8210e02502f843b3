// Accumulators: updates, merges, passes, exported states with flipped bits, results.
#include <algorithm>
#include <array>
#include <cstring>

#include "fuzz/fill.h"
#include "fuzz/programs.h"
#include "fuzz/spoil.h"

namespace fuzz {
namespace {

const std::vector<std::string> kArguments = {
    "context", "accumulator", "other", "params", "values", "data",  "outputs",
    "more",    "capacity",    "bytes", "size",   "info",   "levels"};

class Program {
 public:
  Program(Machine& machine, Choices& choices, Transcript& transcript)
      : machine_(machine), choices_(choices), transcript_(transcript) {}
  ~Program() {
    for (auto* accumulator : handles_) rbcAccumulatorDestroy(accumulator);
  }
  Program(const Program&) = delete;

  void create(rbcDType dtype, int64_t channels, const double* levels, int64_t num_levels) {
    rbcTensor tensor = {const_cast<double*>(levels),
                        {RBC_DEVICE_CPU, 0},
                        1,
                        support::kF64,
                        &num_levels,
                        nullptr,
                        0};
    rbcAccumulatorParams params = rbcAccumulatorParamsInit();
    params.num_channels = channels;
    params.levels = num_levels > 0 ? &tensor : nullptr;
    // Tables of 16 bits, the default, take half a megabyte per channel: use them rarely.
    params.bucket_bits =
        choices_.chance(6) ? choices_.pick({0, 16, 12}) : choices_.pick({8, 8, 8, 9, 10});
    params.ddof = static_cast<int32_t>(choices_.below(2));
    if (choices_.chance(50)) params.dtype = dtype;
    if (choices_.chance(3)) params.bucket_bits = choices_.pick({-1, 7, 21, INT32_MAX});
    if (choices_.chance(3)) params.ddof = choices_.pick({-1, 2});
    if (choices_.chance(3))
      params.num_channels = choices_.pick<int64_t>({0, -1, INT64_MAX, INT64_MIN});
    if (choices_.chance(3)) params.reserved0 = 1;
    for (auto& handle : handles_) {
      // The second one may have different parameters.
      if (handles_[0] != nullptr && choices_.chance(15)) {
        switch (choices_.below(3)) {
          case 0: params.ddof = 1 - params.ddof; break;
          case 1: params.bucket_bits = 9; break;
          default: params.num_channels += 1; break;
        }
      }
      const rbcStatus_t status = rbcAccumulatorCreate(context(), &params, &handle);
      ended(status, "Create");
      if (status != RBC_STATUS_SUCCESS && handle != nullptr) throw Defect("Create left a handle");
    }
  }

  void update(rbcDType dtype, int64_t channels) {
    Call call("rbcAccumulatorUpdate");
    call.adds_up = true;
    const int64_t samples = choices_.between(0, 30);
    Tensor* values = call.add(choices_, "values", dtype, {samples, channels}, Role::kInput);
    support::isFloat(dtype) ? fillReals(call, *values, choices_)
                            : fillBits(call, *values, choices_);
    rbcAccumulatorUpdateParams params = rbcAccumulatorUpdateParamsInit();
    if (choices_.chance(30)) {
      Tensor* t = call.add(choices_, "sample_mask", anyFlag(choices_), {samples}, Role::kInput);
      fillMask(call, *t, choices_);
      params.sample_mask = t->hold();
    }
    Struct* p = call.add("rbcAccumulatorUpdateParams", &params);
    if (choices_.chance(15)) spoil(call, choices_);
    auto* const accumulator = any();
    call.names = kArguments;
    call.run = [=](rbcContext_t, const Handles&) {
      return rbcAccumulatorUpdate(accumulator, values->get(), p->get<rbcAccumulatorUpdateParams>());
    };
    call.size = [=](rbcContext_t, const Handles&, size_t* bytes) {
      return rbcAccumulatorUpdateWorkspaceSize(accumulator, values->get(),
                                               p->get<rbcAccumulatorUpdateParams>(), bytes);
    };
    // Sometimes the same samples again, as a second pass needs.
    for (int64_t n = choices_.chance(30) ? 2 : 1; n > 0; --n) {
      transcript_.outcome(run(machine_, call, 0xA5));
    }
  }

  void nextPass() {
    int32_t more = 77;
    ended(rbcAccumulatorNextPass(any(), &more), "NextPass");
    transcript_.bytes(&more, sizeof more);
  }

  // The same samples in pass after pass, until no further pass is needed.
  void allPasses(rbcDType dtype, int64_t channels) {
    Call call("rbcAccumulatorUpdate");
    call.adds_up = true;
    Tensor* values =
        call.add(choices_, "values", dtype, {choices_.between(1, 30), channels}, Role::kInput);
    support::isFloat(dtype) ? fillReals(call, *values, choices_)
                            : fillBits(call, *values, choices_);
    auto* const accumulator = any();
    call.names = kArguments;
    call.run = [=](rbcContext_t, const Handles&) {
      return rbcAccumulatorUpdate(accumulator, values->get(), nullptr);
    };
    for (int n = 0; n < 6; ++n) {
      transcript_.outcome(run(machine_, call, 0xA5));
      int32_t more = 0;
      ended(rbcAccumulatorNextPass(accumulator, &more), "NextPass");
      if (more == 0 && n > 0) break;
    }
    transcript_.outcome(run(machine_, call, 0xA5));  // refuses samples if no pass is left
  }

  void result(int64_t channels, int64_t num_levels) {
    Call call("rbcAccumulatorGetResult");
    rbcStatisticsOutputs result = rbcStatisticsOutputsInit();
    const auto output = [&](const char* name, rbcDType dtype, std::vector<int64_t> shape) {
      return call.add(choices_, name, dtype, shape, Role::kOutput, Where::kHost)->hold();
    };
    if (choices_.chance(70)) result.count = output("count", support::kI64, {channels});
    if (choices_.chance(70)) result.nonfinite = output("nonfinite", support::kI64, {channels});
    if (choices_.chance(70)) result.min = output("min", support::kF64, {channels});
    if (choices_.chance(70)) result.max = output("max", support::kF64, {channels});
    if (choices_.chance(70)) result.mean = output("mean", support::kF64, {channels});
    if (choices_.chance(70)) result.std = output("std", support::kF64, {channels});
    if (num_levels > 0 && choices_.chance(70)) {
      result.quantiles = output("quantiles", support::kF64, {num_levels, channels});
    }
    Struct* r = call.add("rbcStatisticsOutputs", &result);
    if (choices_.chance(20)) spoil(call, choices_);
    auto* const accumulator = any();
    call.names = kArguments;
    call.run = [=](rbcContext_t, const Handles&) {
      return rbcAccumulatorGetResult(accumulator, r->get<rbcStatisticsOutputs>());
    };
    transcript_.outcome(run(machine_, call, 0x7F));
  }

  // Exports, perhaps corrupts, and imports a state.
  void travel() {
    size_t bytes = 0;
    auto& handle = handles_[static_cast<size_t>(choices_.below(kHandles))];
    if (ended(rbcAccumulatorExport(handle, nullptr, 0, &bytes), "Export") != RBC_STATUS_SUCCESS) {
      return;
    }
    std::vector<uint8_t> state(bytes);
    if (choices_.chance(10) && bytes > 0) {
      size_t needed = 0;
      ended(rbcAccumulatorExport(handle, state.data(),
                                 static_cast<size_t>(choices_.below(static_cast<int64_t>(bytes))),
                                 &needed),
            "Export");
    }
    if (ended(rbcAccumulatorExport(handle, state.data(), bytes, &bytes), "Export") !=
        RBC_STATUS_SUCCESS) {
      return;
    }
    if (bytes < 4096 || choices_.chance(10)) transcript_.bytes(state.data(), bytes);
    bool spoilt = false;
    if (choices_.chance(60)) {
      for (int64_t n = choices_.between(1, 3); n > 0 && !state.empty(); --n) {
        const int64_t near = std::min<int64_t>(static_cast<int64_t>(state.size()),
                                               choices_.chance(60) ? 128 : INT32_MAX);
        state[static_cast<size_t>(choices_.below(near))] ^=
            static_cast<uint8_t>(1 << choices_.below(8));
      }
      if (choices_.chance(30)) {
        state.resize(static_cast<size_t>(choices_.below(static_cast<int64_t>(state.size()) + 16)));
      }
      spoilt = true;
      if (choices_.chance(70)) repair(state);  // a valid checksum: an attacker can compute one
    }
    const std::vector<uint8_t> exact(state);
    rbcAccumulator_t made = reinterpret_cast<rbcAccumulator_t>(1);
    const rbcStatus_t status = rbcAccumulatorImport(context(), exact.data(), exact.size(), &made);
    ended(status, "Import");
    if (status != RBC_STATUS_SUCCESS) {
      if (made != nullptr) throw Defect("Import left a handle");
      if (!spoilt && status != RBC_STATUS_OUT_OF_MEMORY) throw Defect("Import refused an export");
      return;
    }
    rbcAccumulatorDestroy(handle);
    handle = made;
  }

  void merge() { ended(rbcAccumulatorMerge(any(), any()), "Merge"); }

  void info() {
    rbcAccumulatorInfo info = rbcAccumulatorInfoInit();
    if (choices_.chance(10)) info.struct_size = static_cast<uint32_t>(choices_.below(600));
    if (ended(rbcAccumulatorGetInfo(any(), &info), "GetInfo") == RBC_STATUS_SUCCESS) {
      transcript_.bytes(&info, sizeof info);
    }
    double levels[RBC_STATISTICS_MAX_LEVELS] = {};
    const auto capacity = static_cast<int32_t>(choices_.below(RBC_STATISTICS_MAX_LEVELS + 1));
    if (ended(rbcAccumulatorGetLevels(any(), levels, capacity), "GetLevels") ==
        RBC_STATUS_SUCCESS) {
      transcript_.bytes(levels, sizeof levels);
    }
  }

 private:
  static constexpr int64_t kHandles = 2;

  rbcContext_t context() const { return machine_.context(); }
  rbcAccumulator_t any() {
    if (choices_.chance(2)) return nullptr;
    return handles_[static_cast<size_t>(choices_.below(kHandles))];
  }
  rbcStatus_t ended(rbcStatus_t status, const char* what) {
    return transcript_.ended(status, std::string("rbcAccumulator") + what, kArguments);
  }
  // Sets the last 8 bytes to the checksum that Export would have written.
  static void repair(std::vector<uint8_t>& state);

  Machine& machine_;
  Choices& choices_;
  Transcript& transcript_;
  std::array<rbcAccumulator_t, kHandles> handles_ = {};
};

void Program::repair(std::vector<uint8_t>& state) {
  const size_t words = state.size() / 8;
  if (words < 2) return;
  uint64_t hash = 0xCBF29CE484222325u;
  for (size_t i = 0; i + 1 < words; ++i) {
    uint64_t word = 0;
    std::memcpy(&word, &state[8 * i], sizeof word);
    hash = (hash ^ word) * 0x100000001B3u;
    hash ^= hash >> 32;
  }
  std::memcpy(&state[8 * (words - 1)], &hash, sizeof hash);
}

}  // namespace

void accumulatorProgram(Machine& machine, Choices choices, Transcript& transcript) {
  Program program(machine, choices, transcript);
  const rbcDType dtype =
      choices.chance(30) ? choices.pick(support::kIntegerDTypes) : anyFloat(choices);
  const int64_t channels = choices.between(1, 3);
  double levels[3];
  for (double& level : levels) level = choices.pick({0.0, 0.25, 0.5, 0.99, 1.0});
  const int64_t num_levels = choices.chance(50) ? choices.between(1, 3) : 0;
  program.create(dtype, channels, levels, num_levels);
  for (int64_t n = choices.between(1, 10); n > 0; --n) {
    switch (choices.below(9)) {
      case 8: program.allPasses(dtype, channels); break;
      case 0:
      case 1: program.update(dtype, channels); break;
      case 2:
        program.update(choices.chance(80) ? dtype : anyFloat(choices), choices.between(1, 3));
        break;
      case 3: program.nextPass(); break;
      case 4: program.result(channels, num_levels); break;
      case 5: program.travel(); break;
      case 6: program.merge(); break;
      default: program.info(); break;
    }
  }
}

}  // namespace fuzz
