// Images on the CPU: the plans and tables of all images first, then bands of output rows. Where
// contrast needs the mean of an image, its bytes are kept in the elements of the output, and a
// second pass over these finishes it. Machines with products of bytes make suitable images by these.
// Images in the size of their frames, or of their crops, are copied.

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "images/byte_products.h"
#include "images/resize_tile.h"
#include "images_problem.h"
#include "runtime/cpu_state.h"
#include "scratch_layout.h"
#include "visit_dtype.h"

namespace rbc::cpu {
namespace {

constexpr int64_t kSumRows = 32;       // of a frame, that a task adds
constexpr int64_t kTasksOfThread = 8;  // at least, if a task has several bands

// The workspace of a call.
struct Memory {
  ImagePlan* plans;
  float* means;   // of the contrast of each image
  int64_t* sums;  // of the grays of each part of an image or a frame
  uint64_t* values;
  TapRange* ranges[2];
  int32_t* weights[2];
  int32_t* bits[2];
  ByteTable bytes;  // of all tables; null: no image is made by products of bytes
  uint8_t* parts;   // the bytes of `values`: [channel][byte of a value][256]
};

// The rows of something, which are its columns if these come first.
int64_t mostRows(const ImagesProblem& p, int64_t height, int64_t width) {
  return mayTranspose(p) && width > height ? width : height;
}

int64_t bandsOf(const ImagesProblem& p) {
  return (mostRows(p, p.out_height, p.out_width) + kTileRows - 1) / kTileRows;
}

int64_t partsOf(const ImagesProblem& p) {
  if (!p.color_first) return bandsOf(p);
  return (mostRows(p, p.height, p.width) + kSumRows - 1) / kSumRows;
}

Memory layOut(const ImagesProblem& p, SimdLevel level, ScratchLayout& layout) {
  Memory m = {};
  layout.take(&m.plans, p.images);
  layout.take(&m.values, kMaxImageChannels * 256);
  for (int axis = 0; axis < 2; ++axis) {
    layout.take(&m.ranges[axis], p.tables() * tableRanges(p));
    layout.take(&m.weights[axis], p.tables() * tableWeights(p));
    layout.take(&m.bits[axis], p.tables());
  }
  if (p.colors != nullptr) {
    layout.take(&m.means, p.images);
    layout.take(&m.sums, p.images * partsOf(p));
  }
  if (hasByteProducts(level) && suitsByteProducts(p)) {
    const int64_t fours = mostFours(p);
    layout.take(&m.parts, kMaxImageChannels * 256 * sizeof(uint32_t));
    layout.take(&m.bytes.form, p.tables());
    layout.take(&m.bytes.vectors, p.tables() * columnVectors(p));
    layout.take(&m.bytes.columns, p.tables() * columnVectors(p) * fours);
    layout.take(&m.bytes.rows, p.tables() * p.out_height);
    layout.take(&m.bytes.weights, p.tables() * p.out_height * (fours + 1) * kWeightParts);
  }
  return m;
}

size_t bytes(const BackendState& state, const ImagesProblem& p) {
  ScratchLayout layout(nullptr);
  layOut(p, static_cast<const CpuState&>(state).simd, layout);
  return layout.used();
}

AxisTable tableOf(const ImagesProblem& p, const Memory& m, int64_t image, int axis) {
  const int64_t n = p.sharesTables() ? 0 : image;
  return {m.ranges[axis] + n * tableRanges(p), m.weights[axis] + n * tableWeights(p),
          m.bits[axis] + n};
}

ByteTable byteTableOf(const ImagesProblem& p, const Memory& m, int64_t image) {
  const int64_t n = p.sharesTables() ? 0 : image;
  const int64_t fours = mostFours(p);
  return {m.bytes.form + n, m.bytes.vectors + n * columnVectors(p),
          m.bytes.columns + n * columnVectors(p) * fours, m.bytes.rows + n * p.out_height,
          m.bytes.weights + n * p.out_height * (fours + 1) * kWeightParts};
}

void fillTable(const ImagesProblem& p, const ImagePlan& plan, int axis, const ThreadPool& pool,
               const AxisTable& table) {
  ResizeAxis a = axisOf(p, plan, axis);
  if (hasSixteenBits(p)) {
    double most = 0;
    for (int64_t i = 0; i < a.out; ++i) {
      most = std::max(most, largestWeight(a, i));
      if (pool.stopsAt(i)) return;
    }
    a.bits = sixteenBits(most);
  }
  *table.bits = a.bits;
  for (int64_t i = 0; i < plan.size[axis]; ++i) {
    fillTaps(a, plan.window[axis], i, table);
    if ((i & 255) == 255 && pool.stops()) return;
  }
}

// ---- the output ---------------------------------------------------------------------------------

// The rows and columns of the output, of one image.
template <class Word>
class Canvas {
 public:
  Canvas(const ImagesProblem& p, const ImagePlan& plan, const Memory& m, int64_t image)
      : p_(p),
        plan_(plan),
        values_(reinterpret_cast<const Word*>(m.values)),
        data_(static_cast<Word*>(p.out.data) + image * p.out.stride[0]) {}

