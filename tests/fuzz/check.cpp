#include "fuzz/check.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "fuzz/fields.h"
#include "support/odd_floats.h"

namespace fuzz {
namespace {

constexpr uint8_t kRead = 1;
constexpr uint8_t kWritten = 2;

// Marks the bytes of elements of inputs and of outputs, block by block.
using Marks = std::vector<std::vector<uint8_t>>;

bool isCompact(const Tensor& t) {
  int64_t next = 1;
  for (int i = t.raw.ndim - 1; i >= 0; --i) {
    if (t.raw.strides != nullptr && t.extent(i) > 1 && t.strides[static_cast<size_t>(i)] != next)
      return false;
    next *= t.extent(i);
  }
  return true;
}

Marks marksOf(Call& call) {
  Marks marks;
  for (const Block& block : call.blocks()) marks.emplace_back(block.bytes.size());
  for (const Tensor& t : call.tensors()) {
    if (t.absent || t.block < 0) continue;
    const Reach reach = reachOf(t);
    if (reach.impossible || reach.count == 0 || t.raw.byte_offset > 4096) continue;
    const auto flags = static_cast<uint8_t>((t.read ? kRead : 0) | (t.written ? kWritten : 0));
    std::vector<uint8_t>& mark = marks[static_cast<size_t>(t.block)];
    const int64_t size = support::sizeOf(t.raw.dtype);
    const auto set = [&](int64_t place, int64_t bytes) {
      const auto at = static_cast<size_t>(place);
      const size_t end = std::min(at + static_cast<size_t>(bytes), mark.size());
      for (size_t i = at; i < end; ++i) mark[i] |= flags;
    };
    if (isCompact(t)) {
      set(t.shift + static_cast<int64_t>(t.raw.byte_offset), reach.count * size);
    } else {
      each(t, [&](int64_t place, const int64_t*) { set(place, size); });
    }
  }
  return marks;
}

// The accumulators of a call, while it runs.
class Accumulators {
 public:
  Accumulators(Machine& machine, const Call& call) {
    for (const rbcAccumulatorParams& params : call.accumulators) {
      rbcAccumulator_t made = nullptr;
      lacks_memory |=
          rbcAccumulatorCreate(machine.context(), &params, &made) == RBC_STATUS_OUT_OF_MEMORY;
      handles.accumulators.push_back(made);  // null if the parameters were spoiled
    }
  }
  ~Accumulators() {
    for (auto* accumulator : handles.accumulators) rbcAccumulatorDestroy(accumulator);
  }
  Accumulators(const Accumulators&) = delete;

  // Appends their states. Returns false if there is no memory for one.
  bool exportTo(std::vector<uint8_t>* output) const {
    for (auto* accumulator : handles.accumulators) {
      size_t bytes = 0;
      if (accumulator == nullptr) continue;
      rbcStatus_t status = rbcAccumulatorExport(accumulator, nullptr, 0, &bytes);
      if (status == RBC_STATUS_SUCCESS) {
        const size_t before = output->size();
        output->resize(before + bytes);
        status = rbcAccumulatorExport(accumulator, output->data() + before, bytes, &bytes);
      }
      if (status == RBC_STATUS_OUT_OF_MEMORY) return false;
    }
    return true;
  }

