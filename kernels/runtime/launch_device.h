// The device properties that a launcher needs.
#pragma once

namespace rbc::cuda {

struct LaunchDevice {
  int multiprocessors;
  int compute_capability;  // for example 90
  int block_memory;        // bytes of shared memory that a block may request
  bool early_launches;     // a launch may begin before the previous one has ended
  bool waits_within;       // the blocks of a launch can wait for each other
};

}  // namespace rbc::cuda
