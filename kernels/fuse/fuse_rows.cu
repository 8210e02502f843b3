// Which kernel of whole rows suits a problem.

#include "fuse/fuse_kernels.h"

#include <algorithm>

#include "fuse/stream_checks.h"

namespace rbc::cuda {
namespace {

using rows::Kind;

static_assert(rows::kManyStreams == kMaxStreams);

// What all streams of a problem have in common.
struct Common {
  Kind kind;
  bool vecs;       // they are whole aligned vectors of 16 bytes of the larger dtype
  bool half_vecs;  // of 8 bytes
  bool channels;   // their channels are neighbours, and better taken one by one
  bool masked;     // samples of some stream may be missing
};

// Of streams that are alike.
Common commonOf(const FuseProblem& p) {
  const int largest = std::max(sizeOf(p.streams[0].values_dtype), sizeOf(p.out_dtype));
  Common common = {Kind::kLine, true, true, true, hasSampleMasks(p)};
  bool quaternions = false;
  bool angles = false;
  int64_t in_vecs = 0;  // channels more than those in none
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
    common.channels &= half_vecs || suits(rows::kSingle);
  }
  // fuse_any_kernel.cuh takes each stream by the vectors that it has.
  common.channels &= in_vecs <= 0 && !quaternions && !(angles && common.kind == Kind::kFourRows);
  return common;
}

bool suits(const rows::Form& form, const Common& common, int streams) {
  if (form.kind != common.kind || form.streams < streams) return false;
  if (form.masked != common.masked) return false;
  return form.bytes == rows::kSingle ? common.channels
         : form.bytes == 8           ? common.half_vecs
                                     : common.vecs;
}

// The first instance that suits the problem, or -1.
int instanceOf(const FuseProblem& p) {
  const int pair = dtypePairOf(p);
  if (pair == rows::kNumDTypePairs) return -1;
  for (int n = 0; n < p.num_streams; ++n) {
    if (!isAlike(p, p.streams[n])) return -1;
  }
  const Common common = commonOf(p);
  for (int form = 0; form < rows::kNumForms; ++form) {
    const int instance = form * rows::kNumDTypePairs + pair;
    if (rows::isCompiled(instance) && suits(rows::kForms[form], common, p.num_streams)) {
      return instance;
    }
  }
  return -1;
}

}  // namespace

FuseLauncher rowsLauncherOf(const FuseProblem& p) {
  const int instance = instanceOf(p);
  if (instance < 0) return nullptr;
  return visitTime(p.time_dtype, [&](auto time) {
    return rows::launcherOf<typename decltype(time)::type>(instance);
  });
}

cudaError_t loadFuseRows() {
  for (const auto load :
       {rows::loadKernels<float>, rows::loadKernels<double>, rows::loadKernels<int64_t>}) {
    const cudaError_t error = load();
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

}  // namespace rbc::cuda
