// rbcImages against plain loops, for every rule, filter, fit, layout and dtype, and rbcImageDraws
// against its definition; any number of threads and SIMD levels, and the same bits on CUDA.
#include "robocache/images.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <deque>
#include <limits>
#include <vector>

#include "support/expect.h"
#include "support/interrupted_call.h"
#include "support/operation_tests.h"
#include "support/random.h"
#include "support/run.h"
#include "support/sanitizers.h"
#include "support/share.h"
#include "unit/images_reference.h"

namespace {

using images_reference::Image;
using images_reference::Options;
using support::Array;
using support::Context;
using support::kF32;
using support::kF64;
using support::kI32;
using support::kI64;
using support::kU8;
using support::Layout;
using support::Placed;
using support::Random;

struct RuleFilter {
  int32_t rule;
  int32_t filter;
};
constexpr RuleFilter kPairs[] = {{RBC_IMAGES_RULE_PILLOW, RBC_IMAGES_FILTER_BOX},
                                 {RBC_IMAGES_RULE_PILLOW, RBC_IMAGES_FILTER_BILINEAR},
                                 {RBC_IMAGES_RULE_PILLOW, RBC_IMAGES_FILTER_HAMMING},
                                 {RBC_IMAGES_RULE_PILLOW, RBC_IMAGES_FILTER_BICUBIC},
                                 {RBC_IMAGES_RULE_PILLOW, RBC_IMAGES_FILTER_LANCZOS3},
                                 {RBC_IMAGES_RULE_PILLOW_12, RBC_IMAGES_FILTER_BILINEAR},
                                 {RBC_IMAGES_RULE_PILLOW_12, RBC_IMAGES_FILTER_LANCZOS3},
                                 {RBC_IMAGES_RULE_PILLOW_13, RBC_IMAGES_FILTER_BOX},
                                 {RBC_IMAGES_RULE_PILLOW_13, RBC_IMAGES_FILTER_BILINEAR},
                                 {RBC_IMAGES_RULE_PILLOW_13, RBC_IMAGES_FILTER_HAMMING},
                                 {RBC_IMAGES_RULE_PILLOW_13, RBC_IMAGES_FILTER_BICUBIC},
                                 {RBC_IMAGES_RULE_PILLOW_13, RBC_IMAGES_FILTER_LANCZOS3},
                                 {RBC_IMAGES_RULE_TORCHVISION, RBC_IMAGES_FILTER_BILINEAR},
                                 {RBC_IMAGES_RULE_TORCHVISION, RBC_IMAGES_FILTER_BICUBIC},
                                 {RBC_IMAGES_RULE_TORCHVISION, RBC_IMAGES_FILTER_LINEAR},
                                 {RBC_IMAGES_RULE_OPENCV, RBC_IMAGES_FILTER_LINEAR},
                                 {RBC_IMAGES_RULE_OPENCV, RBC_IMAGES_FILTER_LINEAR_EXACT},
                                 {RBC_IMAGES_RULE_OPENCV, RBC_IMAGES_FILTER_AREA},
                                 {RBC_IMAGES_RULE_EXACT, RBC_IMAGES_FILTER_BOX},
                                 {RBC_IMAGES_RULE_EXACT, RBC_IMAGES_FILTER_BILINEAR},
                                 {RBC_IMAGES_RULE_EXACT, RBC_IMAGES_FILTER_HAMMING},
                                 {RBC_IMAGES_RULE_EXACT, RBC_IMAGES_FILTER_BICUBIC},
                                 {RBC_IMAGES_RULE_EXACT, RBC_IMAGES_FILTER_LANCZOS3}};

Layout writable(Random& random) {
  Layout layout;
  do layout = random.pick(support::kLayouts);
  while (layout == Layout::kBroadcast);
  return layout;
}

uint64_t bitsOf(rbcDType dtype, double number) {
  if (dtype.code != RBC_DTYPE_FLOAT && dtype.code != RBC_DTYPE_BFLOAT) {
    return static_cast<uint64_t>(static_cast<int64_t>(number));
  }
  return support::encodeFloat(dtype, static_cast<long double>(number));
}

void put(const Array& array, const std::vector<double>& numbers) {
  size_t next = 0;
  array.each([&](std::byte* p) {
    const uint64_t bits = bitsOf(array.dtype(), numbers[next++]);
    std::memcpy(p, &bits, static_cast<size_t>(support::sizeOf(array.dtype())));
  });
}

// A call with everything that belongs to it.
struct ImagesCase {
  int64_t height, width, channels, out_height, out_width, images;
  std::deque<Array> frames;
  std::vector<int64_t> counts;
  std::vector<int64_t> rows;  // empty: in order
  std::vector<Options> options;
  Array row_array;
  Array boxes;
  Array flips;
  Array colors;
  Array color_order;
  Array table;
  Array out;
  rbcImagesParams params = rbcImagesParamsInit();

