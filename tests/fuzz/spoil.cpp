#include "fuzz/spoil.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>

#include "fuzz/fields.h"

namespace fuzz {
namespace {

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

int64_t oddInteger(Choices& choices, int64_t now) {
  switch (choices.below(8)) {
    case 0: return now == kMax ? kMin : now + 1;
    case 1: return now == kMin ? kMax : now - 1;
    case 2: return now == kMin ? kMin : -now;
    case 3: return choices.pick<int64_t>({kMin, kMax, kMin + 1, kMax - 1, kMax / 2, kMax / 8});
    case 4:
      return choices.pick<int64_t>({INT32_MAX, INT32_MIN, int64_t{1} << 31, int64_t{1} << 32});
    case 5: return int64_t{1} << choices.below(63);
    case 6: return choices.between(-3, 40);
    default: return static_cast<int64_t>(choices.bits());
  }
}

double oddReal(Choices& choices, double now) {
  const double infinity = std::numeric_limits<double>::infinity();
  switch (choices.below(5)) {
    case 0: return choices.pick({0.0, -0.0, 1.0, -1.0, 0.5, 1e-300, 5e-324, 1e300, -1e300});
    case 1: return choices.pick({infinity, -infinity, std::nan("")});
    case 2: return -now;
    case 3: return now * choices.pick({0.1, 2.0, 1e6, 1e-30});
    default: return choices.uniform(-10, 10);
  }
}

rbcDType oddDType(Choices& choices) {
  if (choices.chance(70)) {
    return choices.chance(50) ? choices.pick(support::kFloatDTypes)
                              : choices.pick(support::kIntegerDTypes);
  }
  return {static_cast<uint8_t>(choices.below(18)),
          static_cast<uint8_t>(choices.pick({0, 1, 4, 6, 8, 16, 32, 64, 128, 255})),
          static_cast<uint16_t>(choices.pick({0, 1, 1, 2, 4, 65535}))};
}

void regrow(std::unique_ptr<int64_t[]>* numbers, int32_t from, int32_t to, int64_t value) {
  std::unique_ptr<int64_t[]> grown(new int64_t[static_cast<size_t>(std::max(to, 0))]);
  for (int32_t i = 0; i < to; ++i) {
    grown[static_cast<size_t>(i)] = i < from ? (*numbers)[static_cast<size_t>(i)] : value;
  }
  *numbers = std::move(grown);
}

// Changes the rank: there is memory for as many dimensions as an array may have.
void spoilRank(Tensor& t, Choices& choices) {
  const int32_t from = t.raw.ndim;
  if (from < 0 || from > RBC_TENSOR_MAX_NDIM) return;
  const int32_t to = choices.chance(60)
                         ? static_cast<int32_t>(choices.between(0, RBC_TENSOR_MAX_NDIM))
                         : choices.pick({-1, 9, 100, INT32_MIN, INT32_MAX});
  if (to >= 0 && to <= RBC_TENSOR_MAX_NDIM) {
    const int64_t extent = choices.between(0, 2);
    const bool has_shape = t.raw.shape != nullptr;
    if (has_shape) {
      regrow(&t.shape, from, to, extent);
      t.raw.shape = t.shape.get();
    }
    if (t.raw.strides != nullptr) {
      regrow(&t.strides, from, to, 1);
      t.raw.strides = t.strides.get();
    }
  }
  t.raw.ndim = to;
}

void spoilStride(Tensor& t, Choices& choices) {
  const int32_t ndim = t.raw.ndim;
  if (ndim <= 0 || ndim > RBC_TENSOR_MAX_NDIM || t.raw.shape == nullptr) return;
  if (t.raw.strides == nullptr) {
    t.strides.reset(new int64_t[static_cast<size_t>(ndim)]);
    int64_t next = 1;
    for (int32_t i = ndim - 1; i >= 0; --i) {
      t.strides[static_cast<size_t>(i)] = next;
      if (__builtin_mul_overflow(next, std::max<int64_t>(t.extent(i), 1), &next)) next = 1;
    }
    t.raw.strides = t.strides.get();
  }
  auto& stride = t.strides[static_cast<size_t>(choices.below(ndim))];
  stride = choices.chance(40)   ? 0
           : choices.chance(50) ? oddInteger(choices, stride)
                                : choices.between(-20, 20);
}

// Places the tensor at some offset in another one's memory.
void overlap(Call& call, Tensor& t, Choices& choices) {
  auto& tensors = call.tensors();
  Tensor& other = tensors[static_cast<size_t>(choices.below(static_cast<int64_t>(tensors.size())))];
  if (&other == &t || other.block < 0 || t.block < 0) return;
  const Reach reach = reachOf(t);
  if (reach.impossible || reach.count == 0 || t.raw.byte_offset > 4096) return;
  const int64_t size = support::sizeOf(t.raw.dtype);
  Block& block = call.blocks()[static_cast<size_t>(other.block)];
  if (block.on_host != call.blocks()[static_cast<size_t>(t.block)].on_host) return;
  const int64_t place = choices.chance(60) ? 0 : choices.below(8) * size;
  t.block = other.block;
  t.shift = place - reach.low - static_cast<int64_t>(t.raw.byte_offset);
  const auto end = static_cast<size_t>(place + reach.high - reach.low);
  if (block.bytes.size() < end) block.bytes.resize(end);
}

// Any field of a tensor may change; a change for which there is no memory is reverted. plain: ok
// undone
void spoilTensor(Call& call, Tensor& t, Choices& choices) {
  rbcTensor& raw = t.raw;
  const int64_t kind = choices.below(14);
  if (kind == 0) {
    if (!t.held) t.absent = true;
  } else if (kind == 1) {
    raw.shape = nullptr;
  } else if (kind == 2) {
    t.block = -1;
  } else if (kind == 3) {
    raw.device = {static_cast<int32_t>(choices.pick({0, 1, 2, 3, 4, 10, 13, 14, -1, INT32_MIN})),
                  choices.pick({0, 0, 1, -1, INT32_MAX})};
    t.own_device = true;
  } else if (kind == 4) {
    raw.byte_offset = choices.pick<uint64_t>(
        {UINT64_MAX, UINT64_MAX - 7, UINT64_MAX - 4095});  // no address plus these is valid
  } else if (kind == 5 && isKnown(raw.dtype) && support::sizeOf(raw.dtype) > 1) {
    t.shift += 1;
    if (t.block >= 0) {
      auto& bytes = call.blocks()[static_cast<size_t>(t.block)].bytes;
      bytes.resize(bytes.size() + 1);
    }
  } else if (kind == 6) {
    overlap(call, t, choices);
  } else {
    // Changes that affect the memory of the tensor.
    const rbcTensor before = raw;
    const int32_t ndim = raw.ndim;
    const bool ranked = ndim >= 0 && ndim <= RBC_TENSOR_MAX_NDIM && raw.shape != nullptr;
    std::vector<int64_t> shape;
    std::vector<int64_t> strides;
    if (ranked) shape.assign(t.shape.get(), t.shape.get() + ndim);
    if (ranked && raw.strides != nullptr) strides.assign(t.strides.get(), t.strides.get() + ndim);
    if (kind == 7) {
      spoilRank(t, choices);
    } else if (kind <= 9) {
      spoilStride(t, choices);
    } else if (kind == 10) {
      raw.strides = nullptr;
    } else if (kind == 11) {
      raw.dtype = oddDType(choices);
    } else if (ranked && ndim > 0) {
      auto& extent = t.shape[static_cast<size_t>(choices.below(ndim))];
      extent = choices.chance(50) ? choices.between(0, 5) : oddInteger(choices, extent);
    }
    if (call.fit(&t)) return;
    raw = before;
    if (ranked) {
      regrow(&t.shape, 0, ndim, 0);
      std::copy(shape.begin(), shape.end(), t.shape.get());
      raw.shape = t.shape.get();
    }
    if (ranked && raw.strides != nullptr) {
      regrow(&t.strides, 0, ndim, 0);
      std::copy(strides.begin(), strides.end(), t.strides.get());
      raw.strides = t.strides.get();
    }
  }
}

// Changes the contents of an input: other numbers, in any order.
void spoilContents(Call& call, Tensor& t, Choices& choices) {
  if (t.block < 0 || !t.read) return;
  auto& bytes = call.blocks()[static_cast<size_t>(t.block)].bytes;
  if (bytes.empty()) return;
  const int64_t size = isKnown(t.raw.dtype) ? support::sizeOf(t.raw.dtype) : 1;
  for (int64_t n = choices.between(1, 4); n > 0; --n) {
    const auto elements = static_cast<int64_t>(bytes.size()) / size;
    if (elements == 0) return;
    uint8_t* at = &bytes[static_cast<size_t>(choices.below(elements) * size)];
    uint64_t value = choices.bits();
    if (choices.chance(60)) {
      value = static_cast<uint64_t>(oddInteger(choices, choices.between(-1, 30)));
    } else if (choices.chance(50)) {
      value =
          choices.pick<uint64_t>({0x7FF0000000000000u, 0xFFF0000000000000u, 0x7FF8000000000000u,
                                  0x7F8000007F800000u, 0x7FC000007FC00000u, 0x7C007C007C007C00u});
    }
    std::memcpy(at, &value, static_cast<size_t>(size));
  }
}

void spoilField(Call& call, Struct& s, Choices& choices) {
  const auto& fields = fieldsOf(s.type);
  if (fields.empty() || s.count == 0) return;
  const size_t element = s.size / static_cast<size_t>(s.count);
  const Field& field =
      fields[static_cast<size_t>(choices.below(static_cast<int64_t>(fields.size())))];
  if (field.name == "struct_size" || field.offset + field.bytes > element) return;
  uint8_t* at =
      s.bytes.get() + element * static_cast<size_t>(choices.below(s.count)) + field.offset;
  if (field.kind == Field::kTensor) {
    const rbcTensor* held = nullptr;
    std::memcpy(&held, at, sizeof held);
    for (Tensor& t : call.tensors()) t.absent |= &t.raw == held;
    std::memset(at, 0, sizeof(void*));
  } else if (field.kind == Field::kReal) {
    double value = 0;
    std::memcpy(&value, at, sizeof value);
    value = oddReal(choices, value);
    std::memcpy(at, &value, sizeof value);
  } else if (field.name.compare(0, 4, "num_") == 0) {
    // The length of an array: never larger, but possibly negative or 0.
    int32_t value = 0;
    std::memcpy(&value, at, sizeof value);
    value = choices.pick({value == INT32_MIN ? value : value - 1, 0, -1, INT32_MIN});
    std::memcpy(at, &value, sizeof value);
  } else {
    uint64_t value = 0;
    std::memcpy(&value, at, field.bytes);
    value = static_cast<uint64_t>(oddInteger(choices, static_cast<int64_t>(value)));
    std::memcpy(at, &value, field.bytes);
  }
}

// A struct of another release, or one with a wrong size: gets memory for the size that it has.
void spoilSize(Call& call, Struct& s, Choices& choices) {
  if (s.count != 1 || fieldsOf(s.type).empty() || fieldsOf(s.type)[0].name != "struct_size") return;
  if (s.size % sizeof(void*) != 0) return;  // it ends within a pointer
  const auto stated_size = static_cast<uint32_t>(
      choices.chance(70) ? choices.between(0, static_cast<int64_t>(s.size) + 64)
                         : choices.pick<int64_t>({65536, 65537, UINT32_MAX, INT32_MAX}));
  // The library must not read beyond the size that it knows; below 4 bytes not even the size would
  // exist.
  const size_t held = std::max<size_t>(std::min<size_t>(stated_size, 65536), 4);
  std::unique_ptr<uint8_t[]> bytes(new uint8_t[held]());
  std::memcpy(bytes.get(), s.bytes.get(), std::min(held, s.size));
  std::memcpy(bytes.get(), &stated_size, sizeof stated_size);
  if (held > s.own_size && choices.chance(30)) {
    bytes[s.own_size +
          static_cast<size_t>(choices.below(static_cast<int64_t>(held - s.own_size)))] = 1;
  }
  // Tensors behind pointers after the cut are not used.
  for (size_t at = held / sizeof(void*) * sizeof(void*); at + sizeof(void*) <= s.size;
       at += sizeof(void*)) {
    const rbcTensor* lost = nullptr;
    std::memcpy(&lost, s.bytes.get() + at, sizeof lost);
    for (Tensor& t : call.tensors()) t.absent |= &t.raw == lost;
  }
  // Redirects pointers to it to the new one.
  const uint8_t* const before = s.bytes.get();
  const uint8_t* const now = bytes.get();
  for (Struct& other : call.structs()) {
    for (size_t at = 0; at + sizeof now <= other.size; at += sizeof now) {
      if (std::memcmp(other.bytes.get() + at, &before, sizeof now) == 0) {
        std::memcpy(other.bytes.get() + at, &now, sizeof now);
      }
    }
  }
  s.bytes = std::move(bytes);
  s.size = held;
}

}  // namespace

void spoil(Call& call, Choices& choices) {
  auto& tensors = call.tensors();
  auto& structs = call.structs();
  const int64_t kind = choices.below(10);
  if (kind < 5 && !tensors.empty()) {
    spoilTensor(call,
                tensors[static_cast<size_t>(choices.below(static_cast<int64_t>(tensors.size())))],
                choices);
  } else if (kind < 7 && !tensors.empty()) {
    spoilContents(call,
                  tensors[static_cast<size_t>(choices.below(static_cast<int64_t>(tensors.size())))],
                  choices);
  } else if (!structs.empty()) {
    Struct& s = structs[static_cast<size_t>(choices.below(static_cast<int64_t>(structs.size())))];
    if (kind == 7 && choices.chance(20)) {
      s.absent = true;
    } else if (kind == 8) {
      spoilSize(call, s, choices);
    } else {
      spoilField(call, s, choices);
    }
  }
}

namespace {

bool isOutput(const Field& field) {
  return field.owner == "rbcStatisticsOutputs" || field.owner == "rbcVoxelizeSparseOutputs" ||
         field.name == "out" || field.name == "valid";
}

// Gives a struct one more input, or one less.
void mismatchInputs(Call& call, const Struct& s, uint8_t* element, size_t size, Choices& choices) {
  std::vector<const Field*> fields;
  for (const Field& field : fieldsOf(s.type)) {
    const bool there = field.kind == Field::kTensor && field.offset + field.bytes <= size;
    if (there && !isOutput(field)) fields.push_back(&field);
  }
  std::vector<const Tensor*> inputs;
  for (const Tensor& t : call.tensors()) {
    if (t.read && !t.written && !t.absent) inputs.push_back(&t);
  }
  if (fields.empty() || inputs.empty()) return;
  uint8_t* const at =
      element +
      fields[static_cast<size_t>(choices.below(static_cast<int64_t>(fields.size())))]->offset;
  const rbcTensor* held = nullptr;
  std::memcpy(&held, at, sizeof held);
  held =
      held != nullptr
          ? nullptr
          : &inputs[static_cast<size_t>(choices.below(static_cast<int64_t>(inputs.size())))]->raw;
  std::memcpy(at, &held, sizeof held);
}

}  // namespace

void mismatch(Call& call, Choices& choices) {
  auto& structs = call.structs();
  if (structs.empty()) return;
  Struct& s = structs[static_cast<size_t>(choices.below(static_cast<int64_t>(structs.size())))];
  const auto& fields = fieldsOf(s.type);
  if (s.count == 0 || s.size < s.own_size || fields.empty()) return;
  const size_t size = s.size / static_cast<size_t>(s.count);
  const int64_t number = choices.below(s.count);
  uint8_t* const element = s.bytes.get() + size * static_cast<size_t>(number);
  const int64_t kind = choices.below(6);
  if (kind == 0 && number > 0 &&
      fields[0].name == "struct_size") {  // in the first one it is the stride
    const auto stated_size =
        static_cast<uint32_t>(choices.chance(50) ? size + 8 : choices.below(64));
    std::memcpy(element, &stated_size, sizeof stated_size);
  } else if (kind == 1 && s.type == "rbcWindowsOutputs" && !call.accumulators.empty()) {
    const size_t accumulator_index = call.accumulators.size();
    std::memcpy(element + offsetof(rbcWindowsOutputs, accumulator), &accumulator_index,
                sizeof accumulator_index);
    if (choices.chance(50)) call.accumulators.back().dtype = choices.pick(support::kIntegerDTypes);
  } else if (kind == 2) {  // an array without elements
    for (const Field& field : fields) {
      const bool counts = field.name.compare(0, 4, "num_") == 0;
      if (counts && field.offset + field.bytes <= size)
        std::memset(element + field.offset, 0, field.bytes);
    }
  } else {
    mismatchInputs(call, s, element, size, choices);
  }
}

}  // namespace fuzz
