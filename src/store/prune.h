// The list of a store's entries, and what is removed from it.
#pragma once

#include <vector>

#include "store_root.h"

namespace rbc::store {

// The least recently used entry is first.
std::vector<rbcStoreItem> listEntries(const StoreRoot& root);

rbcPruneReport prune(const StoreRoot& root, const rbcPruneParams& params);

}  // namespace rbc::store
