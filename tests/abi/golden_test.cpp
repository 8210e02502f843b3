// The golden vectors (tests/golden/README.md) through the C++ wrapper, byte for byte.
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "robocache/robocache.hpp"
#include "support/dtypes.h"
#include "support/expect.h"

using robocache::Context;
using robocache::OwnedTensor;
using robocache::Tensor;

namespace {

// ---- reading ------------------------------------------------------------------------------------

struct Data {
  rbcDType dtype;
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;
};

// What stands before the streams of a case, or in a stream.
struct Part {
  std::map<std::string, double> numbers;
  std::vector<rbcChannelGroup> groups;
  rbcVoxelGrid grid = {};
  std::map<std::string, Data> inputs;
  std::map<std::string, Data> outputs;

  double number(const std::string& name, double otherwise) const {
    const auto found = numbers.find(name);
    return found == numbers.end() ? otherwise : found->second;
  }
  template <class Enum>
  Enum choice(const std::string& name, Enum otherwise) const {
    return static_cast<Enum>(static_cast<int32_t>(number(name, static_cast<double>(otherwise))));
  }
};

struct Case {
  std::string name;
  std::string op;
  Part call;
  std::vector<Part> streams;
};

rbcDType dtypeOf(const std::string& name) {
  for (const auto& dtypes :
       {std::vector<rbcDType>(std::begin(support::kFloatDTypes), std::end(support::kFloatDTypes)),
        std::vector<rbcDType>(std::begin(support::kIntegerDTypes),
                              std::end(support::kIntegerDTypes))}) {
    for (const rbcDType dtype : dtypes) {
      if (support::nameOf(dtype) == name) return dtype;
    }
  }
  throw std::runtime_error("unknown dtype " + name);
}

Data readData(std::istream& words) {
  std::string dtype, shape, hex;
  words >> dtype >> shape >> hex;
  Data data{dtypeOf(dtype), {}, {}};
  if (shape != "scalar") {
    std::istringstream extents(shape);
    for (std::string extent; std::getline(extents, extent, 'x');) {
      data.shape.push_back(std::stoll(extent));
    }
  }
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    data.bytes.push_back(static_cast<uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return data;
}

std::vector<Case> readCases(const std::filesystem::path& path) {
  std::vector<Case> cases;
  Part* part = nullptr;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word, name, value;
    words >> word;
    if (word == "case") {
      cases.emplace_back();
      std::getline(words >> std::ws, cases.back().name);
      part = &cases.back().call;
    } else if (word == "op") {
      words >> cases.back().op;
    } else if (word == "stream") {
      part = &cases.back().streams.emplace_back();
    } else if (word == "set") {
      words >> name >> value;
      part->numbers[name] = std::stod(value);
    } else if (word == "group") {
      rbcChannelGroup group = {};
      words >> group.begin >> group.count >> group.method;
      part->groups.push_back(group);
    } else if (word == "grid") {
      for (double& x : part->grid.origin) words >> x;
      for (double& x : part->grid.voxel_size) words >> x;
      for (int64_t& x : part->grid.shape) words >> x;
    } else if (word == "in" || word == "out") {
      words >> name;
      (word == "in" ? part->inputs : part->outputs)[name] = readData(words);
    }
  }
  return cases;
}

// ---- calling ------------------------------------------------------------------------------------

// The tensors of one call on the device of its context.
class Placed {
 public:
  explicit Placed(const Context& context) : context_(context) {}

  Tensor in(const Part& part, const std::string& name) {
    const Data& data = part.inputs.at(name);
    return place(data, data.bytes);
  }
  std::optional<Tensor> inIfAny(const Part& part, const std::string& name) {
    if (part.inputs.count(name) == 0) return std::nullopt;
    return in(part, name);
  }
  Tensor out(const Part& part, const std::string& name) {
    const Data& data = part.outputs.at(name);
    const Tensor tensor = place(data, std::vector<uint8_t>(data.bytes.size(), 0xCD));
    written_.emplace(name, tensor);
    return tensor;
  }
  std::optional<Tensor> outIfAny(const Part& part, const std::string& name) {
    if (part.outputs.count(name) == 0) return std::nullopt;
    return out(part, name);
  }
  // What is both read and written.
  Tensor inOut(const Part& part, const std::string& name) {
    const Tensor tensor = in(part, name);
    written_.emplace(name, tensor);
    return tensor;
  }

  std::vector<uint8_t> fetch(const std::string& name, const Data& expected) const {
    std::vector<uint8_t> bytes(expected.bytes.size());
    robocache::copy(context_, written_.at(name),
                    {static_cast<void*>(bytes.data()), expected.dtype, expected.shape});
    return bytes;
  }

 private:
  Tensor place(const Data& data, const std::vector<uint8_t>& bytes) {
    OwnedTensor& owned = owned_.emplace_back(context_, data.dtype, data.shape);
    robocache::copy(context_, {static_cast<const void*>(bytes.data()), data.dtype, data.shape},
                    owned.view());
    return owned.view();
  }

