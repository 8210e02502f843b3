// rbcImages and rbcImageDraws: errors, the wrappers, and graphs on CUDA.
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "abi/common_errors.h"
#include "abi/operation_call.h"
#include "abi/struct_calls.h"
#include "abi/wrapper_size.h"
#include "robocache/robocache.hpp"
#if RBC_WITH_CUDA
#include "abi/cuda_support.h"
#include "support/random.h"
#endif

namespace {

using support::Access;
using support::Argument;
using support::Array;
using support::checkDTypes;
using support::checkErrors;
using support::checkShapes;
using support::kF32;
using support::kF64;
using support::kI32;
using support::kI64;
using support::kU8;
using support::Seen;

constexpr auto kInvalid = RBC_STATUS_INVALID_ARGUMENT;
constexpr auto kShape = RBC_STATUS_SHAPE_MISMATCH;
constexpr auto kDType = RBC_STATUS_DTYPE_MISMATCH;
constexpr auto kUnsupported = RBC_STATUS_UNSUPPORTED;
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// The value of byte b of channel c is 2 b + 1000 c; element `nan` is NaN.
void fillTable(const Argument& table, int64_t nan = -1) {
  int64_t i = 0;
  table.array.each([&](std::byte* p) {
    const auto value = static_cast<double>(2 * (i % 256) + 1000 * (i / 256));
    const uint64_t bits =
        support::encodeFloat(kF64, static_cast<long double>(i == nan ? NAN : value));
    std::memcpy(p, &bits, sizeof bits);
    ++i;
  });
}

// ---- images -------------------------------------------------------------------------------------

// Three images of 2 x 2 pixels of two arrays: the last frame, no frame, the first one.
struct Images : support::OperationCall<Images, rbcImages, rbcImagesWorkspaceSize> {
  Argument first{kU8, {1, 2, 2, 3}};
  Argument second{kU8, {1, 2, 2, 3}};
  Argument rows{kI64, {3}};
  Argument boxes{kI32, {3, 4}};
  Argument flips{kU8, {3}};
  Argument colors{kF32, {3, 4}};
  Argument order{kU8, {3, 4}};
  Argument table{kF64, {3, 256}};
  Argument out{kF32, {3, 3, 2, 2}};
  rbcImagesFrames frames[2] = {rbcImagesFramesInit(), rbcImagesFramesInit()};
  rbcImagesParams params = rbcImagesParamsInit();
  const rbcImagesFrames* used_frames = frames;
  int32_t num_frames = 2;
  const rbcTensor* used_rows = &rows.raw;
  const rbcTensor* used_out = &out.raw;
  const rbcImagesParams* used_params = &params;

  Images() {
    first.fill<uint8_t>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
    second.fill<uint8_t>({12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23});
    rows.fill<int64_t>({1, -1, 0});
    boxes.fill<int32_t>({0, 0, 2, 2, 0, 0, 2, 2, 0, 0, 2, 2});
    flips.fill<uint8_t>({1, 3, 2});
    colors.fill<float>({0.5f, kNaN, kNaN, 0, 1, 1, 1, kNaN, kNaN, kNaN, kNaN, kNaN});
    order.fill<uint8_t>({3, 2, 1, 0, 0, 1, 2, 3, 1, 0, 3, 2});
    fillTable(table);
    frames[0].values = &first.raw;
    frames[1].values = &second.raw;
    params.boxes = &boxes.raw;
    params.flips = &flips.raw;
    params.colors = &colors.raw;
    params.color_order = &order.raw;
    params.table = &table.raw;
    params.pad_value[0] = 7;
    params.pad_value[1] = 8;
    params.pad_value[2] = 9;
  }

  auto arguments() const {
    return std::make_tuple(used_frames, num_frames, used_rows, used_out, used_params);
  }
  void checkOutputs() const {
    const std::vector<uint64_t> bits = out.array.elements();
    for (size_t c = 0; c < 3; ++c) {
      for (size_t y = 0; y < 2; ++y) {
        for (size_t x = 0; x < 2; ++x) {
          const size_t darkened = (12 + 6 * y + 3 * (1 - x) + c) / 2;
          const size_t bytes[] = {darkened, 7 + c, 6 * (1 - y) + 3 * x + c};
          for (size_t image = 0; image < 3; ++image) {
            CHECK(support::decodeFloat(kF32, bits[((image * 3 + c) * 2 + y) * 2 + x]) ==
                  static_cast<long double>(2 * bytes[image] + 1000 * c));
          }
        }
      }
    }
  }

