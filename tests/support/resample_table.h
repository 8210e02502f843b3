// Builds a table of resampling cases.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cases.h"

namespace support {
namespace detail {

// Adds cases to a table one by one, each with its own seed.
struct ResampleTable {
  std::vector<ResampleCase> cases;
  uint64_t first_seed = 1;

  template <class Edit>
  void operator()(const std::string& name, Edit&& edit) {
    ResampleCase c;
    c.name = name;
    c.seed = first_seed + cases.size();
    c.flush = cases.size() % 2 == 0 ? Flush::kEnd : Flush::kBegin;
    edit(c);
    cases.push_back(std::move(c));
  }
};

}  // namespace detail
}  // namespace support
