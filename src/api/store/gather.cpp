// rbcEntryGather, rbcEntryPrefetch, rbcEntryRegister: rows of an entry for a context.

#include <cinttypes>
#include <mutex>
#include <vector>

#include "context.h"
#include "entry.h"
#include "fork.h"
#include "gather_problem.h"
#include "guard.h"
#include "operands.h"
#include "operation.h"
#include "read_once.h"
#include "robocache/store.h"
#include "status.h"

namespace rbc {
namespace {

using namespace store;

constexpr int64_t kBetweenPolls = 1 << 12;  // rows

// The indices of rows, in host memory and checked: another thread may write the caller's.
std::vector<int64_t> readRows(const rbcTensor* tensor, const StoredTrack& track) {
  const View rows = normalize(tensor, "rows");
  requireRank(rows, "rows", 1, 1);
  if (rows.dtype != DType::I64) {
    fail(RBC_STATUS_DTYPE_MISMATCH, "rows: dtype is %s, expected int64", nameOf(rows.dtype));
  }
  if (rows.device.type == RBC_DEVICE_CUDA) {
    fail(RBC_STATUS_DEVICE_MISMATCH, "rows: is on a GPU, expected host memory");
  }
  std::vector<int64_t> indices(static_cast<size_t>(rows.shape[0]));
  const int64_t most = track.shape[0];
  for (size_t i = 0; i < indices.size(); ++i) {
    const auto row =
        readOnce<int64_t>(rows.data + static_cast<int64_t>(i) * rows.strides[0] * int64_t{8});
    if (row < 0 || row >= most) {
      fail(RBC_STATUS_INVALID_ARGUMENT,
           "rows: is %" PRId64 " at [%zu], expected one of the %" PRId64 " rows of \"%.64s\"", row,
           i, most, track.name.c_str());
    }
    indices[i] = row;
  }
  return indices;
}

uint64_t beginOf(const StoredTrack& track, const TrackPiece& piece, int64_t row) {
  return piece.begin + static_cast<uint64_t>(row - piece.first_row) * track.row_bytes;
}

// A gather is in three parts: where each row is, its bytes if the segments are read, and the copy.
class GatherCall {
 public:
  GatherCall(rbcContext& context, rbcEntry& entry, const StoredTrack& track, const View& out)
      : context_(context), entry_(entry), track_(track), out_(out) {}

  void locate(const std::vector<int64_t>& indices) {
    Interrupt& interrupt = context_.state->interrupt;
    const bool on_host = context_.backend->id == RBC_BACKEND_CPU;
    const bool reads = entry_.root->options().access == RBC_STORE_ACCESS_READ;
    const bool verifies = entry_.root->options().verify == RBC_STORE_VERIFY_FIRST;
    std::byte* into = out_.data;
    if (reads && !on_host) {
      read_.resize(indices.size() * track_.row_bytes);
      into = read_.data();
    }
    rows_.reserve(indices.size());
    std::vector<uint8_t> scratch;
    int64_t left = kBetweenPolls;
    for (size_t i = 0; i < indices.size(); ++i) {
      if (--left == 0) {
        left = kBetweenPolls;
        if (interrupt.stopped()) interrupt.requireRunning();
      }
      const TrackPiece& piece = track_.pieceOf(indices[i]);
      const SegmentFile& file = *entry_.segments[static_cast<size_t>(piece.segment)];
      const uint64_t begin = beginOf(track_, piece, indices[i]);
      if (verifies) checkOnce(entry_, piece.segment, begin, begin + track_.row_bytes, scratch);
      if (reads) {
        std::byte* to = into + i * track_.row_bytes;
        file.read(begin, track_.row_bytes, to);
        rows_.push_back(to);
      } else {
        rows_.push_back(file.map() + begin);
        if (entry_.isPinned(piece.segment)) {
          pinned_.resize(indices.size());
          pinned_[i] = 1;
        }
      }
    }
    done_ = reads && on_host;
  }

  void copy() {
    BackendState& state = *context_.state;
    state.last_operation = "gather";
    state.last_launch = rows_.empty() ? LaunchChoice{} : state.usual_launch;
    if (!rows_.empty() && !done_) {
      const GatherProblem problem = {rows_.data(), pinned_.empty() ? nullptr : pinned_.data(),
                                     static_cast<int64_t>(rows_.size()), track_.row_bytes,
                                     out_.data};
      operationFor<GatherProblem>(*context_.backend).run(state, problem, {});
    }
    if (state.log_level != LogLevel::kNone) {
      logLaunch(state.log_level, state.last_operation, state.last_launch);
    }
  }