  const Context& context_;
  std::deque<OwnedTensor> owned_;
  std::map<std::string, Tensor> written_;
};

void setStream(Placed& placed, const Part& part, robocache::StreamOptions* options) {
  options->method = part.choice("method", options->method);
  options->bounds = part.choice("bounds", options->bounds);
  options->groups = part.groups;
  options->fill_value = part.number("fill_value", options->fill_value);
  options->max_gap = part.number("max_gap", options->max_gap);
  options->tolerance = part.number("tolerance", options->tolerance);
  options->lengths = placed.inIfAny(part, "lengths");
  options->offsets = placed.inIfAny(part, "offsets");
  options->mean = placed.inIfAny(part, "mean");
  options->inv_std = placed.inIfAny(part, "inv_std");
}

void callResample(const Context& context, Placed& placed, const Case& c) {
  robocache::ResampleOptions options;
  setStream(placed, c.call, &options);
  options.check_times = c.call.number("flags", 0) != 0;
  options.query_lengths = placed.inIfAny(c.call, "query_lengths");
  options.mask = placed.outIfAny(c.call, "mask");
  robocache::resample(context, placed.in(c.call, "values"), placed.in(c.call, "times"),
                      placed.in(c.call, "query_times"), placed.out(c.call, "out"), options);
}

void callFuse(const Context& context, Placed& placed, const Case& c) {
  std::vector<robocache::Stream> streams;
  for (const Part& part : c.streams) {
    streams.emplace_back(placed.in(part, "values"), placed.in(part, "times"));
    setStream(placed, part, &streams.back());
    streams.back().clock_offset = part.number("clock_offset", 0);
    streams.back().clock_offset_ticks = static_cast<int64_t>(part.number("clock_offset_ticks", 0));
  }
  robocache::FuseOptions options;
  options.query_lengths = placed.inIfAny(c.call, "query_lengths");
  options.mask = placed.outIfAny(c.call, "mask");
  robocache::fuse(context, streams, placed.in(c.call, "query_times"), placed.out(c.call, "out"),
                  options);
}

// Of all that voxelizes.
template <class Options>
Options cloudOptions(Placed& placed, const Part& part) {
  Options options;
  options.lengths = placed.inIfAny(part, "lengths");
  options.offsets = placed.inIfAny(part, "offsets");
  return options;
}

void callVoxelize(const Context& context, Placed& placed, const Case& c) {
  auto options = cloudOptions<robocache::VoxelizeOptions>(placed, c.call);
  options.mode = c.call.choice("mode", options.mode);
  options.empty_value = c.call.number("empty_value", options.empty_value);
  options.features = placed.inIfAny(c.call, "features");
  options.dropped = placed.outIfAny(c.call, "dropped");
  robocache::voxelize(context, placed.in(c.call, "points"), c.call.grid, placed.out(c.call, "out"),
                      options);
}

void callVoxelizeSparse(const Context& context, Placed& placed, const Case& c) {
  auto options = cloudOptions<robocache::VoxelizeSparseOptions>(placed, c.call);
  options.reduce = c.call.choice("reduce", options.reduce);
  options.order = c.call.choice("order", options.order);
  options.features = placed.inIfAny(c.call, "features");
  robocache::SparseVoxels voxels(placed.out(c.call, "coords"), placed.out(c.call, "num_voxels"));
  voxels.counts = placed.outIfAny(c.call, "counts");
  voxels.features = placed.outIfAny(c.call, "features");
  voxels.grouped = placed.outIfAny(c.call, "grouped");
  voxels.point_to_voxel = placed.outIfAny(c.call, "point_to_voxel");
  voxels.dropped = placed.outIfAny(c.call, "dropped");
  voxels.overflow = placed.outIfAny(c.call, "overflow");
  robocache::voxelizeSparse(context, placed.in(c.call, "points"), c.call.grid, voxels, options);
}

void callVoxelizeTsdf(const Context& context, Placed& placed, const Case& c) {
  auto options = cloudOptions<robocache::TsdfOptions>(placed, c.call);
  options.carve = c.call.number("flags", 0) != 0;
  options.weighting = c.call.choice("weighting", options.weighting);
  options.max_weight = c.call.number("max_weight", options.max_weight);
  options.dropped = placed.outIfAny(c.call, "dropped");
  robocache::voxelizeTsdf(context, placed.in(c.call, "points"), placed.in(c.call, "sensors"),
                          c.call.grid, c.call.number("truncation", 0), placed.inOut(c.call, "tsdf"),
                          placed.inOut(c.call, "weight"), options);
}

using CallOf = void (*)(const Context&, Placed&, const Case&);
const std::map<std::string, CallOf> kCalls = {{"resample", callResample},
                                              {"fuse", callFuse},
                                              {"voxelize", callVoxelize},
                                              {"voxelize_sparse", callVoxelizeSparse},
                                              {"voxelize_tsdf", callVoxelizeTsdf}};

void checkAll(const Context& context) {
  int count = 0;
  for (const auto& file : std::filesystem::directory_iterator(RBC_TEST_GOLDEN)) {
    if (file.path().extension() != ".txt") continue;
    for (const Case& c : readCases(file.path())) {
      INFO(c.name);
      ++count;
      Placed placed(context);
      kCalls.at(c.op)(context, placed, c);
      for (const auto& output : c.call.outputs) {
        INFO(output.first);
        CHECK(placed.fetch(output.first, output.second) == output.second.bytes);
      }
    }
  }
  CHECK(count > 50);
}

}  // namespace

TEST_CASE("golden vectors: cpu") { checkAll(Context::cpu()); }

TEST_CASE("golden vectors: cuda") {
  const auto context = Context::cuda<robocache::Expect>();
  if (!context) SKIP_BECAUSE(context.error().what());
  checkAll(*context);
}
