#include "segment_file.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <unordered_set>
#include <utility>

#include "checksum.h"
#include "status.h"

namespace rbc::store {

void SegmentFile::failDamaged(const char* format, ...) const {
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  fail(RBC_STATUS_DAMAGED, "store: %s is damaged: %s", shown_.c_str(), text);
}

SegmentFile::SegmentFile(Fd file, std::string shown, uint32_t segment, int32_t access,
                         int32_t verify)
    : shown_(std::move(shown)), file_(std::move(file)) {
  const struct stat status = statusOf(file_.get(), shown_);
  bytes_ = static_cast<uint64_t>(status.st_size);
  inode_ = status.st_ino;
  readTable(segment, verify);
  if (verify == RBC_STORE_VERIFY_FIRST) {
    checked_ = std::make_unique<std::atomic<uint8_t>[]>(num_sums_);
  }
  if (access == RBC_STORE_ACCESS_MAP) {
    void* map = mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, file_.get(), 0);
    if (map == MAP_FAILED) failSystem("map", shown_, errno);
    map_ = static_cast<uint8_t*>(map);
    file_.reset();
    sums_ = {};
  }
}

SegmentFile::~SegmentFile() {
  if (map_ != nullptr) munmap(map_, bytes_);
}

void SegmentFile::readTable(uint32_t segment, int32_t verify) {
  uint64_t json_bytes = 0;
  if (!readAll(file_.get(), &json_bytes, sizeof json_bytes, 0, shown_)) {
    failDamaged("it has %" PRIu64 " bytes", bytes_);
  }
  if (json_bytes > kMaxJsonBytes || (json_bytes + sizeof json_bytes) % kPage != 0) {
    failDamaged("its header has %" PRIu64 " bytes", json_bytes);
  }
  const uint64_t table_begin = json_bytes + sizeof json_bytes;
  TableHeader header;
  if (!readAll(file_.get(), &header, sizeof header, table_begin, shown_)) {
    failDamaged("it has %" PRIu64 " bytes, and its header %" PRIu64, bytes_, json_bytes);
  }
  if (std::memcmp(header.magic, kTableMagic, sizeof header.magic) != 0) {
    failDamaged("it has no table of tensors");
  }
  if (header.version != kVersion) {
    // In every version the sums follow what they cover: a changed byte is no newer version.
    if (verify != RBC_STORE_VERIFY_NONE) {
      readSums(header.sums_begin, table_begin + sizeof header, verify);
    }
    fail(RBC_STATUS_NOT_FOUND,
         "store: %s has version %u of the store, and this library reads version %u", shown_.c_str(),
         header.version, kVersion);
  }
  if (header.num_tensors > kMaxTensors ||
      header.names_bytes > uint64_t{header.num_tensors} * kMaxNameBytes) {
    failDamaged("its table has %u tensors and %u bytes of names", header.num_tensors,
                header.names_bytes);
  }
  if (header.segment != segment) {
    failDamaged("it is segment %u, expected %u", header.segment, segment);
  }
  const auto isRange = [](int64_t first, int64_t count) {
    return first >= 0 && count >= 0 && first <= kMaxRows && count <= kMaxRows;
  };
  if (!isRange(header.first_episode, header.num_episodes) ||
      !isRange(header.first_row, header.num_rows)) {
    failDamaged("its range of episodes or rows is impossible");
  }
  range_ = {header.first_episode, header.num_episodes, header.first_row, header.num_rows};
  const uint64_t rest_bytes = header.num_tensors * sizeof(TableRow) + header.names_bytes;
  const uint64_t table_end = table_begin + sizeof header + rest_bytes;
  if (table_end > bytes_) failDamaged("its table ends after the file");
  readSums(header.sums_begin, table_end, verify);
  std::vector<uint8_t> rest(rest_bytes);
  if (!readAll(file_.get(), rest.data(), rest.size(), table_begin + sizeof header, shown_)) {
    failDamaged("it became shorter while it was read");
  }
  readRows(rest, header.num_tensors, table_end);
}

void SegmentFile::readSums(uint64_t sums_begin, uint64_t table_end, int32_t verify) {
  if (sums_begin % kAlignment != 0 || sums_begin < table_end || sums_begin > bytes_ ||
      bytes_ - sums_begin != 8 * (blocksOf(sums_begin) + 1)) {
    failDamaged("it has %" PRIu64 " bytes, and its sums begin at %" PRIu64, bytes_, sums_begin);
  }
  sums_begin_ = sums_begin;
  num_sums_ = blocksOf(sums_begin);
  sums_.resize(num_sums_ + 1);
  if (!readAll(file_.get(), sums_.data(), 8 * sums_.size(), sums_begin, shown_)) {
    failDamaged("it became shorter while it was read");
  }
  sum_of_sums_ = sums_.back();
  if (verify == RBC_STORE_VERIFY_NONE) return;
  if (checksum(sums_.data(), 8 * num_sums_) != sum_of_sums_) failDamaged("its sums do not match");
  std::vector<uint8_t> scratch;
  for (uint64_t block = 0; block < blocksOf(table_end); ++block) {
    if (!isWhole(block, scratch)) failDamaged("the sum of block %" PRIu64 " differs", block);
  }
}

