/*
 * RoboCache: the store, a cache on disk that processes share and kernels read.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ROBOCACHE_STORE_H
#define ROBOCACHE_STORE_H

#include <string.h>

#include "base.h"
#include "context.h"
#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The number of bytes of a key. */
#define RBC_STORE_KEY_BYTES 32

/* The maximum number of other users whose files a store accepts. */
#define RBC_STORE_MAX_TRUSTED 16

/* rbcStoreParams.flags: nothing is written, not even the time of the last use */
#define RBC_STORE_FLAG_READ_ONLY 0x10000u

/* rbcStoreParams.verify: which sums are compared. Sizes, offsets and headers always are. */
#define RBC_STORE_VERIFY_OPEN 0  /* those of the index, of the headers and of the sums themselves */
#define RBC_STORE_VERIFY_FIRST 1 /* also of each block of 64 KiB that a gather reads, once */
#define RBC_STORE_VERIFY_NONE 2  /* none */

/* rbcStoreParams.access and rbcEntryInfo.access: how segments are read */
#define RBC_STORE_ACCESS_AUTO 0 /* read() on network file systems and FUSE, else map */
#define RBC_STORE_ACCESS_MAP 1  /* a segment that is truncated while it is mapped raises SIGBUS */
#define RBC_STORE_ACCESS_READ 2 /* pread(): views of tensors are not available, gathers are */

/* The options of rbcStoreOpen. */
typedef struct rbcStoreParams {
  uint32_t struct_size;
  uint32_t flags;                               /* RBC_STORE_FLAG_READ_ONLY, or 0 (default) */
  int32_t verify;                               /* RBC_STORE_VERIFY_...; default OPEN */
  int32_t access;                               /* RBC_STORE_ACCESS_...; default AUTO */
  int32_t num_trusted_uids;                     /* how many of the next field count; default 0 */
  uint32_t trusted_uids[RBC_STORE_MAX_TRUSTED]; /* users whose files count, besides the caller's
                                                   own and root's */
  int32_t reserved0;                            /* 0 */
  int64_t min_free_bytes; /* a build that would leave less on the file system fails; default -1:
                             the smaller of 5 % of it and 10 GiB */
} rbcStoreParams;

static inline rbcStoreParams rbcStoreParamsInit(void) {
  rbcStoreParams params;
  memset(&params, 0, sizeof params);
  params.struct_size = (uint32_t)sizeof params;
  params.min_free_bytes = -1;
  return params;
}

/*
 * A folder of entries that any number of processes share. An entry is named by a key of 32 bytes,
 * a digest of everything that its bytes depend on, and never changes. It consists of segments,
 * files of tensors in the safetensors format, and of an index, which is written last: an entry is
 * there whole, or it is not there.
 *
 *   rbcStoreOpen("/data/cache", NULL, &store);
 *   if (rbcStoreFind(store, key, &entry) == RBC_STATUS_NOT_FOUND) {
 *     rbcStoreLockSegment(store, key, &segment, 60000, &writer);   (null: it is already there)
 *     rbcSegmentWriterAdd(writer, "state", f32, 2, shape);
 *     rbcSegmentWriterWrite(writer, "state", values, bytes);
 *     rbcSegmentWriterPublish(writer);
 *     rbcSegmentWriterDiscard(writer);
 *     rbcStorePublishEntry(store, key, 1, offsets, num_offsets, about);
 *     rbcStoreFind(store, key, &entry);
 *   }
 *   rbcEntryGather(context, entry, "state", &rows, &out);
 *
 * No file is changed after it has its name: a process that is killed at any moment leaves whole
 * files, and temporary ones that rbcStorePrune removes. Locks keep two processes from doing the
 * same work; results do not depend on them. Stores and entries may be used by any threads, and in
 * a forked child; a writer belongs to one thread of the process that made it.
 *
 * Files count only if they belong to the caller, to root or to a trusted user. Whoever may write
 * the folder chooses what its readers get, so neither the folder nor those above it may be writable
 * by others; folders with the sticky bit, such as /tmp, are accepted.
 */
typedef struct rbcStore* rbcStore_t;

/* An open entry: its segments stay readable after the store is closed or pruned. */
typedef struct rbcEntry* rbcEntry_t;

/* A segment that is being written. */
typedef struct rbcSegmentWriter* rbcSegmentWriter_t;

