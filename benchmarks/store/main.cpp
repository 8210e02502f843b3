// Training samples from a store: robocache_bench_store FOLDER [FRAMES [SECONDS]].
//
// Builds an entry of FRAMES (default 20000) frames of 224 x 224 x 3 bytes and as many rows of 14
// floats in FOLDER, unless it is there, and measures batches of 64 samples, each of 50 rows and 2
// frames: by rbcEntryGather on one thread and on all, by memcpy from the same map, and on CUDA from
// registered memory, by staging, and by cudaMemcpyAsync of as many bytes from one piece of pinned
// memory. The measurements take turns. The lines are tab-separated: samples per second and GB/s,
// the median of the rounds.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "robocache/robocache.hpp"

#if RBC_WITH_CUDA
#include <cuda_runtime_api.h>
#endif

namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kFrameBytes = 224 * 224 * 3;
constexpr int64_t kChannels = 14;
constexpr int64_t kBatch = 64;
constexpr int64_t kRows = 50;  // of numbers per sample
constexpr int64_t kFrames = 2;
constexpr int64_t kSegmentFrames = 6000;  // less than 2^30 bytes
constexpr int64_t kBatchBytes = kBatch * (kRows * kChannels * 4 + kFrames * kFrameBytes);

double secondsOf(const std::function<void()>& call) {
  const auto begin = Clock::now();
  call();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void build(const robocache::Store& store, const robocache::StoreKey& key, int64_t frames) {
  std::vector<int64_t> offsets = {0};
  std::vector<uint8_t> frame(static_cast<size_t>(kFrameBytes));
  std::mt19937_64 random(1);
  int32_t segments = 0;
  for (int64_t first = 0; first < frames; first += kSegmentFrames, ++segments) {
    const int64_t rows = std::min(kSegmentFrames, frames - first);
    offsets.push_back(first + rows);
    rbcSegmentParams segment = rbcSegmentParamsInit();
    segment.segment = segments;
    segment.first_episode = segments;
    segment.num_episodes = 1;
    segment.first_row = first;
    segment.num_rows = rows;
    robocache::SegmentWriter writer = store.lockSegment(key, segment);
    if (!writer) continue;
    writer.add("state", robocache::dtypeOf<float>(), {rows, kChannels});
    writer.add("front", robocache::dtypeOf<uint8_t>(), {rows, 224, 224, 3});
    std::vector<float> states(static_cast<size_t>(rows * kChannels));
    for (float& state : states) state = static_cast<float>(random() >> 40);
    writer.write("state", states.data(), states.size() * sizeof(float));
    for (int64_t i = 0; i < rows; ++i) {
      for (size_t k = 0; k + 8 <= frame.size(); k += 8) {
        const uint64_t bits = random();
        std::memcpy(&frame[k], &bits, 8);
      }
      writer.write("front", frame.data(), frame.size());
    }
    writer.publish();
  }
  store.publishEntry(key, segments, offsets, "{}");
}

// The rows of a batch, of random samples.
struct Samples {
  std::vector<int64_t> states, frames;

  Samples(std::mt19937_64& random, int64_t all) {
    for (int64_t b = 0; b < kBatch; ++b) {
      const auto anchor = static_cast<int64_t>(random() % static_cast<uint64_t>(all - kRows));
      for (int64_t k = 0; k < kRows; ++k) states.push_back(anchor + k);
      for (int64_t k = 0; k < kFrames; ++k) frames.push_back(anchor + k);
    }
  }
};

struct Measurement {
  std::string name;
  std::function<void(const Samples&)> run;
  std::function<void()> finish;
  std::vector<double> rates = {};
};

void measure(std::vector<Measurement>& all, int64_t rows, double seconds) {
  std::mt19937_64 random(2);
  constexpr int kRounds = 7;
  for (int round = 0; round <= kRounds; ++round) {
    for (Measurement& each : all) {
      int64_t batches = 0;
      double spent = 0;
      while (spent < seconds / kRounds) {
        std::vector<Samples> samples;
        for (int i = 0; i < 16; ++i) samples.emplace_back(random, rows);
        spent += secondsOf([&] {
          for (const Samples& sample : samples) each.run(sample);
          each.finish();
        });
        batches += 16;
      }
      // The first round reads the pages.
      if (round > 0) each.rates.push_back(static_cast<double>(batches) / spent);
    }
  }
  for (Measurement& each : all) {
    std::nth_element(each.rates.begin(), each.rates.begin() + kRounds / 2, each.rates.end());
    const double batches = each.rates[kRounds / 2];
    std::printf("%s\t%.0f samples/s\t%.1f GB/s\n", each.name.c_str(), batches * kBatch,
                batches * kBatchBytes / 1e9);
  }
}

int run(const std::string& folder, int64_t frames, double seconds) {
  robocache::StoreOptions options;
  options.access = robocache::StoreAccess::kMap;
  const robocache::Store store = robocache::Store::open(folder, options);
  robocache::StoreKey key = {};
  std::memcpy(key.data(), &frames, sizeof frames);
  rbcEntry_t found = nullptr;
  if (rbcStoreFind(store.get(), key.data(), &found) != RBC_STATUS_SUCCESS) {
    build(store, key, frames);
  }
  rbcEntryRelease(found);
  robocache::StoreEntry entry = store.find(key);
  std::printf("open\t%.3f ms\n", 1e3 * secondsOf([&] { entry = store.find(key); }));
  const double verified = secondsOf([&] { entry.verify(); });
  std::printf("verify\t%.1f GB/s\n", static_cast<double>(entry.info().num_bytes) / verified / 1e9);

  std::vector<float> states(static_cast<size_t>(kBatch * kRows * kChannels));
  std::vector<uint8_t> images(static_cast<size_t>(kBatch * kFrames * kFrameBytes));
  const robocache::Shape state_shape(kBatch * kRows, kChannels);
  const robocache::Shape image_shape(kBatch * kFrames, 224, 224, 3);
  const auto gatherInto = [&](const robocache::Context& context, const Samples& samples,
                              const robocache::Tensor& to_states,
                              const robocache::Tensor& to_images) {
    entry.gather(context, "state", samples.states, to_states);
    entry.gather(context, "front", samples.frames, to_images);
  };
  const robocache::Context one = robocache::Context::cpu(1);
  const robocache::Context all = robocache::Context::cpu();
  std::vector<const uint8_t*> state_maps, image_maps;
  for (int64_t s = 0; s < entry.info().num_segments; ++s) {
    state_maps.push_back(static_cast<const uint8_t*>(entry.tensor("state", s).data()));
    image_maps.push_back(static_cast<const uint8_t*>(entry.tensor("front", s).data()));
  }
  const auto nothing = [] {};
  std::vector<Measurement> measurements;
  measurements.push_back({"memcpy, one thread",
                          [&](const Samples& samples) {
                            auto* to = reinterpret_cast<uint8_t*>(states.data());
                            for (const int64_t row : samples.states) {
                              std::memcpy(to,
                                          state_maps[static_cast<size_t>(row / kSegmentFrames)] +
                                              row % kSegmentFrames * kChannels * 4,
                                          kChannels * 4);
                              to += kChannels * 4;
                            }
                            uint8_t* image = images.data();
                            for (const int64_t row : samples.frames) {
                              std::memcpy(image,
                                          image_maps[static_cast<size_t>(row / kSegmentFrames)] +
                                              row % kSegmentFrames * kFrameBytes,
                                          static_cast<size_t>(kFrameBytes));
                              image += kFrameBytes;
                            }
                          },
                          nothing});
  measurements.push_back({"gather, one thread",
                          [&](const Samples& samples) {
                            gatherInto(one, samples, {states, state_shape}, {images, image_shape});
                          },
                          nothing});
  measurements.push_back({"gather, all threads",
                          [&](const Samples& samples) {
                            gatherInto(all, samples, {states, state_shape}, {images, image_shape});
                          },
                          nothing});
  measure(measurements, frames, seconds);
#if RBC_WITH_CUDA
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) return 0;
  robocache::Context cuda = robocache::Context::cuda();
  void* device_states = nullptr;
  void* device_images = nullptr;
  void* pinned = nullptr;
  if (cudaMalloc(&device_states, states.size() * 4) != cudaSuccess ||
      cudaMalloc(&device_images, images.size()) != cudaSuccess ||
      cudaHostAlloc(&pinned, images.size(), cudaHostAllocDefault) != cudaSuccess) {
    std::fprintf(stderr, "the GPU's memory is exhausted\n");
    return 1;
  }
  const robocache::Tensor to_states(device_states, robocache::dtypeOf<float>(), state_shape, {},
                                    robocache::cuda());
  const robocache::Tensor to_images(device_images, robocache::dtypeOf<uint8_t>(), image_shape, {},
                                    robocache::cuda());
  const auto wait = [&] { cuda.synchronize(); };
  const auto gather = [&](const Samples& samples) {
    gatherInto(cuda, samples, to_states, to_images);
  };
  std::vector<Measurement> staged = {{"CUDA: one copy of pinned memory",
                                      [&](const Samples&) {
                                        cudaMemcpyAsync(device_images, pinned, images.size(),
                                                        cudaMemcpyHostToDevice);
                                      },
                                      wait},
                                     {"CUDA: gather by staging", gather, wait}};
  measure(staged, frames, seconds);
  const double registering = secondsOf([&] { entry.pin(cuda, int64_t{1} << 45); });
  const auto pinned_bytes = static_cast<double>(entry.info().num_pinned_bytes);
  std::printf("CUDA: register and verify\t%.1f GB\t%.0f ms/GiB\n", pinned_bytes / 1e9,
              1e3 * registering / (pinned_bytes / (1 << 30)));
  std::vector<Measurement> registered = {staged[0], {"CUDA: gather, registered", gather, wait}};
  registered[0].rates.clear();
  measure(registered, frames, seconds);
#endif
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: robocache_bench_store FOLDER [FRAMES [SECONDS]]\n");
    return 2;
  }
  const int64_t frames = argc > 2 ? std::atoll(argv[2]) : 20000;
  const double seconds = argc > 3 ? std::atof(argv[3]) : 3;
  try {
    return run(argv[1], std::max<int64_t>(frames, 2 * kRows), seconds);
  } catch (const robocache::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
