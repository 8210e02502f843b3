// Compiled with -fno-exceptions, and linked with code that has exceptions.
#include "without_exceptions.h"

#include <string>
#include <vector>

#include "robocache/robocache.hpp"

#if defined(__cpp_exceptions)
#error "this source must be compiled with -fno-exceptions"
#endif

std::string support::resampledWithoutExceptions() {
  const auto context = robocache::Context::cpu(1);
  if (!context) return context.error().what();
  const std::vector<float> values = {0, 10, 20};
  const std::vector<double> times = {0, 1, 2};
  const std::vector<double> queries = {0.5, 1.5};
  std::vector<float> out(2);
  const robocache::Result<void> done =
      robocache::resample(*context, {values, {3, 1}}, times, queries, {out, {2, 1}});
  if (!done) return done.error().what();
  if (out != std::vector<float>{5, 15}) return "out is wrong";
  const auto refused = robocache::resample(*context, values, times, queries, out);
  if (refused || refused.error().status() != RBC_STATUS_SHAPE_MISMATCH) return "not refused";
  return "";
}
