// The kernel that a fusion runs, on three devices.
#include "fuse/select.h"

#include <cstring>
#include <utility>
#include <vector>

#include "select_table.h"

namespace {

using rbc::ChannelSegment;
using rbc::DType;
using rbc::FuseProblem;
using rbc::FuseStream;
using rbc::Method;
using select_table::addressOf;

// Contiguous streams of one batch.
struct Fusion {
  FuseProblem problem = {};
  std::vector<FuseStream> streams;
  std::vector<ChannelSegment> segments;
  void (*finish)(FuseProblem*) = nullptr;  // changes the final problem

  Fusion(int64_t batch, int64_t queries, DType out) {
    problem.batch = batch;
    problem.queries = queries;
    problem.query_times = addressOf(200);
    problem.query_stride[0] = queries;
    problem.query_stride[1] = 1;
    problem.out = addressOf(201);
    problem.out_dtype = out;
    problem.valid = static_cast<uint8_t*>(addressOf(202));
    problem.time_dtype = DType::F64;
  }

  Fusion& add(int count, int64_t samples, int64_t channels, DType dtype,
              Method method = Method::kLinear) {
    for (int i = 0; i < count; ++i) {
      const auto n = static_cast<int>(streams.size());
      FuseStream s = {};
      s.samples = samples;
      s.channels = channels;
      s.values = addressOf(n);
      s.values_stride[0] = samples * channels;
      s.values_stride[1] = channels;
      s.values_stride[2] = 1;
      s.times = addressOf(100 + n);
      s.times_stride[0] = samples;
      s.times_stride[1] = 1;
      s.out_begin = problem.channels;
      s.first_segment = n;
      s.num_segments = 1;
      s.values_dtype = dtype;
      streams.push_back(s);
      segments.push_back({0, channels, method});
      problem.channels += channels;
    }
    return *this;
  }

