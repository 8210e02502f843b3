// Builds a table of fusion cases, and the streams that several cases share.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "fuse_cases.h"

namespace support {
namespace detail {

// The recording of a robot: a pose in groups, inertial sensors, a camera's features, contacts.
std::vector<StreamCase> robotStreams();

enum class ManyKind { kLines, kFormulas };

// Streams of one dtype, with methods of one kind, that differ in everything else. `odd`: with
// widths that are not whole vectors, therefore without quaternions.
std::vector<StreamCase> manyStreams(int count, rbcDType dtype, ManyKind kind, bool odd);

// Adds cases to a table one by one, each with its own seed; `edit` gets a robot's streams.
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

// The same for narrow streams, with enough recordings to fill a GPU, unless a case sets the number.
struct NarrowTable {
  std::string kind;
  uint64_t first_seed;
  int64_t (*enough_recordings)(const FuseCase& c);
  std::vector<FuseCase> cases = {};

  template <class Edit>
  void add(const std::string& name, std::vector<StreamCase> streams, Edit&& edit) {
    FuseCase c;
    c.name = kind + ", " + name;
    c.seed = first_seed + cases.size();
    c.flush = cases.size() % 2 == 0 ? Flush::kEnd : Flush::kBegin;
    c.order = kQueryOrders[cases.size() % 4];
    c.batch = 0;
    c.queries = 65;
    c.streams = std::move(streams);
    edit(c);
    if (c.batch == 0) c.batch = enough_recordings(c);
    if (same(c.times, kI64)) {
      for (StreamCase& s : c.streams)
        s.clock_offset_ticks = static_cast<int64_t>(s.clock_offset * 1e9), s.clock_offset = 0;
    }
    cases.push_back(std::move(c));
  }
};

// The part of fuseCases() with more than a few streams.
void addManyStreams(FuseTable& add);

}  // namespace detail
}  // namespace support
