#include "resampling.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace bench {
namespace {

using support::sizeOf;

constexpr const char* kMethods[] = {"linear", "nearest", "previous", "next",
                                    "cubic",  "pchip",   "slerp",    "angle"};
static_assert(RBC_METHOD_NEXT == 3 && RBC_METHOD_PCHIP == 5 && RBC_METHOD_ANGLE == 7);

[[noreturn]] void refuse(const std::string& name) {
  throw std::runtime_error("'" + name +
                           "' is not of the form '32,500,250,256 bf16', '8,500,250,32 f32 slerp', "
                           "'B=4: 30x512, 100x64 -> 50 bf16' and 'B=1: 8 streams 100x7 -> 1 f32'");
}

rbcDType dtypeOf(const std::string& text, const std::string& name) {
  for (const rbcDType dtype : support::kFloatDTypes) {
    if (support::nameOf(dtype) == text) return dtype;
  }
  refuse(name);
}

// Traits that may follow the dtype in the name of a case with one stream, in addition to methods.
const std::map<std::string, void (*)(ResamplingCase&, StreamCase&)> kTraits = {
    {"unaligned", [](ResamplingCase&, StreamCase&) {}},
    {"wild", [](ResamplingCase& c, StreamCase&) { c.wild = true; }},
    {"random", [](ResamplingCase& c, StreamCase&) { c.random = true; }},
    {"mask", [](ResamplingCase& c, StreamCase&) { c.mask = true; }},
    {"times_f64", [](ResamplingCase& c, StreamCase&) { c.times = support::kF64; }},
    {"times_i64", [](ResamplingCase& c, StreamCase&) { c.times = support::kI64; }},
    {"to_bf16", [](ResamplingCase& c, StreamCase&) { c.out = support::kBF16; }},
    {"lengths", [](ResamplingCase&, StreamCase& s) { s.lengths = true; }},
    {"packed", [](ResamplingCase&, StreamCase& s) { s.packed = true; }},
    {"missing", [](ResamplingCase&, StreamCase& s) { s.missing = true; }},
    {"arrivals", [](ResamplingCase&, StreamCase& s) { s.arrives = true; }},
    {"causal", [](ResamplingCase&, StreamCase& s) { s.arrives = s.causal = true; }},
    {"nearest+missing",
     [](ResamplingCase&, StreamCase& s) {
       s.method = RBC_METHOD_NEAREST;
       s.missing = true;
     }},
    {"linear+affine", [](ResamplingCase&, StreamCase& s) { s.affine = true; }},
};

// Kinds that may precede the size of a stream.
const std::map<std::string, void (*)(StreamCase&)> kKinds = {
    {"pose",  // position, quaternion, gripper
     [](StreamCase& s) {
       s.groups = {{0, 3, RBC_METHOD_LINEAR, 0, 0, 0, 0},
                   {3, 4, RBC_METHOD_SLERP, 0, 0, 0, 0},
                   {7, 1, RBC_METHOD_PREVIOUS, 0, 0, 0, 0}};
     }},
    {"IMU", [](StreamCase& s) { s.affine = true; }},
    {"contacts",
     [](StreamCase& s) {
       s.dtype = support::kU8;
       s.method = RBC_METHOD_PREVIOUS;
     }},
    {"joints", [](StreamCase& s) { s.method = RBC_METHOD_ANGLE; }},
    {"missing", [](StreamCase& s) { s.missing = true; }},
    {"causal", [](StreamCase& s) { s.arrives = s.causal = true; }},
};

void setTrait(ResamplingCase& c, const std::string& trait, const std::string& name) {
  const auto method = std::find(std::begin(kMethods), std::end(kMethods), trait);
  if (method != std::end(kMethods)) {
    c.streams[0].method = static_cast<int32_t>(method - kMethods);
  } else if (kTraits.count(trait) > 0) {
    kTraits.at(trait)(c, c.streams[0]);
  } else {
    refuse(name);
  }
}

void addStreams(ResamplingCase& c, const std::string& part, rbcDType dtype,
                const std::string& name) {
  long long count = 1, samples = 0, channels = 0;
  char kind[16] = "";
  StreamCase stream;
  stream.dtype = dtype;
  if (std::sscanf(part.c_str(), " %lld streams %lldx%lld", &count, &samples, &channels) != 3) {
    count = 1;
    if (std::sscanf(part.c_str(), " %lldx%lld", &samples, &channels) != 2) {
      if (std::sscanf(part.c_str(), " %15s %lldx%lld", kind, &samples, &channels) != 3)
        refuse(name);
      if (kKinds.count(kind) == 0) refuse(name);
      kKinds.at(kind)(stream);
      c.mask |= !stream.missing;
    }
  }
  stream.samples = samples;
  stream.channels = channels;
  c.streams.insert(c.streams.end(), static_cast<size_t>(std::max(count, 0LL)), stream);
}

class ResamplingCall : public Call {
 public:
  ResamplingCall(const ResamplingCase& c, const Tensors& tensors) : fuses_(c.fuses) {
    auto next = tensors.inputs.begin();
    params_.reserve(c.streams.size());
    for (const StreamCase& s : c.streams) {
      rbcFuseStream stream = rbcFuseStreamInit();
      stream.values = next++->get();
      stream.times = next++->get();
      rbcResampleParams& params = params_.emplace_back(rbcResampleParamsInit());
      stream.params = &params;
      params.method = s.method;
      params.groups = s.groups.empty() ? nullptr : s.groups.data();
      params.num_groups = static_cast<int32_t>(s.groups.size());
      if (s.lengths) params.lengths = next++->get();
      if (s.packed) params.batch_offsets = next++->get();
      if (s.affine) params.shift = next++->get();
      if (s.affine) params.scale = next++->get();
      if (s.missing) params.sample_mask = next++->get();
      if (s.arrives) params.arrivals = next++->get();
      if (s.causal) params.flags = RBC_FLAG_CAUSAL;
      streams_.push_back(stream);
    }
    query_times_ = next->get();
    out_ = tensors.outputs[0].get();
    if (c.mask) mask_ = tensors.outputs[1].get();
  }

