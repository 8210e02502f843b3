// rbcEntry...: what is read from an open entry. The gather is in gather.cpp.

#include "entry.h"

#include <cinttypes>
#include <cstring>

#include "fork.h"
#include "guard.h"
#include "params.h"
#include "robocache/store.h"
#include "status.h"

namespace rbc {
namespace {

using namespace store;

rbcTensor describeHost(const void* data, rbcDType dtype, int ndim, const int64_t* shape,
                       const int64_t* strides) {
  rbcTensor view = {};
  // `const` is the caller's to keep: the memory is mapped for reading only.
  view.data = const_cast<void*>(data);
  view.device = {RBC_DEVICE_CPU, 0};
  view.ndim = ndim;
  view.dtype = dtype;
  view.shape = const_cast<int64_t*>(shape);
  view.strides = const_cast<int64_t*>(strides);
  return view;
}

}  // namespace
}  // namespace rbc

using namespace rbc;
using namespace rbc::store;

rbcStatus_t rbcEntryRetain(rbcEntry_t entry) {
  return guard([&] { requireEntry(entry).references.fetch_add(1, std::memory_order_relaxed); });
}

rbcStatus_t rbcEntryRelease(rbcEntry_t entry) {
  return guard([&] { releaseEntry(entry); });
}

rbcStatus_t rbcEntryGetInfo(rbcEntry_t entry, rbcEntryInfo* info) {
  return guard([&] {
    rbcEntry& own = requireEntry(entry);
    rbcEntryInfo found = rbcEntryInfoInit();
    found.access = own.root->options().access;
    found.num_segments = own.index->numSegments();
    found.num_episodes = own.index->numEpisodes();
    found.num_rows = own.index->numRows();
    found.num_tensors = static_cast<int64_t>(own.tracks.size());
    found.num_bytes = own.index->fileBytes();
    for (const auto& segment : own.segments) found.num_bytes += segment->fileBytes();
    found.num_pinned_bytes = own.pin_generation == forkGeneration() ? own.pinned_bytes.load() : 0;
    writeInfo(info, found, "info", "rbcEntryInfoInit()");
  });
}

rbcStatus_t rbcEntryGetName(rbcEntry_t entry, int64_t index, const char** name) {
  return guard([&] {
    if (name == nullptr) fail(RBC_STATUS_INVALID_ARGUMENT, "name: is null");
    *name = nullptr;
    const rbcEntry& own = requireEntry(entry);
    const auto count = static_cast<int64_t>(own.tracks.size());
    if (index < 0 || index >= count) {
      fail(RBC_STATUS_INVALID_ARGUMENT, "index: is %" PRId64 ", expected 0 to %" PRId64, index,
           count - 1);
    }
    *name = own.tracks[static_cast<size_t>(index)].name.c_str();
  });
}

rbcStatus_t rbcEntryGetTrack(rbcEntry_t entry, const char* name, rbcTrackInfo* info) {
  return guard([&] {
    const StoredTrack& track = trackOf(requireEntry(entry), name);
    rbcTrackInfo found = rbcTrackInfoInit();
    found.dtype = describe(track.dtype);
    found.ndim = static_cast<int32_t>(track.shape.size());
    for (size_t i = 0; i < track.shape.size(); ++i) found.shape[i] = track.shape[i];
    found.row_bytes = static_cast<int64_t>(track.row_bytes);
    writeInfo(info, found, "info", "rbcTrackInfoInit()");
  });
}

rbcStatus_t rbcEntryGetEpisodes(rbcEntry_t entry, rbcTensor* offsets) {
  return guard([&] {
    if (offsets == nullptr) fail(RBC_STATUS_INVALID_ARGUMENT, "offsets: is null");
    const rbcEntry& own = requireEntry(entry);
    *offsets = describeHost(own.index->firstRows(), describe(DType::I64), 1, own.episodes_shape,
                            own.episodes_strides);
  });
}

rbcStatus_t rbcEntryGetTensor(rbcEntry_t entry, const char* name, int64_t segment,
                              rbcTensor* view) {
  return guard([&] {
    if (view == nullptr) fail(RBC_STATUS_INVALID_ARGUMENT, "view: is null");
    rbcEntry& own = requireEntry(entry);
    const StoredTrack& track = trackOf(own, name);
    const auto count = static_cast<int64_t>(own.segments.size());
    if (segment < 0 || segment >= count) {
      fail(RBC_STATUS_INVALID_ARGUMENT, "segment: is %" PRId64 ", expected 0 to %" PRId64, segment,
           count - 1);
    }
    const SegmentFile& file = *own.segments[static_cast<size_t>(segment)];
    if (file.map() == nullptr) {
      fail(RBC_STATUS_UNSUPPORTED,
           "entry: its segments are read, not mapped; use rbcEntryGather, or open the store with "
           "RBC_STORE_ACCESS_MAP");
    }
    const StoredTensor* tensor = tensorOf(own, track.name.c_str(), segment);
    if (tensor == nullptr) {
      fail(RBC_STATUS_NOT_FOUND, "name: segment %" PRId64 " has no tensor \"%.64s\"", segment,
           track.name.c_str());
    }
    if (own.root->options().verify == RBC_STORE_VERIFY_FIRST) {
      std::vector<uint8_t> scratch;
      checkOnce(own, segment, tensor->begin, tensor->begin + tensor->bytes, scratch);
    }
    *view = describeHost(file.map() + tensor->begin, describe(tensor->dtype),
                         static_cast<int>(tensor->shape.size()), tensor->shape.data(), nullptr);
    if (own.isPinned(segment)) view->device = {RBC_DEVICE_CUDA_HOST, 0};
  });
}

rbcStatus_t rbcEntryVerify(rbcEntry_t entry, rbcVerifyReport* report) {
  return guard([&] {
    const rbcEntry& own = requireEntry(entry);
    rbcVerifyReport found = rbcVerifyReportInit();
    found.first_segment = found.first_block = -1;
    writeInfo(report, found, "report", "rbcVerifyReportInit()");
    std::vector<uint8_t> scratch;
    for (size_t s = 0; s < own.segments.size(); ++s) {
      const SegmentFile& file = *own.segments[s];
      for (uint64_t block = 0; block < file.numBlocks(); ++block) {
        ++found.num_blocks;
        if (file.isWhole(block, scratch)) continue;
        if (found.num_damaged_blocks++ == 0) {
          found.first_segment = static_cast<int64_t>(s);
          found.first_block = static_cast<int64_t>(block);
        }
      }
    }
    writeInfo(report, found, "report", "rbcVerifyReportInit()");
  });
}
