// Makes a definition compile for the host and for the device.
#pragma once

#if defined(__CUDACC__)
#define RBC_HD __host__ __device__ __forceinline__
#define RBC_HD_CALLED \
  inline __host__ __device__ __noinline__  // large, called where time matters less
#else
#define RBC_HD inline
#define RBC_HD_CALLED inline
#endif
