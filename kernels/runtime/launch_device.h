// What a launcher has to know of the device.
#pragma once

namespace rbc::cuda {

struct LaunchDevice {
  int multiprocessors;
  int compute_capability;  // such as 90
  int block_memory;        // bytes of shared memory that a block may ask for
  bool early_launches;     // a launch may begin while the one before it ends
  bool waits_within;       // the blocks of a launch can wait for each other
};

}  // namespace rbc::cuda