  ImagesCase(uint64_t seed, int64_t most) {
    Random random(seed);
    const RuleFilter& pair = kPairs[seed % std::size(kPairs)];
    params.rule = pair.rule;
    params.filter = pair.filter;
    const auto extent = [&] { return random.chance(0.05) ? 1 : 1 + random.below(most); };
    out_height = extent();
    out_width = extent();
    const int shape = static_cast<int>(random.below(6));
    height = shape == 0 ? 2 * out_height : shape == 1 ? 3 * out_height : extent();
    width = shape == 0 ? 2 * out_width : shape == 1 ? 2 * out_width : extent();
    if (shape == 2) width = 20 * extent();  // more than a block of pixels
    if (shape == 2 && params.rule == RBC_IMAGES_RULE_PILLOW_12) {
      width = 1 + random.below(3);
      height = 100 * width + 1 + random.below(60);
    }
    channels = random.chance(0.5) ? 3 : random.chance(0.5) ? 1 : 4;
    params.fit = static_cast<int32_t>(random.below(3));
    if (params.fit == RBC_IMAGES_FIT_COVER && shape == 2) params.fit = RBC_IMAGES_FIT_PAD;
    params.pad_anchor = static_cast<int32_t>(random.below(3));
    params.layout = static_cast<int32_t>(random.below(2));
    for (double& value : params.pad_value) value = static_cast<double>(random.below(256));
    addFrames(random);
    images = random.chance(0.3) ? total() : 1 + random.below(4);
    if (images != total() || random.chance(0.5)) {
      for (int64_t i = 0; i < images; ++i) rows.push_back(random.below(total() + 1) - 1);
      row_array = Array(random.chance(0.5) ? kI32 : kI64, {images}, writable(random));
      put(row_array, std::vector<double>(rows.begin(), rows.end()));
    }
    addOptions(random);
    addOut(random);
  }

  int64_t total() const {
    int64_t all = 0;
    for (const int64_t count : counts) all += count;
    return all;
  }

  void addFrames(Random& random) {
    const int64_t arrays = 1 + random.below(3);
    const int kind = static_cast<int>(random.below(3));
    for (int64_t n = 0; n < arrays; ++n) {
      counts.push_back(n == 0 ? 1 + random.below(3) : random.below(3));
      frames.emplace_back(
          kU8, std::vector<int64_t>{counts.back(), height, width, channels},
          random.chance(0.5) ? Layout::kContiguous : random.pick(support::kLayouts));
      frames.back().each([&](std::byte* p) {
        const auto noise = static_cast<uint8_t>(random.bits());
        *p = static_cast<std::byte>(kind == 0 ? noise : kind == 1 ? (noise & 1) * 255 : noise / 32);
      });
    }
  }