/*
 * Opens a store, and creates its folder with mode 0700 if it does not exist and the flag READ_ONLY
 * is not set.
 *
 *   path    the folder, UTF-8 or other bytes without 0
 *   params  null: defaults
 *   store   the caller closes it with rbcStoreClose
 *
 * On failure *store is null.
 *
 * Errors: INVALID_ARGUMENT; NOT_FOUND (READ_ONLY, and the folder does not exist); UNSUPPORTED (the
 * owner or the mode of a folder, with a remedy; a store of a newer version); IO_ERROR.
 */
RBC_API rbcStatus_t rbcStoreOpen(const char* path, const rbcStoreParams* params, rbcStore_t* store);

/* Closes a store; null is allowed. Entries and writers that it has returned stay valid. */
RBC_API rbcStatus_t rbcStoreClose(rbcStore_t store);

/*
 * Opens an entry.
 *
 *   store  the store
 *   key    [RBC_STORE_KEY_BYTES]
 *   entry  the caller releases it with rbcEntryRelease
 *
 * On failure *entry is null. A hit opens and maps each segment, and only writes the time of the last
 * use, once an hour. The message of a failure names the file.
 *
 * A damaged segment or index is set aside if the store may be written: its entry is then absent,
 * and a builder makes again what is missing.
 *
 * Errors: NOT_FOUND (the usual result before it is built); DAMAGED (a sum or a size differs, or
 * a segment is missing); UNSUPPORTED (a file of another owner); INVALID_ARGUMENT; IO_ERROR;
 * OUT_OF_MEMORY.
 */
RBC_API rbcStatus_t rbcStoreFind(rbcStore_t store, const uint8_t* key, rbcEntry_t* entry);

/* ---- reading ------------------------------------------------------------------------------ */

/* Adds a reference to an entry. Errors: INVALID_ARGUMENT. */
RBC_API rbcStatus_t rbcEntryRetain(rbcEntry_t entry);

/*
 * Drops a reference to an entry; null is allowed. The last one unmaps the segments: views of its
 * tensors are then invalid.
 */
RBC_API rbcStatus_t rbcEntryRelease(rbcEntry_t entry);

/* The properties of an entry, written by rbcEntryGetInfo. */
typedef struct rbcEntryInfo {
  uint32_t struct_size;
  int32_t access;            /* RBC_STORE_ACCESS_MAP or RBC_STORE_ACCESS_READ */
  int64_t num_segments;      /* files of tensors */
  int64_t num_episodes;      /* E */
  int64_t num_rows;          /* of all episodes, in the rows of rbcEntryGetEpisodes */
  int64_t num_tensors;       /* different names of tensors: see rbcEntryGetName */
  uint64_t num_bytes;        /* of all files */
  uint64_t num_pinned_bytes; /* registered for CUDA: see rbcEntryRegister */
} rbcEntryInfo;

static inline rbcEntryInfo rbcEntryInfoInit(void) {
  rbcEntryInfo info;
  memset(&info, 0, sizeof info);
  info.struct_size = (uint32_t)sizeof info;
  return info;
}

/*
 * Fills the first struct_size bytes of *info, which the caller has initialized. Errors:
 * INVALID_ARGUMENT.
 */
RBC_API rbcStatus_t rbcEntryGetInfo(rbcEntry_t entry, rbcEntryInfo* info);

/*
 * Writes the name of a tensor, 0 <= index < num_tensors, in the order of the first segment that has
 * it. The string is valid as long as the entry. Errors: INVALID_ARGUMENT.
 */
RBC_API rbcStatus_t rbcEntryGetName(rbcEntry_t entry, int64_t index, const char** name);

/* A track of an entry: the tensors of one name in all segments, one after the other. */
typedef struct rbcTrackInfo {
  uint32_t struct_size;
  rbcDType dtype;                     /* of the elements */
  int32_t ndim;                       /* 1 or more */
  int32_t reserved0;                  /* 0 */
  int64_t shape[RBC_TENSOR_MAX_NDIM]; /* [n,...]: n is the sum over all segments */
  int64_t row_bytes;                  /* the bytes of a row */
} rbcTrackInfo;

static inline rbcTrackInfo rbcTrackInfoInit(void) {
  rbcTrackInfo info;
  memset(&info, 0, sizeof info);
  info.struct_size = (uint32_t)sizeof info;
  return info;
}

/*
 * Fills the first struct_size bytes of *info, which the caller has initialized. Errors: NOT_FOUND
 * (the message lists names of the entry); INVALID_ARGUMENT.
 */
RBC_API rbcStatus_t rbcEntryGetTrack(rbcEntry_t entry, const char* name, rbcTrackInfo* info);

