#include "statistics/channel_pass.h"

namespace rbc::cuda {
namespace statistics {

cudaError_t launchPass(const PassChoice& choice, PassArguments arguments,
                       const LaunchDevice& device, cudaStream_t cuda_stream) {
  arguments.plan = choice.plan;
  constexpr decltype(&launchPassFloat) kLaunches[] = {
      launchPassFloat, launchPassHalf, launchPassAnyFloat, launchPassDouble, launchPassAnyDouble};
  const auto launch = kLaunches[static_cast<int>(choice.reader)];
  return launch(choice.kind, arguments, choice.grid, device, cuda_stream);
}

}  // namespace statistics
}  // namespace rbc::cuda
