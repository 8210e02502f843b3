// The numeric fields of the library's structs, from the list that defines the ABI.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace fuzz {

struct Field {
  enum Kind { kInteger, kReal, kTensor };
  std::string owner;
  std::string name;
  size_t offset;
  size_t bytes;
  Kind kind;
};

// The fields of one struct, such as "rbcResampleParams". In an array of numbers each element is a
// field; pointers are included if they point to tensors, and may become null.
const std::vector<Field>& fieldsOf(const std::string& owner);

// The names of all fields, which messages may name.
const std::set<std::string>& fieldNames();

}  // namespace fuzz