  void operator()(const robocache::Context& context) const override {
    const rbcFuseStream& first = streams_[0];
    robocache::check(fuses_ ? rbcFuse(context.get(), streams_.data(),
                                      static_cast<int32_t>(streams_.size()), query_times_, out_,
                                      mask_, nullptr)
                            : rbcResample(context.get(), first.values, first.times, query_times_,
                                          out_, mask_, first.params));
  }

 private:
  bool fuses_;
  std::vector<rbcResampleParams> params_;
  std::vector<rbcFuseStream> streams_;
  const rbcTensor* query_times_ = nullptr;
  const rbcTensor* out_ = nullptr;
  const rbcTensor* mask_ = nullptr;
};

}  // namespace

std::shared_ptr<Case> parseResampling(const std::string& name) {
  auto c = std::make_shared<ResamplingCase>();
  long long axis = 0, batch = 0, samples = 0, queries = 0, channels = 0;
  char dtype[8] = "", trait[16] = "";
  std::string text = name;
  // N=8: the number of streams; for other sizes the case itself has it.
  int begin = 0;
  const bool sweeps = std::sscanf(name.c_str(), "%*1[DSTBN]=%lld: %n", &axis, &begin) == 1 &&
                      begin > 0 && name.find("->") == std::string::npos;
  if (sweeps) text = name.substr(static_cast<size_t>(begin));
  if (std::sscanf(text.c_str(), "%lld,%lld,%lld,%lld %7s %15s", &batch, &samples, &queries,
                  &channels, dtype, trait) >= 5) {
    const int64_t count = sweeps && name[0] == 'N' ? axis : 1;
    c->out = dtypeOf(dtype, name);
    c->streams.assign(static_cast<size_t>(count), {samples, channels / count, c->out});
    c->fuses = count > 1;
    c->variant = trait[0] != 0;
    if (c->variant) setTrait(*c, trait, name);
  } else {
    const size_t colon = text.find(": "), arrow = text.find(" -> ");
    if (arrow == std::string::npos || std::sscanf(text.c_str(), "B=%lld", &batch) != 1 ||
        std::sscanf(text.c_str() + arrow, " -> %lld %7s", &queries, dtype) != 2)
      refuse(name);
    c->out = dtypeOf(dtype, name);
    c->fuses = true;
    std::istringstream parts(text.substr(colon + 2, arrow - colon - 2));
    for (std::string part; std::getline(parts, part, ',');) addStreams(*c, part, c->out, name);
  }
  c->batch = batch;
  c->is_single = batch == 1;
  c->queries = queries;
  const bool empty = std::any_of(c->streams.begin(), c->streams.end(), [](const StreamCase& s) {
    return s.samples < 1 || s.channels < 1 || (s.method == RBC_METHOD_SLERP && s.channels % 4 != 0);
  });
  if (c->streams.empty() || batch < 1 || queries < 0 || empty) refuse(name);
  return c;
}

int64_t ResamplingCase::channels() const {
  int64_t channels = 0;
  for (const StreamCase& stream : streams) channels += stream.channels;
  return channels;
}

int64_t ResamplingCase::roughBytes() const {
  int64_t bytes = queries * (sizeOf(times) + channels() * sizeOf(out));
  for (const StreamCase& stream : streams) {
    const int64_t rows = std::min(2 * queries, stream.samples);
    bytes += stream.samples * sizeOf(times) + rows * stream.channels * sizeOf(stream.dtype);
  }
  return batch * bytes;
}

std::string ResamplingCase::facts() const {
  return "\"method\": \"" + std::string(kMethods[streams[0].method]) + "\", \"dtype\": \"" +
         support::nameOf(out) + "\", \"batch\": " + std::to_string(batch) +
         ", \"queries\": " + std::to_string(queries) +
         ", \"channels\": " + std::to_string(channels());
}

std::unique_ptr<Call> callOn(const ResamplingCase& c, const Tensors& tensors) {
  return std::make_unique<ResamplingCall>(c, tensors);
}

}  // namespace bench