/*
 * Describes the index's first rows of episodes: i64 [E+1] in host memory, with a stride of 3
 * elements. The rows of episode e are offsets[e] to offsets[e + 1] - 1. The view is valid as long
 * as the entry. Errors: INVALID_ARGUMENT.
 */
RBC_API rbcStatus_t rbcEntryGetEpisodes(rbcEntry_t entry, rbcTensor* offsets);

/*
 * Describes a tensor of a segment. Its memory is the file's in the page cache: it is read-only, and
 * a write to it ends the process. The view is valid as long as the entry. After rbcEntryRegister it
 * is on RBC_DEVICE_CUDA_HOST, else on RBC_DEVICE_CPU.
 *
 * Errors: NOT_FOUND (no such tensor in the segment); UNSUPPORTED (the segments are read, not
 * mapped: use rbcEntryGather); INVALID_ARGUMENT.
 */
RBC_API rbcStatus_t rbcEntryGetTensor(rbcEntry_t entry, const char* name, int64_t segment,
                                      rbcTensor* view);

/*
 * Copies rows of a track.
 *
 *   context  a CPU or CUDA context
 *   entry    the entry
 *   name     the name of the track
 *   rows     [n] i64 in host memory: indices of rows, 0 .. the track's number of rows - 1, in any
 *            order; they may repeat
 *   out      [n,...]: the track's shape and dtype; contiguous, on the context's device
 *
 * On the CPU the context's threads copy. On CUDA one kernel reads rows of a registered entry from
 * host memory; rows that are not registered are gathered into pinned memory by the CPU and copied
 * once per call. The call enqueues the work and returns; only the fourth gather waits for the copy of the
 * first. It allocates pinned memory if a call needs more than those before.
 *
 * Errors: NOT_FOUND; INVALID_ARGUMENT (a row is out of range: no row was copied); SHAPE_MISMATCH;
 * DTYPE_MISMATCH; DEVICE_MISMATCH; DAMAGED (RBC_STORE_VERIFY_FIRST: names segment and block);
 * IO_ERROR; CANCELLED; OUT_OF_MEMORY; CUDA_ERROR.
 */
RBC_API rbcStatus_t rbcEntryGather(rbcContext_t context, rbcEntry_t entry, const char* name,
                                   const rbcTensor* rows, const rbcOutput* out);

/*
 * Asks the system to read rows of a track that a later gather needs, and returns at once.
 *
 *   context  the context of the later gather
 *   entry    the entry
 *   name     the name of the track
 *   rows     as for rbcEntryGather
 *
 * Errors: NOT_FOUND; INVALID_ARGUMENT.
 */
RBC_API rbcStatus_t rbcEntryPrefetch(rbcContext_t context, rbcEntry_t entry, const char* name,
                                     const rbcTensor* rows);

/*
 * Pins segments for CUDA, in their order, until max_bytes are pinned, so that kernels read them
 * without a copy. Every block of a segment is verified before it is pinned, unless the store was
 * opened with VERIFY_NONE. Segments that do not fit, or that the driver refuses, are read by
 * staging. Takes about 30 ms per GiB beyond the verification.
 *
 *   context    a CUDA context; on a CPU context nothing is pinned
 *   entry      the entry
 *   max_bytes  for this entry, >= 0
 *
 * A registration belongs to this process: it is not inherited by fork. Errors: UNSUPPORTED (the
 * segments are read, not mapped); DAMAGED; INVALID_ARGUMENT.
 */
RBC_API rbcStatus_t rbcEntryRegister(rbcContext_t context, rbcEntry_t entry, int64_t max_bytes);

/*
 * Unpins the segments of an entry. Work that reads them must be done. The last rbcEntryRelease does
 * it, too. Errors: INVALID_ARGUMENT, CUDA_ERROR.
 */
RBC_API rbcStatus_t rbcEntryUnregister(rbcContext_t context, rbcEntry_t entry);

/* The result of rbcEntryVerify. */
typedef struct rbcVerifyReport {
  uint32_t struct_size;
  uint32_t reserved0;         /* 0 */
  int64_t num_blocks;         /* of 64 KiB that were read */
  int64_t num_damaged_blocks; /* those whose sum differs */
  int64_t first_segment;      /* the segment of the first damaged block; -1: none */
  int64_t first_block;        /* the first damaged block in that segment; -1: none */
} rbcVerifyReport;

static inline rbcVerifyReport rbcVerifyReportInit(void) {
  rbcVerifyReport report;
  memset(&report, 0, sizeof report);
  report.struct_size = (uint32_t)sizeof report;
  return report;
}

