// Files that a later version of the store has written: absent, not damaged, and never replaced.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "checksum.h"
#include "entry_index.h"
#include "segment_file.h"
#include "status.h"
#include "support/expect.h"

namespace {

using namespace rbc::store;

const uint8_t kKey[RBC_STORE_KEY_BYTES] = {1};

Fd fileOf(const std::vector<uint8_t>& bytes) {
  Fd file(memfd_create("store", MFD_CLOEXEC));
  REQUIRE(pwrite(file.get(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  return file;
}

void fixSums(std::vector<uint8_t>& bytes, uint64_t begin) {
  const uint64_t sum = checksum(bytes.data(), begin);
  std::memcpy(&bytes[begin], &sum, sizeof sum);
}

template <class Open>
void checkVersion(std::vector<uint8_t> bytes, size_t version, uint64_t sums, Open&& open) {
  const auto statusOf = [&] {
    try {
      open(fileOf(bytes));
    } catch (const rbc::Error& error) {
      return error.status();
    }
    return rbcStatus_t{RBC_STATUS_SUCCESS};
  };
  CHECK(statusOf() == RBC_STATUS_SUCCESS);
  bytes[version] = 2;
  CHECK(statusOf() == RBC_STATUS_DAMAGED);
  fixSums(bytes, sums);
  if (sums + 8 < bytes.size()) {  // the sum of the sums
    const uint64_t sum = checksum(&bytes[sums], 8);
    std::memcpy(&bytes[sums + 8], &sum, sizeof sum);
  }
  CHECK(statusOf() == RBC_STATUS_NOT_FOUND);
  CHECK(std::string(rbcGetLastError()).find("version 2") != std::string::npos);
}

}  // namespace

TEST_CASE("store versions: a later one counts as absent, a changed number as damage") {
  const int64_t offsets[] = {0, 4};
  const std::vector<uint8_t> index = indexOf(kKey, {{100, 200, {0, 1, 0, 4}}}, offsets, 2);
  checkVersion(index, 8, index.size() - 8, [](Fd file) {
    const EntryIndex opened(std::move(file), "index", kKey, RBC_STORE_VERIFY_OPEN);
  });
  const SegmentLayout layout = layoutOf({{"state", rbc::DType::F32, {4}, 0, 16}}, 0, {0, 1, 0, 4});
  std::vector<uint8_t> segment(layout.file_bytes);
  std::copy(layout.head.begin(), layout.head.end(), segment.begin());
  REQUIRE(layout.file_bytes == layout.sums_begin + 16);
  fixSums(segment, layout.sums_begin);
  const uint64_t sum = checksum(&segment[layout.sums_begin], 8);
  std::memcpy(&segment[layout.sums_begin + 8], &sum, sizeof sum);
  checkVersion(segment, 4096 + 8, layout.sums_begin, [](Fd file) {
    const SegmentFile opened(std::move(file), "segment", 0, RBC_STORE_ACCESS_READ,
                             RBC_STORE_VERIFY_OPEN);
  });
}
