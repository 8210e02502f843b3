// How a table of fusion cases is written, and the streams that several cases have.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "fuse_cases.h"

namespace support {
namespace detail {

// What a robot records: a pose in groups, inertial sensors, a camera's features, contacts.
std::vector<StreamCase> robotStreams();

enum class ManyKind { kLines, kFormulas };

// Streams of one dtype, by methods of a kind, that differ in all else. `odd`: of widths that no
// vectors make up, so without quaternions.
std::vector<StreamCase> manyStreams(int count, rbcDType dtype, ManyKind kind, bool odd);

// Adds cases to a table one by one, each with a seed of its own; `edit` meets a robot's streams.
struct FuseTable {
  std::vector<FuseCase> cases;
  uint64_t first_seed;

  template <class Edit>
  void operator()(const std::string& name, Edit&& edit) {
    FuseCase c;
    c.name = name;
    c.seed = first_seed + cases.size();
    c.flush = cases.size() % 2 == 0 ? Flush::kEnd : Flush::kBegin;
    c.streams = robotStreams();
    edit(c);
    cases.push_back(std::move(c));
  }
};

// The part of fuseCases() of more streams than few.
void addManyStreams(FuseTable& add);

}  // namespace detail
}  // namespace support
