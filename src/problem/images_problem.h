// Frames to images as plain numbers: the input of a backend, the plan of each image, and the tables
// of weights.
#pragma once

#include "dtype.h"
#include "image_color.h"
#include "output.h"
#include "ragged.h"
#include "real.h"
#include "resize_filter.h"
#include "resize_sums.h"
#include "robocache/images.h"

namespace rbc {

inline constexpr int64_t kMaxImageExtent = 65536;
inline constexpr int64_t kMaxResizedExtent = 1 << 20;  // of an image whose centre is kept
inline constexpr int kMaxImageChannels = 4;

// Strides are in elements.
struct FrameArray {
  const uint8_t* data;
  int64_t stride[4];  // frame, row, column, channel
  int64_t first;      // the number of its first frame in the call
};

struct ImagesProblem {
  int64_t images;
  int64_t frames;  // of all arrays
  int64_t height;
  int64_t width;
  int32_t channels;
  int32_t num_arrays;
  FrameArray arrays[RBC_IMAGES_MAX_FRAMES];
  IndexArray rows;
  Output<4> out;  // image, channel, row, column
  int64_t out_height;
  int64_t out_width;
  int32_t rule;
  ResizeFilter filter;
  int32_t fit;
  int32_t pad_anchor;
  bool color_first;
  uint8_t pad_value[kMaxImageChannels];
  const void* boxes;  // null: whole frames
  int64_t boxes_stride[2];
  bool boxes_are_64;
  int64_t crop_height;  // of all boxes; 0: not known
  int64_t crop_width;
  const uint8_t* flips;
  int64_t flips_stride;
  const void* colors;
  int64_t colors_stride[2];
  bool colors_are_64;
  const uint8_t* color_order;
  int64_t color_order_stride[2];
  const void* table;
  int64_t table_stride[2];
  DType table_dtype;