  // The element of a pixel of the output, in its first channel.
  Word* at(int64_t row, int64_t column) const {
    return data_ + row * plan_.out_stride[0] + column * plan_.out_stride[1];
  }
  // The same for a pixel of the image before it is flipped.
  Word* atImage(int64_t row, int64_t column) const {
    const int64_t y = plan_.flip[0] ? plan_.size[0] - 1 - row : row;
    const int64_t x = plan_.flip[1] ? plan_.size[1] - 1 - column : column;
    return at(plan_.place[0] + y, plan_.place[1] + x);
  }
  // Writes the values of pixels side by side, `step` elements apart.
  void putRow(const uint8_t* pixels, int64_t count, int64_t step, Word* to) const {
    for (int c = 0; c < p_.channels; ++c) {
      const Word* values = values_ + c * 256;
      Word* out = to + c * p_.out.stride[1];
      if (step == 1 && p_.channels == 3) {
        putValues<3>(values, pixels + c, count, out);
      } else {
        for (int64_t i = 0; i < count; ++i) out[i * step] = values[pixels[i * p_.channels + c]];
      }
    }
  }
  // Writes their bytes, for takeBytes().
  void putBytes(const uint8_t* pixels, int64_t count, int64_t step, Word* to) const {
    for (int c = 0; c < p_.channels; ++c) {
      Word* out = to + c * p_.out.stride[1];
      for (int64_t i = 0; i < count; ++i) out[i * step] = Word{pixels[i * p_.channels + c]};
    }
  }
  void takeBytes(const Word* from, int64_t count, uint8_t* pixels) const {
    for (int c = 0; c < p_.channels; ++c) {
      const Word* in = from + c * p_.out.stride[1];
      for (int64_t i = 0; i < count; ++i) {
        pixels[i * p_.channels + c] = static_cast<uint8_t>(in[i * plan_.out_stride[1]]);
      }
    }
  }

  // Fills columns begin .. end - 1 of a row with the padding.
  void pad(int64_t row, int64_t begin, int64_t end) const {
    for (int c = 0; c < p_.channels; ++c) {
      const Word word = values_[c * 256 + p_.pad_value[c]];
      for (int64_t x = begin; x < end; ++x) at(row, x)[c * p_.out.stride[1]] = word;
    }
  }

 private:
  // Four at a time, so that loads and stores are the only cost.
  template <int kFrom>
  static void putValues(const Word* values, const uint8_t* from, int64_t count, Word* to) {
    int64_t i = 0;
    for (; i + 4 <= count; i += 4, from += 4 * kFrom, to += 4) {
      const Word word[4] = {values[from[0]], values[from[kFrom]], values[from[2 * kFrom]],
                            values[from[3 * kFrom]]};
      for (int k = 0; k < 4; ++k) to[k] = word[k];
    }
    for (; i < count; ++i, from += kFrom, ++to) *to = values[*from];
  }

  const ImagesProblem& p_;
  const ImagePlan& plan_;
  const Word* values_;
  Word* data_;
};

// ---- the passes ---------------------------------------------------------------------------------

template <class Word>
class Passes {
 public:
  Passes(CpuState& state, const ImagesProblem& p, const Memory& m)
      : pool_(state.pool),
        p_(p),
        m_(m),
        resize_(resizeTileFor(state.simd)),
        color_(colorRowFor(state.simd)),
        same_values_(sameValues(p, m)) {}