  void addOptions(Random& random) {
    const bool boxed = random.chance(0.5);
    const bool one_size = random.chance(0.3);
    const bool shared = random.chance(0.2);
    const bool flipped = random.chance(0.5);
    const bool colored = channels != 4 && random.chance(0.4);
    const bool ordered = colored && random.chance(0.6);
    if (colored && random.chance(0.4)) params.flags = RBC_IMAGES_FLAG_COLOR_FIRST;
    std::vector<double> numbers[4];
    Options last;
    for (int64_t i = 0; i < images; ++i) {
      Options o;
      o.rule = params.rule;
      o.filter = params.filter;
      o.fit = params.fit;
      o.pad_anchor = params.pad_anchor;
      for (size_t c = 0; c < 4; ++c) o.pad_value[c] = static_cast<uint8_t>(params.pad_value[c]);
      o.box = {0, 0, height, width};
      if (boxed) {
        const bool same = i > 0 && (one_size || shared);
        o.box[2] = same ? last.box[2] : 1 + random.below(height);
        o.box[3] = same ? last.box[3] : 1 + random.below(width);
        o.box[0] = random.below(height - o.box[2] + 1);
        o.box[1] = random.below(width - o.box[3] + 1);
        if (same && shared) o.box = last.box;
      }
      if (flipped) o.flips = static_cast<int>(random.below(4));
      o.colored = colored;
      o.color_first = params.flags != 0;
      for (double& f : o.factors) {
        f = random.chance(0.3) ? std::nan("") : random.chance(0.1) ? 0 : random.uniform(0, 2);
      }
      double& hue = o.factors[3];
      if (!std::isnan(hue)) hue = random.chance(0.1) ? 0.5 : (hue - 1) / 2;
      if (ordered) {
        for (size_t k = 3; k > 0; --k) {
          std::swap(o.order[k], o.order[static_cast<size_t>(random.below(4)) % (k + 1)]);
        }
      }
      for (size_t k = 0; k < 4; ++k) {
        numbers[0].push_back(static_cast<double>(o.box[k]));
        numbers[2].push_back(o.factors[k]);
        numbers[3].push_back(o.order[k]);
      }
      numbers[1].push_back(o.flips);
      options.push_back(o);
      last = o;
    }
    if (boxed && shared) {
      boxes = Array(kI32, {4});
      put(boxes, {numbers[0].begin(), numbers[0].begin() + 4});
    } else if (boxed) {
      boxes = Array(random.chance(0.5) ? kI32 : kI64, {images, 4}, writable(random));
      put(boxes, numbers[0]);
    }
    if (boxed && one_size && random.chance(0.7)) {
      params.crop_height = last.box[2];
      params.crop_width = last.box[3];
    }
    if (flipped) {
      flips = Array(kU8, {images}, writable(random));
      put(flips, numbers[1]);
    }
    if (colored) {
      const rbcDType dtype = random.chance(0.5) ? kF32 : kF64;
      colors = Array(dtype, {images, 4}, writable(random));
      put(colors, numbers[2]);
      for (size_t i = 0; i < numbers[2].size(); ++i) {  // what f32 holds
        const double f = numbers[2][i];
        options[i / 4].factors[i % 4] =
            support::same(dtype, kF32) ? static_cast<double>(static_cast<float>(f)) : f;
      }
    }
    if (ordered) {
      color_order = Array(kU8, {images, 4}, writable(random));
      put(color_order, numbers[3]);
    }
  }

  void addOut(Random& random) {
    const rbcDType dtype = random.chance(0.4) ? kU8 : random.pick(support::kFloatDTypes);
    const std::vector<int64_t> shape =
        params.layout == RBC_IMAGES_LAYOUT_CHW
            ? std::vector<int64_t>{images, channels, out_height, out_width}
            : std::vector<int64_t>{images, out_height, out_width, channels};
    out = Array(dtype, shape, random.chance(0.5) ? Layout::kContiguous : writable(random));
    if (support::same(dtype, kU8) || random.chance(0.4)) return;
    table = Array(random.pick(support::kFloatDTypes), {channels, 256}, writable(random));
    std::vector<double> values(static_cast<size_t>(channels * 256));
    for (double& value : values) value = random.uniform(-3, 3);
    put(table, values);
  }