  static std::vector<support::TensorOf<Images>> tensors() {
    using C = Images;
    return {{"frames[0].values", [](C& c) -> Argument& { return c.first; }},
            {"frames[1].values", [](C& c) -> Argument& { return c.second; }},
            {"out", [](C& c) -> Argument& { return c.out; }, Access::kWritten},
            {"rows", [](C& c) -> Argument& { return c.rows; }},
            {"boxes", [](C& c) -> Argument& { return c.boxes; }},
            {"flips", [](C& c) -> Argument& { return c.flips; }},
            {"colors", [](C& c) -> Argument& { return c.colors; }},
            {"color_order", [](C& c) -> Argument& { return c.order; }},
            {"table", [](C& c) -> Argument& { return c.table; }}};
  }
  static std::vector<support::StructOf<Images>> structs() {
    return {support::structOf("params", &Images::params, &Images::used_params,
                              RBC_IMAGES_FLAG_COLOR_FIRST)};
  }
  static std::vector<support::PointerOf<Images>> pointers() {
    using C = Images;
    return {{"frames: is null", [](C& c) { c.used_frames = nullptr; }},
            {"frames[1].values: is null", [](C& c) { c.frames[1].values = nullptr; }},
            {"out: is null", [](C& c) { c.used_out = nullptr; }}};
  }
};

// ---- draws --------------------------------------------------------------------------------------

struct Draws : support::OperationCall<Draws, rbcImageDraws, rbcImageDrawsWorkspaceSize> {
  Argument samples{kI64, {2}};
  Argument boxes{kI32, {2, 4}};
  Argument flips{kU8, {2}};
  Argument colors{kF32, {2, 4}};
  Argument order{kU8, {2, 4}};
  const rbcTensor* used[5] = {&samples.raw, &boxes.raw, &flips.raw, &colors.raw, &order.raw};
  rbcImageDrawsParams params = rbcImageDrawsParamsInit();
  const rbcImageDrawsParams* used_params = &params;

  Draws() {
    samples.fill<int64_t>({0, 1});
    params.crop = RBC_IMAGES_CROP_FIXED;
    params.frame_height = 4;
    params.frame_width = 5;
    params.crop_height = 4;
    params.crop_width = 5;
    params.flip_probability = 1;
    params.brightness[0] = params.brightness[1] = 0.5;
  }
  auto arguments() const {
    return std::make_tuple(used[0], used[1], used[2], used[3], used[4], used_params);
  }
  void checkOutputs() const {
    CHECK(boxes.array.elements() == std::vector<uint64_t>{0, 0, 4, 5, 0, 0, 4, 5});
    CHECK(flips.array.elements() == std::vector<uint64_t>{1, 1});
    CHECK(support::decodeFloat(kF32, colors.array.get({1, 0})) == 0.5L);
    CHECK(colors.array.get({0, 1}) == support::formatOf(kF32).nan());
    for (int64_t i = 0; i < 2; ++i) {
      uint64_t sum = 0;
      for (int64_t k = 0; k < 4; ++k) sum += uint64_t{1} << order.array.get({i, k});
      CHECK(sum == 15);
    }
  }