  void run() {
    const int threads = pool_.threads();
    const int64_t bands = bandsOf(p_);
    if (p_.color_first) sumFrames();
    // Fours of rows that two bands need are computed twice, so a task has many bands if it can.
    const int64_t bands_of_task =
        m_.bytes.form == nullptr
            ? 1
            : std::clamp<int64_t>(p_.images * bands / (kTasksOfThread * threads), 1, bands);
    const int64_t tasks = (bands + bands_of_task - 1) / bands_of_task;
    pool_.parallelFor(p_.images * tasks, threads, [&](int64_t i, ThreadMemory& memory) {
      const int64_t first = i % tasks * bands_of_task;
      resizeBands(i / tasks, first, std::min(first + bands_of_task, bands), memory);
    });
    if (p_.colors == nullptr || p_.color_first) return;
    addParts(bands);
    pool_.parallelFor(p_.images * bands, threads, [&](int64_t i, ThreadMemory& memory) {
      finishBand(i / bands, i % bands, memory.as<ResizeMemory>());
    });
  }

 private:
  bool needsMean(const ImagePlan& plan) const {
    return plan.pixels != nullptr && plan.colors.contrast < plan.colors.count;
  }

  // Copies pixels of a frame, side by side.
  void readPixels(const ImagePlan& plan, const uint8_t* from, int64_t count, uint8_t* to) const {
    const int channels = p_.channels;
    if (plan.stride[1] == channels && (channels == 1 || plan.stride[2] == 1)) {
      std::copy_n(from, count * channels, to);
      return;
    }
    for (int64_t i = 0; i < count; ++i, from += plan.stride[1]) {
      for (int c = 0; c < channels; ++c) *to++ = from[c * plan.stride[2]];
    }
  }

  // The sums of grays that the contrast of whole frames needs.
  void sumFrames() {
    const int64_t parts = partsOf(p_);
    pool_.parallelFor(p_.images * parts, pool_.threads(), [&](int64_t i, ThreadMemory& memory) {
      const ImagePlan& plan = m_.plans[i / parts];
      m_.sums[i] = 0;
      if (!needsMean(plan)) return;
      uint8_t* const pixels = memory.as<ResizeMemory>()->block;
      const int64_t most = kBlockColumns * kTileRows / p_.channels;
      const int64_t begin = i % parts * kSumRows;
      const int64_t end = std::min(begin + kSumRows, plan.frame_size[0]);
      for (int64_t y = begin; y < end; ++y) {
        const uint8_t* row = plan.frame + y * plan.stride[0];
        for (int64_t x = 0; x < plan.frame_size[1]; x += most) {
          const int64_t count = std::min(most, plan.frame_size[1] - x);
          readPixels(plan, row + x * plan.stride[1], count, pixels);
          m_.sums[i] += color_(plan.colors, 0, plan.colors.contrast, 0, p_.channels, count, pixels);
        }
        if (pool_.stops()) return;
      }
    });
    addParts(parts);
  }

  void addParts(int64_t parts) {
    for (int64_t i = 0; i < p_.images; ++i) {
      const ImagePlan& plan = m_.plans[i];
      int64_t sum = 0;
      for (int64_t part = 0; part < parts; ++part) sum += m_.sums[i * parts + part];
      const auto& size = p_.color_first ? plan.frame_size : plan.size;
      m_.means[i] = meanGray(sum, size[0] * size[1]);
    }
  }

