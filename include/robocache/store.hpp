// The store: a cache on disk that processes share. See robocache.hpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "context.hpp"
#include "store.h"

ROBOCACHE_NAMESPACE_BEGIN

// The key of an entry: a digest of everything that its bytes depend on.
using StoreKey = std::array<uint8_t, RBC_STORE_KEY_BYTES>;

// The sums to compare, and the way to read segments: see rbcStoreParams.
enum class StoreVerify : int32_t {
  kOpen = RBC_STORE_VERIFY_OPEN,
  kFirst = RBC_STORE_VERIFY_FIRST,
  kNone = RBC_STORE_VERIFY_NONE
};
enum class StoreAccess : int32_t {
  kAuto = RBC_STORE_ACCESS_AUTO,
  kMap = RBC_STORE_ACCESS_MAP,
  kRead = RBC_STORE_ACCESS_READ
};

// The options of Store::open.
struct StoreOptions {
  bool read_only = false;
  StoreVerify verify = StoreVerify::kOpen;
  StoreAccess access = StoreAccess::kAuto;
  std::vector<uint32_t> trusted_uids;  // up to 16
  int64_t min_free_bytes = -1;         // -1: the smaller of 5 % of the file system and 10 GiB
};

// The limits of Store::prune; not set: no limit.
struct PruneOptions {
  std::optional<int64_t> max_bytes;
  std::optional<int64_t> max_age_s;
  int64_t recent_s = 7200;  // entries that were used in this time stay
  bool dry_run = false;     // only report
  bool incomplete = false;  // remove incomplete entries of any age
};

// An open entry: see rbcEntry_t. Movable. Views of its tensors are valid as long as it, or a copy
// of its handle that was retained, exists.
class StoreEntry {
 public:
  rbcEntry_t get() const noexcept { return entry_.get(); }

  // Returns the entry's numbers: see rbcEntryInfo.
  template <class Errors = DefaultErrors>
  Returned<Errors, rbcEntryInfo> info() const {
    rbcEntryInfo info = rbcEntryInfoInit();
    const rbcStatus_t status = rbcEntryGetInfo(get(), &info);
    return Errors::report(detail::done(status, info));
  }
  // Returns the name of a tensor, 0 <= index < info().num_tensors.
  template <class Errors = DefaultErrors>
  Returned<Errors, std::string> name(int64_t index) const {
    const char* name = nullptr;
    const rbcStatus_t status = rbcEntryGetName(get(), index, &name);
    return Errors::report(detail::done(status, std::string(name == nullptr ? "" : name)));
  }
  // Returns the dtype and the shape of a track, over all segments.
  template <class Errors = DefaultErrors>
  Returned<Errors, rbcTrackInfo> track(const std::string& name) const {
    rbcTrackInfo info = rbcTrackInfoInit();
    const rbcStatus_t status = rbcEntryGetTrack(get(), name.c_str(), &info);
    return Errors::report(detail::done(status, info));
  }
  // Returns i64 [E+1], with a stride of 3: the first row of each episode, and the number of rows.
  template <class Errors = DefaultErrors>
  Returned<Errors, Tensor> episodes() const {
    rbcTensor view = {};
    const rbcStatus_t status = rbcEntryGetEpisodes(get(), &view);
    return Errors::report(detail::done(status, Tensor(view, false)));
  }
  // Returns a tensor of a segment in the page cache; it is not writable.
  template <class Errors = DefaultErrors>
  Returned<Errors, Tensor> tensor(const std::string& name, int64_t segment) const {
    rbcTensor view = {};
    const rbcStatus_t status = rbcEntryGetTensor(get(), name.c_str(), segment, &view);
    return Errors::report(detail::done(status, Tensor(view, false)));
  }
  // Copies rows of a track: see rbcEntryGather.
  //
  //   rows  [n] i64 in host memory
  //   out   [n,...] in the track's dtype, written whole; on the context's device
  template <class Errors = DefaultErrors>
  Returned<Errors, void> gather(const Context& context, const std::string& name, const Tensor& rows,
                                const Tensor& out) const {
    detail::Call call;
    return call.make<Errors>(rbcEntryGather, context.get(), get(), name.c_str(),
                             call.in(rows, "rows"), call.out(out, "out"));
  }
  // Asks the system to read rows that a later gather needs.
  template <class Errors = DefaultErrors>
  Returned<Errors, void> prefetch(const Context& context, const std::string& name,
                                  const Tensor& rows) const {
    detail::Call call;
    return call.make<Errors>(rbcEntryPrefetch, context.get(), get(), name.c_str(),
                             call.in(rows, "rows"));
  }
  // Pins segments for CUDA, and unpins them: see rbcEntryRegister.
  template <class Errors = DefaultErrors>
  Returned<Errors, void> pin(const Context& context, int64_t max_bytes) {
    detail::Call call;
    return call.make<Errors>(rbcEntryRegister, context.get(), get(), max_bytes);
  }
  template <class Errors = DefaultErrors>
  Returned<Errors, void> unpin(const Context& context) {
    detail::Call call;
    return call.make<Errors>(rbcEntryUnregister, context.get(), get());
  }
  // Compares the sum of every block.
  template <class Errors = DefaultErrors>
  Returned<Errors, rbcVerifyReport> verify() const {
    rbcVerifyReport report = rbcVerifyReportInit();
    const rbcStatus_t status = rbcEntryVerify(get(), &report);
    return Errors::report(detail::done(status, report));
  }