  static std::vector<support::TensorOf<Draws>> tensors() {
    using C = Draws;
    return {{"samples", [](C& c) -> Argument& { return c.samples; }},
            {"boxes", [](C& c) -> Argument& { return c.boxes; }, Access::kWritten},
            {"flips", [](C& c) -> Argument& { return c.flips; }, Access::kWritten},
            {"colors", [](C& c) -> Argument& { return c.colors; }, Access::kWritten},
            {"color_order", [](C& c) -> Argument& { return c.order; }, Access::kWritten}};
  }
  static std::vector<support::StructOf<Draws>> structs() {
    return {support::structOf("params", &Draws::params, &Draws::used_params)};
  }
  static std::vector<support::PointerOf<Draws>> pointers() {
    return {{"samples: is null", [](Draws& c) { c.used[0] = nullptr; }}};
  }
};

const support::StructCallsOf kImageStructs([](support::StructCalls& calls) {
  std::vector<double> bytes(2 * 4 * 4 * 1);
  std::iota(bytes.begin(), bytes.end(), 0.0);
  const rbcTensor* values = calls.in(kU8, {2, 4, 4, 1}, bytes);
  const rbcTensor* out = calls.out(kU8, {4, 1, 2, 2});
  rbcImagesFrames frames = rbcImagesFramesInit();
  frames.values = values;
  const std::vector<rbcImagesFrames> both(2, frames);
  calls.add("rbcImagesFrames", rbcImagesFramesInit(), both, "frames",
            [=, c = calls.context()](const rbcImagesFrames* object) {
              return rbcImages(c, object, 2, nullptr, out, nullptr);
            });
  rbcImagesParams params = rbcImagesParamsInit();
  params.filter = RBC_IMAGES_FILTER_BOX;
  params.pad_value[0] = 3;
  calls.add("rbcImagesParams", rbcImagesParamsInit(), {params}, "params",
            [=, c = calls.context()](const rbcImagesParams* object) {
              return rbcImages(c, both.data(), 2, nullptr, out, object);
            });
  const rbcTensor* samples = calls.in(kI64, {2}, {5, 6});
  const rbcTensor* flips = calls.out(kU8, {2});
  rbcImageDrawsParams draws = rbcImageDrawsParamsInit();
  draws.seed = 3;
  draws.flip_probability = 0.5;
  calls.add("rbcImageDrawsParams", rbcImageDrawsParamsInit(), {draws}, "params",
            [=, c = calls.context()](const rbcImageDrawsParams* object) {
              return rbcImageDraws(c, samples, nullptr, flips, nullptr, nullptr, object);
            });
});

}  // namespace

COMMON_ERROR_TESTS("images", Images)
STRUCT_ERROR_TESTS("images", Images)
COMMON_ERROR_TESTS("image draws", Draws)
STRUCT_ERROR_TESTS("image draws", Draws)

TEST_CASE("images errors: the array of frames") {
  using C = Images;
  checkErrors<C>(
      {{kInvalid, "num_frames: is 0, expected 1 to 64", [](C& c) { c.num_frames = 0; }},
       {kInvalid, "num_frames: is 65, expected 1 to 64", [](C& c) { c.num_frames = 65; }},
       {kInvalid, "frames[0]: struct_size is 0, expected 16",
        [](C& c) { c.frames[0].struct_size = 0; }},
       {kInvalid, "frames[1]: struct_size is 32, expected 16 as frames[0]",
        [](C& c) { c.frames[1].struct_size = 32; }},
       {kShape, "out: has 3 images, expected 2, one for each frame, without rows",
        [](C& c) { c.used_rows = nullptr; }}});
}

TEST_CASE("images errors: constants") {
  using C = Images;
  checkErrors<C>(
      {{kInvalid, "rule: is 6, expected one of RBC_IMAGES_RULE_...",
        [](C& c) { c.params.rule = 6; }},
       {kInvalid, "filter: is -1, expected one of RBC_IMAGES_FILTER_...",
        [](C& c) { c.params.filter = -1; }},
       {kInvalid, "fit: is 3, expected one of RBC_IMAGES_FIT_...", [](C& c) { c.params.fit = 3; }},
       {kInvalid, "pad_anchor: is 3, expected one of", [](C& c) { c.params.pad_anchor = 3; }},
       {kInvalid, "layout: is 2, expected one of", [](C& c) { c.params.layout = 2; }},
       {kInvalid, "pad_value[2]: is 256, expected an integer of 0 to 255",
        [](C& c) { c.params.pad_value[2] = 256; }},
       {kInvalid, "pad_value[0]: is 0.5, expected", [](C& c) { c.params.pad_value[0] = 0.5; }},
       {kInvalid, "pad_value[3]: is nan, expected", [](C& c) { c.params.pad_value[3] = NAN; }},
       {kUnsupported,
        "filter: is AREA, expected BOX, BILINEAR, HAMMING, BICUBIC or LANCZOS3 with "
        "rule PILLOW",
        [](C& c) { c.params.filter = RBC_IMAGES_FILTER_AREA; }},
       {kUnsupported, "filter: is BOX, expected BILINEAR, BICUBIC or LINEAR with rule TORCHVISION",
        [](C& c) {
          c.params.rule = RBC_IMAGES_RULE_TORCHVISION;
          c.params.filter = RBC_IMAGES_FILTER_BOX;
        }},
       {kUnsupported, "filter: is BILINEAR, expected LINEAR, LINEAR_EXACT or AREA with rule OPENCV",
        [](C& c) { c.params.rule = RBC_IMAGES_RULE_OPENCV; }}});
}