  // Bands first .. last - 1.
  void resizeBands(int64_t image, int64_t first_band, int64_t last_band, ThreadMemory& memory) {
    const ImagePlan& plan = m_.plans[image];
    const Canvas<Word> canvas(p_, plan, m_, image);
    const int64_t begin = first_band * kTileRows;
    const int64_t end = std::min(last_band * kTileRows, plan.out[0]);
    const bool here = plan.pixels != nullptr;
    int64_t* sum = nullptr;  // of the first band: the sums of the others are 0
    if (p_.colors != nullptr && !p_.color_first) {
      sum = m_.sums + image * bandsOf(p_) + first_band;
      std::fill_n(sum, last_band - first_band, 0);
    }
    for (int64_t row = begin; row < end; ++row) {
      const int64_t y = row - plan.place[0];
      if (!here || y < 0 || y >= plan.size[0]) {
        canvas.pad(row, 0, plan.out[1]);
      } else {
        canvas.pad(row, 0, plan.place[1]);
        canvas.pad(row, plan.place[1] + plan.size[1], plan.out[1]);
      }
    }
    if (!here) return;
    // The image's own rows in this band, before they are flipped.
    const int64_t low = std::max<int64_t>(begin - plan.place[0], 0);
    const int64_t high = std::min(end - plan.place[0], plan.size[0]);
    if (low >= high) return;
    const int64_t first = plan.flip[0] ? plan.size[0] - high : low;
    const ResizeAxis columns = axisOf(p_, plan, 1);
    const AxisTable rows = tableOf(p_, m_, image, 0);
    const AxisTable across = tableOf(p_, m_, image, 1);
    Tile tile = {&plan,
                 kindOf(p_, plan).sums,
                 sumNumbers(plan, rows, across),
                 p_.channels,
                 rows,
                 across,
                 tapRoom(axisOf(p_, plan, 0)),
                 tapRoom(columns),
                 {first, 0},
                 {first, 0},
                 p_.color_first && plan.colors.count > 0,
                 p_.color_first ? m_.means[image] : 0.0f};
    const int64_t last = first + (high - low);
    if (keepsPixels(plan)) {
      if (m_.bytes.form != nullptr) {
        copyRows(canvas, &tile, last, sum, memory.as<PackedMemory>()->bytes, kPackedValues);
      } else {
        copyRows(canvas, &tile, last, sum, memory.as<ResizeMemory>()->bytes, kTileValues);
      }
      return;
    }
    if (m_.bytes.form != nullptr) {
      const ByteTable table = byteTableOf(p_, m_, image);
      if (table.form->suits != 0) {
        resizePackedRows(canvas, &tile, last, table, sum, memory.as<PackedMemory>());
        return;
      }
    }
    auto* const of_tile = memory.as<ResizeMemory>();
    const int64_t width = columnsOfTile(columns, p_.channels);
    for (; tile.begin[0] < last; tile.begin[0] = tile.end[0]) {
      tile.end[0] = std::min(tile.begin[0] + rowsOfTile(tile.sums), last);
      for (int64_t x = 0; x < plan.size[1]; x += width) {
        tile.begin[1] = x;
        tile.end[1] = std::min(x + width, plan.size[1]);
        resize_(tile, pool_, of_tile);
        if (pool_.stops()) return;
        write(canvas, tile, sum, of_tile->bytes, kTileValues);
      }
    }
  }

  // Whether an image has the pixels of its frame: each output has one weight, which is 1.
  bool keepsPixels(const ImagePlan& plan) const {
    const bool colors = p_.color_first && plan.colors.count > 0;
    return !colors && plan.in[0] == plan.resized[0] && plan.in[1] == plan.resized[1];
  }

  // The rows of a tile up to `last`, from `bytes` of kTileRows rows of `pitch` values.
  void copyRows(const Canvas<Word>& canvas, Tile* tile, int64_t last, int64_t* sum, uint8_t* bytes,
                int64_t pitch) {
    const ImagePlan& plan = *tile->plan;
    const int64_t width = pitch / p_.channels;
    for (; tile->begin[0] < last; tile->begin[0] = tile->end[0]) {
      tile->end[0] = std::min(tile->begin[0] + kTileRows, last);
      for (int64_t x = 0; x < plan.size[1]; x += width) {
        tile->begin[1] = x;
        tile->end[1] = std::min(x + width, plan.size[1]);
        const uint8_t* from = plan.pixels + (plan.window[0] + tile->begin[0]) * plan.stride[0] +
                              (plan.window[1] + x) * plan.stride[1];
        for (int64_t y = tile->begin[0]; y < tile->end[0]; ++y, from += plan.stride[0]) {
          readPixels(plan, from, tile->end[1] - x, bytes + (y - tile->begin[0]) * pitch);
        }
        write(canvas, *tile, sum, bytes, pitch);
      }
      if (pool_.stops()) return;
    }
  }