void SegmentFile::readRows(const std::vector<uint8_t>& table, uint32_t num_tensors,
                           uint64_t table_end) {
  const uint64_t names_begin = num_tensors * sizeof(TableRow);
  const uint64_t names_bytes = table.size() - names_begin;
  std::unordered_set<std::string> names;
  uint64_t previous_end = table_end;
  tensors_.reserve(num_tensors);
  for (uint32_t i = 0; i < num_tensors; ++i) {
    TableRow row;
    std::memcpy(&row, table.data() + i * sizeof row, sizeof row);
    StoredTensor tensor;
    if (row.codec != kRawCodec || !findDType({row.dtype_code, row.dtype_bits, 1}, &tensor.dtype)) {
      fail(RBC_STATUS_NOT_FOUND,
           "store: tensor %u of %s has a dtype or a codec that this library does not have", i,
           shown_.c_str());
    }
    if (row.name_begin > names_bytes || row.name_bytes > names_bytes - row.name_begin ||
        row.name_bytes == 0 || row.ndim < 1 || row.ndim > kMaxRank) {
      failDamaged("the name or the rank of tensor %u is impossible", i);
    }
    tensor.name.assign(reinterpret_cast<const char*>(table.data() + names_begin + row.name_begin),
                       row.name_bytes);
    if (!isTensorName(tensor.name) || !names.insert(tensor.name).second) {
      failDamaged("the name of tensor %u is impossible, or occurs twice", i);
    }
    uint64_t bytes = static_cast<uint64_t>(sizeOf(tensor.dtype));
    for (uint32_t k = 0; k < row.ndim; ++k) {
      if (row.shape[k] < 0 || row.shape[k] > kMaxRows) {
        failDamaged("extent %u of tensor %u is %" PRId64, k, i, row.shape[k]);
      }
      if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(row.shape[k]), &bytes)) {
        failDamaged("tensor %u has too many elements", i);
      }
      tensor.shape.push_back(row.shape[k]);
    }
    if (bytes != row.bytes || row.begin % kAlignment != 0 || row.begin < previous_end ||
        row.begin > sums_begin_ || row.bytes > sums_begin_ - row.begin) {
      failDamaged("tensor %u has %" PRIu64 " bytes at %" PRIu64, i, row.bytes, row.begin);
    }
    tensor.begin = row.begin;
    tensor.bytes = row.bytes;
    previous_end = row.begin + row.bytes;
    tensors_.push_back(std::move(tensor));
  }
}

void SegmentFile::read(uint64_t begin, uint64_t bytes, void* out) const {
  if (bytes == 0) return;
  if (map_ != nullptr) {
    std::memcpy(out, map_ + begin, bytes);
  } else if (!readAll(file_.get(), out, bytes, begin, shown_)) {
    failDamaged("it became shorter while it was read");
  }
}

void SegmentFile::prefetch(uint64_t begin, uint64_t bytes) const noexcept {
  if (map_ != nullptr) {
    const uint64_t page = begin / kPage * kPage;
    madvise(map_ + page, begin + bytes - page, MADV_WILLNEED);
  } else {
    posix_fadvise(file_.get(), static_cast<off_t>(begin), static_cast<off_t>(bytes),
                  POSIX_FADV_WILLNEED);
  }
}

bool SegmentFile::isWhole(uint64_t block, std::vector<uint8_t>& scratch) const {
  const uint64_t begin = block * kBlockBytes;
  const uint64_t bytes = std::min(kBlockBytes, sums_begin_ - begin);
  const uint8_t* data;
  uint64_t expected;
  if (map_ != nullptr) {
    data = map_ + begin;
    std::memcpy(&expected, map_ + sums_begin_ + 8 * block, sizeof expected);
  } else {
    scratch.resize(kBlockBytes);
    read(begin, bytes, scratch.data());
    data = scratch.data();
    expected = sums_[block];
  }
  return checksum(data, bytes) == expected;
}

int64_t SegmentFile::checkOnce(uint64_t begin, uint64_t end, std::vector<uint8_t>& scratch) const {
  if (checked_ == nullptr || begin == end) return -1;
  for (uint64_t block = begin / kBlockBytes; block <= (end - 1) / kBlockBytes; ++block) {
    if (checked_[block].load(std::memory_order_relaxed) != 0) continue;
    if (!isWhole(block, scratch)) return static_cast<int64_t>(block);
    checked_[block].store(1, std::memory_order_relaxed);
  }
  return -1;
}

}  // namespace rbc::store
