// The layout of a segment: the safetensors header, the table, and where each tensor is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dtype.h"
#include "format.h"

namespace rbc::store {

// A tensor of a segment.
struct StoredTensor {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  uint64_t begin = 0;  // in the file
  uint64_t bytes = 0;
};

struct SegmentRange {
  int64_t first_episode;
  int64_t num_episodes;
  int64_t first_row;
  int64_t num_rows;
};

struct SegmentLayout {
  std::vector<StoredTensor> tensors;
  std::vector<uint8_t> head;  // the file up to the end of the table
  uint64_t sums_begin = 0;
  uint64_t file_bytes = 0;
};

// Fails with INVALID_ARGUMENT unless the name may be that of a tensor: see rbcSegmentWriterAdd.
void requireTensorName(const std::string& name);
bool isTensorName(const std::string& name);

// The bytes of a tensor; fails with SHAPE_MISMATCH if there are too many.
uint64_t bytesOf(DType dtype, int32_t ndim, const int64_t* shape);

// Places the tensors in their order.
SegmentLayout layoutOf(std::vector<StoredTensor> tensors, uint32_t segment,
                       const SegmentRange& range);

}  // namespace rbc::store