 private:
  friend class Store;
  struct Release {
    void operator()(rbcEntry_t entry) const noexcept { rbcEntryRelease(entry); }
  };

  explicit StoreEntry(rbcEntry_t entry) noexcept : entry_(entry) {}

  std::unique_ptr<rbcEntry, Release> entry_;
};

// A segment that is being written: see rbcStoreLockSegment. Movable. Its end releases the lock.
class SegmentWriter {
 public:
  rbcSegmentWriter_t get() const noexcept { return writer_.get(); }
  // False if the segment was already there: there is nothing to write.
  explicit operator bool() const noexcept { return writer_ != nullptr; }

  // Declares a tensor; its first extent counts rows.
  template <class Errors = DefaultErrors>
  Returned<Errors, void> add(const std::string& name, rbcDType dtype, const Shape& shape) {
    int64_t extents[RBC_TENSOR_MAX_NDIM];
    for (size_t i = 0; i < RBC_TENSOR_MAX_NDIM; ++i) extents[i] = shape[i];
    detail::Call call;
    return call.make<Errors>(rbcSegmentWriterAdd, get(), name.c_str(), dtype,
                             static_cast<int32_t>(shape.rank()), extents);
  }
  // Appends bytes to a tensor.
  template <class Errors = DefaultErrors>
  Returned<Errors, void> write(const std::string& name, const void* rows, size_t num_bytes) {
    detail::Call call;
    return call.make<Errors>(rbcSegmentWriterWrite, get(), name.c_str(), rows, num_bytes);
  }
  // Gives the segment its name, after its bytes are on the disk.
  template <class Errors = DefaultErrors>
  Returned<Errors, void> publish() {
    detail::Call call;
    return call.make<Errors>(rbcSegmentWriterPublish, get());
  }

 private:
  friend class Store;
  struct Discard {
    void operator()(rbcSegmentWriter_t writer) const noexcept { rbcSegmentWriterDiscard(writer); }
  };

  explicit SegmentWriter(rbcSegmentWriter_t writer) noexcept : writer_(writer) {}

  std::unique_ptr<rbcSegmentWriter, Discard> writer_;
};