  Handles handles;
  bool lacks_memory = false;
};

// Sets the thread's message to one that no call of an operation leaves.
void forgetMessage() { rbcTensorGetInfo(nullptr, nullptr); }
const char* const kForgotten = "info: is null";

std::vector<std::string> argumentsOf(Call& call) {
  std::vector<std::string> names = {"context",     "params", "streams",
                                    "num_streams", "bytes",  "outputs"};
  for (const Tensor& t : call.tensors()) names.push_back(t.name);
  names.insert(names.end(), call.names.begin(), call.names.end());
  return names;
}

}  // namespace

void report(const Machine& machine, const Call& call, const std::string& what) {
  throw Defect(machine.name() + ": " + what + "\n" + call.describe());
}

void checkMessage(rbcStatus_t status, const std::string& message,
                  const std::vector<std::string>& arguments, const std::string& function) {
  const std::string report_text =
      function + " gave " + rbcStatusName(status) + " \"" + message + "\"";
  if (status == RBC_STATUS_INTERNAL || status == RBC_STATUS_CUDA_ERROR) throw Defect(report_text);
  if (message.empty() || message.find('\n') != std::string::npos || message == kForgotten) {
    throw Defect(report_text + ": no message of one line");
  }
  // Missing memory is not the fault of an argument.
  if (status == RBC_STATUS_OUT_OF_MEMORY || status == RBC_STATUS_WORKSPACE_TOO_SMALL) return;
  // "streams[2].params.method: ..." and "out: shares memory with values" name some.
  std::string word;
  for (const char c : message + ":") {
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_') {
      word += c;
      continue;
    }
    if (!word.empty() && (std::count(arguments.begin(), arguments.end(), word) > 0 ||
                          fieldNames().count(word) > 0)) {
      return;
    }
    word.clear();
    if (c == ':' || c == ' ') break;
  }
  throw Defect(report_text + ": names no argument");
}