  std::vector<uint64_t> run(const Context& context, rbcStatus_t expected = RBC_STATUS_SUCCESS) {
    const bool cuda = support::infoOf(context).backend == RBC_BACKEND_CUDA;
    std::deque<Placed> placed;
    const auto in = [&](const Array& array) -> const rbcTensor* {
      return array.ndim() == 0 ? nullptr : placed.emplace_back(context, array, cuda).get();
    };
    std::vector<rbcImagesFrames> arrays;
    for (const Array& array : frames) {
      arrays.push_back(rbcImagesFramesInit());
      arrays.back().values = in(array);
    }
    rbcImagesParams used = params;
    used.boxes = in(boxes);
    used.flips = in(flips);
    used.colors = in(colors);
    used.color_order = in(color_order);
    used.table = in(table);
    const rbcTensor* row_tensor = in(row_array);
    out.memory().poison();
    const Placed& to = placed.emplace_back(context, out, cuda);
    const rbcStatus_t status =
        rbcImages(context.get(), arrays.data(), static_cast<int32_t>(arrays.size()), row_tensor,
                  to.get(), &used);
    CHECK_MESSAGE(status == expected, rbcGetLastError());
    support::require(rbcContextSynchronize(context.get()));
    CHECK(to.fetch(context, out));
    CHECK(out.gapsArePoison());
    return out.elements();
  }

  Image frame(int64_t row) const {
    size_t n = 0;
    for (; row >= counts[n]; ++n) row -= counts[n];
    Image image(height, width, channels);
    for (int64_t y = 0; y < height; ++y) {
      for (int64_t x = 0; x < width; ++x) {
        for (int64_t c = 0; c < channels; ++c) {
          image.at(y, x, c) = static_cast<uint8_t>(frames[n].get({row, y, x, c}));
        }
      }
    }
    return image;
  }

  uint64_t element(int64_t channel, uint8_t byte) const {
    if (table.ndim() == 0) return bitsOf(out.dtype(), byte);
    return support::encodeFloat(out.dtype(),
                                support::decodeFloat(table.dtype(), table.get({channel, byte})));
  }

  std::vector<uint64_t> expected() const {
    std::vector<uint64_t> all(static_cast<size_t>(out.count()));
    for (int64_t i = 0; i < images; ++i) {
      const int64_t row = rows.empty() ? i : rows[static_cast<size_t>(i)];
      Options o = options[static_cast<size_t>(i)];
      Image image(out_height, out_width, channels);
      if (row >= 0) {
        image = images_reference::expected(frame(row), out_height, out_width, o);
      } else {
        for (size_t k = 0; k < image.bytes.size(); ++k) {
          image.bytes[k] = o.pad_value[k % static_cast<size_t>(channels)];
        }
      }
      const bool chw = params.layout == RBC_IMAGES_LAYOUT_CHW;
      for (int64_t y = 0; y < out_height; ++y) {
        for (int64_t x = 0; x < out_width; ++x) {
          for (int64_t c = 0; c < channels; ++c) {
            const int64_t pixel = y * out_width + x;
            const int64_t size = out_height * out_width;
            const int64_t at =
                chw ? (i * channels + c) * size + pixel : (i * size + pixel) * channels + c;
            all[static_cast<size_t>(at)] = element(c, image.at(y, x, c));
          }
        }
      }
    }
    return all;
  }
};

// ---- draws --------------------------------------------------------------------------------------

struct DrawsCase {
  std::vector<int64_t> samples;
  Array sample_array;
  Array boxes;
  Array flips;
  Array colors;
  Array order;
  rbcImageDrawsParams params = rbcImageDrawsParamsInit();

