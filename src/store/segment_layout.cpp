#include "segment_layout.h"

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <utility>

#include "status.h"

namespace rbc::store {
namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 56;  // of a tensor

// The length of the UTF-8 character that begins here, 0 if it is not UTF-8. Accepts what
// safetensors' parsers do: no surrogates, no characters that are longer than needed.
size_t characterBytes(const unsigned char* text) {
  const unsigned first = text[0];
  if (first < 0x80) return 1;
  const size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 0;
  if (bytes == 0 || first > 0xf4) return 0;
  for (size_t i = 1; i < bytes; ++i) {
    if ((text[i] & 0xc0) != 0x80) return 0;
  }
  const unsigned second = text[1];
  if (first == 0xe0 && second < 0xa0) return 0;
  if (first == 0xed && second > 0x9f) return 0;
  if (first == 0xf0 && second < 0x90) return 0;
  if (first == 0xf4 && second > 0x8f) return 0;
  return bytes;
}

// safetensors' name of a dtype: that of the enumerator, in upper case.
const char* nameInJson(DType dtype) {
  if (dtype == DType::Bool) return "BOOL";
#define RBC_NAME(name, storage, code, text) #name,
  static constexpr const char* kNames[] = {RBC_DTYPES(RBC_NAME)};
#undef RBC_NAME
  return kNames[static_cast<size_t>(dtype)];
}

void addToJson(std::string& json, const std::string& name, const char* dtype, int ndim,
               const int64_t* shape, uint64_t begin, uint64_t end) {
  json += json.empty() ? "{\"" : ",\"";
  for (const char letter : name) {
    if (letter == '"' || letter == '\\') json += '\\';
    json += letter;
  }
  json += "\":{\"dtype\":\"";
  json += dtype;
  json += "\",\"shape\":[";
  char number[64];
  for (int i = 0; i < ndim; ++i) {
    std::snprintf(number, sizeof number, "%s%" PRId64, i == 0 ? "" : ",", shape[i]);
    json += number;
  }
  std::snprintf(number, sizeof number, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", begin, end);
  json += number;
}

void addBytes(std::string& json, const std::string& name, uint64_t begin, uint64_t end) {
  const auto bytes = static_cast<int64_t>(end - begin);
  addToJson(json, name, "U8", 1, &bytes, begin, end);
}

}  // namespace

void requireTensorName(const std::string& name) {
  const size_t bytes = name.size();
  if (bytes == 0 || bytes > kMaxNameBytes) {
    fail(RBC_STATUS_INVALID_ARGUMENT, "name: has %s bytes, expected 1 to %u",
         bytes == 0 ? "0" : "more", kMaxNameBytes);
  }
  if (name.compare(0, 4, "rbc.") == 0 || name == "__metadata__") {
    fail(RBC_STATUS_INVALID_ARGUMENT, "name: is \"%.64s\", which the file uses itself",
         name.c_str());
  }
  const auto* text = reinterpret_cast<const unsigned char*>(name.c_str());  // ends with a 0
  for (size_t i = 0; i < bytes;) {
    const size_t length = characterBytes(text + i);
    if (length == 0) {
      fail(RBC_STATUS_INVALID_ARGUMENT, "name: byte %zu is not UTF-8", i);
    }
    if (text[i] < 0x20 || text[i] == 0x7f) {
      fail(RBC_STATUS_INVALID_ARGUMENT, "name: byte %zu is a control character", i);
    }
    i += length;
  }
}

bool isTensorName(const std::string& name) {
  try {
    requireTensorName(name);
    return true;
  } catch (const Error&) {
    return false;
  }
}

uint64_t bytesOf(DType dtype, int32_t ndim, const int64_t* shape) {
  auto bytes = static_cast<uint64_t>(sizeOf(dtype));
  bool empty = false;
  for (int i = 0; i < ndim; ++i) {
    if (shape[i] < 0) {
      fail(RBC_STATUS_SHAPE_MISMATCH, "shape: extent %d is %" PRId64 ", expected 0 or more", i,
           shape[i]);
    }
    if (shape[i] == 0) empty = true;
    if (!empty && __builtin_mul_overflow(bytes, static_cast<uint64_t>(shape[i]), &bytes)) {
      bytes = kMostBytes + 1;
    }
    if (!empty && bytes > kMostBytes) {
      fail(RBC_STATUS_SHAPE_MISMATCH, "shape: the tensor has more than 2^56 bytes");
    }
  }
  return empty ? 0 : bytes;
}

SegmentLayout layoutOf(std::vector<StoredTensor> tensors, uint32_t segment,
                       const SegmentRange& range) {
  // Everything is first placed from 0, the begin of the table.
  uint32_t names_bytes = 0;
  for (const StoredTensor& tensor : tensors) {
    names_bytes += static_cast<uint32_t>(tensor.name.size());
  }
  const uint64_t table_bytes =
      sizeof(TableHeader) + tensors.size() * sizeof(TableRow) + names_bytes;
  std::string json;
  addBytes(json, "rbc.table", 0, table_bytes);
  uint64_t at = table_bytes;
  int pads = 0;
  const auto align = [&](uint64_t multiple) {
    const uint64_t begin = roundUp(at, multiple);
    if (begin > at) addBytes(json, "rbc.pad" + std::to_string(pads++), at, begin);
    at = begin;
  };
  for (StoredTensor& tensor : tensors) {
    align(tensor.bytes >= kLargeTensor ? kPage : kAlignment);
    tensor.begin = at;
    at += tensor.bytes;
    addToJson(json, tensor.name, nameInJson(tensor.dtype), static_cast<int>(tensor.shape.size()),
              tensor.shape.data(), tensor.begin, at);
  }
  align(kAlignment);

  // The sums cover the header, too, whose size depends on the digits of their number. A page more
  // gives at most one sum more: two rounds settle it.
  std::string whole;
  uint64_t data_begin = 0;
  int64_t num_sums = 0;
  for (uint64_t guess = roundUp(json.size() + 256, kPage); guess != data_begin;) {
    data_begin = guess;
    num_sums = static_cast<int64_t>(blocksOf(data_begin + at)) + 1;
    whole = json;
    addToJson(whole, "rbc.sums", "U64", 1, &num_sums, at, at + 8 * static_cast<uint64_t>(num_sums));
    whole += '}';
    guess = roundUp(sizeof(uint64_t) + whole.size(), kPage);
  }
  const uint64_t json_bytes = data_begin - sizeof(uint64_t);
  whole.resize(json_bytes, ' ');

  SegmentLayout layout;
  layout.sums_begin = data_begin + at;
  layout.file_bytes = layout.sums_begin + 8 * static_cast<uint64_t>(num_sums);
  layout.head.resize(data_begin + table_bytes);
  uint8_t* head = layout.head.data();
  std::memcpy(head, &json_bytes, sizeof json_bytes);
  std::memcpy(head + sizeof json_bytes, whole.data(), whole.size());
  TableHeader header = {};
  std::memcpy(header.magic, kTableMagic, sizeof header.magic);
  header.version = kVersion;
  header.num_tensors = static_cast<uint32_t>(tensors.size());
  header.first_episode = range.first_episode;
  header.num_episodes = range.num_episodes;
  header.first_row = range.first_row;
  header.num_rows = range.num_rows;
  header.sums_begin = layout.sums_begin;
  header.segment = segment;
  header.names_bytes = names_bytes;
  uint8_t* next = head + data_begin;
  std::memcpy(next, &header, sizeof header);
  next += sizeof header;
  uint8_t* names = next + tensors.size() * sizeof(TableRow);
  uint32_t name_begin = 0;
  for (StoredTensor& tensor : tensors) {
    tensor.begin += data_begin;
    TableRow row = {};
    row.begin = tensor.begin;
    row.bytes = tensor.bytes;
    row.name_begin = name_begin;
    row.name_bytes = static_cast<uint16_t>(tensor.name.size());
    const rbcDType dtype = describe(tensor.dtype);
    row.dtype_code = dtype.code;
    row.dtype_bits = dtype.bits;
    row.ndim = static_cast<uint32_t>(tensor.shape.size());
    row.codec = kRawCodec;
    for (size_t i = 0; i < tensor.shape.size(); ++i) row.shape[i] = tensor.shape[i];
    std::memcpy(next, &row, sizeof row);
    next += sizeof row;
    std::memcpy(names + name_begin, tensor.name.data(), tensor.name.size());
    name_begin += row.name_bytes;
  }
  layout.tensors = std::move(tensors);
  return layout;
}

}  // namespace rbc::store
