// Checks of voxelization cases beyond those that every table gets.
#pragma once

#include <vector>

#include "check_cases.h"
#include "voxel_cases.h"
#include "voxel_run.h"
#include "voxel_scratch.h"

namespace support {

// Whatever lies in the workspace: the result is right, and nothing past its bytes is written.
template <class Case>
void checkScratch(int32_t backend, const std::vector<Case>& cases) {
  rbcContextParams params = rbcContextParamsInit();
  params.backend = backend;
  const PoisonedScratch scratch(params);
  Failures failures;
  for (const Case& c : fewerWhenSanitized(cases)) {
    const auto in = inputsOf(c);
    const auto expected = expectedOf(in);
    for (const uint8_t byte : {0xA5, 0xFF}) {
      auto placed = placedOf(scratch.other(), in);
      const size_t used = placed.workspaceSize(scratch.context());
      require(rbcContextReserve(scratch.context().get(), used));
      scratch.poison(byte);
      const auto result = detail::finish(
          scratch.context(), placed, [](auto&& call) { return call(); },
          [&] { return placed.call(scratch.context()); });
      const bool right = result.output == expected;
      const bool inside = scratch.isPoisonPast(used, byte);
      CHECK_MESSAGE(right, "a workspace of ", static_cast<int>(byte), " changes ", describe(c), " ",
                    result.message);
      CHECK_MESSAGE(inside, "wrote past ", used, " bytes of workspace in ", describe(c));
      failures.add(right && inside);
    }
  }
}

}  // namespace support
