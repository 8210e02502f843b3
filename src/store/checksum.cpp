#include "checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace rbc::store {

uint64_t checksum(const void* data, size_t bytes) noexcept { return XXH3_64bits(data, bytes); }

}  // namespace rbc::store
