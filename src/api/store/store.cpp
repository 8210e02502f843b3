// rbcStore...: the arguments of calls that open, list and prune a store, and that write to it.

#include <cinttypes>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "entry.h"
#include "guard.h"
#include "params.h"
#include "prune.h"
#include "robocache/store.h"
#include "segment_writer.h"
#include "status.h"
#include "store_root.h"

struct rbcStore {
  rbc::store::StorePointer root;
};

namespace rbc {

template <>
inline constexpr KnownFlags kKnownFlags<rbcStoreParams> = {RBC_STORE_FLAG_READ_ONLY,
                                                           "RBC_STORE_FLAG_READ_ONLY or 0"};
template <>
inline constexpr KnownFlags kKnownFlags<rbcPruneParams> = {
    RBC_PRUNE_FLAG_DRY_RUN | RBC_PRUNE_FLAG_INCOMPLETE,
    "RBC_PRUNE_FLAG_DRY_RUN, RBC_PRUNE_FLAG_INCOMPLETE, both or 0"};

namespace {

using namespace store;

template <class Pointer>
void requireArgument(Pointer* pointer, const char* name) {
  if (pointer == nullptr) fail(RBC_STATUS_INVALID_ARGUMENT, "%s: is null", name);
}

const StorePointer& rootOf(rbcStore_t store) {
  requireArgument(store, "store");
  return store->root;
}

// A key, read once: the caller's may change.
struct Key {
  explicit Key(const uint8_t* key) {
    requireArgument(key, "key");
    std::memcpy(bytes, key, sizeof bytes);
  }
  uint8_t bytes[RBC_STORE_KEY_BYTES];
};

StoreOptions optionsOf(const rbcStoreParams* input) {
  const rbcStoreParams params = readParams(input, rbcStoreParamsInit(), "params");
  StoreOptions options;
  options.read_only = (params.flags & RBC_STORE_FLAG_READ_ONLY) != 0;
  if (params.verify < RBC_STORE_VERIFY_OPEN || params.verify > RBC_STORE_VERIFY_NONE) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "verify: is %d, expected a value of RBC_STORE_VERIFY_...",
         params.verify);
  }
  if (params.access < RBC_STORE_ACCESS_AUTO || params.access > RBC_STORE_ACCESS_READ) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "access: is %d, expected a value of RBC_STORE_ACCESS_...",
         params.access);
  }
  if (params.num_trusted_uids < 0 || params.num_trusted_uids > RBC_STORE_MAX_TRUSTED) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "num_trusted_uids: is %d, expected 0 to %d",
         params.num_trusted_uids, RBC_STORE_MAX_TRUSTED);
  }
  if (params.min_free_bytes < -1) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "min_free_bytes: is %" PRId64 ", expected -1 or more",
         params.min_free_bytes);
  }
  options.verify = params.verify;
  options.access = params.access;
  options.min_free = params.min_free_bytes;
  options.owners.trusted.assign(params.trusted_uids, params.trusted_uids + params.num_trusted_uids);
  return options;
}

}  // namespace
}  // namespace rbc

using namespace rbc;
using namespace rbc::store;

rbcStatus_t rbcStoreOpen(const char* path, const rbcStoreParams* params, rbcStore_t* store) {
  return guard([&] {
    requireArgument(store, "store");
    *store = nullptr;
    requireArgument(path, "path");
    std::string folder = path;
    while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
    if (folder.empty()) fail(RBC_STATUS_INVALID_ARGUMENT, "path: is empty, expected a folder");
    auto made = std::make_unique<rbcStore>();
    made->root = std::make_shared<StoreRoot>(folder, optionsOf(params));
    *store = made.release();
  });
}

rbcStatus_t rbcStoreClose(rbcStore_t store) {
  delete store;
  return RBC_STATUS_SUCCESS;
}

rbcStatus_t rbcStoreFind(rbcStore_t store, const uint8_t* key, rbcEntry_t* entry) {
  return guard([&] {
    requireArgument(entry, "entry");
    *entry = nullptr;
    const StorePointer& root = rootOf(store);
    *entry = findEntry(root, Key(key).bytes).release();
  });
}