namespace {

// The setting of a call: the contents of memory outside of inputs, and how its thread rounds.
struct Setting {
  uint8_t poison;
  int rounding;  // kUsual, or a mode of <cfenv> with subnormals flushed to 0
};
constexpr int kUsual = -1;

Setting anySetting(Choices& choices) {
  constexpr uint8_t kPoisons[] = {0xFF, 0x00, 0x7F, 0xA5};
  constexpr int kModes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
  const uint8_t poison = choices.pick(kPoisons);
  return {poison, choices.chance(25) ? choices.pick(kModes) : kUsual};
}

Outcome runOnce(Machine& machine, Call& call, const Marks& marks, const Setting& setting,
                int64_t* allocated) {
  const uint8_t poison = setting.poison;
  Memory& memory = machine.memory();
  // Outputs and gaps between elements contain poison.
  std::vector<Block> images = call.blocks();
  for (size_t b = 0; b < images.size(); ++b) {
    uint8_t* const bytes = images[b].bytes.data();
    const uint8_t* const mark = marks[b].data();
    for (size_t i = 0; i < images[b].bytes.size(); ++i) {
      bytes[i] = (mark[i] & kRead) != 0 ? bytes[i] : poison;
    }
  }
  const std::vector<uint8_t*> addresses = memory.place(images);
  for (Tensor& t : call.tensors()) {
    const bool host = t.block >= 0 && images[static_cast<size_t>(t.block)].on_host;
    if (!t.own_device) t.raw.device = host ? rbcDevice{RBC_DEVICE_CPU, 0} : memory.device();
    t.raw.data = t.block < 0
                     ? nullptr
                     : reinterpret_cast<void*>(
                           reinterpret_cast<uintptr_t>(addresses[static_cast<size_t>(t.block)]) +
                           static_cast<uintptr_t>(t.shift));
  }
  const Accumulators accumulators(machine, call);

  Outcome outcome;
  if (accumulators.lacks_memory) {
    outcome.status = RBC_STATUS_OUT_OF_MEMORY;
    return outcome;
  }
  rbcStatus_t size_status = RBC_STATUS_SUCCESS;
  std::string size_message;
  bool reserved = true;
  bool rounds_as_before = true;
  const auto rounding = [&](auto&& body) {
    std::optional<support::OddFloats> odd;
    if (setting.rounding != kUsual) odd.emplace(setting.rounding);
    body();
    if (odd) rounds_as_before = rounds_as_before && odd->still();
  };
  if (call.size) {
    forgetMessage();
    machine.countCall();
    rounding([&] {
      size_status = call.size(machine.context(), accumulators.handles, &outcome.workspace);
    });
    if (size_status != RBC_STATUS_SUCCESS) {
      size_message = rbcGetLastError();
      outcome.workspace = 0;
    }
    reserved = machine.reserve(outcome.workspace);
  }
  // A refused call may use any amount: its workspace size is unknown.
  reserved = reserved && call.size && size_status == RBC_STATUS_SUCCESS;
  machine.poison(reserved ? outcome.workspace : machine.workspaceBytes(),
                 static_cast<uint8_t>(poison ^ 0x5A));

  forgetMessage();
  machine.countCall();
  const int64_t own = machine.allocations();
  const int64_t host = hostAllocations(call.adds_up);
  rounding([&] { outcome.status = call.run(machine.context(), accumulators.handles); });
  const int64_t host_made = hostAllocations(call.adds_up) - host;
  const int64_t own_made = machine.allocations() - own;
  if (!rounds_as_before) report(machine, call, "changed how its caller's thread rounds");
  if (outcome.status != RBC_STATUS_SUCCESS) outcome.message = rbcGetLastError();
  if (rbcContextSynchronize(machine.context()) != RBC_STATUS_SUCCESS) {
    report(machine, call, std::string("synchronize: ") + rbcGetLastError());
  }
  if (reserved && !machine.isIntactPast(outcome.workspace)) {
    report(machine, call, "wrote past its workspace of " + std::to_string(outcome.workspace));
  }

  std::vector<std::vector<uint8_t>> after;
  try {
    after = memory.fetch();
    if (outcome.status != RBC_STATUS_SUCCESS) {
      checkMessage(outcome.status, outcome.message, argumentsOf(call), call.name());
    }
    if (size_status != RBC_STATUS_SUCCESS) {
      checkMessage(size_status, size_message, argumentsOf(call), call.name() + "WorkspaceSize");
    }
  } catch (const Defect& defect) {
    report(machine, call, defect.what());
  }
  if (call.size && size_status != RBC_STATUS_SUCCESS &&
      (size_status != outcome.status || size_message != outcome.message)) {
    report(machine, call,
           "gave " + std::string(rbcStatusName(outcome.status)) + " \"" + outcome.message +
               "\", its workspace size " + rbcStatusName(size_status) + " \"" + size_message +
               "\"");
  }
  if (outcome.status != RBC_STATUS_SUCCESS) {
    const bool ended = outcome.status == RBC_STATUS_CANCELLED;  // its outputs are unspecified
    for (size_t b = 0; b < images.size(); ++b) {
      for (size_t i = 0; ended && i < images[b].bytes.size(); ++i) {
        if ((marks[b][i] & kWritten) != 0) after[b][i] = images[b].bytes[i];
      }
      if (after[b] != images[b].bytes) report(machine, call, "an error wrote: " + outcome.message);
    }
    return outcome;
  }
  if (reserved && own_made != 0) report(machine, call, "allocated after a reserve");
  if (reserved && !machine.onCuda()) *allocated = host_made;
  for (size_t b = 0; b < images.size(); ++b) {
    const uint8_t* const mark = marks[b].data();
    for (size_t i = 0; i < images[b].bytes.size(); ++i) {
      if ((mark[i] & kWritten) != 0) {
        outcome.output.push_back(after[b][i]);
      } else if (after[b][i] != images[b].bytes[i]) {
        report(machine, call,
               "wrote a byte outside of outputs: block " + std::to_string(b) + " byte " +
                   std::to_string(i));
      }
    }
  }
  if (!accumulators.exportTo(&outcome.output)) outcome.status = RBC_STATUS_OUT_OF_MEMORY;
  return outcome;
}

}  // namespace