  // Whether all images have the same tables of weights.
  bool sharesTables() const { return boxes == nullptr || boxes_stride[0] == 0 || crop_height > 0; }
  int64_t tables() const { return sharesTables() ? 1 : images; }
};

struct ImageBox {
  int64_t y;
  int64_t x;
  int64_t height;
  int64_t width;
};

// The work on an image. If its columns come first, everything is transposed: rows are columns.
struct ImagePlan {
  const uint8_t* pixels;  // the first of the crop; null: there is no frame
  const uint8_t* frame;   // the first of the frame
  int64_t frame_size[2];  // rows, columns
  int64_t stride[3];      // of the frame: row, column, channel
  int64_t out_stride[2];  // row, column
  int64_t in[2];          // the extents of the crop: rows, columns
  int64_t resized[2];
  int64_t window[2];  // where the image begins in what is resized
  int64_t size[2];    // of the image
  int64_t place[2];   // of the image in the output
  int64_t out[2];     // of the output
  ColorSteps colors;
  bool flip[2];        // up-down, left-right
  bool transposed;     // whether columns come first
  uint8_t padding[5];  // zero, so that every byte of a plan has a value
};
static_assert(sizeof(ImagePlan) % sizeof(int64_t) == 0);

RBC_HD int64_t indexAt(const void* data, bool is_64, int64_t at) {
  return asRead(is_64 ? static_cast<const int64_t*>(data)[at]
                      : static_cast<const int32_t*>(data)[at]);
}

// The frame of an image, or -1; a number out of range counts as the nearest one.
RBC_HD int64_t frameOf(const ImagesProblem& p, int64_t image) {
  const int64_t row =
      p.rows.data == nullptr ? image : indexAt(p.rows.data, p.rows.is_64, image * p.rows.stride);
  return p.frames == 0 ? -1 : clampIndex(row, -1, p.frames - 1);
}

// The numbers of a box as the caller gives them.
RBC_HD ImageBox givenBox(const ImagesProblem& p, int64_t image) {
  if (p.boxes == nullptr) return {0, 0, p.height, p.width};
  int64_t box[4];
  for (int i = 0; i < 4; ++i) {
    box[i] = indexAt(p.boxes, p.boxes_are_64, image * p.boxes_stride[0] + i * p.boxes_stride[1]);
  }
  return {box[0], box[1], box[2], box[3]};
}

// The same, moved and cut so that it is inside of the frame.
RBC_HD ImageBox boxOf(const ImagesProblem& p, int64_t image) {
  ImageBox box = givenBox(p, image);
  if (p.crop_height > 0) {
    box.height = p.crop_height;
    box.width = p.crop_width;
    box.y = clampIndex(box.y, 0, p.height - box.height);
    box.x = clampIndex(box.x, 0, p.width - box.width);
    return box;
  }
  box.y = clampIndex(box.y, 0, p.height - 1);
  box.x = clampIndex(box.x, 0, p.width - 1);
  box.height = clampIndex(box.height, 1, p.height - box.y);
  box.width = clampIndex(box.width, 1, p.width - box.x);
  return box;
}

// The size that a crop gets by the fit.
struct ResizedSize {
  int64_t height;
  int64_t width;
};

RBC_HD ResizedSize resizedSize(int32_t fit, int64_t height, int64_t width, int64_t out_height,
                               int64_t out_width) {
  const auto across = static_cast<double>(width);
  const auto down = static_cast<double>(height);
  if (fit == RBC_IMAGES_FIT_PAD) {
    const double by_width = across / static_cast<double>(out_width);
    const double by_height = down / static_cast<double>(out_height);
    const double ratio = by_width > by_height ? by_width : by_height;
    const auto h = static_cast<int64_t>(down / ratio);
    const auto w = static_cast<int64_t>(across / ratio);
    // No more than the output: the quotients may round up to it, never above.
    return {clampIndex(h, 1, out_height), clampIndex(w, 1, out_width)};
  }
  if (fit == RBC_IMAGES_FIT_COVER) {
    if (width * out_height <= height * out_width) {
      return {static_cast<int64_t>(static_cast<double>(out_width * height) / across), out_width};
    }
    return {out_height, static_cast<int64_t>(static_cast<double>(out_height * width) / down)};
  }
  return {out_height, out_width};
}

// Whether the columns of some images may come first.
RBC_HD bool mayTranspose(const ImagesProblem& p) {
  return p.rule == RBC_IMAGES_RULE_PILLOW_12 || p.rule == RBC_IMAGES_RULE_PILLOW_13;
}

RBC_HD bool columnsComeFirst(const ImagesProblem& p, const ImageBox& box, const ResizedSize& to) {
  if (!mayTranspose(p) || box.height <= to.height) return false;
  if (p.rule == RBC_IMAGES_RULE_PILLOW_12) return box.height > 100 * box.width;
  return box.height - to.height > 2 * (box.width - to.width);
}

RBC_HD ColorSteps readColorSteps(const ImagesProblem& p, int64_t image) {
  double factors[kColorSteps];
  uint8_t order[kColorSteps];
  for (int i = 0; i < kColorSteps; ++i) {
    const int64_t at = image * p.colors_stride[0] + i * p.colors_stride[1];
    factors[i] = p.colors_are_64 ? static_cast<const double*>(p.colors)[at]
                                 : static_cast<double>(static_cast<const float*>(p.colors)[at]);
    order[i] = p.color_order == nullptr
                   ? static_cast<uint8_t>(i)
                   : p.color_order[image * p.color_order_stride[0] + i * p.color_order_stride[1]];
  }
  return colorStepsOf(factors, order);
}

RBC_HD void setFrame(const ImagesProblem& p, int64_t frame, ImagePlan* plan) {
  if (frame < 0) return;
  int32_t n = p.num_arrays - 1;
  while (n > 0 && p.arrays[n].first > frame) --n;
  const FrameArray& array = p.arrays[n];
  plan->frame = array.data + (frame - array.first) * array.stride[0];
  for (int i = 0; i < 3; ++i) plan->stride[i] = array.stride[1 + i];
}

template <class T>
RBC_HD void swapTwo(T (&pair)[2]) {
  const T first = pair[0];
  pair[0] = pair[1];
  pair[1] = first;
}

// The extents of images of such a box; its frame is not set.
RBC_HD ImagePlan extentsOf(const ImagesProblem& p, const ImageBox& box, const ResizedSize& to) {
  ImagePlan plan = {};
  plan.out_stride[0] = p.out.stride[2];
  plan.out_stride[1] = p.out.stride[3];
  const int64_t in[2] = {box.height, box.width};
  const int64_t resized[2] = {to.height, to.width};
  const int64_t out[2] = {p.out_height, p.out_width};
  for (int axis = 0; axis < 2; ++axis) {
    plan.in[axis] = in[axis];
    plan.frame_size[axis] = axis == 0 ? p.height : p.width;
    plan.resized[axis] = resized[axis] < kMaxResizedExtent ? resized[axis] : kMaxResizedExtent;
    plan.out[axis] = out[axis];
    plan.size[axis] = plan.resized[axis] < out[axis] ? plan.resized[axis] : out[axis];
    plan.window[axis] = (plan.resized[axis] - plan.size[axis]) / 2;
    const int64_t room = out[axis] - plan.size[axis];
    plan.place[axis] = p.pad_anchor == RBC_IMAGES_PAD_START ? 0
                       : p.pad_anchor == RBC_IMAGES_PAD_END ? room
                                                            : room / 2;
  }
  return plan;
}

// Sets what differs between images of one size.
RBC_HD void placeImage(const ImagesProblem& p, int64_t image, const ImageBox& box,
                       ImagePlan* plan) {
  setFrame(p, frameOf(p, image), plan);
  if (plan->frame != nullptr) {
    plan->pixels = plan->frame + box.y * plan->stride[0] + box.x * plan->stride[1];
  }
  const int flips = p.flips == nullptr ? 0 : p.flips[image * p.flips_stride];
  plan->flip[0] = (flips & 2) != 0;
  plan->flip[1] = (flips & 1) != 0;
  if (p.colors != nullptr) plan->colors = readColorSteps(p, image);
}

// Exchanges rows and columns.
RBC_HD void transposePlan(ImagePlan* plan) {
  const int64_t row = plan->stride[0];
  plan->stride[0] = plan->stride[1];
  plan->stride[1] = row;
  swapTwo(plan->out_stride);
  swapTwo(plan->in);
  swapTwo(plan->frame_size);
  swapTwo(plan->resized);
  swapTwo(plan->window);
  swapTwo(plan->size);
  swapTwo(plan->place);
  swapTwo(plan->out);
  swapTwo(plan->flip);
  plan->transposed = !plan->transposed;
}

RBC_HD ImagePlan planOf(const ImagesProblem& p, int64_t image) {
  const ImageBox box = boxOf(p, image);
  const ResizedSize to = resizedSize(p.fit, box.height, box.width, p.out_height, p.out_width);
  ImagePlan plan = extentsOf(p, box, to);
  placeImage(p, image, box, &plan);
  if (columnsComeFirst(p, box, to)) transposePlan(&plan);
  return plan;
}

// ---- weights ------------------------------------------------------------------------------------

// How images of these extents are summed, and where their weights come from.
struct ResizeKind {
  ResizeSums sums;
  ResizeTaps taps;
};

RBC_HD bool dividesBy(double scale) {
  const double off = scale - roundEven(scale);
  return (off < 0 ? -off : off) < 0x1p-52;
}

RBC_HD ResizeKind kindOf(const ImagesProblem& p, const ImagePlan& plan) {
  if (p.rule == RBC_IMAGES_RULE_EXACT) return {ResizeSums::kExact, ResizeTaps::kFilter};
  if (p.rule != RBC_IMAGES_RULE_OPENCV) {
    const bool two = p.filter == ResizeFilter::kLinear;
    return {ResizeSums::kRounded, two ? ResizeTaps::kTwoPixels : ResizeTaps::kFilter};
  }
  if (p.filter == ResizeFilter::kLinearExact) {
    return {ResizeSums::kLinearExact, ResizeTaps::kCvLinearExact};
  }
  const bool halves = plan.in[0] == 2 * plan.resized[0] && plan.in[1] == 2 * plan.resized[1];
  if (p.filter == ResizeFilter::kLinear && !halves) {
    return {ResizeSums::kLinear, ResizeTaps::kCvLinear};
  }
  bool blocks = true;
  for (int axis = 0; axis < 2; ++axis) {
    if (plan.in[axis] < plan.resized[axis]) {
      return {ResizeSums::kLinear, ResizeTaps::kCvLinearArea};
    }
    blocks = blocks && dividesBy(1.0 / (static_cast<double>(plan.resized[axis]) /
                                        static_cast<double>(plan.in[axis])));
  }
  return blocks ? ResizeKind{ResizeSums::kBlocks, ResizeTaps::kCvBlocks}
                : ResizeKind{ResizeSums::kCells, ResizeTaps::kCvCells};
}

// The weights of an axis: the weights of pixel i of the image begin at i * room.
struct AxisTable {
  TapRange* ranges;  // in the crop
  int32_t* weights;
  int32_t* bits;  // one number: of the fraction of the weights
};

// An axis of a plan: 0 rows, 1 columns.
RBC_HD ResizeAxis axisOf(const ImagesProblem& p, const ImagePlan& plan, int axis) {
  return axisOf(kindOf(p, plan).taps, p.filter, plan.in[axis], plan.resized[axis], axis == 1);
}

// Whether weights have 16 bits, so that the largest of the axis decides how many are a fraction.
RBC_HD bool hasSixteenBits(const ImagesProblem& p) { return p.rule == RBC_IMAGES_RULE_TORCHVISION; }

// Fills the table's entry for pixel i of the image.
RBC_HD void fillTaps(const ResizeAxis& axis, int64_t window, int64_t i, const AxisTable& table) {
  const TapRange range = tapRange(axis, window + i);
  table.ranges[i] = range;
  int32_t* weights = table.weights + i * tapRoom(axis);
  tapsOf(axis, window + i, range, [&](int64_t j, int32_t w) { weights[j] = w; });
}

// The numbers that the sums of an image need.
RBC_HD SumNumbers sumNumbers(const ImagePlan& plan, const AxisTable& rows,
                             const AxisTable& columns) {
  return {*columns.bits, *rows.bits, plan.in[0] / plan.resized[0], plan.in[1] / plan.resized[1]};
}

// The room of one table, for either axis: they may be exchanged.
RBC_HD int64_t tableRanges(const ImagesProblem& p) {
  return p.out_height > p.out_width ? p.out_height : p.out_width;
}
RBC_HD int64_t tableWeights(const ImagesProblem& p) {
  const int64_t down = tapLimit(p.filter, p.height, p.out_height);
  const int64_t across = tapLimit(p.filter, p.width, p.out_width);
  return down > across ? down : across;
}

// ---- the table of values ------------------------------------------------------------------------

// The value of a byte, as an element of the output.
template <class Element>
RBC_HD Element valueOf(const ImagesProblem& p, int channel, int byte) {
  if (p.table == nullptr) return narrow<Element>(static_cast<float>(byte));
  const int64_t at = channel * p.table_stride[0] + byte * p.table_stride[1];
  switch (p.table_dtype) {
    case DType::F16: return narrow<Element>(widen(static_cast<const f16*>(p.table)[at]));
    case DType::BF16: return narrow<Element>(widen(static_cast<const bf16*>(p.table)[at]));
    case DType::F32: return narrow<Element>(static_cast<const float*>(p.table)[at]);
    default: return narrow<Element>(static_cast<const double*>(p.table)[at]);
  }
}
template <>
RBC_HD uint8_t valueOf<uint8_t>(const ImagesProblem&, int, int byte) {
  return static_cast<uint8_t>(byte);
}

}  // namespace rbc
