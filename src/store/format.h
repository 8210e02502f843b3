// The bytes of the store's files. All numbers are little endian. A later version keeps the begin of
// IndexHeader and of TableHeader, sums_begin, and the places of the sums: so damage is never mistaken
// for a later version.
//
// An entry's index, entry.rbi:
//   IndexHeader, IndexSegment [num_segments], IndexEpisode [num_episodes + 1], XXH3-64 of what is before
//
// A segment, 000000.rbs, is a safetensors file: the size of the JSON header (u64), the header, and
// the tensors' bytes without a hole. The header is padded with spaces, so the tensors begin at a
// multiple of kPage. In their order:
//   rbc.table  TableHeader, TableRow [num_tensors], the names: what the JSON says, without JSON
//   the tensors, aligned by tensors of zeros, rbc.pad0, rbc.pad1, ...
//   rbc.sums   u64: XXH3-64 of each block of the file before it, and of these sums
#pragma once

#include <cstdint>
#include <type_traits>

namespace rbc::store {

constexpr uint32_t kVersion = 1;
constexpr uint64_t kPage = 4096;
constexpr uint64_t kBlockBytes = 64 << 10;    // that a sum covers
constexpr uint64_t kAlignment = 64;           // of a tensor
constexpr uint64_t kLargeTensor = 1 << 20;    // from this size on, tensors begin at a page
constexpr uint64_t kMaxJsonBytes = 64 << 20;  // of the header; safetensors allows 100 MB
constexpr int64_t kMaxSegments = 1000000;     // six digits
constexpr int64_t kMaxRows = int64_t{1} << 48;
constexpr uint32_t kMaxNameBytes = 1024;
constexpr uint32_t kMaxTensors = 1 << 16;  // of a segment
constexpr int kMaxRank = 8;                // RBC_TENSOR_MAX_NDIM

constexpr char kIndexMagic[8] = {'R', 'B', 'C', 'I', 'N', 'D', 'E', 'X'};
constexpr char kTableMagic[8] = {'R', 'B', 'C', 'T', 'A', 'B', 'L', 'E'};
constexpr char kIndexName[] = "entry.rbi";
constexpr char kAboutName[] = "about.json";

struct IndexHeader {
  char magic[8];
  uint32_t version;
  uint32_t reserved0;
  uint8_t key[32];
  int64_t num_segments;
  int64_t num_episodes;
  int64_t num_rows;
  uint64_t file_bytes;
  uint64_t reserved[6];
};

struct IndexSegment {
  uint64_t file_bytes;
  uint64_t sum_of_sums;  // the last number of rbc.sums
  int64_t first_episode;
  int64_t num_episodes;
  int64_t first_row;
  int64_t num_rows;
  uint64_t reserved[2];
};

// The last one, after all episodes, has the number of rows.
struct IndexEpisode {
  int64_t first_row;
  int64_t segment;
  int64_t row_in_segment;
};

struct TableHeader {
  char magic[8];
  uint32_t version;
  uint32_t num_tensors;
  int64_t first_episode;
  int64_t num_episodes;
  int64_t first_row;
  int64_t num_rows;
  uint64_t sums_begin;  // of rbc.sums in the file
  uint32_t segment;
  uint32_t names_bytes;
};

constexpr uint32_t kRawCodec = 0;

struct TableRow {
  uint64_t begin;  // in the file
  uint64_t bytes;
  uint32_t name_begin;  // in the names
  uint16_t name_bytes;
  uint8_t dtype_code;  // RBC_DTYPE_...
  uint8_t dtype_bits;
  uint32_t ndim;
  uint32_t codec;
  int64_t shape[kMaxRank];
};

static_assert(sizeof(IndexHeader) == 128 && sizeof(IndexSegment) == 64);
static_assert(sizeof(IndexEpisode) == 24);
static_assert(sizeof(TableHeader) == 64 && sizeof(TableRow) == 96);
static_assert(std::is_trivially_copyable_v<IndexHeader> && std::is_trivially_copyable_v<TableRow>);
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "files are little endian");

constexpr uint64_t roundUp(uint64_t number, uint64_t multiple) {
  return (number + multiple - 1) / multiple * multiple;
}
constexpr uint64_t blocksOf(uint64_t bytes) { return (bytes + kBlockBytes - 1) / kBlockBytes; }

}  // namespace rbc::store
