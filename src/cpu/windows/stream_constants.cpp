#include "status.h"
#include "windows/window_run.h"

namespace rbc::cpu {
namespace {

bool differByOffset(const WindowStream& s) {
  const RealGrid* grids[] = {&s.shift, &s.scale, &s.bias, &s.low, &s.high};
  for (const RealGrid* grid : grids) {
    if (grid->data != nullptr && grid->stride[0] != 0) return true;
  }
  return false;
}

template <class Number>
void fillGrid(const RealGrid& grid, int64_t rows, int64_t channels, Number without, void* to) {
  if (to == nullptr) return;
  auto* next = static_cast<Number*>(to);
  for (int64_t o = 0; o < rows; ++o) {
    for (int64_t d = 0; d < channels; ++d) {
      *next++ = grid.data != nullptr ? grid.at<Number>(o, d) : without;
    }
  }
}

template <class Number>
void fillAll(const WindowStream& s, const StreamConstants& k) {
  const int64_t rows = k.step != 0 ? s.num_offsets : 1;
  const Number infinity = bitCast<Number>(FloatBits<Number>::kExponent);
  fillGrid(s.shift, rows, s.out_channels, Number(0), k.shift);
  fillGrid(s.scale, rows, s.out_channels, Number(1), k.scale);
  fillGrid(s.bias, rows, s.out_channels, Number(-0.0), k.bias);
  fillGrid(s.low, rows, s.out_channels, -infinity, k.low);
  fillGrid(s.high, rows, s.out_channels, infinity, k.high);
}

}  // namespace

StreamConstants constantsOf(const WindowStream& s, ScratchLayout* layout) {
  StreamConstants k;
  k.step = differByOffset(s) ? s.out_channels : 0;
  int64_t count = 0;
  if (__builtin_mul_overflow(k.step != 0 ? s.num_offsets : 1, s.out_channels, &count)) {
    fail(RBC_STATUS_OUT_OF_MEMORY, "workspace: more than 2^63 bytes are needed");
  }
  const auto take = [&]() -> void* {
    return s.in_double ? static_cast<void*>(layout->take<double>(count))
                       : layout->take<float>(count);
  };
  if (s.normalizes()) {
    k.shift = take();
    k.scale = take();
    k.bias = take();
  }
  if (s.clips()) {
    k.low = take();
    k.high = take();
  }
  return k;
}

void fill(const WindowStream& s, const StreamConstants& constants) {
  if (s.in_double) {
    fillAll<double>(s, constants);
  } else {
    fillAll<float>(s, constants);
  }
}

}  // namespace rbc::cpu
