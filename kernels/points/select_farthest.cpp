// Chooses the number of blocks for a cloud, and the number of points that each block keeps.

#include "points/select_farthest.h"

#include <algorithm>

#include "ceil_div.h"
#include "runtime/conditions.h"

namespace rbc::cuda {
namespace farthest {
namespace {

// The most blocks per cloud such that all clouds run at once.
int blocksTogether(const FarthestProblem& p, const LaunchDevice& device) {
  int cluster = 1;
  while (2 * cluster <= mostBlocks(device) &&
         2 * cluster * p.points.clouds <= device.multiprocessors) {
    cluster *= 2;
  }
  return cluster;
}

// The facts that decide between the forms that keep the points.
struct Clouds {
  int64_t expected;  // points
  int cluster;       // blocks per cloud
  Form largest;      // that fits the device
};

// Conditions on a form that keeps the points.
constexpr Condition<Form, Clouds> kKept[] = {
    {[](const Form& form, const Clouds& clouds) { return form.room <= clouds.largest.room; },
     "device: too little shared memory for {} points per block",
     [](const Form& form, const Clouds&) { return form.room; }},
    {[](const Form& form, const Clouds& clouds) {
       return clouds.expected <= clouds.cluster * form.room;
     },
     "points: {} in a cloud, more than its blocks keep",
     [](const Form&, const Clouds& clouds) { return clouds.expected; }},
};

}  // namespace

int mostBlocks(const LaunchDevice& device) {
  if (!device.early_launches) return 1;
  return device.compute_capability == 90 ? kMaxCluster : 8;
}

}  // namespace farthest

FarthestChoice selectFarthest(const FarthestProblem& p, const LaunchDevice& device) {
  using namespace farthest;
  const bool doubles = computesInDouble(p.points.dtype);
  const Form* const forms = doubles ? kFormsOfDoubles : kFormsOfFloats;
  const size_t static_bytes = doubles ? kStaticBytesOfDoubles : kStaticBytesOfFloats;
  const auto fits = [&](const Form& form) {
    return form.sharedBytes(mostBlocks(device)) + static_bytes <=
           static_cast<size_t>(device.block_memory);
  };
  const int64_t rows = std::max<int64_t>(1, p.points.rows);
  // For packed clouds only the sum of their sizes is known here: some are larger than the mean.
  const int64_t expected =
      p.points.packed() ? std::min(rows, 2 * ceilDiv(rows, std::max<int64_t>(1, p.points.clouds)))
                        : rows;
  int largest = 0;
  for (int i = 0; i < kKeptForms; ++i) {
    if (fits(forms[i])) largest = i;
  }
  // More blocks cost more to synchronize than they save: only as many as the points need.
  int cluster = 1;
  while (cluster < mostBlocks(device) && expected > cluster * forms[largest].room) cluster *= 2;
  // In the workspace a point takes about four times as long as in a multiprocessor, but there all
  // clouds may run at once.
  const int together = blocksTogether(p, device);
  const auto turns = [&](int64_t blocks) {
    return ceilDiv(p.points.clouds * blocks, int64_t{device.multiprocessors});
  };
  if (turns(cluster) > 4 * turns(together)) cluster = together;

  FarthestChoice choice;
  const Clouds clouds = {expected, cluster, forms[largest]};
  int number = 0;
  while (number < kKeptForms && !meets<kKept>(&choice.because, forms[number], clouds)) ++number;
  choice.general = number == kLarge;
  choice.kernel = choice.general ? "farthest_workspace" : "farthest_kept";
  if (choice.general) {
    choice.because.kernel = "farthest_kept";
    if (!fits(forms[kLarge])) number = largest;
    cluster = together;
  } else {
    choice.because = {};
  }
  choice.number = number;
  choice.form = forms[number].name;
  choice.cluster = cluster;
  choice.in_workspace = choice.general || rows > cluster * forms[number].room;
  choice.grid = p.points.clouds * cluster;
  choice.threads = forms[number].threads;
  choice.shared_bytes = static_cast<int32_t>(forms[number].sharedBytes(cluster));
  return choice;
}

}  // namespace rbc::cuda