  explicit DrawsCase(uint64_t seed) {
    Random random(seed);
    const int64_t count = 1 + random.below(3000);
    for (int64_t i = 0; i < count; ++i) {
      samples.push_back(random.chance(0.5) ? i : static_cast<int64_t>(random.bits()));
    }
    sample_array = Array(kI64, {count}, writable(random));
    boxes = Array(random.chance(0.5) ? kI32 : kI64, {count, 4}, writable(random));
    flips = Array(kU8, {count}, writable(random));
    colors = Array(random.chance(0.5) ? kF32 : kF64, {count, 4}, writable(random));
    order = Array(kU8, {count, 4}, writable(random));
    params.seed = static_cast<int64_t>(random.bits());
    params.epoch = static_cast<int64_t>(random.bits() >> 20);
    params.camera = static_cast<int32_t>(random.below(1 << 24));
    params.crop = static_cast<int32_t>(random.below(4));
    params.frame_height = 1 + random.below(800);
    params.frame_width = 1 + random.below(800);
    params.crop_height = 1 + random.below(params.frame_height);
    params.crop_width = 1 + random.below(params.frame_width);
    params.crop_fraction = random.uniform(0.01, 1);
    params.flip_probability = random.uniform();
    const auto range = [&](double(&of)[2]) {
      if (random.chance(0.2)) return;
      of[0] = random.uniform(0, 1);
      of[1] = of[0] + random.uniform(0, 1);
    };
    range(params.brightness);
    range(params.contrast);
    range(params.saturation);
    if (random.chance(0.3)) params.area[0] = 0.9;
    if (random.chance(0.2)) params.ratio[0] = 3, params.ratio[1] = 5;
  }

  std::vector<uint64_t> run(const Context& context) {
    const bool cuda = support::infoOf(context).backend == RBC_BACKEND_CUDA;
    for (size_t i = 0; i < samples.size(); ++i) {
      sample_array.set({static_cast<int64_t>(i)}, static_cast<uint64_t>(samples[i]));
    }
    std::deque<Placed> placed;
    Array* outputs[] = {&boxes, &flips, &colors, &order};
    const Placed& in = placed.emplace_back(context, sample_array, cuda);
    const rbcTensor* to[4];
    for (size_t n = 0; n < 4; ++n) {
      outputs[n]->memory().poison();
      to[n] = placed.emplace_back(context, *outputs[n], cuda).get();
    }
    CHECK_SUCCEEDS(rbcImageDraws(context.get(), in.get(), to[0], to[1], to[2], to[3], &params));
    support::require(rbcContextSynchronize(context.get()));
    std::vector<uint64_t> all;
    for (size_t n = 0; n < 4; ++n) {
      CHECK(placed[n + 1].fetch(context, *outputs[n]));
      CHECK(outputs[n]->gapsArePoison());
      for (const uint64_t bits : outputs[n]->elements()) all.push_back(bits);
    }
    return all;
  }

  std::array<uint32_t, 4> words(int64_t sample, uint32_t purpose) const {
    const auto low = [](int64_t x) { return static_cast<uint32_t>(static_cast<uint64_t>(x)); };
    const auto high = [](int64_t x) {
      return static_cast<uint32_t>(static_cast<uint64_t>(x) >> 32);
    };
    return images_reference::philox({low(sample), high(sample), low(params.epoch),
                                     static_cast<uint32_t>(params.camera) << 8 | purpose},
                                    {low(params.seed), high(params.seed)});
  }
  static double unit(uint32_t word) { return std::ldexp(static_cast<double>(word >> 8), -24); }
  static int64_t below(uint32_t word, int64_t n) {
    return static_cast<int64_t>(static_cast<uint64_t>(word) * static_cast<uint64_t>(n) >> 32);
  }

