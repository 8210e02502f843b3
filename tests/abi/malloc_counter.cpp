#include "abi/malloc_counter.h"

#if RBC_TEST_COUNTS_MALLOC

#include <link.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* pointer, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void* pointer);
}

namespace {

std::atomic<int64_t> of_process{0};
std::atomic<int64_t> of_library{0};
std::atomic<int64_t> of_freed{0};
std::atomic<int64_t> of_failed{0};
std::atomic<int64_t> fails_at{0};

// Where a shared library is loaded.
struct Range {
  const char* name;
  uintptr_t begin = 0;
  uintptr_t end = 0;

  explicit Range(const char* of) noexcept : name(of) { dl_iterate_phdr(look, this); }

  bool contains(const void* address) const noexcept {
    const auto place = reinterpret_cast<uintptr_t>(address);
    return place >= begin && place < end;
  }

  static int look(dl_phdr_info* info, size_t, void* range) {
    auto& found = *static_cast<Range*>(range);
    if (std::strstr(info->dlpi_name, found.name) == nullptr) return 0;
    found.begin = UINTPTR_MAX;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      const ElfW(Phdr)& segment = info->dlpi_phdr[i];
      if (segment.p_type != PT_LOAD) continue;
      const uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
      found.begin = begin < found.begin ? begin : found.begin;
      found.end = begin + segment.p_memsz > found.end ? begin + segment.p_memsz : found.end;
    }
    return 1;
  }
};
// Both are empty until the statics of this file are there.
const Range library("librobocache.so");
const Range libstdcpp("libstdc++.so");
thread_local int in_library = 0;  // number of InLibrary

// False if this one is to fail.
bool count(bool is_of_library) noexcept {
  of_process.fetch_add(1, std::memory_order_relaxed);
  if (is_of_library) {
    const int64_t number = of_library.fetch_add(1, std::memory_order_relaxed) + 1;
    if (number == fails_at.load(std::memory_order_relaxed)) {
      of_process.fetch_sub(1, std::memory_order_relaxed);
      of_failed.fetch_add(1, std::memory_order_relaxed);
      return false;
    }
  }
  return true;
}

bool isOfLibrary(const void* caller_of_new) noexcept {
  return library.contains(caller_of_new) || (in_library > 0 && libstdcpp.contains(caller_of_new));
}

void* orThrow(void* pointer) {
  if (pointer == nullptr) throw std::bad_alloc();
  return pointer;
}

}  // namespace

#define RBC_TEST_HOOK __attribute__((visibility("default")))

// These replace the C library's and C++'s in the whole process.
extern "C" {
RBC_TEST_HOOK void* malloc(size_t bytes) {
  return count(library.contains(__builtin_return_address(0))) ? __libc_malloc(bytes) : nullptr;
}
RBC_TEST_HOOK void* calloc(size_t times, size_t bytes) {
  return count(library.contains(__builtin_return_address(0))) ? __libc_calloc(times, bytes)
                                                              : nullptr;
}
RBC_TEST_HOOK void* realloc(void* pointer, size_t bytes) {
  if (!count(library.contains(__builtin_return_address(0)))) return nullptr;
  // The old memory is freed, or moves to another address.
  if (pointer != nullptr) of_freed.fetch_add(1, std::memory_order_relaxed);
  return __libc_realloc(pointer, bytes);
}
RBC_TEST_HOOK void free(void* pointer) {
  if (pointer != nullptr) of_freed.fetch_add(1, std::memory_order_relaxed);
  __libc_free(pointer);
}
RBC_TEST_HOOK void* aligned_alloc(size_t alignment, size_t bytes) {
  return count(library.contains(__builtin_return_address(0))) ? __libc_memalign(alignment, bytes)
                                                              : nullptr;
}
RBC_TEST_HOOK int posix_memalign(void** pointer, size_t alignment, size_t bytes) {
  const bool served = count(library.contains(__builtin_return_address(0)));
  *pointer = served ? __libc_memalign(alignment, bytes) : nullptr;
  return *pointer != nullptr ? 0 : 12;
}
}

// The other forms call these.
RBC_TEST_HOOK void* operator new(size_t bytes) {
  return orThrow(count(isOfLibrary(__builtin_return_address(0))) ? __libc_malloc(bytes) : nullptr);
}
RBC_TEST_HOOK void* operator new(size_t bytes, std::align_val_t alignment) {
  const auto at = static_cast<size_t>(alignment);
  return orThrow(count(isOfLibrary(__builtin_return_address(0))) ? __libc_memalign(at, bytes)
                                                                 : nullptr);
}

namespace malloc_counter {

Counts counts() noexcept {
  return {of_process.load(), of_library.load(), of_freed.load(), of_failed.load()};
}

void failLibraryAt(int64_t n) noexcept { fails_at = n > 0 ? of_library.load() + n : 0; }

InLibrary::InLibrary() noexcept { ++in_library; }
InLibrary::~InLibrary() { --in_library; }

}  // namespace malloc_counter

#else

namespace malloc_counter {

Counts counts() noexcept { return {0, 0, 0, 0}; }

void failLibraryAt(int64_t) noexcept {}

InLibrary::InLibrary() noexcept = default;
InLibrary::~InLibrary() = default;

}  // namespace malloc_counter

#endif
