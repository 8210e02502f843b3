// Makes a definition compile for the host and for the device.
#pragma once

#if defined(__CUDACC__)
#define RBC_HD __host__ __device__ __forceinline__
#else
#define RBC_HD inline
#endif