  // The rows of a tile up to `last`, by products of bytes.
  void resizePackedRows(const Canvas<Word>& canvas, Tile* tile, int64_t last,
                        const ByteTable& table, int64_t* sum, PackedMemory* memory) {
#if RBC_HAS_BYTE_PRODUCTS
    const ImagePlan& plan = *tile->plan;
    const int64_t width = kPackedValues / p_.channels;
    const int64_t first = tile->begin[0];
    for (int64_t x = 0; x < plan.size[1]; x += width) {
      tile->begin[1] = x;
      tile->end[1] = std::min(x + width, plan.size[1]);
      const int64_t values = (tile->end[1] - x) * p_.channels;
      PackedTile packed = {&plan,
                           table,
                           first,
                           first,
                           last - 1,
                           x * p_.channels / kVectorValues,
                           (values + kVectorValues - 1) / kVectorValues};
      memory->next = 0;
      for (; packed.begin < last; packed.begin = packed.end) {
        packed.end = std::min(packed.begin + kTileRows, last);
        resizePacked(packed, memory);
        if (pool_.stops()) return;
        tile->begin[0] = packed.begin;
        tile->end[0] = packed.end;
        write(canvas, *tile, sum, memory->bytes, kPackedValues);
      }
    }
#else
    static_cast<void>(canvas), static_cast<void>(tile), static_cast<void>(last);
    static_cast<void>(table), static_cast<void>(sum), static_cast<void>(memory);
#endif
  }

  // Writes the bytes of a tile; with colours, finished or as far as the contrast, after adding
  // their grays to the sum.
  void write(const Canvas<Word>& canvas, const Tile& tile, int64_t* sum, uint8_t* bytes,
             int64_t pitch) {
    const ImagePlan& plan = *tile.plan;
    const int64_t step = plan.flip[1] ? -plan.out_stride[1] : plan.out_stride[1];
    const int64_t width = tile.end[1] - tile.begin[1];
    const bool colors = p_.colors != nullptr && !p_.color_first && plan.colors.count > 0;
    const bool waits = colors && plan.colors.contrast < plan.colors.count;
    for (int64_t y = tile.begin[0]; colors && y < tile.end[0]; ++y) {
      *sum += color_(plan.colors, 0, plan.colors.contrast, 0, p_.channels, width,
                     bytes + (y - tile.begin[0]) * pitch);
    }
    if (!waits && putBlock(canvas, tile, step, bytes, pitch)) return;
    for (int64_t y = tile.begin[0]; y < tile.end[0]; ++y) {
      const uint8_t* row = bytes + (y - tile.begin[0]) * pitch;
      Word* to = canvas.atImage(y, tile.begin[1]);
      if (waits) {
        canvas.putBytes(row, width, step, to);
      } else {
        canvas.putRow(row, width, step, to);
      }
    }
  }

  // Writes the values of a tile of PackedMemory, if the output suits vectors of them.
  bool putBlock(const Canvas<Word>& canvas, const Tile& tile, int64_t step, const uint8_t* bytes,
                int64_t pitch) {
#if RBC_HAS_BYTE_PRODUCTS
    if constexpr (sizeof(Word) <= 4) {
      if (pitch != kPackedValues) return false;
      const int64_t channel = p_.out.stride[1];
      const bool planes = (step == 1 || step == -1) && (p_.channels == 1 || p_.channels == 3);
      const bool pixels = step == p_.channels && channel == 1 && same_values_;
      if (!planes && !pixels) return false;
      const int64_t width = tile.end[1] - tile.begin[1];
      const int64_t down = tile.plan->out_stride[0];
      const bool reversed = planes && step == -1;
      putByteValues({bytes, pitch, tile.end[0] - tile.begin[0],
                     planes ? width : width * p_.channels, planes ? p_.channels : 1, reversed,
                     canvas.atImage(tile.begin[0], tile.begin[1]) - (reversed ? width - 1 : 0),
                     tile.plan->flip[0] ? -down : down, channel, m_.parts},
                    sizeof(Word));
      return true;
    }
#endif
    static_cast<void>(canvas), static_cast<void>(tile), static_cast<void>(step);
    static_cast<void>(bytes), static_cast<void>(pitch);
    return false;
  }