  std::array<int64_t, 4> box(int64_t sample) const {
    const int64_t height = params.frame_height;
    const int64_t width = params.frame_width;
    if (params.crop == RBC_IMAGES_CROP_NONE) return {0, 0, height, width};
    if (params.crop != RBC_IMAGES_CROP_AREA) {
      const bool fixed = params.crop == RBC_IMAGES_CROP_FIXED;
      const auto part = [&](int64_t side) {
        return std::max<int64_t>(
            static_cast<int64_t>(params.crop_fraction * static_cast<double>(side)), 1);
      };
      const int64_t h = fixed ? params.crop_height : part(height);
      const int64_t w = fixed ? params.crop_width : part(width);
      const auto x = words(sample, 0);
      return {below(x[0], height - h + 1), below(x[1], width - w + 1), h, w};
    }
    for (uint32_t i = 0; i < 10; ++i) {
      const auto x = words(sample, 3 + i);
      const double area = static_cast<double>(height * width) *
                          (params.area[0] + unit(x[0]) * (params.area[1] - params.area[0]));
      const double low = std::log(params.ratio[0]);
      const double ratio = std::exp(low + unit(x[1]) * (std::log(params.ratio[1]) - low));
      const auto w = static_cast<int64_t>(std::rint(std::sqrt(area * ratio)));
      const auto h = static_cast<int64_t>(std::rint(std::sqrt(area / ratio)));
      if (w < 1 || w > width || h < 1 || h > height) continue;
      return {below(x[2], height - h + 1), below(x[3], width - w + 1), h, w};
    }
    int64_t h = height;
    int64_t w = width;
    const double shape = static_cast<double>(width) / static_cast<double>(height);
    if (shape < params.ratio[0]) {
      h = static_cast<int64_t>(std::rint(static_cast<double>(width) / params.ratio[0]));
    } else if (shape > params.ratio[1]) {
      w = static_cast<int64_t>(std::rint(static_cast<double>(height) * params.ratio[1]));
    }
    h = std::clamp<int64_t>(h, 1, height);
    w = std::clamp<int64_t>(w, 1, width);
    return {(height - h) / 2, (width - w) / 2, h, w};
  }

  std::vector<uint64_t> expected() const {
    std::vector<uint64_t> all[4];
    const uint64_t mask = boxes.dtype().bits == 32 ? 0xffffffffu : ~uint64_t{0};
    for (const int64_t sample : samples) {
      for (const int64_t number : box(sample))
        all[0].push_back(static_cast<uint64_t>(number) & mask);
      const auto x = words(sample, 1);
      all[1].push_back(unit(x[0]) < params.flip_probability ? 1 : 0);
      std::array<uint64_t, 4> steps = {0, 1, 2, 3};
      std::swap(steps[3], steps[static_cast<size_t>(below(x[1], 4))]);
      std::swap(steps[2], steps[static_cast<size_t>(below(x[2], 3))]);
      std::swap(steps[1], steps[static_cast<size_t>(below(x[3], 2))]);
      all[3].insert(all[3].end(), steps.begin(), steps.end());
      const auto of_colors = words(sample, 2);
      const double* ranges[] = {params.brightness, params.contrast, params.saturation, params.hue};
      for (size_t k = 0; k < 4; ++k) {
        const double* r = ranges[k];
        const auto f = static_cast<float>(r[0] + unit(of_colors[k]) * (r[1] - r[0]));
        all[2].push_back(support::encodeFloat(colors.dtype(), static_cast<long double>(f)));
      }
    }
    std::vector<uint64_t> joined;
    for (const auto& part : all) joined.insert(joined.end(), part.begin(), part.end());
    return joined;
  }
};

class MakingImages : public support::LongCall {
 public:
  MakingImages() {
    Random random(3);
    for (size_t i = 0; i < frames_.bytes().size(); ++i) {
      frames_.as<uint8_t>()[i] = static_cast<uint8_t>(random.bits());
    }
    for (int64_t i = 0; i < 4 * kImages; ++i) colors_.as<float>()[i] = 0.75f;
    for (int64_t i = 0; i < kImages; ++i) colors_.as<float>()[4 * i + 3] = 0.25f;
    outputs_.emplace_back(kF32, std::vector<int64_t>{kImages, 3, 40, 30});
  }