  // The problem, once all streams have been added.
  FuseProblem get() const {
    FuseProblem p = problem;
    p.num_streams = static_cast<int32_t>(streams.size());
    p.num_segments = static_cast<int32_t>(segments.size());
    p.streams = streams.data();
    p.segments = segments.data();
    p.out_stride[0] = p.queries * p.channels;
    p.out_stride[1] = p.channels;
    p.out_stride[2] = 1;
    p.valid_stride[0] = p.queries * p.num_streams;
    p.valid_stride[1] = p.num_streams;
    p.valid_stride[2] = 1;
    if (finish != nullptr) finish(&p);
    return p;
  }
};

// 16 streams of one channel, such as a robot's joints.
Fusion joints() { return Fusion(256, 500, DType::F32).add(16, 1000, 1, DType::F32); }
// Pose, quaternion, features and contacts: streams of several dtypes and methods.
Fusion robot() {
  return Fusion(32, 100, DType::F32)
      .add(1, 200, 7, DType::F32)
      .add(1, 400, 4, DType::F32, Method::kSlerp)
      .add(4, 100, 6, DType::F16, Method::kCubic)
      .add(2, 200, 1, DType::I16, Method::kPrevious);
}

constexpr select_table::Row<Fusion> kRows[] = {
    {"one stream, [1024, 500, 256] bf16",
     [] { return Fusion(1024, 250, DType::BF16).add(1, 500, 256, DType::BF16); },
     {"fuse_rows (line, 1 stream, 16 bytes), grid 8000 x 128, shared 0 bytes"}},
    {"one stream, [1024, 500, 256] bf16, by slerp",
     [] { return Fusion(1024, 250, DType::BF16).add(1, 500, 256, DType::BF16, Method::kSlerp); },
     {"fuse_rows (quaternions, 1 stream, 16 bytes), grid 4000 x 128, shared 0 bytes"}},
    {"one stream, [1024, 500, 256] bf16, by pchip",
     [] { return Fusion(1024, 250, DType::BF16).add(1, 500, 256, DType::BF16, Method::kPchip); },
     {"fuse_rows (four rows, 1 stream, 16 bytes), grid 4000 x 128, shared 0 bytes"}},
    {"one stream of 7 channels",
     [] { return Fusion(256, 1000, DType::F32).add(1, 2000, 7, DType::F32); },
     {"fuse_rows (line, 1 stream, single channels), grid 2000 x 128, shared 0 bytes"}},
    {"3 streams of 512, 128 and 64 channels, bf16",
     [] {
       return Fusion(256, 128, DType::BF16)
           .add(1, 100, 512, DType::BF16)
           .add(1, 200, 128, DType::BF16)
           .add(1, 300, 64, DType::BF16);
     },
     {"fuse_rows (line, 8 streams, 16 bytes), grid 1792 x 128, shared 0 bytes"}},
    {"3 streams of 7 channels, one query",
     [] { return Fusion(1, 1, DType::F32).add(3, 100, 7, DType::F32); },
     {"fuse_rows (line, 64 streams, single channels), grid 3 x 128, shared 0 bytes"}},
    {"3 quaternions",
     [] { return Fusion(256, 200, DType::F32).add(3, 200, 4, DType::F32, Method::kSlerp); },
     {"fuse_rows (quaternions, 64 streams, 16 bytes), grid 1200 x 128, shared 0 bytes"}},
    {"16 streams of 4 channels",
     [] { return Fusion(256, 500, DType::F32).add(16, 1000, 4, DType::F32); },
     {"fuse_rows (line, 64 streams, 16 bytes), grid 16000 x 128, shared 0 bytes; not "
      "fuse_narrow: streams[0].values: 4 channels, expected 2 or fewer"}},
    {"16 streams of 1 channel",
     [] { return joints(); },
     {"fuse_narrow (lines), grid 1024 x 128, shared 50768 bytes",
      "fuse_narrow (lines), grid 512 x 256, shared 101536 bytes",
      "fuse_narrow (lines), grid 1024 x 128, shared 50768 bytes"}},
    {"16 streams of 1 channel, 4 recordings",
     [] {
       Fusion f = joints();
       f.problem.batch = 4;
       return f;
     },
     {"fuse_rows (line, 64 streams, single channels), grid 512 x 128, shared 0 bytes; not "
      "fuse_narrow: batch and queries: 32 blocks, too few for the device",
      "fuse_rows (line, 64 streams, single channels), grid 1008 x 128, shared 0 bytes; not "
      "fuse_narrow: batch and queries: 16 blocks, too few for the device",
      "fuse_narrow (lines), grid 16 x 128, shared 50768 bytes"}},
    {"16 streams of 1 channel, times of a stream strided",
     [] {
       Fusion f = joints();
       f.streams[2].times_stride[1] = 2;
       return f;
     },
     {"fuse_rows (line, 64 streams, single channels), grid 16000 x 128, shared 0 bytes; "
      "not fuse_narrow: streams[2].times: stride 2, expected 1"}},
    {"16 streams of 1 channel, a stream of f16",
     [] {
       Fusion f = joints();
       f.streams[3].values_dtype = DType::F16;
       return f;
     },
     {"fuse_mixed, grid 4096 x 512, shared 14096 bytes; not fuse_rows: streams[3].values: "
      "float16, expected the dtype of streams[0]"}},
    {"16 streams of 1 channel, a stream of f16 and times of another strided",
     [] {
       Fusion f = joints();
       f.streams[3].values_dtype = DType::F16;
       f.streams[2].times_stride[1] = 2;
       return f;
     },
     {"fuse_any (many streams), grid 16000 x 128, shared 0 bytes; not fuse_mixed: "
      "streams[2].times: stride 2, expected 1"}},
    {"16 streams of 1 channel, f64",
     [] { return Fusion(256, 500, DType::F64).add(16, 1000, 1, DType::F64); },
     {"fuse_rows (line, 64 streams, single channels), grid 16000 x 128, shared 0 bytes; "
      "not fuse_narrow: streams[0].values: float64, no kernel from it to the dtype of out"}},
    {"a robot: f32, slerp, f16 by cubic, i16",
     [] { return robot(); },
     {"fuse_mixed, grid 256 x 128, shared 12224 bytes; not fuse_rows: streams[2].values: "
      "float16, expected the dtype of streams[0]"}},
    {"that robot, a stream of f64",
     [] {
       Fusion f = robot();
       f.streams[0].values_dtype = DType::F64;
       return f;
     },
     {"fuse_any (few streams), grid 800 x 128, shared 0 bytes; not fuse_mixed: "
      "streams[0].values: float64, which is computed in float64",
      nullptr,
      "fuse_any (few streams), grid 200 x 128, shared 0 bytes; not fuse_mixed: "
      "streams[0].values: float64, which is computed in float64"}},
    {"that robot, 20000 samples of a stream",
     [] {
       Fusion f = robot();
       f.streams[6].samples = 20000;
       return f;
     },
     {"fuse_any (few streams of floats), grid 800 x 128, shared 0 bytes; not fuse_mixed: "
      "streams[6].samples: 20000, expected 8022 or fewer",
      nullptr,
      "fuse_any (few streams of floats), grid 200 x 128, shared 0 bytes; not fuse_mixed: "
      "streams[6].samples: 20000, expected 8022 or fewer"}},
    {"that robot, samples of a stream may be missing",
     [] {
       Fusion f = robot();
       f.streams[1].sample_mask = static_cast<const uint8_t*>(addressOf(203));
       return f;
     },
     {"fuse_any (masked), grid 800 x 128, shared 0 bytes; not fuse_rows: "
      "streams[2].values: float16, expected the dtype of streams[0]",
      nullptr,
      "fuse_any (masked), grid 200 x 128, shared 0 bytes; not fuse_rows: "
      "streams[2].values: float16, expected the dtype of streams[0]"}},
    {"that robot, samples of a stream arrive late",
     [] {
       static const rbc::CausalFuse causal = {};
       Fusion f = robot();
       f.problem.causal = &causal;
       return f;
     },
     {"fuse_any (causal), grid 800 x 128, shared 0 bytes; not fuse_mixed: "
      "arrivals or RBC_FLAG_CAUSAL: set, expected none",
      nullptr,
      "fuse_any (causal), grid 200 x 128, shared 0 bytes; not fuse_mixed: "
      "arrivals or RBC_FLAG_CAUSAL: set, expected none"}},
    {"one stream, samples may be missing",
     [] {
       Fusion f = Fusion(256, 250, DType::F32).add(1, 500, 32, DType::F32);
       f.streams[0].sample_mask = static_cast<const uint8_t*>(addressOf(203));
       return f;
     },
     {"fuse_rows (line, 8 streams, 16 bytes, masked), grid 500 x 128, shared 0 bytes",
      "fuse_rows (line, 8 streams, 16 bytes, masked), grid 1000 x 128, shared 0 bytes",
      "fuse_rows (line, 8 streams, 16 bytes, masked), grid 500 x 128, shared 0 bytes"}},
    {"one stream of i32 to i32",
     [] { return Fusion(256, 250, DType::I32).add(1, 500, 32, DType::I32, Method::kPrevious); },
     {"fuse_any (many streams), grid 2000 x 128, shared 0 bytes; not fuse_mixed: out: "
      "int32, expected float16, bfloat16 or float32"}},
    {"64 streams of i16 and f32",
     [] {
       return Fusion(16, 100, DType::F32)
           .add(32, 200, 3, DType::I16, Method::kNearest)
           .add(32, 200, 3, DType::F32);
     },
     {"fuse_any (many streams), grid 800 x 128, shared 0 bytes; not fuse_mixed: streams: "
      "64, expected 16 or fewer"}},
};

// For 16 narrow streams.
constexpr select_table::Spoiled<Fusion> kNotNarrow[] = {
    {[](Fusion* f) { f->problem.queries = 63; }, "fuse_narrow: queries: 63, expected 64 or more"},
    {[](Fusion* f) { f->finish = [](FuseProblem* p) { p->out_stride[2] = 2; }; },
     "fuse_mixed: out: stride 2 of channels, expected 1"},
    {[](Fusion* f) { f->finish = [](FuseProblem* p) { p->query_stride[1] = 2; }; },
     "fuse_narrow: query_times: stride 2, expected 1"},
    {[](Fusion* f) { f->finish = [](FuseProblem* p) { p->valid_stride[2] = 2; }; },
     "fuse_narrow: valid: stride 2 of streams, expected 1"},
    {[](Fusion* f) {
       f->streams[5].channels = f->segments[5].count = 0;
       f->streams[5].values_stride[1] = 0;
     },
     "fuse_rows: streams: no form for 16 of these methods, dtypes and vectors"},
    {[](Fusion* f) { f->streams[5].num_segments = 2; },
     "fuse_rows: streams[5].methods: 2 groups of channels, expected 1"},
    {[](Fusion* f) { f->streams[5].values_stride[1] = int64_t{1} << 28; },
     "fuse_mixed: streams[5].strides or extents: too large for 32-bit indexes"},
    {[](Fusion* f) {
       f->streams[5].shift = {addressOf(90), 2, false};
     },
     "fuse_rows: streams[5].shift: not float32 with stride 1 at a multiple of 16 bytes"},
    {[](Fusion* f) {
       f->streams[5].scale = {addressOf(90), 1, true};
     },
     "fuse_rows: streams[5].scale: not float32 with stride 1 at a multiple of 16 bytes"},
    {[](Fusion* f) {
       f->streams[5].shift = {addressOf(90), 1, false};
     },
     "fuse_narrow: streams[5].method: expected linear or a step, without shift and scale"},
    {[](Fusion* f) { f->streams[5].sample_mask = static_cast<const uint8_t*>(addressOf(90)); },
     "fuse_rows: streams: no form for 16 of these where samples may be missing"},
    {[](Fusion* f) { f->streams[5].values_stride[1] = 2; },
     "fuse_narrow: streams[5].values: stride 2 of rows, expected contiguous rows"},
    {[](Fusion* f) { f->streams[5].samples = 8023; },
     "fuse_narrow: streams[5].samples: 8023, expected 8022 or fewer"},
};

// For narrow streams of several dtypes, which mixed fusion accepts.
constexpr select_table::Spoiled<Fusion> kNotMixed[] = {
    {[](Fusion* f) { f->problem.queries = 0; }, "fuse_mixed: queries: none"},
    {[](Fusion* f) { f->segments.resize(33); },
     "fuse_mixed: methods: 33 groups of channels, expected 32 or fewer"},
    {[](Fusion* f) { f->finish = [](FuseProblem* p) { p->out_stride[2] = 2; }; },
     "fuse_mixed: out: stride 2 of channels, expected 1"},
    {[](Fusion* f) { f->problem.out_dtype = DType::F64; },
     "fuse_mixed: out: float64, expected float16, bfloat16 or float32"},
    {[](Fusion* f) { f->streams[2].times_stride[1] = 2; },
     "fuse_mixed: streams[2].times: stride 2, expected 1"},
    {[](Fusion* f) { f->streams[2].values_stride[1] = 7; },
     "fuse_mixed: streams[2].values: stride 7 of rows, expected contiguous rows"},
    {[](Fusion* f) { f->streams[2].values_stride[2] = 2; },
     "fuse_mixed: streams[2].values: stride 6 of rows, expected contiguous rows"},
    {[](Fusion* f) {
       f->problem.queries = 33;
       f->problem.batch = 4096;
       for (FuseStream& s : f->streams) s.samples = 4000;
     },
     "fuse_mixed: queries: too few for the samples to copy, expected 313 or more"},
    {[](Fusion* f) {
       f->streams[0].channels = f->segments[0].count = 100;
       f->streams[0].values_stride[1] = 100;
       f->streams[0].samples = 5000;
       f->problem.queries = 5000;
     },
     "fuse_mixed: streams[0].values: 2247680 bytes of a recording do not fit into shared memory"},
};

rbc::cuda::FuseChoice chosen(const Fusion& f, const rbc::cuda::LaunchDevice& device) {
  return rbc::cuda::selectFuse(f.get(), device);
}

}  // namespace

TEST_CASE("select fuse: each condition of a faster kernel refuses calls") {
  select_table::checkSpoiled("fuse_narrow", joints, kNotNarrow, chosen);
  select_table::checkSpoiled("fuse_mixed", robot, kNotMixed, chosen);
}

TEST_CASE("select fuse: each call runs the kernel of the table, for the reason of the table") {
  select_table::check("fuse", kRows, chosen);
}
