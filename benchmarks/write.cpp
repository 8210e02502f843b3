// Writes a case's data for peers.py, so that names of cases are parsed only here: a line of JSON,
// then the bytes of the arrays in its order. Arrays have a block of the recordings, which a batch
// repeats.

#include <cstdio>
#include <string>

#include "backends.h"
#include "cases.h"

namespace bench {

int writeCase(const std::string& name) {
  const CasePtr c = parseCase("", name);
  const Data& data = dataOf(c);
  std::string arrays;
  for (const auto& [kind, array] : data.inputs) {
    std::string shape;
    for (const int64_t extent : array.placement().shape)
      shape += (shape.empty() ? "" : ", ") + std::to_string(extent);
    arrays += (arrays.empty() ? "[\"" : ", [\"") + kind + "\", \"" +
              support::nameOf(array.dtype()) + "\", [" + shape + "]]";
  }
  std::printf("{\"bytes\": %lld, \"in_range\": %.17g, %s, \"arrays\": [%s]}\n",
              static_cast<long long>(data.bytes), data.in_range, c->facts().c_str(),
              arrays.c_str());
  for (const auto& [kind, array] : data.inputs)
    std::fwrite(array.memory().data(), 1, array.memory().bytes(), stdout);
  return std::fflush(stdout) == 0 ? 0 : 1;
}

}  // namespace bench