 private:
  static constexpr int64_t kImages = 6;

  rbcStatus_t call(rbcContext_t context) override {
    const rbcTensor in = frames_.tensor();
    const rbcTensor colors = colors_.tensor();
    const rbcTensor out = outputs_[0].tensor();
    rbcImagesFrames frames = rbcImagesFramesInit();
    frames.values = &in;
    rbcImagesParams params = rbcImagesParamsInit();
    params.colors = &colors;
    return rbcImages(context, &frames, 1, nullptr, &out, &params);
  }

  support::CallMemory frames_{kU8, {kImages, 90, 70, 3}};
  support::CallMemory colors_{kF32, {kImages, 4}};
};

constexpr uint64_t kCases = 23 * (support::kSanitized ? 4 : 40);

}  // namespace

TEST_CASE("images: by definition, at every SIMD level and with any number of threads") {
  for (uint64_t seed = 0; seed < support::randomShareOf(kCases); ++seed) {
    if (!support::inShare(seed)) continue;
    CAPTURE(seed);
    ImagesCase c(seed, seed % 50 == 0 ? 150 : 40);
    const std::vector<uint64_t> expected = c.expected();
    for (const int32_t level : support::simdLevels()) {
      const Context context = support::cpuContext(1 + static_cast<int32_t>(seed % 3), level);
      const bool same = c.run(context) == expected;
      CHECK_MESSAGE(same, "rule ", c.params.rule, ", filter ", c.params.filter, ", level ", level,
                    ", ", c.height, " x ", c.width, " x ", c.channels, " to ", c.out_height, " x ",
                    c.out_width, ", fit ", c.params.fit);
    }
  }
}

TEST_CASE("images: more pixels for one output pixel than a block holds") {
  const Context context = support::cpuContext(2);
  for (const RuleFilter& pair : kPairs) {
    CAPTURE(pair.rule);
    CAPTURE(pair.filter);
    Array frames(kU8, {1, 3, 3000, 3});
    Random random(9);
    frames.each([&](std::byte* p) { *p = static_cast<std::byte>(random.bits()); });
    Array out(kU8, {1, 2, 2, 3});
    const rbcTensor in = frames.tensor();
    const rbcTensor to = out.tensor();
    rbcImagesFrames array = rbcImagesFramesInit();
    array.values = &in;
    rbcImagesParams params = rbcImagesParamsInit();
    params.rule = pair.rule;
    params.filter = pair.filter;
    params.layout = RBC_IMAGES_LAYOUT_HWC;
    CHECK_SUCCEEDS(rbcImages(context.get(), &array, 1, nullptr, &to, &params));
    Image image(3, 3000, 3);
    const std::vector<uint64_t> bytes = frames.elements();
    std::copy(bytes.begin(), bytes.end(), image.bytes.begin());
    const Image expected = images_reference::resize(image, 2, 2, pair.rule, pair.filter);
    CHECK(out.elements() == std::vector<uint64_t>(expected.bytes.begin(), expected.bytes.end()));
  }
}