TEST_CASE("images errors: shapes and dtypes") {
  checkShapes<Images>(
      {{"frames[0].values", {1, 12}, "rank is 2 (shape [1,12]), expected 4"},
       {"frames[0].values", {1, 2, 3, 2}, "shape is [1,2,3,2], expected [n,H,W,C] with C of 1, 3"},
       {"frames[0].values", {1, 0, 2, 3}, "shape is [1,0,2,3], expected [n,H,W,C] with H and W of"},
       {"frames[1].values", {1, 1, 4, 3}, "shape is [1,1,4,3], expected [1,2,2,3]"},
       {"out", {3, 12}, "rank is 2 (shape [3,12]), expected 4"},
       {"out", {3, 1, 6, 2}, "shape is [3,1,6,2], expected [B,C,h,w] with C = 3"},
       {"rows", {2}, "shape is [2], expected [3]"},
       {"boxes", {2, 4}, "shape is [2,4], expected [3,4]"},
       {"boxes", {3}, "shape is [3], expected [4]"},
       {"flips", {2}, "shape is [2], expected [3]"},
       {"colors", {3, 3}, "shape is [3,3], expected [3,4]"},
       {"color_order", {4, 3}, "shape is [4,3], expected [3,4]"},
       {"table", {1, 768}, "shape is [1,768], expected [3,256]"}});
  checkDTypes<Images>({{"frames[1].values", support::kI8, "dtype is int8, expected uint8"},
                       {"out", kI32, "dtype is int32, expected uint8 or a float"},
                       {"rows", kF64, "dtype is float64, expected int32 or int64"},
                       {"boxes", kF32, "dtype is float32, expected int32 or int64"},
                       {"flips", support::kBool, "dtype is bool, expected uint8"},
                       {"colors", kI32, "dtype is int32, expected float32 or float64"},
                       {"color_order", support::kI8, "dtype is int8, expected uint8"},
                       {"table", kI64, "dtype is int64, expected a float"}});
}

TEST_CASE("images errors: options that do not go together") {
  using C = Images;
  checkErrors<C>(
      {{kInvalid, "crop_height: is 2 and crop_width is 0, expected 0 without boxes",
        [](C& c) {
          c.params.boxes = nullptr;
          c.params.crop_height = 2;
        }},
       {kInvalid,
        "crop_height: is 3 and crop_width is 2, expected 1 to 2 and 1 to 2, or 0 for both",
        [](C& c) {
          c.params.crop_height = 3;
          c.params.crop_width = 2;
        }},
       {kInvalid, "color_order: is given, expected null without colors",
        [](C& c) { c.params.colors = nullptr; }},
       {kDType, "out: dtype is uint8, expected a float with table",
        [](C& c) { c.out.raw.dtype = kU8; }}});
}

