#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "abi/malloc_counter.h"
#include "fuzz/machine.h"

#if RBC_TEST_ADDRESS_SANITIZER
#include <sanitizer/allocator_interface.h>
#include <sanitizer/asan_interface.h>
#endif

#if RBC_TEST_ADDRESS_SANITIZER
// Exhausted memory gives a null pointer, as without the sanitizer. Freed memory is quarantined for
// some hundred calls only: fresh pages took most of the time.
extern "C" const char* __asan_default_options();  // NOLINT: the sanitizer's name
extern "C" const char* __asan_default_options() {
  return "allocator_may_return_null=1:quarantine_size_mb=16:thread_local_quarantine_size_kb=64:"
         "malloc_context_size=10";
}
#endif

namespace fuzz {
namespace {

#if RBC_TEST_ADDRESS_SANITIZER
std::atomic<int64_t> allocated{0};
void counted(const volatile void*, size_t) { allocated.fetch_add(1, std::memory_order_relaxed); }
void freed(const volatile void*) {}
const int hooks = __sanitizer_install_malloc_and_free_hooks(counted, freed);
constexpr size_t kZone = 0;  // the sanitizer has its own around each block
#else
constexpr size_t kZone = 64;
#endif
constexpr uint8_t kZoneByte = 0xB7;

class HostMemory : public Memory {
 public:
  rbcDevice device() const override { return {RBC_DEVICE_CPU, 0}; }

  std::vector<uint8_t*> place(const std::vector<Block>& blocks) override {
    placed_.clear();
    std::vector<uint8_t*> addresses;
    for (const Block& block : blocks) {
      const size_t n = block.bytes.size();
      Placed placed = {std::unique_ptr<uint8_t[]>(new uint8_t[n + 2 * kZone]), n};
      uint8_t* const begin = placed.memory.get();
      std::fill_n(begin, kZone, kZoneByte);
      std::copy(block.bytes.begin(), block.bytes.end(), begin + kZone);
      std::fill_n(begin + kZone + n, kZone, kZoneByte);
      addresses.push_back(begin + kZone);
      placed_.push_back(std::move(placed));
    }
    return addresses;
  }

  std::vector<std::vector<uint8_t>> fetch() override {
    std::vector<std::vector<uint8_t>> contents;
    for (const Placed& placed : placed_) {
      const uint8_t* const begin = placed.memory.get() + kZone;
      if (!holds(begin - kZone, kZoneByte, kZone) ||
          !holds(begin + placed.bytes, kZoneByte, kZone)) {
        throw Defect("a write outside of a tensor's memory");
      }
      contents.emplace_back(begin, begin + placed.bytes);
    }
    return contents;
  }

  void* allocate(size_t bytes) override {
    void* pointer = nullptr;
    return posix_memalign(&pointer, 256, bytes) == 0 ? pointer : nullptr;
  }
  void release(void* pointer) override { std::free(pointer); }
  void fill(void* pointer, uint8_t byte, size_t bytes) override {
    std::fill_n(static_cast<uint8_t*>(pointer), bytes, byte);
  }
  bool holds(const void* pointer, uint8_t byte, size_t bytes) override {
    // Whether each byte equals the first one.
    const auto* begin = static_cast<const uint8_t*>(pointer);
    return bytes == 0 || (begin[0] == byte && std::memcmp(begin, begin + 1, bytes - 1) == 0);
  }
#if RBC_TEST_ADDRESS_SANITIZER
  void forbid(void* pointer, size_t bytes) override { __asan_poison_memory_region(pointer, bytes); }
  void allow(void* pointer, size_t bytes) override {
    __asan_unpoison_memory_region(pointer, bytes);
  }
#endif

 private:
  struct Placed {
    std::unique_ptr<uint8_t[]> memory;
    size_t bytes;
  };
  std::vector<Placed> placed_;
};

}  // namespace

std::unique_ptr<Memory> hostMemory() { return std::make_unique<HostMemory>(); }

int64_t hostAllocations([[maybe_unused]] bool of_library) {
#if RBC_TEST_ADDRESS_SANITIZER
  return allocated.load();
#else
  return of_library ? malloc_counter::counts().library : malloc_counter::counts().process;
#endif
}

}  // namespace fuzz