namespace {

Outcome runMarked(Machine& machine, Call& call, const Marks& marks, const Setting& setting) {
  int64_t allocated = 0;
  Outcome outcome = runOnce(machine, call, marks, setting, &allocated);
  // Starting threads allocate memory of the system: this is over the next time. A call that adds to
  // a state is not repeated.
  for (int n = 0; n < 3 && allocated != 0 && !call.adds_up; ++n) {
    allocated = 0;
    outcome = runOnce(machine, call, marks, setting, &allocated);
  }
  if (allocated != 0) {
    report(machine, call, "allocated host memory " + std::to_string(allocated) + " times");
  }
  return outcome;
}

}  // namespace

Outcome run(Machine& machine, Call& call, uint8_t poison) {
  return runMarked(machine, call, marksOf(call), {poison, kUsual});
}

bool isSpecified(Machine& machine, Call& call) {
  if (call.checking == nullptr) return true;
  if (call.checking->absent || call.checking->size < 8) return false;  // cannot be decided
  uint32_t flags = 0;
  uint8_t* const at = call.checking->bytes.get() + offsetof(rbcResampleParams, flags);
  std::memcpy(&flags, at, sizeof flags);
  const uint32_t checked = flags | RBC_FLAG_CHECK_TIMES;
  std::memcpy(at, &checked, sizeof checked);
  const Outcome outcome = run(machine, call, 0);
  std::memcpy(at, &flags, sizeof flags);
  return outcome.status == RBC_STATUS_SUCCESS;
}

namespace {

// Some bytes, starting there.
std::string hexOf(const std::vector<uint8_t>& bytes, std::ptrdiff_t at) {
  std::string text;
  for (auto i = static_cast<size_t>(at); i < bytes.size() && text.size() < 32; ++i) {
    constexpr char kDigits[] = "0123456789abcdef";
    text += {kDigits[bytes[i] >> 4], kDigits[bytes[i] & 15]};
  }
  return text;
}

}  // namespace

Outcome Comparison::check(Call& call, Choices& choices) {
  const Marks marks = marksOf(call);  // no run changes the place of elements
  Setting setting = anySetting(choices);
  setting.rounding = kUsual;
  const Outcome expected = runMarked(first_, call, marks, setting);
  const bool names_device = std::any_of(call.tensors().begin(), call.tensors().end(),
                                        [](const Tensor& t) { return t.own_device; });
  for (int n = 0; n < 2 && !others_.empty(); ++n) {
    Machine& other =
        *others_[static_cast<size_t>(choices.below(static_cast<int64_t>(others_.size())))];
    const Outcome got = runMarked(other, call, marks, anySetting(choices));
    // Memory may or may not be exhausted; on CUDA the contents of arrays of numbers are not
    // checked.
    const bool may_differ =
        expected.status == RBC_STATUS_OUT_OF_MEMORY || got.status == RBC_STATUS_OUT_OF_MEMORY ||
        (other.onCuda() &&
         (names_device || expected.status == RBC_STATUS_INVALID_ARGUMENT ||
          // a host tensor without memory may have two faults
          (expected.status != RBC_STATUS_SUCCESS && got.status == RBC_STATUS_DEVICE_MISMATCH)));
    if (may_differ) continue;
    if (got.status != expected.status || got.message != expected.message) {
      report(other, call,
             "gave " + std::string(rbcStatusName(got.status)) + " \"" + got.message + "\", " +
                 first_.name() + " " + rbcStatusName(expected.status) + " \"" + expected.message +
                 "\"");
    }
    if (got.output != expected.output && isSpecified(first_, call)) {
      const auto at = std::mismatch(got.output.begin(), got.output.end(), expected.output.begin(),
                                    expected.output.end());
      const std::ptrdiff_t byte = at.first - got.output.begin();
      report(other, call,
             "other bits than " + first_.name() + ", at byte " + std::to_string(byte) + " of " +
                 std::to_string(got.output.size()) + ": " + hexOf(got.output, byte) + " for " +
                 hexOf(expected.output, byte));
    }
  }
  return expected;
}

}  // namespace fuzz
