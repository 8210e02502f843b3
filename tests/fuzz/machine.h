// The place where calls run: a context, the memory of its calls, and an allocator that keeps
// records.
#pragma once

#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "fuzz/call.h"

namespace fuzz {

// The memory of a device. Every block has guard zones around it, or AddressSanitizer's.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual rbcDevice device() const = 0;
  // Places blocks where a call finds them, and returns their addresses.
  virtual std::vector<uint8_t*> place(const std::vector<Block>& blocks) = 0;
  // Their current contents. Throws if a guard zone was written to.
  virtual std::vector<std::vector<uint8_t>> fetch() = 0;

  // For workspaces.
  virtual void* allocate(size_t bytes) = 0;
  virtual void release(void* pointer) = 0;
  virtual void fill(void* pointer, uint8_t byte, size_t bytes) = 0;
  virtual bool holds(const void* pointer, uint8_t byte, size_t bytes) = 0;
  // Marks memory that must not be accessed, if the build can detect it.
  virtual void forbid(void*, size_t) {}
  virtual void allow(void*, size_t) {}
};

std::unique_ptr<Memory> hostMemory();

// A defect that was found, with its text.
class Defect : public std::exception {
 public:
  explicit Defect(std::string text) : text_(std::move(text)) {}
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

// The allocator of a context.
enum class Allocator { kOwn, kLibrary };

class Machine {
 public:
  // `reserved` bytes of workspace exist from the beginning.
  Machine(std::string name, rbcContextParams params, Memory& memory, size_t reserved = 1 << 20,
          Allocator allocator = Allocator::kOwn);
  ~Machine();
  Machine(const Machine&) = delete;

  const std::string& name() const { return name_; }
  rbcContext_t context() const { return context_; }
  Memory& memory() const { return memory_; }
  bool onCuda() const { return backend_ == RBC_BACKEND_CUDA; }

  // Makes the workspace at least this large. Returns false if the allocator has no such memory.
  bool reserve(size_t bytes);
  size_t workspaceBytes() const { return workspace_bytes_; }
  // The bytes of the context's workspace, regardless of who requested it.
  size_t bytesOfContext() const;
  // Fills the first bytes of the workspace; the rest must not be accessed until the next call.
  void poison(size_t used, uint8_t byte);
  // Whether nothing was written after `used`.
  bool isIntactPast(size_t used) const;

  // Number of library functions called here.
  void countCall() { ++calls_; }
  int64_t calls() const { return calls_; }

  int64_t allocations() const { return allocations_; }
  size_t liveBlocks() const { return live_.size(); }
  // The n-th allocation from now on and all later ones fail; 0: none.
  void failFrom(int64_t n) { fail_from_ = n > 0 ? allocations_ + n : 0; }
  // The number of allocations of all machines, including failed ones.
  static int64_t allocationsOfAll();
  static int64_t refusalsOfAll();

  // Held while an allocator of any machine runs. A thread that forks must take it before.
  static std::mutex& ledger();

 private:
  static constexpr size_t kMost = size_t{256} << 20;
  static void* allocate(void* self, size_t bytes, size_t alignment, void* stream);
  static void release(void* self, void* pointer, size_t bytes, void* stream);
  void allowAll();
  void findWorkspace();

  std::string name_;
  Memory& memory_;
  int32_t backend_ = 0;
  std::map<void*, size_t> live_;
  std::string misuse_;
  int64_t allocations_ = 0;
  int64_t calls_ = 0;
  int64_t fail_from_ = 0;
  void* workspace_ = nullptr;
  size_t workspace_bytes_ = 0;
  size_t guarded_ = 0;
  rbcContext_t context_ = nullptr;
};

// Number of allocations of host memory by this process, or by the library's own code; always 0 in
// builds that do not count.
int64_t hostAllocations(bool of_library);

}  // namespace fuzz