/*
 * Reads every block of an entry and compares its sum. Fills the first struct_size bytes of *report,
 * which the caller has initialized. Damage is in the report, and is not an error of the call.
 * Errors: INVALID_ARGUMENT, IO_ERROR.
 */
RBC_API rbcStatus_t rbcEntryVerify(rbcEntry_t entry, rbcVerifyReport* report);

/* ---- writing ------------------------------------------------------------------------------ */

/* The part of an entry that a segment holds. */
typedef struct rbcSegmentParams {
  uint32_t struct_size;
  int32_t segment;       /* its number, 0 .. 999999 */
  int64_t first_episode; /* the segments of an entry follow each other without a gap */
  int64_t num_episodes;  /* whole episodes */
  int64_t first_row;     /* of the episodes in the segment */
  int64_t num_rows;      /* of the episodes in the segment */
} rbcSegmentParams;

static inline rbcSegmentParams rbcSegmentParamsInit(void) {
  rbcSegmentParams params;
  memset(&params, 0, sizeof params);
  params.struct_size = (uint32_t)sizeof params;
  return params;
}

/*
 * Begins to build a segment: takes its lock, so that other processes wait instead of doing the same
 * work. If the segment is already there, the call succeeds with a null *writer. The lock is
 * released by rbcSegmentWriterDiscard, or when the process ends. A forked child does not hold it.
 *
 *   key      [RBC_STORE_KEY_BYTES]
 *   params   the segment
 *   wait_ms  how long to wait for another builder: 0: not at all, -1: without limit
 *   writer   the caller ends it with rbcSegmentWriterDiscard, also after publishing
 *
 * A builder that has shown no life for 120 s, such as a stopped process, is not waited for: both
 * then build the segment, and the first to publish it wins. Where a file system refuses locks, a
 * file with the builder's times takes their place.
 *
 * Errors: BUSY (another process builds it; the message names the process); INVALID_ARGUMENT;
 * UNSUPPORTED (READ_ONLY); IO_ERROR (full, read-only, no permission; the message says why).
 */
RBC_API rbcStatus_t rbcStoreLockSegment(rbcStore_t store, const uint8_t* key,
                                        const rbcSegmentParams* params, int64_t wait_ms,
                                        rbcSegmentWriter_t* writer);

/*
 * Declares a tensor of the segment. All are declared before the first rows are written.
 *
 *   name   1 to 1024 bytes of UTF-8 without control characters; not "rbc." at the beginning, and
 *          not "__metadata__"
 *   dtype  any of tensor.h
 *   shape  [ndim], 1 to RBC_TENSOR_MAX_NDIM; the first extent counts rows
 *
 * Errors: INVALID_ARGUMENT, DTYPE_MISMATCH, SHAPE_MISMATCH.
 */
RBC_API rbcStatus_t rbcSegmentWriterAdd(rbcSegmentWriter_t writer, const char* name, rbcDType dtype,
                                        int32_t ndim, const int64_t* shape);

/*
 * Appends elements to a tensor, contiguous and row-major. The first call allocates the whole
 * segment on the disk, so that a full disk is found before the work is done.
 *
 *   rows       num_bytes bytes in host memory
 *   num_bytes  any part of the tensor; a call may end within a row
 *
 * Errors: INVALID_ARGUMENT (also more bytes than were declared); NOT_FOUND (no such tensor);
 * IO_ERROR.
 */
RBC_API rbcStatus_t rbcSegmentWriterWrite(rbcSegmentWriter_t writer, const char* name,
                                          const void* rows, size_t num_bytes);

/*
 * Writes the sums and gives the segment its name, after its bytes are on the disk. If another
 * process has published the segment in the meantime, its file stays, and the call succeeds. The
 * writer can then only be discarded.
 *
 * Errors: INVALID_ARGUMENT (a tensor lacks bytes; it names one); IO_ERROR. Nothing is published
 * then.
 */
RBC_API rbcStatus_t rbcSegmentWriterPublish(rbcSegmentWriter_t writer);

/* Ends a writer and releases the lock; null is allowed. What was not published is lost. */
RBC_API rbcStatus_t rbcSegmentWriterDiscard(rbcSegmentWriter_t writer);

