// The golden vectors (tests/golden/README.md) through the C functions, byte for byte.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <istream>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <typeindex>
#include <vector>

#include "robocache/robocache.hpp"
#include "support/dtypes.h"
#include "support/expect.h"
#include "support/run.h"

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

// The statements before the streams of a case, or in a stream.
struct Part {
  std::map<std::string, std::vector<double>> numbers;
  std::vector<rbcChannelGroup> groups;
  std::vector<rbcWindowsTransform> transforms;
  rbcVoxelGrid grid = {};
  std::map<std::string, Data> inputs;
  std::map<std::string, Data> outputs;
};

// An argument of the operation: its name and kind.
struct Argument {
  std::string name;
  std::string kind;
};

struct Case {
  std::string name;
  std::string op;
  std::vector<Argument> arguments;
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
  std::map<std::string, std::vector<Argument>> signatures;
  Part* part = nullptr;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word, name;
    words >> word;
    if (word == "signature") {
      words >> name;
      for (std::string argument; words >> argument;) {
        const size_t colon = argument.find(':');
        signatures[name].push_back({argument.substr(0, colon), argument.substr(colon + 1)});
      }
    } else if (word == "case") {
      cases.emplace_back();
      std::getline(words >> std::ws, cases.back().name);
      part = &cases.back().call;
    } else if (word == "op") {
      words >> cases.back().op;
      cases.back().arguments = signatures.at(cases.back().op);
    } else if (word == "stream") {
      part = &cases.back().streams.emplace_back();
    } else if (word == "set") {
      words >> name;
      std::vector<double>& numbers = part->numbers[name];
      for (std::string number; words >> number;) numbers.push_back(std::stod(number));
    } else if (word == "group") {
      rbcChannelGroup group = {};
      words >> group.begin >> group.count >> group.method;
      if (!(words >> group.period)) group.period = 0;
      part->groups.push_back(group);
      part->numbers["num_groups"] = {static_cast<double>(part->groups.size())};
    } else if (word == "transform") {
      rbcWindowsTransform t = {};
      words >> t.begin >> t.count >> t.kind >> t.flags >> t.reference_stream_index >>
          t.reference_offset_index >> t.reference_begin >> t.rotation >> t.reference_rotation >>
          t.out_rotation;
      part->transforms.push_back(t);
      part->numbers["num_transforms"] = {static_cast<double>(part->transforms.size())};
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

// ---- structs ------------------------------------------------------------------------------------

struct Field {
  std::string name;
  size_t offset;
  std::type_index type;
};

struct Struct {
  size_t size;
  void (*init)(void*);
  std::vector<Field> fields;
};

// Structs by the type of a pointer to them.
std::map<std::type_index, Struct> describeStructs() {
  std::map<std::type_index, Struct> structs;
#define GROWS(type, bytes, id, number)                   \
  structs[typeid(const type*)].size = sizeof(type);      \
  structs[typeid(const type*)].init = [](void* memory) { \
    *static_cast<type*>(memory) = type##Init();          \
  }
#define FIELD(type, field, offset, ...) \
  structs[typeid(const type*)].fields.push_back({#field, offset, typeid(__VA_ARGS__)})
#include "layouts.inc"
  return structs;
}

// ---- calling ------------------------------------------------------------------------------------

// Makes the arguments of one call in order, with their tensors on the context's device.
class Call {
 public:
  Call(const Context& context, const Case& c) : context_(context), case_(c) {}

  // Returns the next argument.
  template <class T>
  T next() {
    if constexpr (std::is_same_v<T, int32_t>) {
      return static_cast<int32_t>(case_.streams.size());  // of the array before
    } else {
      const Argument& argument = case_.arguments.at(position_++);
      const Part& call = case_.call;
      if (argument.kind == "struct") return static_cast<T>(makeStruct(typeid(T), call));
      if (argument.kind == "structs" || argument.kind == "each")
        return static_cast<T>(makeArray(typeid(T)));
      if constexpr (std::is_same_v<T, const rbcTensor*>) {
        return makeTensor(find(call.inputs, argument.name),
                          argument.kind == "out" ? find(call.outputs, argument.name) : nullptr);
      }
      throw std::runtime_error("the signature has no tensor at " + argument.name);
    }
  }

  void check() const {
    CHECK(position_ == case_.arguments.size());
    check(case_.call);
    for (const Part& stream : case_.streams) check(stream);
  }

 private:
  void check(const Part& part) const {
    checkUsed(part);
    for (const auto& output : part.outputs) {  // Clang 14 captures no structured binding
      const Data& expected = output.second;
      INFO(output.first);
      std::vector<uint8_t> bytes(expected.bytes.size());
      robocache::copy(context_, written_.at(&expected),
                      {static_cast<void*>(bytes.data()), expected.dtype, expected.shape});
      CHECK(bytes == expected.bytes);
    }
  }

  // Null without an input and an output. A tensor that is also an input is read and written.
  const rbcTensor* makeTensor(const Data* input, const Data* output) {
    if (input == nullptr && output == nullptr) return nullptr;
    const Data& data = input != nullptr ? *input : *output;
    const auto bytes =
        input != nullptr ? data.bytes : std::vector<uint8_t>(data.bytes.size(), 0xCD);
    OwnedTensor& owned = owned_.emplace_back(context_, data.dtype, data.shape);
    const Tensor& tensor = tensors_.emplace_back(owned.view());
    robocache::copy(context_, {static_cast<const void*>(bytes.data()), data.dtype, data.shape},
                    tensor);
    used_.insert(&data);
    if (output != nullptr) {
      used_.insert(output);
      written_.emplace(output, tensor);
    }
    return tensor.get();
  }

  // A tensor that a call reads on the host, for any device.
  const rbcTensor* hostTensor(const Data* input) {
    if (input == nullptr) return nullptr;
    used_.insert(input);
    const auto* bytes = static_cast<const void*>(input->bytes.data());
    return tensors_.emplace_back(bytes, input->dtype, input->shape).get();
  }

  const void* makeStruct(std::type_index type, const Part& part, const Struct* outer = nullptr) {
    auto& memory = memory_.emplace_back(kStructs.at(type).size);
    fill(type, part, memory.data(), outer);
    return memory.data();
  }

  const void* makeArray(std::type_index type) {
    const size_t size = kStructs.at(type).size;
    auto& memory = memory_.emplace_back(size * case_.streams.size());
    for (size_t i = 0; i < case_.streams.size(); ++i) {
      fill(type, case_.streams[i], memory.data() + i * size);
    }
    return memory.data();
  }

  // A statement that fits a field of the outer struct belongs to the outer struct.
  void fill(std::type_index type, const Part& part, unsigned char* memory,
            const Struct* outer = nullptr) {
    const Struct& described = kStructs.at(type);
    described.init(memory);
    for (const Field& field : described.fields) {
      if (outer != nullptr && has(*outer, field.name)) continue;
      setField(described, field, part, memory + field.offset);
    }
  }

  static bool has(const Struct& described, const std::string& name) {
    return std::any_of(described.fields.begin(), described.fields.end(),
                       [&](const Field& field) { return field.name == name; });
  }

  template <size_t kCount>
  static void putArray(const Field& field, const std::vector<double>& numbers, void* to) {
    if (field.type != typeid(double[kCount])) return;
    CHECK(numbers.size() == kCount);
    std::copy_n(numbers.data(), kCount, static_cast<double*>(to));
  }

  void setField(const Struct& of, const Field& field, const Part& part, void* to) {
    const auto found = part.numbers.find(field.name);
    if (found != part.numbers.end()) {
      used_.insert(&found->second);
      const std::vector<double>& numbers = found->second;
      const double number = numbers.at(0);
      if (field.type == typeid(double)) put(to, number);
      putArray<2>(field, numbers, to);
      putArray<3>(field, numbers, to);
      putArray<4>(field, numbers, to);
      if (field.type == typeid(int32_t)) put(to, static_cast<int32_t>(number));
      if (field.type == typeid(uint32_t)) put(to, static_cast<uint32_t>(number));
      if (field.type == typeid(int64_t)) put(to, static_cast<int64_t>(number));
    } else if (field.name == "levels") {
      put(to, hostTensor(find(part.inputs, field.name)));
    } else if (field.type == typeid(const rbcTensor*)) {
      put(to, makeTensor(isArgument(field.name, "in") ? nullptr : find(part.inputs, field.name),
                         isArgument(field.name, "out") ? nullptr : find(part.outputs, field.name)));
    } else if (field.type == typeid(rbcVoxelGrid)) {
      put(to, part.grid);
    } else if (field.type == typeid(const rbcChannelGroup*)) {
      put(to, part.groups.empty() ? nullptr : part.groups.data());
    } else if (field.type == typeid(const rbcWindowsTransform*)) {
      put(to, part.transforms.empty() ? nullptr : part.transforms.data());
    } else if (kStructs.count(field.type) != 0) {
      put(to, makeStruct(field.type, part, &of));
    }
  }

  bool isArgument(const std::string& name, const std::string& kind) const {
    for (const Argument& argument : case_.arguments) {
      if (argument.name == name && argument.kind == kind) return true;
    }
    return false;
  }

  // Every statement of the file must be used.
  void checkUsed(const Part& part) const {
    for (const auto& number : part.numbers) {
      CHECK_MESSAGE(used_.count(&number.second) == 1, number.first);
    }
    for (const auto* tensors : {&part.inputs, &part.outputs}) {
      for (const auto& data : *tensors) CHECK_MESSAGE(used_.count(&data.second) == 1, data.first);
    }
  }

  static const Data* find(const std::map<std::string, Data>& tensors, const std::string& name) {
    const auto found = tensors.find(name);
    return found == tensors.end() ? nullptr : &found->second;
  }

  template <class T>
  static void put(void* to, const T& value) {
    std::memcpy(to, &value, sizeof value);
  }

  static inline const std::map<std::type_index, Struct> kStructs = describeStructs();

  const Context& context_;
  const Case& case_;
  size_t position_ = 0;
  std::deque<OwnedTensor> owned_;
  std::deque<Tensor> tensors_;
  std::deque<std::vector<unsigned char>> memory_;
  std::map<const Data*, Tensor> written_;
  std::set<const void*> used_;
};

using Function = std::function<rbcStatus_t(rbcContext_t, Call*)>;

template <class... Types>
Function calling(rbcStatus_t (*function)(rbcContext_t, Types...)) {
  return [function](rbcContext_t context, Call* call) {
    const std::tuple<rbcContext_t, Types...> arguments{context, call->next<Types>()...};
    return std::apply(function, arguments);
  };
}

// rbcVoxelizeSparse is voxelize_sparse.
std::string nameOf(const char* function) {
  std::string name;
  for (const char* c = function + std::strlen("rbc"); *c != '\0'; ++c) {
    const bool capital = *c >= 'A' && *c <= 'Z';
    if (capital && !name.empty()) name += '_';
    name += static_cast<char>(capital ? *c - 'A' + 'a' : *c);
  }
  return name;
}

const std::map<std::string, Function> kFunctions = {
#define OPERATION(function) {nameOf(#function), calling(function)},
#include "exported_operations.inc"
#undef OPERATION
};

void checkAll(const Context& context) {
  int count = 0;
  for (const auto& file : std::filesystem::directory_iterator(RBC_TEST_GOLDEN)) {
    if (file.path().extension() != ".txt") continue;
    for (const Case& c : readCases(file.path())) {
      INFO(c.name);
      ++count;
      Call call(context, c);
      CHECK_SUCCEEDS(kFunctions.at(c.op)(context.get(), &call));
      call.check();
    }
  }
  CHECK(count > 50);
}

}  // namespace

TEST_CASE("golden vectors: cpu, at every SIMD level") {
  for (const int32_t level : support::simdLevels()) {
    CAPTURE(level);
    rbcContextParams params = rbcContextParamsInit();
    params.backend = RBC_BACKEND_CPU;
    params.simd = level;
    checkAll(Context(params));
  }
}

TEST_CASE("golden vectors: cuda") {
  const auto context = Context::cuda<robocache::Expect>();
  if (!context) SKIP_BECAUSE(context.error().what());
  checkAll(*context);
}