rbcStatus_t rbcStoreLockSegment(rbcStore_t store, const uint8_t* key,
                                const rbcSegmentParams* params, int64_t wait_ms,
                                rbcSegmentWriter_t* writer) {
  return guard([&] {
    requireArgument(writer, "writer");
    *writer = nullptr;
    const StorePointer& root = rootOf(store);
    const Key own_key(key);
    requireArgument(params, "params");
    const rbcSegmentParams own = readParams(params, rbcSegmentParamsInit(), "params");
    if (own.segment < 0 || own.segment >= kMaxSegments) {
      fail(RBC_STATUS_INVALID_ARGUMENT, "segment: is %d, expected 0 to 999999", own.segment);
    }
    const std::pair<const char*, int64_t> numbers[] = {{"first_episode", own.first_episode},
                                                       {"num_episodes", own.num_episodes},
                                                       {"first_row", own.first_row},
                                                       {"num_rows", own.num_rows}};
    for (const auto& [name, number] : numbers) {
      if (number < 0 || number > kMaxRows) {
        fail(RBC_STATUS_INVALID_ARGUMENT, "%s: is %" PRId64 ", expected 0 to 2^48", name, number);
      }
    }
    if (wait_ms < -1) {
      fail(RBC_STATUS_INVALID_ARGUMENT, "wait_ms: is %" PRId64 ", expected -1 or more", wait_ms);
    }
    *writer =
        lockSegment(root, own_key.bytes, static_cast<uint32_t>(own.segment),
                    {own.first_episode, own.num_episodes, own.first_row, own.num_rows}, wait_ms)
            .release();
  });
}

rbcStatus_t rbcSegmentWriterAdd(rbcSegmentWriter_t writer, const char* name, rbcDType dtype,
                                int32_t ndim, const int64_t* shape) {
  return guard([&] {
    requireArgument(writer, "writer");
    writer->add(name, dtypeOf(dtype, "dtype"), ndim, shape);
  });
}

rbcStatus_t rbcSegmentWriterWrite(rbcSegmentWriter_t writer, const char* name, const void* rows,
                                  size_t num_bytes) {
  return guard([&] {
    requireArgument(writer, "writer");
    writer->write(name, rows, num_bytes);
  });
}

rbcStatus_t rbcSegmentWriterPublish(rbcSegmentWriter_t writer) {
  return guard([&] {
    requireArgument(writer, "writer");
    writer->publish();
  });
}

rbcStatus_t rbcSegmentWriterDiscard(rbcSegmentWriter_t writer) {
  return guard([&] { delete writer; });
}

rbcStatus_t rbcStorePublishEntry(rbcStore_t store, const uint8_t* key, int64_t num_segments,
                                 const int64_t* episode_offsets, int64_t num_offsets,
                                 const char* about) {
  return guard([&] {
    const StorePointer& root = rootOf(store);
    const Key own(key);
    requireArgument(episode_offsets, "episode_offsets");
    requireArgument(about, "about");
    if (num_segments < 1 || num_segments > kMaxSegments) {
      fail(RBC_STATUS_INVALID_ARGUMENT, "num_segments: is %" PRId64 ", expected 1 to 1000000",
           num_segments);
    }
    if (num_offsets < 1 || num_offsets > kMaxRows) {
      fail(RBC_STATUS_INVALID_ARGUMENT, "num_offsets: is %" PRId64 ", expected 1 or more",
           num_offsets);
    }
    publishEntry(root, own.bytes, num_segments, episode_offsets, num_offsets, about);
  });
}

rbcStatus_t rbcStoreList(rbcStore_t store, rbcStoreItem* items, size_t capacity, size_t* count) {
  return guard([&] {
    const StorePointer& root = rootOf(store);
    requireArgument(count, "count");
    if (capacity > 0) requireArgument(items, "items");
    const std::vector<rbcStoreItem> found = listEntries(*root);
    *count = found.size();
    if (found.size() > capacity) {
      fail(RBC_STATUS_BUFFER_TOO_SMALL, "capacity: is %zu, and there are %zu entries", capacity,
           found.size());
    }
    if (!found.empty()) std::memcpy(items, found.data(), found.size() * sizeof *items);
  });
}

rbcStatus_t rbcStorePrune(rbcStore_t store, const rbcPruneParams* params, rbcPruneReport* report) {
  return guard([&] {
    const StorePointer& root = rootOf(store);
    const rbcPruneParams own = readParams(params, rbcPruneParamsInit(), "params");
    const std::pair<const char*, int64_t> limits[] = {{"max_bytes", own.max_bytes},
                                                      {"max_age_s", own.max_age_s}};
    for (const auto& [name, limit] : limits) {
      if (limit < -1) {
        fail(RBC_STATUS_INVALID_ARGUMENT, "%s: is %" PRId64 ", expected -1 or more", name, limit);
      }
    }
    if (own.recent_s < 0) {
      fail(RBC_STATUS_INVALID_ARGUMENT, "recent_s: is %" PRId64 ", expected 0 or more",
           own.recent_s);
    }
    if (report != nullptr) {  // before anything is removed
      writeInfo(report, rbcPruneReportInit(), "report", "rbcPruneReportInit()");
    }
    const rbcPruneReport done = prune(*root, own);
    if (report != nullptr) writeInfo(report, done, "report", "rbcPruneReportInit()");
  });
}
