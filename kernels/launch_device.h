// What a launcher has to know of the device.
#pragma once

namespace rbc {

struct LaunchDevice {
  int multiprocessors;
  int compute_capability;  // such as 90
};

}  // namespace rbc
