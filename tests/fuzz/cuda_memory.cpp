// The memory of calls on CUDA: all blocks of a call are in one arena on the device, between guard
// zones that are checked after the call.
#include "fuzz/cuda_memory.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "fuzz/machines.h"

namespace fuzz {
namespace {

void require(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  // After such an error the device is unusable.
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::_Exit(2);
}

class DeviceMemory : public Memory {
 public:
  DeviceMemory() : host_(hostMemory()) {
    require(cudaMalloc(reinterpret_cast<void**>(&arena_), kArena), "the arena");
  }
  ~DeviceMemory() override { cudaFree(arena_); }

  rbcDevice device() const override { return {RBC_DEVICE_CUDA, 0}; }

  std::vector<uint8_t*> place(const std::vector<Block>& blocks) override {
    // Blocks that are always on the host are placed separately.
    std::vector<Block> on_host;
    std::vector<uint8_t*> addresses;
    on_host_.clear();
    placed_.clear();
    image_.assign(kZone, kZoneByte);
    for (const Block& block : blocks) {
      on_host_.push_back(block.on_host);
      if (block.on_host) {
        on_host.push_back(block);
        addresses.push_back(nullptr);
        placed_.push_back({0, 0});
        continue;
      }
      placed_.push_back({image_.size(), block.bytes.size()});
      addresses.push_back(arena_ + image_.size());
      image_.insert(image_.end(), block.bytes.begin(), block.bytes.end());
      // The next block begins aligned, after its own guard zone.
      image_.resize((image_.size() + kZone + kAlignment - 1) / kAlignment * kAlignment + kZone,
                    kZoneByte);
    }
    if (image_.size() > kArena) throw Defect("a call larger than the arena");
    require(cudaMemcpy(arena_, image_.data(), image_.size(), cudaMemcpyHostToDevice), "to the GPU");
    const std::vector<uint8_t*> host_addresses = host_->place(on_host);
    for (size_t b = 0, h = 0; b < blocks.size(); ++b) {
      if (on_host_[b]) addresses[b] = host_addresses[h++];
    }
    return addresses;
  }

  std::vector<std::vector<uint8_t>> fetch() override {
    require(cudaDeviceSynchronize(), "after the call");
    std::vector<uint8_t> now(image_.size());
    require(cudaMemcpy(now.data(), arena_, now.size(), cudaMemcpyDeviceToHost), "from the GPU");
    const std::vector<std::vector<uint8_t>> host_contents = host_->fetch();
    std::vector<std::vector<uint8_t>> contents;
    size_t zone = 0;
    for (size_t b = 0, h = 0; b < placed_.size(); ++b) {
      if (on_host_[b]) {
        contents.push_back(host_contents[h++]);
        continue;
      }
      requireZone(now, zone, placed_[b].first);
      const auto begin = now.begin() + static_cast<std::ptrdiff_t>(placed_[b].first);
      contents.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(placed_[b].second));
      zone = placed_[b].first + placed_[b].second;
    }
    requireZone(now, zone, now.size());
    return contents;
  }

  void* allocate(size_t bytes) override {
    void* pointer = nullptr;
    if (cudaMalloc(&pointer, bytes + kZone) == cudaSuccess) return pointer;
    cudaGetLastError();
    return nullptr;
  }
  void release(void* pointer) override { cudaFree(pointer); }
  void fill(void* pointer, uint8_t byte, size_t bytes) override {
    require(cudaMemset(pointer, byte, bytes), "poison");
    require(cudaDeviceSynchronize(), "poison");
  }
  bool holds(const void* pointer, uint8_t byte, size_t bytes) override {
    std::vector<uint8_t> now(bytes);
    require(cudaMemcpy(now.data(), pointer, bytes, cudaMemcpyDeviceToHost), "the workspace");
    return std::all_of(now.begin(), now.end(), [&](uint8_t b) { return b == byte; });
  }

 private:
  static constexpr size_t kArena = size_t{256} << 20;
  static constexpr size_t kZone = 256;
  static constexpr size_t kAlignment = 256;
  static constexpr uint8_t kZoneByte = 0xB7;

  static void requireZone(const std::vector<uint8_t>& now, size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      if (now[i] != kZoneByte) throw Defect("a write outside of a tensor's memory on the GPU");
    }
  }

  std::unique_ptr<Memory> host_;
  uint8_t* arena_ = nullptr;
  std::vector<uint8_t> image_;
  std::vector<bool> on_host_;
  std::vector<std::pair<size_t, size_t>> placed_;  // offset in the image, and number of bytes
};

}  // namespace

std::unique_ptr<Memory> deviceMemory() { return std::make_unique<DeviceMemory>(); }

bool hasDevice() {
  int count = 0;
  const bool found = cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
  cudaGetLastError();
  return found;
}

int64_t deviceBytesInUse() {
  if (!hasDevice()) return 0;
  size_t free = 0;
  size_t total = 0;
  require(cudaMemGetInfo(&free, &total), "the memory in use");
  return static_cast<int64_t>(total - free);
}

}  // namespace fuzz
