// The same sensors with one interface: rings of the library, with and without arrivals, and the
// usual way without it, a std::deque with a std::mutex per sensor. All interpolate linearly and hold
// at the ends.
#pragma once

#include <algorithm>
#include <deque>
#include <mutex>
#include <vector>

#include "robocache/robocache.hpp"

namespace live_bench {

constexpr int kStreams = 8;
constexpr int kChannels = 7;
constexpr int kKept = 256;  // samples per sensor
constexpr int kWidth = kStreams * kChannels;
constexpr double kDelay = 2e-4;  // s, until a sample arrives

class RingRig {
 public:
  // `causal`: samples have arrivals, and channels look back only.
  explicit RingRig(bool causal = false)
      : causal_(causal), live_(robocache::Live::create(context_, streams(causal))) {}

  void push(int stream, double time, const float* row) {
    int64_t shape[] = {1, kChannels};
    const rbcTensor times = host(&time, 64, 1, shape);
    const rbcTensor values = host(row, 32, 2, shape);
    if (!causal_) {
      robocache::check(rbcLivePush(live_.get(), stream, &values, &times, nullptr));
      return;
    }
    const double arrival = time + kDelay;
    const rbcTensor arrivals = host(&arrival, 64, 1, shape);
    robocache::check(rbcLivePush(live_.get(), stream, &values, &times, &arrivals));
  }
  void fuse(const double* queries, int count, float* out) {
    int64_t shape[] = {count, kWidth};
    int64_t mask_shape[] = {count, kStreams};
    int64_t age_shape[] = {kStreams};
    const rbcTensor query_times = host(queries, 64, 1, shape);
    const rbcTensor outs = host(out, 32, 2, shape);
    rbcTensor mask = host(mask_, 8, 2, mask_shape);
    mask.dtype = {RBC_DTYPE_UINT, 8, 1};
    const rbcTensor ages = host(ages_, 64, 1, age_shape);
    robocache::check(rbcLiveFuse(live_.get(), &query_times, &outs, &mask, &ages, nullptr));
  }

 private:
  static std::vector<robocache::LiveStream> streams(bool causal) {
    robocache::LiveStream stream(kChannels);
    stream.capacity = kKept;
    stream.causal = causal;
    if (causal) stream.max_age = 0.1;
    return std::vector<robocache::LiveStream>(kStreams, stream);
  }
  static rbcTensor host(const void* data, int bits, int32_t ndim, int64_t* shape) {
    rbcTensor tensor = {};
    tensor.data = const_cast<void*>(data);
    tensor.device = {RBC_DEVICE_CPU, 0};
    tensor.ndim = ndim;
    tensor.dtype = {RBC_DTYPE_FLOAT, static_cast<uint8_t>(bits), 1};
    tensor.shape = shape;
    return tensor;
  }

  const bool causal_;
  robocache::Context context_ = robocache::Context::cpu(1);
  robocache::Live live_;
  uint8_t mask_[64 * kStreams];
  double ages_[kStreams];
};

struct CausalRig : RingRig {
  CausalRig() : RingRig(true) {}
};

class DequeRig {
 public:
  void push(int stream, double time, const float* row) {
    Sensor& sensor = sensors_[stream];
    Sample sample;
    sample.time = time;
    std::copy_n(row, kChannels, sample.row);
    const std::lock_guard<std::mutex> lock(sensor.mutex);
    sensor.samples.push_back(sample);
    if (sensor.samples.size() > kKept) sensor.samples.pop_front();
  }
  void fuse(const double* queries, int count, float* out) {
    for (int n = 0; n < kStreams; ++n) {
      Sensor& sensor = sensors_[n];
      const std::lock_guard<std::mutex> lock(sensor.mutex);
      const std::deque<Sample>& samples = sensor.samples;
      for (int t = 0; t < count; ++t) {
        float* to = out + t * kWidth + n * kChannels;
        const auto right = std::upper_bound(samples.begin(), samples.end(), queries[t],
                                            [](double q, const Sample& s) { return q < s.time; });
        if (right == samples.begin() || right == samples.end()) {
          const Sample& held = right == samples.end() ? samples.back() : samples.front();
          std::copy_n(held.row, kChannels, to);
          continue;
        }
        const Sample& a = *(right - 1);
        const auto w = static_cast<float>((queries[t] - a.time) / (right->time - a.time));
        for (int d = 0; d < kChannels; ++d) to[d] = a.row[d] + w * (right->row[d] - a.row[d]);
      }
    }
  }

 private:
  struct Sample {
    double time;
    float row[kChannels];
  };
  struct Sensor {
    std::mutex mutex;
    std::deque<Sample> samples;
  };

  Sensor sensors_[kStreams];
};

}  // namespace live_bench
