// Hostile indexes and segments: with any bytes, opening them ends, reads only the file, and finds
// tensors that are inside of it.
//
// An input is a byte of options, and patches of a good file: where (2 bytes), how many bytes (1), and
// the bytes. Or it is the whole file.
#include "fuzz_files.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "checksum.h"
#include "entry_index.h"
#include "segment_file.h"
#include "status.h"

namespace {

using namespace rbc;
using namespace rbc::store;

constexpr uint8_t kIsIndex = 1;  // else a segment
constexpr uint8_t kWhole = 2;    // the input is the file
constexpr uint8_t kFixSums = 4;  // make the sums right again, so that other checks are reached
constexpr uint8_t kNoSums = 8;   // RBC_STORE_VERIFY_NONE
constexpr uint8_t kMap = 16;     // map the segment
constexpr uint8_t kFirst = 32;   // RBC_STORE_VERIFY_FIRST

const uint8_t kKey[RBC_STORE_KEY_BYTES] = {1, 2, 3};

std::vector<uint8_t> goodSegment() {
  std::vector<StoredTensor> tensors(3);
  tensors[0] = {"state", DType::F32, {5, 3}, 0, 60};
  tensors[1] = {"\"\\", DType::I64, {0}, 0, 0};
  tensors[2] = {"front", DType::U8, {1, 2, 3, 4, 1, 1, 1, 1}, 0, 24};
  SegmentLayout layout = layoutOf(tensors, 7, {1, 2, 3, 4});
  std::vector<uint8_t> file(layout.file_bytes);
  std::copy(layout.head.begin(), layout.head.end(), file.begin());
  return file;
}

std::vector<uint8_t> goodIndex() {
  const int64_t offsets[] = {0, 3, 7, 7};
  return indexOf(kKey, {{100, 200, {0, 2, 0, 7}}, {300, 400, {2, 1, 7, 0}}}, offsets, 4);
}

void fixSums(std::vector<uint8_t>& file, bool is_index) {
  if (is_index) {
    if (file.size() < 8) return;
    const uint64_t sum = checksum(file.data(), file.size() - 8);
    std::memcpy(file.data() + file.size() - 8, &sum, 8);
    return;
  }
  // Where the sums are said to be, if that can be: the table's header follows the JSON.
  uint64_t json_bytes = 0;
  TableHeader header;
  if (file.size() < 8) return;
  std::memcpy(&json_bytes, file.data(), 8);
  if (json_bytes > file.size() || file.size() - json_bytes < 8 + sizeof header) return;
  std::memcpy(&header, file.data() + 8 + json_bytes, sizeof header);
  const uint64_t begin = header.sums_begin;
  if (begin > file.size() || file.size() - begin != 8 * (blocksOf(begin) + 1)) return;
  std::vector<uint64_t> sums;
  for (uint64_t at = 0; at < begin; at += kBlockBytes) {
    sums.push_back(checksum(file.data() + at, std::min(kBlockBytes, begin - at)));
  }
  sums.push_back(checksum(sums.data(), 8 * sums.size()));
  std::memcpy(file.data() + begin, sums.data(), 8 * sums.size());
}

Fd fileOf(const std::vector<uint8_t>& bytes) {
  Fd file(memfd_create("fuzz", MFD_CLOEXEC));
  if (!file ||
      pwrite(file.get(), bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    std::abort();
  }
  return file;
}

void require(bool condition) {
  if (!condition) std::abort();
}

uint64_t useSegment(const std::vector<uint8_t>& bytes, int32_t access, int32_t verify) {
  const SegmentFile segment(fileOf(bytes), "segment", 7, access, verify);
  uint64_t sum = 0;
  std::vector<uint8_t> scratch;
  std::vector<uint8_t> data;
  for (const StoredTensor& tensor : segment.tensors()) {
    require(tensor.begin <= bytes.size() && tensor.bytes <= bytes.size() - tensor.begin);
    require(bytesOf(tensor.dtype, static_cast<int32_t>(tensor.shape.size()), tensor.shape.data()) ==
            tensor.bytes);
    data.resize(tensor.bytes);
    segment.prefetch(tensor.begin, tensor.bytes);
    segment.read(tensor.begin, tensor.bytes, data.data());
    for (const uint8_t byte : data) sum += byte;
    sum += static_cast<uint64_t>(
        segment.checkOnce(tensor.begin, tensor.begin + tensor.bytes, scratch));
  }
  for (uint64_t block = 0; block < segment.numBlocks(); ++block) {
    sum += segment.isWhole(block, scratch) ? 1 : 0;
  }
  return sum + static_cast<uint64_t>(segment.range().num_rows) + segment.sumOfSums();
}

uint64_t useIndex(const std::vector<uint8_t>& bytes, int32_t verify) {
  const EntryIndex index(fileOf(bytes), "index", kKey, verify);
  require(index.fileBytes() == bytes.size());
  uint64_t sum = 0;
  for (int64_t s = 0; s < index.numSegments(); ++s) {
    sum += static_cast<uint64_t>(index.segment(s).num_rows);
  }
  for (int64_t e = 0; e <= index.numEpisodes(); ++e) {
    sum += static_cast<uint64_t>(index.firstRows()[3 * e]);
  }
  return sum;
}

}  // namespace

int fuzzFile(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  static const std::vector<uint8_t> good[] = {goodSegment(), goodIndex()};
  const uint8_t options = data[0];
  const bool is_index = (options & kIsIndex) != 0;
  std::vector<uint8_t> bytes;
  if ((options & kWhole) != 0) {
    bytes.assign(data + 1, data + size);
  } else {
    bytes = good[is_index];
    size_t at = 1;
    while (at + 3 <= size) {
      size_t where = data[at] | size_t{data[at + 1]} << 8;
      const size_t count = std::min<size_t>(data[at + 2] % 32, size - at - 3);
      if (where == 0xffff) {  // cut the end, or add to it
        bytes.resize(bytes.size() + data[at + 2] - std::min<size_t>(bytes.size(), 128));
        at += 3;
        continue;
      }
      // Patches of segments are mostly in the table.
      if (!is_index && (where & 0x8000) != 0) where = 4096 + (where & 0x3ff);
      for (size_t i = 0; i < count && where + i < bytes.size(); ++i) {
        bytes[where + i] = data[at + 3 + i];
      }
      at += 3 + count;
    }
  }
  if ((options & kFixSums) != 0) fixSums(bytes, is_index);
  const int32_t verify = (options & kNoSums) != 0  ? RBC_STORE_VERIFY_NONE
                         : (options & kFirst) != 0 ? RBC_STORE_VERIFY_FIRST
                                                   : RBC_STORE_VERIFY_OPEN;
  const int32_t access = (options & kMap) != 0 ? RBC_STORE_ACCESS_MAP : RBC_STORE_ACCESS_READ;
  volatile uint64_t used = 0;
  try {
    used = is_index ? useIndex(bytes, verify) : useSegment(bytes, access, verify);
  } catch (const Error& error) {
    require(error.status() == RBC_STATUS_DAMAGED || error.status() == RBC_STATUS_NOT_FOUND);
  }
  static_cast<void>(used);
  return 0;
}