TEST_CASE("images errors: numbers that only the CPU sees") {
  using C = Images;
  constexpr auto kCall = Seen::kByTheCallAlone;
  checkErrors<C>(
      {{kInvalid, "rows: index 2 is 2, expected -1, or one of the 2 frames",
        [](C& c) {
          c.rows.fill<int64_t>({1, -1, 2});
        },
        kCall},
       {kInvalid, "rows: index 1 is -2, expected -1",
        [](C& c) {
          c.rows.fill<int64_t>({1, -2, 0});
        },
        kCall},
       {kInvalid, "boxes: [1] is y 0, x 0, height 0, width 2, expected a box inside of 2 x 2",
        [](C& c) {
          c.boxes.fill<int32_t>({0, 0, 2, 2, 0, 0, 0, 2, 0, 0, 2, 2});
        },
        kCall},
       {kInvalid, "boxes: [2] is y 1, x 0, height 2, width 2",
        [](C& c) {
          c.boxes.fill<int32_t>({0, 0, 2, 2, 0, 0, 2, 2, 1, 0, 2, 2});
        },
        kCall},
       {kInvalid, "boxes: [1] has 1 x 2, expected 2 x 2, crop_height and crop_width",
        [](C& c) {
          c.boxes.fill<int32_t>({0, 0, 2, 2, 0, 0, 1, 2, 0, 0, 2, 2});
          c.params.crop_height = c.params.crop_width = 2;
        },
        kCall},
       {kInvalid, "flips: index 1 is 4, expected 0 to 3",
        [](C& c) {
          c.flips.fill<uint8_t>({0, 4, 0});
        },
        kCall},
       {kInvalid, "colors: contrast of image 1 is -1, expected NaN, or 0 or more and finite",
        [](C& c) {
          c.colors.fill<float>({1, 1, 1, 0, 1, -1, 1, 0, 1, 1, 1, 0});
        },
        kCall},
       {kInvalid, "colors: brightness of image 0 is inf, expected",
        [](C& c) {
          c.colors.fill<float>({INFINITY, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 0});
        },
        kCall},
       {kInvalid, "colors: hue of image 2 is 0.75, expected NaN, or -0.5 to 0.5",
        [](C& c) {
          c.colors.fill<float>({1, 1, 1, 0, 1, 1, 1, -0.5f, 1, 1, 1, 0.75f});
        },
        kCall},
       {kInvalid, "color_order: [0,3] is 1, expected a permutation of 0, 1, 2, 3",
        [](C& c) {
          c.order.fill<uint8_t>({0, 1, 2, 1, 0, 1, 2, 3, 0, 1, 2, 3});
        },
        kCall},
       {kInvalid, "table: [0,3] is NaN, expected a number", [](C& c) { fillTable(c.table, 3); },
        kCall}});
}

