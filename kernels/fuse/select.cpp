// The conditions of each fusion kernel, and how each divides its work.

#include "fuse/select.h"

#include <algorithm>

#include "ceil_div.h"
#include "fuse/block_contents.h"
#include "fuse/stream_checks.h"
#include "real.h"
#include "runtime/conditions.h"

namespace rbc::cuda {
namespace {

constexpr int64_t kSectorBytes = 32;

using OfProblem = Condition<FuseProblem>;
using OfStream = Condition<FuseProblem, FuseStream>;

// ---- conditions of several kernels --------------------------------------------------------------

bool isContiguous(const FuseStream& s) {
  return s.values_stride[2] == 1 && s.values_stride[1] == s.channels;
}

constexpr OfProblem kHasSamplesOfRows = {[](const FuseProblem& p) { return p.causal == nullptr; },
                                         "arrivals or RBC_FLAG_CAUSAL: set, expected none",
                                         nullptr};
constexpr OfStream kIsSearched = {
    [](const FuseProblem&, const FuseStream& s) { return s.samples <= kMaxSearched; },
    "samples: {}, expected 8022 or fewer",
    [](const FuseProblem&, const FuseStream& s) { return s.samples; }};
constexpr OfStream kHasAllSamples = {
    [](const FuseProblem&, const FuseStream& s) { return s.sample_mask == nullptr; },
    "sample_mask: set, expected none", nullptr};
constexpr OfStream kIsShort = {
    [](const FuseProblem& p, const FuseStream& s) { return suitsShortIndexes(p, s); },
    "strides or extents: too large for 32-bit indexes", nullptr};
constexpr OfStream kHasTimesInLine = {
    [](const FuseProblem&, const FuseStream& s) {
      return s.samples == 0 || s.times_stride[1] == 1;
    },
    "times: stride {}, expected 1",
    [](const FuseProblem&, const FuseStream& s) { return s.times_stride[1]; }};

// All streams are alike.
constexpr OfStream kHasOneMethod = {
    [](const FuseProblem&, const FuseStream& s) { return s.num_segments == 1; },
    "methods: {} groups of channels, expected 1",
    [](const FuseProblem&, const FuseStream& s) { return int64_t{s.num_segments}; }};
constexpr OfStream kHasDTypeOfFirst = {
    [](const FuseProblem& p, const FuseStream& s) {
      return s.values_dtype == p.streams[0].values_dtype;
    },
    "values: {dtype}, expected the dtype of streams[0]",
    [](const FuseProblem&, const FuseStream& s) { return static_cast<int64_t>(s.values_dtype); }};
constexpr OfStream kHasMeanInVecs = {
    [](const FuseProblem&, const FuseStream& s) { return suitsVecs(s.shift); },
    "shift: not float32 with stride 1 at a multiple of 16 bytes", nullptr};
constexpr OfStream kHasStdInVecs = {
    [](const FuseProblem&, const FuseStream& s) { return suitsVecs(s.scale); },
    "scale: not float32 with stride 1 at a multiple of 16 bytes", nullptr};

// ---- narrow streams -----------------------------------------------------------------------------

namespace narrow {

using namespace narrow_streams;

constexpr int64_t kLeastQueries = 64;  // with fewer, most threads have none

constexpr OfProblem kProblem[] = {
    kHasSamplesOfRows,
    {[](const FuseProblem& p) { return p.queries >= kLeastQueries; },
     "queries: {}, expected 64 or more", [](const FuseProblem& p) { return p.queries; }},
    {[](const FuseProblem& p) { return p.out_stride[2] == 1; },
     "out: stride {} of channels, expected 1",
     [](const FuseProblem& p) { return p.out_stride[2]; }},
    {[](const FuseProblem& p) { return p.query_stride[1] == 1; },
     "query_times: stride {}, expected 1", [](const FuseProblem& p) { return p.query_stride[1]; }},
    {[](const FuseProblem& p) { return p.valid == nullptr || p.valid_stride[2] == 1; },
     "valid: stride {} of streams, expected 1",
     [](const FuseProblem& p) { return p.valid_stride[2]; }},
    {[](const FuseProblem& p) { return dtypePairOf(p) < kNumPairs; },
     "streams[0].values: {dtype}, no kernel from it to the dtype of out",
     [](const FuseProblem& p) { return static_cast<int64_t>(p.streams[0].values_dtype); }},
};

constexpr OfStream kStream[] = {
    {[](const FuseProblem&, const FuseStream& s) { return s.channels > 0; }, "values: no channels",
     nullptr},
    {[](const FuseProblem&, const FuseStream& s) { return s.channels <= kChannels; },
     "values: {} channels, expected 2 or fewer",
     [](const FuseProblem&, const FuseStream& s) { return s.channels; }},
    kIsSearched,
    kHasOneMethod,
    kHasDTypeOfFirst,
    kIsShort,
    kHasMeanInVecs,
    kHasStdInVecs,
    {[](const FuseProblem& p, const FuseStream& s) {
       return kindOf(s, p.segments[s.first_segment].method) == rows::Kind::kLine;
     },
     "method: expected linear or a step, without shift and scale", nullptr},
    kHasAllSamples,
    kHasTimesInLine,
    {[](const FuseProblem&, const FuseStream& s) { return s.samples == 0 || isContiguous(s); },
     "values: stride {} of rows, expected contiguous rows",
     [](const FuseProblem&, const FuseStream& s) { return s.values_stride[1]; }},
};

// The end of the group of streams that starts with the n-th: they fill a sector of out, or as much
// of it as fits, in halves if possible. n if not even one fits.
int groupEnd(const FuseProblem& p, const LaunchDevice& device, int n) {
  Contents group = {};
  int end = n;
  int halves = n;
  for (; end < p.num_streams && group.rowBytes(p) < kSectorBytes; ++end) {
    group.add(p, p.streams[end]);
    if (!group.fits(p, device)) return halves > n ? halves : end;
    if (group.rowBytes(p) == kSectorBytes / 2) halves = end + 1;
  }
  return end;
}

// Returns whether every stream is in a group, and each group except the last fills at least half a
// sector of a row.
bool cutGroups(const FuseProblem& p, const LaunchDevice& device, FuseChoice* choice,
               Refusal* refusal) {
  Plan& plan = choice->narrow_plan;
  plan.groups = 0;
  for (int n = 0; n < p.num_streams;) {
    const int end = groupEnd(p, device, n);
    const int64_t bytes = contentsOf(p, n, end).rowBytes(p);
    if (end == n || (end < p.num_streams && bytes < kSectorBytes / 2)) {
      refusal->operand = "streams";
      refusal->index = n;
      return refuse(refusal, "values: too many samples for shared memory, {} neighbours fit",
                    end - n);
    }
    // The remaining streams join the previous group.
    const bool joins = end == p.num_streams && bytes < kSectorBytes && plan.groups > 0 &&
                       contentsOf(p, plan.first[plan.groups - 1], end).fits(p, device);
    if (!joins) plan.first[plan.groups++] = n;
    n = end;
  }
  plan.first[plan.groups] = p.num_streams;
  int32_t warps = 0;
  int32_t shared = 0;
  for (int g = 0; g < plan.groups; ++g) {
    const Contents group = contentsOf(p, plan.first[g], plan.first[g + 1]);
    warps = std::max(warps, static_cast<int32_t>(group.streams));
    shared = std::max(shared, static_cast<int32_t>(group.bytes(p)));
  }
  choice->threads = warps * kWarp;
  choice->shared_bytes = shared;
  return true;
}

// Chooses a block's queries: many for the samples that it copies, as long as there are enough
// blocks. Returns whether there are, and whether copying all samples pays off: other kernels read
// at least two sectors per query.
bool cutQueries(const FuseProblem& p, const LaunchDevice& device, FuseChoice* choice,
                Refusal* refusal) {
  constexpr int64_t kMany = 8;
  Plan& plan = choice->narrow_plan;
  const int64_t least =
      ceilDiv(contentsOf(p, 0, p.num_streams).slots, 2 * kSectorBytes * p.num_streams);
  if (p.queries < least) {
    return refuse(refusal, "queries: too few for the samples to copy, expected {} or more", least);
  }
  const int64_t wanted = int64_t{kBlocksWanted} * device.multiprocessors;
  const auto blocks = [&](int64_t part) {
    return p.batch * plan.groups * ceilDiv(p.queries, part);
  };
  const int64_t shortest = ceilDiv(least, kTile) * kTile;
  int64_t part = kMany * shortest;
  while (part > shortest && blocks(part) < wanted) part /= 2;
  plan.part = static_cast<int32_t>(part);
  choice->grid = blocks(part);
  if (choice->grid >= wanted) return true;
  return refuse(refusal, "batch and queries: {} blocks, too few for the device", choice->grid);
}

bool select(const FuseProblem& p, const LaunchDevice& device, FuseChoice* choice,
            Refusal* refusal) {
  if (p.num_streams <= rows::kFewStreams) return false;  // not faster than whole rows
  refusal->kernel = "fuse_narrow";
  const bool suits =
      meets<kProblem>(refusal, p) &&
      meetsAll(refusal, "streams", p.num_streams,
               [&](Refusal* own, int32_t n) { return meets<kStream>(own, p, p.streams[n]); }) &&
      cutGroups(p, device, choice, refusal) && cutQueries(p, device, choice, refusal);
  if (!suits) return false;
  choice->family = FuseKernel::kNarrow;
  choice->kernel = "fuse_narrow";
  choice->form = "lines";
  choice->instance = dtypePairOf(p);
  return true;
}

}  // namespace narrow

// ---- whole rows ---------------------------------------------------------------------------------

namespace whole_rows {

using namespace rows;

static_assert(kManyStreams == kMaxStreams);

constexpr OfProblem kProblem[] = {
    kHasSamplesOfRows,
    {[](const FuseProblem& p) { return dtypePairOf(p) < kNumDTypePairs; },
     "streams[0].values: {dtype}, no kernel from it to the dtype of out",
     [](const FuseProblem& p) { return static_cast<int64_t>(p.streams[0].values_dtype); }},
};

constexpr OfStream kStream[] = {
    kHasOneMethod, kHasDTypeOfFirst, kIsShort, kHasMeanInVecs, kHasStdInVecs,
};

// The properties that all streams of a problem share.
struct Common {
  Kind kind;
  bool vecs;       // they are whole aligned vectors of 16 bytes of the larger dtype
  bool half_vecs;  // of 8 bytes
  bool channels;   // their channels are adjacent, and faster one by one
  bool masked;     // samples of some stream may be missing
};

// For streams that are alike.
Common commonOf(const FuseProblem& p) {
  const int largest = std::max(sizeOf(p.streams[0].values_dtype), sizeOf(p.out_dtype));
  Common common = {Kind::kLine, true, true, true, hasSampleMasks(p)};
  bool quaternions = false;
  bool angles = false;
  int64_t in_vecs = 0;  // channels in vectors minus the others
  for (int n = 0; n < p.num_streams; ++n) {
    const FuseStream& s = p.streams[n];
    const ChannelSegment& all = p.segments[s.first_segment];
    common.kind = std::max(common.kind, kindOf(s, all.method));
    quaternions |= all.method == Method::kSlerp;
    angles |= isAngle(all.method);
    const auto suits = [&](int bytes) {
      return s.channels > 0 && suitsVecs(p, s, all, std::max(bytes / largest, 1));
    };
    const bool vecs = suits(16);
    in_vecs += vecs ? s.channels : -s.channels;
    common.vecs &= vecs;
    const bool half_vecs = vecs || suits(8);
    common.half_vecs &= half_vecs;
    common.channels &= half_vecs || suits(kSingle);
  }
  // fuse_any_kernel.cuh uses vectors for each stream that has them.
  common.channels &= in_vecs <= 0 && !quaternions && !(angles && common.kind == Kind::kFourRows);
  return common;
}

bool suits(const Form& form, const Common& common, int streams) {
  if (form.kind != common.kind || form.streams < streams) return false;
  if (form.masked != common.masked) return false;
  return form.bytes == kSingle ? common.channels : form.bytes == 8 ? common.half_vecs : common.vecs;
}

// The first instance that accepts the problem, or -1.
int instanceOf(const FuseProblem& p, Refusal* refusal) {
  const bool alike = meets<kProblem>(refusal, p) &&
                     meetsAll(refusal, "streams", p.num_streams, [&](Refusal* own, int32_t n) {
                       return meets<kStream>(own, p, p.streams[n]);
                     });
  if (!alike) return -1;
  const int pair = dtypePairOf(p);
  const Common common = commonOf(p);
  for (int form = 0; form < kNumForms; ++form) {
    const int instance = form * kNumDTypePairs + pair;
    if (isCompiled(instance) && suits(kForms[form], common, p.num_streams)) return instance;
  }
  refuse(refusal,
         common.masked ? "streams: no form for {} of these where samples may be missing"
                       : "streams: no form for {} of these methods, dtypes and vectors",
         p.num_streams);
  return -1;
}

// A form's name, such as "two rows, 8 streams, 16 bytes".
struct Name {
  char text[56];
};
constexpr int append(Name* name, int end, const char* text) {
  while (*text != '\0') name->text[end++] = *text++;
  return end;
}
constexpr int append(Name* name, int end, int number) {
  if (number >= 10) end = append(name, end, number / 10);
  name->text[end] = static_cast<char>('0' + number % 10);
  return end + 1;
}
constexpr const char* kKindNames[] = {"line", "two rows", "quaternions", "four rows"};
constexpr Name nameOf(const Form& form) {
  Name name = {};
  int end = append(&name, 0, kKindNames[static_cast<int>(form.kind)]);
  end = append(&name, append(&name, end, ", "), form.streams);
  end = append(&name, end, form.streams == 1 ? " stream, " : " streams, ");
  if (form.bytes == kSingle) {
    end = append(&name, end, "single channels");
  } else {
    end = append(&name, append(&name, end, form.bytes), " bytes");
  }
  if (form.masked) append(&name, end, ", masked");
  return name;
}
template <size_t... kForm>
const char* formName(std::index_sequence<kForm...>, int form) {
  static constexpr Name kNames[] = {nameOf(kForms[kForm])...};
  return kNames[form].text;
}

// Whether units are ordered by queries, all streams in turn, instead of stream by stream: the cache
// then writes adjacent output at once. But with few units the longest should come first.
bool goesInTurns(const FuseProblem& p, const LaunchDevice& device, bool alike, int64_t units) {
  constexpr int kManyUnits = 32;  // per multiprocessor
  if (p.num_streams == 1) return false;
  return p.num_streams > kFewStreams || alike ||
         units > int64_t{kManyUnits} * device.multiprocessors;
}

// Divides each stream's work into units of vectors of a power of two channels. Returns the number
// of units.
int64_t cutUnits(const FuseProblem& p, int count_log2, int unit_vectors, const LaunchDevice& device,
                 Plan* plan) {
  constexpr int kFewQueries = 32;
  constexpr int kBlocksWanted = 4;  // per multiprocessor, if possible
  const int64_t queries = p.batch * p.queries;
  const TilingLimits limits = {kThreads, kFewQueries, unit_vectors,
                               device.multiprocessors * kBlocksWanted / p.num_streams};
  plan->most = 1;
  bool alike = true;
  int64_t units = 0;
  for (int n = 0; n < p.num_streams; ++n) {
    const Tiling& tiling = plan->tiling[n] =
        tilingOf(queries, p.streams[n].channels >> count_log2, limits);
    plan->most = std::max(plan->most, tiling.group);
    alike &= tiling.group == plan->tiling[0].group;
    units += tiling.groups * tiling.ranges;
  }
  plan->in_turns = goesInTurns(p, device, alike, units);
  const int64_t turns = plan->in_turns ? ceilDiv(queries, plan->most) : 1;
  units = 0;  // per turn
  for (int n = 0; n < p.num_streams; ++n) {
    const Tiling& tiling = plan->tiling[n];
    plan->first_unit[n] = static_cast<int32_t>(units);
    plan->groups[n] = plan->most / tiling.group;
    units += (plan->in_turns ? plan->groups[n] : tiling.groups) * tiling.ranges;
  }
  plan->units = units;
  return units * turns;
}

bool select(const FuseProblem& p, const LaunchDevice& device, FuseChoice* choice,
            Refusal* refusal) {
  Refusal own;
  own.kernel = "fuse_rows";
  const int instance = instanceOf(p, &own);
  if (instance < 0) {
    *refusal = own;
    return false;
  }
  const Form& form = formOf(instance);
  const DTypePair& dtypes = dtypesOf(instance);
  choice->family = FuseKernel::kRows;
  choice->kernel = "fuse_rows";
  choice->form = formName(std::make_index_sequence<kNumForms>(), instance / kNumDTypePairs);
  choice->instance = instance;
  choice->threads = kThreads;
  choice->shared_bytes = 0;
  int count_log2 = 0;
  while (2 << count_log2 <= vecCountOf(dtypes, form.bytes)) ++count_log2;
  choice->grid = cutUnits(p, count_log2, form.unit_vectors, device, &choice->rows_plan);
  return true;
}

}  // namespace whole_rows

// ---- mixed streams ------------------------------------------------------------------------------

namespace mixed {

using namespace mixed_streams;

constexpr OfProblem kProblem[] = {
    kHasSamplesOfRows,
    {[](const FuseProblem& p) { return p.queries > 0; }, "queries: none", nullptr},
    {[](const FuseProblem& p) { return p.num_streams <= kStreams; },
     "streams: {}, expected 16 or fewer",
     [](const FuseProblem& p) { return int64_t{p.num_streams}; }},
    {[](const FuseProblem& p) { return p.num_segments <= kSegments; },
     "methods: {} groups of channels, expected 32 or fewer",
     [](const FuseProblem& p) { return int64_t{p.num_segments}; }},
    {[](const FuseProblem& p) { return isFloat(p.out_dtype) && p.out_dtype != DType::F64; },
     "out: {dtype}, expected float16, bfloat16 or float32",
     [](const FuseProblem& p) { return static_cast<int64_t>(p.out_dtype); }},
    {[](const FuseProblem& p) { return p.out_stride[2] == 1; },
     "out: stride {} of channels, expected 1",
     [](const FuseProblem& p) { return p.out_stride[2]; }},
};

constexpr OfStream kStream[] = {
    kIsSearched,
    kHasAllSamples,
    {[](const FuseProblem&, const FuseStream& s) { return !computesInDouble(s.values_dtype); },
     "values: {dtype}, which is computed in float64",
     [](const FuseProblem&, const FuseStream& s) { return static_cast<int64_t>(s.values_dtype); }},
    kIsShort,
    kHasTimesInLine,
    {[](const FuseProblem&, const FuseStream& s) {
       return s.samples == 0 || s.channels == 0 || isContiguous(s);
     },
     "values: stride {} of rows, expected contiguous rows",
     [](const FuseProblem&, const FuseStream& s) { return s.values_stride[1]; }},
};

// Chooses a block's queries: all of a recording, or fewer for more blocks. Returns whether copying
// all samples pays off: the kernel of any streams reads no more than it needs, but has a higher
// cost per query.
bool cutQueries(const FuseProblem& p, const LaunchDevice& device, FuseChoice* choice,
                Refusal* refusal) {
  constexpr int64_t kCopiedOfQuery = 256;  // bytes per stream
  constexpr int64_t kLittle = int64_t{4} << 20;
  int64_t copied = 0;
  for (int n = 0; n < p.num_streams; ++n) copied += contentsOf(p, p.streams[n], 0).copied();
  const int64_t least = std::max<int64_t>(kWarp, ceilDiv(copied, kCopiedOfQuery * p.num_streams));
  const auto blocks = [&](int64_t part) {
    return p.batch * p.num_streams * ceilDiv(p.queries, part);
  };
  int64_t part = p.queries;
  while (part / 2 >= least && blocks(part) < device.multiprocessors) part = ceilDiv(part, 2);
  choice->mixed_plan.part = static_cast<int32_t>(part);
  choice->threads =
      static_cast<int32_t>(std::min<int64_t>(ceilDiv(part, kWarp) * kWarp, kMostThreads));
  choice->grid = blocks(part);
  if (p.queries >= least) {
    if (choice->grid <= INT32_MAX) return true;
    return refuse(refusal, "batch and queries: {} blocks, too many for a launch", choice->grid);
  }
  if (choice->grid <= kBlocksWanted * device.multiprocessors && p.batch * copied <= kLittle) {
    return true;
  }
  return refuse(refusal, "queries: too few for the samples to copy, expected {} or more", least);
}

bool fitsShared(const FuseProblem& p, const LaunchDevice& device, FuseChoice* choice,
                Refusal* refusal) {
  const int64_t budget = sharedBudget(device, kBlocksWanted);
  int64_t shared = 0;
  for (int n = 0; n < p.num_streams; ++n) {
    const int64_t bytes = contentsOf(p, p.streams[n], choice->threads).bytes();
    shared = std::max(shared, bytes);
    if (bytes <= budget) continue;
    refusal->operand = "streams";
    refusal->index = n;
    return refuse(refusal, "values: {} bytes of a recording do not fit into shared memory", bytes);
  }
  choice->shared_bytes = static_cast<int32_t>(shared);
  return true;
}

bool select(const FuseProblem& p, const LaunchDevice& device, FuseChoice* choice,
            Refusal* refusal) {
  Refusal own;
  own.kernel = "fuse_mixed";
  const bool suits = meets<kProblem>(&own, p) &&
                     meetsAll(&own, "streams", p.num_streams,
                              [&](Refusal* stream_refusal, int32_t n) {
                                return meets<kStream>(stream_refusal, p, p.streams[n]);
                              }) &&
                     cutQueries(p, device, choice, &own) && fitsShared(p, device, choice, &own);
  if (!suits) {
    *refusal = own;
    return false;
  }
  choice->family = FuseKernel::kMixed;
  choice->kernel = "fuse_mixed";
  return true;
}

}  // namespace mixed

// ---- any streams --------------------------------------------------------------------------------

namespace any_streams {

using namespace any;

constexpr int kWarp = 32;
constexpr const char* kFormNames[] = {"few streams of floats", "few streams", "many streams",
                                      "masked", "causal"};

FormId formOf(const FuseProblem& p) {
  if (p.causal != nullptr) return FormId::kCausal;
  if (hasSampleMasks(p)) return FormId::kMasked;
  if (p.num_streams > Few::kStreams || p.num_segments > Few::kSegments || !isFloat(p.out_dtype)) {
    return FormId::kMany;
  }
  for (int n = 0; n < p.num_streams; ++n) {
    const FuseStream& s = p.streams[n];
    if (computesInDouble(s.values_dtype) || !suitsShortIndexes(p, s)) return FormId::kFew;
  }
  return FormId::kFewFloats;
}

// Channels per vector of the segment, log2; without vectors, 1 or a quaternion. Only linear and
// steps have vectors: wide rows with other methods run as whole rows.
int vecCountLog2(const FuseProblem& p, const FuseStream& s, const ChannelSegment& segment,
                 bool* in_vecs) {
  const bool is_line = segment.method == Method::kLinear || isStep(segment.method);
  *in_vecs = false;
  if (is_line && isFloat(s.values_dtype) && isFloat(p.out_dtype)) {
    const int out_size = sizeOf(p.out_dtype);
    const int log2 = s.values_dtype == DType::F64 || out_size == 8 ? 1 : out_size == 4 ? 2 : 3;
    *in_vecs = suitsVecs(p, s, segment, 1 << log2);  // kVecCount
    if (*in_vecs) return log2;
  }
  return segment.method == Method::kSlerp ? 2 : 0;
}

void select(const FuseProblem& p, const LaunchDevice& device, FuseChoice* choice) {
  Plan& plan = choice->any_plan;
  plan.form = formOf(p);
  plan.units = 0;
  const TilingLimits limits = {kWarp, 4, 256, device.multiprocessors * 15 / p.num_streams};
  for (int n = 0; n < p.num_streams; ++n) {
    const FuseStream& s = p.streams[n];
    int64_t vectors = 0;
    for (int i = s.first_segment; i < s.first_segment + s.num_segments; ++i) {
      const int log2 = vecCountLog2(p, s, p.segments[i], &plan.in_vecs[i]);
      plan.count_log2[i] = static_cast<uint8_t>(log2);
      vectors += p.segments[i].count >> log2;
    }
    const Tiling& tiling = plan.tiling[n] = tilingOf(p.batch * p.queries, vectors, limits);
    plan.units += tiling.groups * tiling.ranges;
  }
  choice->family = FuseKernel::kAny;
  choice->kernel = "fuse_any";
  choice->form = kFormNames[static_cast<int>(plan.form)];
  choice->threads = kWarp * kWarpsPerBlock;
  choice->shared_bytes = 0;
  choice->grid = ceilDiv(plan.units, kWarpsPerBlock);
  choice->general = true;
}

}  // namespace any_streams

}  // namespace

// In the order of preference. Each refusal replaces the previous one, so that the last one is that
// of the next faster kernel. Mixed fusion never has missing samples: there the refusal of rows
// stays.
FuseChoice selectFuse(const FuseProblem& p, const LaunchDevice& device) {
  FuseChoice choice;
  choice.in = p.streams[0].values_dtype;
  choice.out = p.out_dtype;
  choice.time = p.time_dtype;
  Refusal* const because = &choice.because;
  if (narrow::select(p, device, &choice, because)) {
    choice.because = {};
  } else if (!whole_rows::select(p, device, &choice, because) &&
             (hasSampleMasks(p) || !mixed::select(p, device, &choice, because))) {
    any_streams::select(p, device, &choice);
  }
  choice.grid = std::min<int64_t>(choice.grid, INT32_MAX);
  return choice;
}

}  // namespace rbc::cuda