TEST_CASE("images: long rows and many weights, at every SIMD level") {
  struct Size {
    int64_t height, width, out_height, out_width, channels;
  };
  constexpr Size kSizes[] = {{9, 900, 12, 300, 3},  {40, 1200, 21, 150, 1}, {33, 500, 17, 500, 4},
                             {70, 640, 20, 224, 3}, {5, 1300, 9, 200, 3},   {64, 64, 33, 420, 3}};
  for (const RuleFilter& pair : kPairs) {
    CAPTURE(pair.rule);
    CAPTURE(pair.filter);
    for (const Size& size : kSizes) {
      CAPTURE(size.width);
      Random random(5);
      Image image(size.height, size.width, size.channels);
      for (uint8_t& byte : image.bytes) byte = static_cast<uint8_t>(random.bits());
      const Image expected =
          images_reference::resize(image, size.out_height, size.out_width, pair.rule, pair.filter);
      Array frames(kU8, {1, size.height, size.width, size.channels});
      Array out(kU8, {1, size.out_height, size.out_width, size.channels});
      put(frames, {image.bytes.begin(), image.bytes.end()});
      const rbcTensor in = frames.tensor();
      const rbcTensor to = out.tensor();
      rbcImagesFrames array = rbcImagesFramesInit();
      array.values = &in;
      rbcImagesParams params = rbcImagesParamsInit();
      params.rule = pair.rule;
      params.filter = pair.filter;
      params.layout = RBC_IMAGES_LAYOUT_HWC;
      for (const int32_t level : support::simdLevels()) {
        CAPTURE(level);
        const Context context = support::cpuContext(1 + level % 2, level);
        CHECK_SUCCEEDS(rbcImages(context.get(), &array, 1, nullptr, &to, &params));
        CHECK(out.elements() ==
              std::vector<uint64_t>(expected.bytes.begin(), expected.bytes.end()));
      }
    }
  }
}

TEST_CASE("images: the comparison finds a changed byte") {
  const Context context = support::cpuContext(1);
  ImagesCase c(1, 12);
  std::vector<uint64_t> changed = c.run(context);
  CHECK(changed == c.expected());
  changed[changed.size() / 2] ^= 1;
  CHECK(changed != c.expected());
}

TEST_CASE("image draws: the words of Philox4x32-10") {
  using Words = std::array<uint32_t, 4>;
  CHECK(images_reference::philox({0, 0, 0, 0}, {0, 0}) ==
        Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(images_reference::philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}) ==
        Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(images_reference::philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                                 {0xa4093822, 0x299f31d0}) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("image draws: by definition") {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    DrawsCase c(seed);
    CHECK(c.run(support::cpuContext(1 + static_cast<int32_t>(seed % 3))) == c.expected());
  }
}

TEST_CASE("images cuda: every rule as on the CPU") {
  WITH_CUDA(cuda);
  const Context cpu = support::cpuContext();
  for (uint64_t seed = 0; seed < 2 * kCases; ++seed) {
    if (!support::inShare(seed)) continue;
    CAPTURE(seed);
    ImagesCase c(seed, seed % 20 == 0 ? 300 : 60);
    const std::vector<uint64_t> expected = c.run(cpu);
    const bool same = c.run(cuda) == expected;
    CHECK_MESSAGE(same, "rule ", c.params.rule, ", filter ", c.params.filter, ", ", c.height, " x ",
                  c.width, " x ", c.channels, " to ", c.out_height, " x ", c.out_width, ", fit ",
                  c.params.fit);
  }
}

TEST_CASE("images cuda: image draws equal the CPU's") {
  WITH_CUDA(cuda);
  const Context cpu = support::cpuContext();
  for (uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    DrawsCase c(seed);
    const std::vector<uint64_t> expected = c.run(cpu);
    CHECK(c.run(cuda) == expected);
  }
}

TEST_CASE("images cuda: numbers out of range stay inside of the frames") {
  WITH_CUDA(cuda);
  for (uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    ImagesCase c(seed, 30);
    Random random(seed);
    const auto spoil = [&](Array& array) {
      if (array.ndim() == 0) return;
      array.each([&](std::byte* p) {
        const uint64_t bits = random.chance(0.5) ? random.bits() : ~uint64_t{0} >> random.below(64);
        if (random.chance(0.5)) {
          std::memcpy(p, &bits, static_cast<size_t>(support::sizeOf(array.dtype())));
        }
      });
    };
    if (c.params.fit == RBC_IMAGES_FIT_COVER) c.params.fit = RBC_IMAGES_FIT_STRETCH;
    spoil(c.row_array);
    spoil(c.boxes);
    spoil(c.flips);
    spoil(c.colors);
    spoil(c.color_order);
    c.run(cuda);  // fetch() finds writes outside of out
  }
}

TEST_CASE("interrupt: images") { support::checkInterrupts(MakingImages()); }