// A folder of entries that processes share: see rbcStore_t. Movable.
class Store {
 public:
  // Opens a store, and creates its folder: see rbcStoreOpen.
  template <class Errors = DefaultErrors>
  static Returned<Errors, Store> open(const std::string& path, const StoreOptions& options = {}) {
    rbcStoreParams params = rbcStoreParamsInit();
    params.flags = options.read_only ? RBC_STORE_FLAG_READ_ONLY : 0;
    params.verify = static_cast<int32_t>(options.verify);
    params.access = static_cast<int32_t>(options.access);
    params.min_free_bytes = options.min_free_bytes;
    // If there are more, the library refuses their number.
    params.num_trusted_uids = detail::count(options.trusted_uids);
    std::copy_n(options.trusted_uids.begin(),
                std::min<size_t>(options.trusted_uids.size(), RBC_STORE_MAX_TRUSTED),
                params.trusted_uids);
    rbcStore_t made = nullptr;
    const rbcStatus_t status = rbcStoreOpen(path.c_str(), &params, &made);
    return Errors::report(detail::done(status, Store(made)));
  }

  rbcStore_t get() const noexcept { return store_.get(); }

  // Opens an entry; fails with NOT_FOUND if it is not there: see rbcStoreFind.
  template <class Errors = DefaultErrors>
  Returned<Errors, StoreEntry> find(const StoreKey& key) const {
    rbcEntry_t found = nullptr;
    const rbcStatus_t status = rbcStoreFind(get(), key.data(), &found);
    return Errors::report(detail::done(status, StoreEntry(found)));
  }
  // Begins to build a segment: see rbcStoreLockSegment. The writer is false if it is already there.
  template <class Errors = DefaultErrors>
  Returned<Errors, SegmentWriter> lockSegment(const StoreKey& key, const rbcSegmentParams& segment,
                                              int64_t wait_ms = -1) const {
    rbcSegmentWriter_t made = nullptr;
    const rbcStatus_t status = rbcStoreLockSegment(get(), key.data(), &segment, wait_ms, &made);
    return Errors::report(detail::done(status, SegmentWriter(made)));
  }
  // Publishes an entry whose segments are all there: see rbcStorePublishEntry.
  template <class Errors = DefaultErrors>
  Returned<Errors, void> publishEntry(const StoreKey& key, int64_t num_segments,
                                      const std::vector<int64_t>& episode_offsets,
                                      const std::string& about) const {
    detail::Call call;
    return call.make<Errors>(rbcStorePublishEntry, get(), key.data(), num_segments,
                             episode_offsets.data(), static_cast<int64_t>(episode_offsets.size()),
                             about.c_str());
  }
  // Returns the entries, the least recently used first.
  template <class Errors = DefaultErrors>
  Returned<Errors, std::vector<rbcStoreItem>> list() const {
    std::vector<rbcStoreItem> items;
    size_t count = 0;
    rbcStatus_t status;
    do {  // others may add entries between two calls
      items.resize(count);
      status = rbcStoreList(get(), items.data(), items.size(), &count);
    } while (status == RBC_STATUS_BUFFER_TOO_SMALL);
    items.resize(std::min(count, items.size()));
    return Errors::report(detail::done(status, std::move(items)));
  }
  // Removes what is least recently used: see rbcStorePrune.
  template <class Errors = DefaultErrors>
  Returned<Errors, rbcPruneReport> prune(const PruneOptions& options = {}) const {
    rbcPruneParams params = rbcPruneParamsInit();
    params.flags = (options.dry_run ? RBC_PRUNE_FLAG_DRY_RUN : 0) |
                   (options.incomplete ? RBC_PRUNE_FLAG_INCOMPLETE : 0);
    params.max_bytes = options.max_bytes.value_or(-1);
    params.max_age_s = options.max_age_s.value_or(-1);
    params.recent_s = options.recent_s;
    rbcPruneReport report = rbcPruneReportInit();
    const rbcStatus_t status = rbcStorePrune(get(), &params, &report);
    return Errors::report(detail::done(status, report));
  }

 private:
  struct Close {
    void operator()(rbcStore_t store) const noexcept { rbcStoreClose(store); }
  };

  explicit Store(rbcStore_t store) noexcept : store_(store) {}

  std::unique_ptr<rbcStore, Close> store_;
};

ROBOCACHE_NAMESPACE_END