 private:
  rbcContext& context_;
  rbcEntry& entry_;
  const StoredTrack& track_;
  const View& out_;
  std::vector<const void*> rows_;
  std::vector<uint8_t> pinned_;  // empty: none
  std::vector<std::byte> read_;  // rows of segments that are read, for CUDA
  bool done_ = false;            // they were read into `out`
};

}  // namespace
}  // namespace rbc

using namespace rbc;
using namespace rbc::store;

rbcStatus_t rbcEntryGather(rbcContext_t context, rbcEntry_t entry, const char* name,
                           const rbcTensor* rows, const rbcOutput* out) {
  return guard([&] {
    const ContextUse use(context);
    rbcEntry& own = requireEntry(entry);
    const StoredTrack& track = trackOf(own, name);
    Operands& operands = use->call_memory.make<Operands>(*use);
    const View& written = operands.out(out, "out");
    std::vector<int64_t> shape = track.shape;
    const std::vector<int64_t> indices = readRows(rows, track);
    shape[0] = static_cast<int64_t>(indices.size());
    requireShape(written, "out", static_cast<int>(shape.size()), shape.data());
    if (written.dtype != track.dtype) {
      fail(RBC_STATUS_DTYPE_MISMATCH, "out: dtype is %s, expected %s, as \"%.64s\"",
           nameOf(written.dtype), nameOf(track.dtype), track.name.c_str());
    }
    if (!written.contiguous()) {
      fail(RBC_STATUS_INVALID_ARGUMENT, "out: is not contiguous, expected compact rows");
    }
    operands.requireApart();
    if (use->backend->capturing(*use->state)) {
      fail(RBC_STATUS_UNSUPPORTED,
           "stream: is being captured, and each replay would copy the rows of this call");
    }
    GatherCall call(*use, own, track, written);
    if (written.count > 0) call.locate(indices);
    call.copy();
  });
}

rbcStatus_t rbcEntryPrefetch(rbcContext_t context, rbcEntry_t entry, const char* name,
                             const rbcTensor* rows) {
  return guard([&] {
    const ContextUse use(context);
    const rbcEntry& own = requireEntry(entry);
    const StoredTrack& track = trackOf(own, name);
    for (const int64_t row : readRows(rows, track)) {
      const TrackPiece& piece = track.pieceOf(row);
      own.segments[static_cast<size_t>(piece.segment)]->prefetch(beginOf(track, piece, row),
                                                                 track.row_bytes);
    }
  });
}

rbcStatus_t rbcEntryRegister(rbcContext_t context, rbcEntry_t entry, int64_t max_bytes) {
  return guard([&] {
    const ContextUse use(context);
    rbcEntry& own = requireEntry(entry);
    if (max_bytes < 0) {
      fail(RBC_STATUS_INVALID_ARGUMENT, "max_bytes: is %" PRId64 ", expected 0 or more", max_bytes);
    }
    if (own.root->options().access == RBC_STORE_ACCESS_READ) {
      fail(RBC_STATUS_UNSUPPORTED,
           "entry: its segments are read, not mapped; gathers stage their rows without this call");
    }
    const Backend& backend = *use->backend;
    if (backend.pin == nullptr) return;
    const std::lock_guard<std::mutex> locked(own.pin_mutex);
    if (own.pin_generation != forkGeneration())
      own.unpinAll();  // the parent's are not this process's
    own.pin_generation = forkGeneration();
    own.unpin = backend.unpin;
    std::vector<uint8_t> scratch;
    for (size_t s = 0; s < own.segments.size(); ++s) {
      const SegmentFile& file = *own.segments[s];
      if (own.pinned[s] != 0 ||
          own.pinned_bytes + file.fileBytes() > static_cast<uint64_t>(max_bytes)) {
        continue;
      }
      if (own.root->options().verify != RBC_STORE_VERIFY_NONE) {
        for (uint64_t block = 0; block < file.numBlocks(); ++block) {
          if (!file.isWhole(block, scratch)) {
            failBlock(own, static_cast<int64_t>(s), static_cast<int64_t>(block));
          }
        }
      }
      if (!backend.pin(*use->state, file.map(), file.fileBytes())) return;
      own.pinned_bytes += file.fileBytes();
      own.pinned[s].store(1, std::memory_order_release);
    }
  });
}

rbcStatus_t rbcEntryUnregister(rbcContext_t context, rbcEntry_t entry) {
  return guard([&] {
    const ContextUse use(context);
    rbcEntry& own = requireEntry(entry);
    const std::lock_guard<std::mutex> locked(own.pin_mutex);
    own.unpinAll();
  });
}
