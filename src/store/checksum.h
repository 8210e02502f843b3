// XXH3-64, the checksum of the store's files.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rbc::store {

uint64_t checksum(const void* data, size_t bytes) noexcept;

}  // namespace rbc::store
