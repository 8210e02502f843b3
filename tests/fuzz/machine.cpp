#include "fuzz/machine.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>

namespace fuzz {
namespace {
constexpr uint8_t kGuard = 0x9D;
constexpr size_t kGuardBytes = 4096;  // of a workspace, after the bytes that a call may use
std::atomic<int64_t> of_all_machines{0};
std::atomic<int64_t> refused_of_all{0};
}  // namespace

std::mutex& Machine::ledger() {
  static std::mutex one;  // allocators are called from any thread
  return one;
}

int64_t Machine::allocationsOfAll() { return of_all_machines; }
int64_t Machine::refusalsOfAll() { return refused_of_all; }

Machine::Machine(std::string name, rbcContextParams params, Memory& memory, size_t reserved,
                 Allocator allocator)
    : name_(std::move(name)), memory_(memory), backend_(params.backend) {
  if (allocator == Allocator::kOwn) params.allocator = {allocate, release, this};
  if (rbcContextCreate(&params, &context_) != RBC_STATUS_SUCCESS) {
    throw Defect(name_ + ": " + rbcGetLastError());
  }
  // Threads that the system refuses are not a defect: calls work without them.
  rbcContextWarmUp(context_);
  if (!reserve(reserved)) throw Defect(name_ + ": no workspace");
}

Machine::~Machine() {
  allowAll();
  rbcContextDestroy(context_);
}

void* Machine::allocate(void* self, size_t bytes, size_t alignment, void*) {
  auto& machine = *static_cast<Machine*>(self);
  const std::lock_guard<std::mutex> lock(ledger());
  ++machine.allocations_;
  ++of_all_machines;
  if (alignment == 0 || (alignment & (alignment - 1)) != 0) machine.misuse_ = "an odd alignment";
  if (machine.fail_from_ > 0 && machine.allocations_ >= machine.fail_from_) {
    ++refused_of_all;
    return nullptr;
  }
  if (bytes > kMost) return nullptr;
  void* pointer = machine.memory_.allocate(bytes);
  if (pointer != nullptr) machine.live_[pointer] = bytes;
  return pointer;
}

void Machine::release(void* self, void* pointer, size_t bytes, void*) {
  auto& machine = *static_cast<Machine*>(self);
  const std::lock_guard<std::mutex> lock(ledger());
  const auto found = machine.live_.find(pointer);
  if (found == machine.live_.end() || found->second != bytes) {
    machine.misuse_ = "freed memory that it did not allocate";
    return;
  }
  machine.memory_.allow(pointer, bytes);
  machine.live_.erase(found);
  if (pointer == machine.workspace_) {  // a call grows it like reserve()
    machine.workspace_ = nullptr;
    machine.workspace_bytes_ = 0;
  }
  machine.memory_.release(pointer);
}

void Machine::allowAll() {
  if (workspace_ != nullptr) memory_.allow(workspace_, workspace_bytes_);
}

bool Machine::reserve(size_t bytes) {
  allowAll();
  if (rbcContextReserve(context_, bytes) != RBC_STATUS_SUCCESS) return false;
  if (workspace_ == nullptr) findWorkspace();
  return true;
}

size_t Machine::bytesOfContext() const {
  rbcContextInfo info = rbcContextInfoInit();
  if (rbcContextGetInfo(context_, &info) != RBC_STATUS_SUCCESS) {
    throw Defect(name_ + ": " + rbcGetLastError());
  }
  return static_cast<size_t>(info.workspace_bytes);
}

void Machine::findWorkspace() {
  const size_t bytes = bytesOfContext();
  const auto isIt = [&](const auto& block) { return block.second == bytes; };
  // If an accumulator's block has the same size, the workspace is not checked.
  if (std::count_if(live_.begin(), live_.end(), isIt) != 1) return;
  workspace_ = std::find_if(live_.begin(), live_.end(), isIt)->first;
  workspace_bytes_ = bytes;
}

void Machine::poison(size_t used, uint8_t byte) {
  if (workspace_ == nullptr) return;
  allowAll();
  if (!misuse_.empty()) throw Defect(name_ + ": the library " + misuse_);
  if (used > workspace_bytes_) throw Defect(name_ + ": less workspace than reserved");
  memory_.fill(workspace_, byte, std::min(used, size_t{1} << 16));
  guarded_ = std::min(kGuardBytes, workspace_bytes_ - used);
  memory_.fill(static_cast<uint8_t*>(workspace_) + used, kGuard, guarded_);
  memory_.forbid(static_cast<uint8_t*>(workspace_) + used, workspace_bytes_ - used);
}

bool Machine::isIntactPast(size_t used) const {
  if (workspace_ == nullptr) return true;
  memory_.allow(workspace_, workspace_bytes_);
  return memory_.holds(static_cast<uint8_t*>(workspace_) + used, kGuard, guarded_);
}

}  // namespace fuzz