  static bool sameValues(const ImagesProblem& p, const Memory& m) {
    const auto* values = reinterpret_cast<const Word*>(m.values);
    for (int c = 1; c < p.channels; ++c) {
      if (!std::equal(values, values + 256, values + c * 256)) return false;
    }
    return true;
  }

  // Contrast and the steps after it, of the bytes in the output.
  void finishBand(int64_t image, int64_t band, ResizeMemory* memory) {
    const ImagePlan& plan = m_.plans[image];
    if (!needsMean(plan)) return;
    const Canvas<Word> canvas(p_, plan, m_, image);
    const int64_t most = kBlockColumns * kTileRows / p_.channels;
    const int64_t begin = band * kTileRows;
    const int64_t end = std::min(begin + kTileRows, plan.size[0]);
    for (int64_t y = begin; y < end; ++y) {
      for (int64_t x = 0; x < plan.size[1]; x += most) {
        const int64_t count = std::min(most, plan.size[1] - x);
        Word* to = canvas.at(plan.place[0] + y, plan.place[1] + x);
        canvas.takeBytes(to, count, memory->block);
        color_(plan.colors, plan.colors.contrast, plan.colors.count, m_.means[image], p_.channels,
               count, memory->block);
        canvas.putRow(memory->block, count, plan.out_stride[1], to);
      }
      if (pool_.stops()) return;
    }
  }

  ThreadPool& pool_;
  const ImagesProblem& p_;
  const Memory& m_;
  const ResizeTile resize_;
  const ColorRow color_;
  const bool same_values_;  // of all channels
};

template <class Element>
void fillValues(const ImagesProblem& p, uint64_t* memory, [[maybe_unused]] uint8_t* parts) {
  auto* values = reinterpret_cast<Element*>(memory);
  for (int c = 0; c < p.channels; ++c) {
    for (int byte = 0; byte < 256; ++byte) values[c * 256 + byte] = valueOf<Element>(p, c, byte);
  }
  if (parts == nullptr || sizeof(Element) > 4) return;
  for (int64_t i = 0; i < p.channels * 256; ++i) {
    uint8_t bytes[sizeof(Element)];
    std::memcpy(bytes, values + i, sizeof bytes);
    for (size_t part = 0; part < sizeof bytes; ++part) {
      parts[(i / 256 * sizeof bytes + part) * 256 + i % 256] = bytes[part];
    }
  }
}

void fillBytes(const ImagesProblem& p, const Memory& m, int64_t image) {
  if (m.bytes.form == nullptr) return;
  fillByteTable(p, m.plans[image], tableOf(p, m, image, 0), tableOf(p, m, image, 1),
                byteTableOf(p, m, image));
}

void run(BackendState& backend_state, const ImagesProblem& p, Scratch scratch) {
  CpuState& state = cpuState(backend_state);
  ScratchLayout layout(scratch.data);
  const Memory m = layOut(p, state.simd, layout);
  state.pool.parallelFor(p.images, state.pool.threads(), [&](int64_t i) {
    m.plans[i] = planOf(p, i);
    if (p.sharesTables()) return;
    for (int axis = 0; axis < 2; ++axis) {
      fillTable(p, m.plans[i], axis, state.pool, tableOf(p, m, i, axis));
    }
    if (!state.pool.stops()) fillBytes(p, m, i);
  });
  if (p.sharesTables()) {
    state.pool.parallelFor(2, state.pool.threads(), [&](int64_t axis) {
      const int a = static_cast<int>(axis);
      fillTable(p, m.plans[0], a, state.pool, tableOf(p, m, 0, a));
    });
    fillBytes(p, m, 0);
  }
  if (p.out.dtype == DType::U8) {
    fillValues<uint8_t>(p, m.values, m.parts);
  } else {
    visitFloat(p.out.dtype,
               [&](auto tag) { fillValues<typename decltype(tag)::type>(p, m.values, m.parts); });
  }
  visitWord(sizeOf(p.out.dtype),
            [&](auto tag) { Passes<typename decltype(tag)::type>(state, p, m).run(); });
}

}  // namespace

extern const Operation<ImagesProblem> kImages = {bytes, run};

}  // namespace rbc::cpu