/*
 * Publishes an entry whose segments are all there: writes its index. Several processes may do it;
 * the first wins, and the call succeeds for all.
 *
 *   key              [RBC_STORE_KEY_BYTES]
 *   num_segments     1 or more: the segments 0 .. num_segments - 1
 *   episode_offsets  [num_offsets]: 0, then where each episode's rows end
 *   num_offsets      E + 1
 *   about            UTF-8 text, such as the JSON that the key is a digest of; kept in about.json
 *
 * Errors: NOT_FOUND (a segment is missing: the message names it); INVALID_ARGUMENT (the segments'
 * episodes or rows do not join, or differ from the offsets); DAMAGED; UNSUPPORTED (READ_ONLY);
 * IO_ERROR.
 */
RBC_API rbcStatus_t rbcStorePublishEntry(rbcStore_t store, const uint8_t* key, int64_t num_segments,
                                         const int64_t* episode_offsets, int64_t num_offsets,
                                         const char* about);

/* ---- the whole store ---------------------------------------------------------------------- */

/* rbcStoreItem.state */
#define RBC_STORE_ITEM_COMPLETE 0   /* it has an index */
#define RBC_STORE_ITEM_INCOMPLETE 1 /* it is being built, or its builder has ended */

/* An entry of rbcStoreList. */
typedef struct rbcStoreItem {
  uint8_t key[RBC_STORE_KEY_BYTES]; /* of the entry */
  int32_t state;                    /* RBC_STORE_ITEM_... */
  int32_t is_locked;                /* 1: a process is building it */
  int64_t num_segments;             /* files of segments */
  uint64_t num_bytes;               /* on the disk */
  int64_t last_use_ns;              /* since 1970, in ns; by the clock of the file system */
} rbcStoreItem;

/*
 * Lists the entries of a store, the least recently used first.
 *
 *   items     [capacity], written; may be null if capacity is 0
 *   capacity  how many fit
 *   count     how many there are
 *
 * Errors: BUFFER_TOO_SMALL (*count says how many are needed; nothing else was written);
 * INVALID_ARGUMENT; IO_ERROR.
 */
RBC_API rbcStatus_t rbcStoreList(rbcStore_t store, rbcStoreItem* items, size_t capacity,
                                 size_t* count);

/* rbcPruneParams.flags */
#define RBC_PRUNE_FLAG_DRY_RUN 0x10000u    /* remove nothing, only report */
#define RBC_PRUNE_FLAG_INCOMPLETE 0x20000u /* remove incomplete entries of any age */

/* The limits of rbcStorePrune. */
typedef struct rbcPruneParams {
  uint32_t struct_size;
  uint32_t flags;    /* RBC_PRUNE_FLAG_...; default 0 */
  int64_t max_bytes; /* of all entries together; default -1: no limit */
  int64_t max_age_s; /* since the last use, in seconds; default -1: no limit */
  int64_t recent_s;  /* entries that were used in this time stay; default 7200 */
} rbcPruneParams;

static inline rbcPruneParams rbcPruneParamsInit(void) {
  rbcPruneParams params;
  memset(&params, 0, sizeof params);
  params.struct_size = (uint32_t)sizeof params;
  params.max_bytes = -1;
  params.max_age_s = -1;
  params.recent_s = 7200;
  return params;
}

/* The result of rbcStorePrune; with DRY_RUN, what it would remove. */
typedef struct rbcPruneReport {
  uint32_t struct_size;
  uint32_t reserved0;         /* 0 */
  int64_t num_removed;        /* complete entries */
  int64_t num_incomplete;     /* incomplete entries that were removed */
  int64_t num_leftovers;      /* temporary files, locks and times of use that were removed */
  uint64_t num_removed_bytes; /* of everything that was removed */
  int64_t num_kept;           /* complete entries that stay */
  uint64_t num_kept_bytes;    /* of everything that stays */
} rbcPruneReport;

static inline rbcPruneReport rbcPruneReportInit(void) {
  rbcPruneReport report;
  memset(&report, 0, sizeof report);
  report.struct_size = (uint32_t)sizeof report;
  return report;
}

/*
 * Removes the least recently used entries until the limits hold; entries that are being built or
 * were used in the last two hours (recent_s) stay, so the limits may not be reached. Removes
 * what killed builders have left: incomplete entries without a lock in which nothing has changed
 * for 24 hours, and temporary files of that age. Only names that a store makes are removed; no link
 * is followed. Processes that have an entry open keep it.
 *
 *   params  null: defaults, which only remove leftovers
 *   report  null: no report; else the caller has initialized it
 *
 * Errors: INVALID_ARGUMENT; UNSUPPORTED (READ_ONLY); IO_ERROR.
 */
RBC_API rbcStatus_t rbcStorePrune(rbcStore_t store, const rbcPruneParams* params,
                                  rbcPruneReport* report);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ROBOCACHE_STORE_H */