TEST_CASE("images errors: colours of four channels, and sides that are too long") {
  const std::vector<uint8_t> bytes(4 * 60'000);
  std::vector<uint8_t> out(4 * 100 * 1);
  const auto context = robocache::Context::cpu(1);
  const std::vector<float> factors(4, 1.0f);
  robocache::ImagesOptions options;
  options.colors = robocache::Tensor(factors, {1, 4});
  const auto colored = robocache::images<robocache::Expect>(context, {{bytes, {1, 100, 600, 4}}},
                                                            {out, {1, 4, 100, 1}}, options);
  REQUIRE(!colored);
  CHECK(
      support::tells(colored.error().what(), {"colors: frames have 4 channels, expected 1 or 3"}));
  options = {};
  options.fit = robocache::ImageFit::kCover;
  const auto large = robocache::images<robocache::Expect>(context, {{bytes, {4, 1, 60'000, 1}}},
                                                          {out, {4, 1, 100, 1}}, options);
  REQUIRE(!large);
  CHECK(
      support::tells(large.error().what(), {"fit: RBC_IMAGES_FIT_COVER resizes 1 x 60000 to 100 x "
                                            "6000000, expected at most 2^20"}));
}

TEST_CASE("images: without images, rows or columns") {
  for (const std::array<int64_t, 3>& size :
       {std::array<int64_t, 3>{0, 2, 2}, {2, 0, 2}, {2, 2, 0}}) {
    const int64_t in_shape[] = {size[0], 2, 2, 1};
    const int64_t out_shape[] = {size[0], 1, size[1], size[2]};
    std::vector<uint8_t> bytes(8, 1);
    const rbcTensor in = {
        bytes.data(), {RBC_DEVICE_CPU, 0}, 4, kU8, const_cast<int64_t*>(in_shape), nullptr, 0};
    const rbcTensor out = {
        nullptr, {RBC_DEVICE_CPU, 0}, 4, kF32, const_cast<int64_t*>(out_shape), nullptr, 0};
    rbcImagesFrames frames = rbcImagesFramesInit();
    frames.values = &in;
    CHECK_SUCCEEDS(rbcImages(support::refusingContext().get(), &frames, 1, nullptr, &out, nullptr));
  }
}

TEST_CASE("image draws errors: params") {
  using C = Draws;
  checkErrors<C>(
      {{kInvalid, "camera: is -1, expected 0 to 2^24 - 1", [](C& c) { c.params.camera = -1; }},
       {kInvalid, "camera: is 16777216, expected", [](C& c) { c.params.camera = 1 << 24; }},
       {kInvalid, "crop: is 4, expected one of RBC_IMAGES_CROP_...",
        [](C& c) { c.params.crop = 4; }},
       {kInvalid, "flip_probability: is 1.5, expected 0 to 1",
        [](C& c) { c.params.flip_probability = 1.5; }},
       {kInvalid, "crop_fraction: is 0, expected more than 0",
        [](C& c) { c.params.crop_fraction = 0; }},
       {kInvalid, "area: is 0.08 to 2, expected a range from more than 0 to at most 1",
        [](C& c) { c.params.area[1] = 2; }},
       {kInvalid, "ratio: is 0 to 1.33333, expected", [](C& c) { c.params.ratio[0] = 0; }},
       {kInvalid, "contrast: is 2 to 1, expected a range from 0 or more",
        [](C& c) {
          c.params.contrast[0] = 2;
          c.params.contrast[1] = 1;
        }},
       {kInvalid, "saturation: is nan to 1, expected", [](C& c) { c.params.saturation[1] = 1; }},
       {kInvalid, "hue: is -0.75 to 0.1, expected a range from -0.5 or more to at most 0.5",
        [](C& c) {
          c.params.hue[0] = -0.75;
          c.params.hue[1] = 0.1;
        }},
       {kInvalid, "hue: is 0.1 to nan, expected", [](C& c) { c.params.hue[0] = 0.1; }},
       {kInvalid, "frame_height: is 0, expected 1 to 65536",
        [](C& c) { c.params.frame_height = 0; }},
       {kInvalid, "frame_width: is 65537, expected", [](C& c) { c.params.frame_width = 65537; }},
       {kInvalid, "crop_height: is 5, expected 1 to 4", [](C& c) { c.params.crop_height = 5; }},
       {kInvalid, "crop_width: is 0, expected 1 to 5", [](C& c) { c.params.crop_width = 0; }}});
}

TEST_CASE("image draws errors: shapes and dtypes") {
  checkShapes<Draws>({{"samples", {1, 2}, "rank is 2 (shape [1,2]), expected 1"},
                      {"boxes", {4, 2}, "shape is [4,2], expected [2,4]"},
                      {"flips", {1}, "shape is [1], expected [2]"},
                      {"colors", {2, 3}, "shape is [2,3], expected [2,4]"},
                      {"color_order", {8}, "shape is [8], expected [2,4]"}});
  checkDTypes<Draws>({{"samples", kF64, "dtype is float64, expected int32 or int64"},
                      {"boxes", kF32, "dtype is float32, expected int32 or int64"},
                      {"flips", support::kBool, "dtype is bool, expected uint8"},
                      {"colors", support::kF16, "dtype is float16, expected float32 or float64"},
                      {"color_order", kI32, "dtype is int32, expected uint8"}});
}

TEST_CASE("images: the wrapper") {
  const auto context = robocache::Context::cpu(1);
  const std::vector<uint8_t> frame = {10, 20, 30, 40};
  std::vector<uint8_t> out(1);
  robocache::ImagesOptions options;
  options.filter = robocache::ImageFilter::kBox;
  robocache::images(context, {{frame, {1, 2, 2, 1}}}, {out, {1, 1, 1, 1}}, options);
  CHECK(out[0] == 25);
  const std::vector<int64_t> samples = {1, 2, 3};
  std::vector<uint8_t> flips(3);
  robocache::ImageDrawsOptions draws;
  draws.flip_probability = 1;
  draws.flips = robocache::Tensor(flips, {3});
  robocache::imageDraws(context, samples, draws);
  CHECK(flips == std::vector<uint8_t>{1, 1, 1});
}

TEST_CASE("wrapper: the workspaces of images have the sizes of their size functions") {
  const std::vector<uint8_t> frames(3 * 90 * 70 * 3, 1);
  std::vector<float> out(3 * 3 * 20 * 30);
  const std::vector<float> factors(12, 0.5f);
  robocache::ImagesOptions options;
  options.colors = robocache::Tensor(factors, {3, 4});
  CHECK(CHECKED_WRAPPER_SIZE(images, {{frames, {3, 90, 70, 3}}}, {out, {3, 3, 20, 30}}, options) >
        0);
  const std::vector<int64_t> samples(5);
  std::vector<uint8_t> flips(5);
  robocache::ImageDrawsOptions draws;
  draws.flips = robocache::Tensor(flips, {5});
  CHECK(CHECKED_WRAPPER_SIZE(imageDraws, samples, draws) == 0);
}

#if RBC_WITH_CUDA

TEST_CASE("images cuda: captured without a warm-up, and replayed on other frames") {
  REQUIRE_CUDA();
  const cuda_support::Stream stream;
  for (const bool first : {false, true}) {
    CAPTURE(first);
    Array frames(kU8, {4, 60, 50, 3});
    Array other(kU8, {4, 60, 50, 3});
    Array colors(kF32, {4, 4});
    Array out(kF32, {4, 3, 33, 37});
    support::Random random(4);
    frames.each([&](std::byte* p) { *p = static_cast<std::byte>(random.bits()); });
    other.each([&](std::byte* p) { *p = static_cast<std::byte>(random.bits()); });
    colors.each([&](std::byte* p) {
      const auto f = static_cast<float>(random.uniform(0, 1.5));
      std::memcpy(p, &f, sizeof f);
    });
    const support::Placed placed_frames(cuda, frames, true);
    const support::Placed placed_colors(cuda, colors, true);
    const support::Placed placed_out(cuda, out, true);
    rbcImagesFrames array = rbcImagesFramesInit();
    array.values = placed_frames.get();
    rbcImagesParams params = rbcImagesParamsInit();
    params.colors = placed_colors.get();
    params.flags = first ? RBC_IMAGES_FLAG_COLOR_FIRST : 0;
    size_t bytes = 0;
    CHECK_SUCCEEDS(
        rbcImagesWorkspaceSize(cuda.get(), &array, 1, nullptr, placed_out.get(), &params, &bytes));
    CHECK_SUCCEEDS(rbcContextReserve(cuda.get(), bytes));
    CHECK_SUCCEEDS(rbcContextSynchronize(cuda.get()));
    const cuda_support::OnStream on_stream(cuda, stream);
    cuda_support::beginCapture(stream);
    CHECK_SUCCEEDS(rbcImages(cuda.get(), &array, 1, nullptr, placed_out.get(), &params));
    cuda_support::Graph graph(stream);
    CHECK(graph.waitsForNoHost());
    cuda_support::upload(other, placed_frames.get(), stream);
    for (int again = 0; again < 2; ++again) graph.launch(stream);
    cuda_support::check(cudaStreamSynchronize(stream.get()));
    CHECK(placed_out.fetch(cuda, out));
    // On CUDA a hue of more than 0.5 counts as NaN.
    Array without_hue(kF32, {4, 4});
    for (int64_t i = 0; i < 4; ++i) {
      for (int64_t k = 0; k < 4; ++k) {
        const bool hue = k == 3 && support::decodeFloat(kF32, colors.get({i, k})) > 0.5L;
        without_hue.set({i, k}, hue ? support::formatOf(kF32).nan() : colors.get({i, k}));
      }
    }
    Array expected(kF32, {4, 3, 33, 37});
    const rbcTensor from = other.tensor();
    const rbcTensor factors = without_hue.tensor();
    const rbcTensor to = expected.tensor();
    array.values = &from;
    params.colors = &factors;
    const support::Context cpu = support::cpuContext(2);
    CHECK_SUCCEEDS(rbcImages(cpu.get(), &array, 1, nullptr, &to, &params));
    CHECK(out.elements() == expected.elements());
  }
}

#endif
