// The fields of the library's structs that are numbers, by the list that the ABI is held to.
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

// Those of one struct, such as "rbcResampleParams". Arrays of numbers are one field an element; pointers
// are there where they are to tensors, and may become null.
const std::vector<Field>& fieldsOf(const std::string& owner);

// The names of all fields, which messages may name.
const std::set<std::string>& fieldNames();

}  // namespace fuzz
