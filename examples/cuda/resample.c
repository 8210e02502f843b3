/*
 * Align a batch in memory from cudaMalloc, on a stream of the program: nothing is copied, and the
 * host waits only for the result.
 *
 *   cc -std=c11 resample.c $(pkg-config --cflags --libs robocache) -I/usr/local/cuda/include \
 *     -L/usr/local/cuda/lib64 -lcudart && ./a.out
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cuda_runtime_api.h>
#include <robocache/robocache.h>

enum { BATCH = 2, SAMPLES = 5, TICKS = 4, CHANNELS = 3 };

/* A failed call says in one line which argument was wrong, what it was and what was expected. */
static void check(rbcStatus_t status) {
  if (status == RBC_STATUS_SUCCESS) return;
  fprintf(stderr, "%s: %s\n", rbcStatusName(status), rbcGetLastError());
  exit(EXIT_FAILURE);
}

static void checkCuda(cudaError_t error) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "%s: %s\n", cudaGetErrorName(error), cudaGetErrorString(error));
  exit(EXIT_FAILURE);
}

/* Device memory with what `host` holds, or with nothing yet. */
static void* upload(const void* host, size_t bytes) {
  void* device;
  checkCuda(cudaMalloc(&device, bytes));
  if (host != NULL) checkCuda(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice));
  return device;
}

/* Describes a compact array of f32 on device 0. The shape must outlive the call. */
static rbcTensor describe(void* data, int32_t ndim, int64_t* shape) {
  const rbcTensor tensor = {
      .data = data,
      .device = {RBC_DEVICE_CUDA, 0},
      .ndim = ndim,
      .dtype = {RBC_DTYPE_FLOAT, 32, 1},
      .shape = shape,
  };
  return tensor;
}

int main(void) {
  rbcContextParams context_params = rbcContextParamsInit();
  context_params.backend = RBC_BACKEND_CUDA;
  rbcContext_t context;
  if (rbcContextCreate(&context_params, &context) != RBC_STATUS_SUCCESS) {
    printf("SKIPPED: %s\n", rbcGetLastError());
    return EXIT_SUCCESS;
  }
  cudaStream_t stream;
  checkCuda(cudaStreamCreate(&stream));
  check(rbcContextSetCudaStream(context, stream));

  float recorded[BATCH][SAMPLES][CHANNELS];
  float stamps[BATCH][SAMPLES];
  float ticks[TICKS] = {0.25f, 1.0f, 2.5f,
                        4.5f}; /* of both recordings; the last is past their end */
  for (int b = 0; b < BATCH; ++b) {
    for (int s = 0; s < SAMPLES; ++s) {
      stamps[b][s] = (float)s;
      for (int c = 0; c < CHANNELS; ++c) recorded[b][s][c] = (float)(100 * b + 10 * s + c);
    }
  }

  int64_t values_shape[] = {BATCH, SAMPLES, CHANNELS};
  int64_t times_shape[] = {BATCH, SAMPLES};
  int64_t ticks_shape[] = {TICKS};
  int64_t out_shape[] = {BATCH, TICKS, CHANNELS};
  const rbcTensor values = describe(upload(recorded, sizeof recorded), 3, values_shape);
  const rbcTensor times = describe(upload(stamps, sizeof stamps), 2, times_shape);
  const rbcTensor query_times = describe(upload(ticks, sizeof ticks), 1, ticks_shape);
  float aligned[BATCH][TICKS][CHANNELS];
  const rbcTensor out = describe(upload(NULL, sizeof aligned), 3, out_shape);

  /* Only enqueued: what follows on the stream sees the result. */
  check(rbcResample(context, &values, &times, &query_times, &out, NULL, NULL));
  checkCuda(cudaMemcpyAsync(aligned, out.data, sizeof aligned, cudaMemcpyDeviceToHost, stream));
  checkCuda(cudaStreamSynchronize(stream));

  for (int b = 0; b < BATCH; ++b) {
    for (int t = 0; t < TICKS; ++t) {
      printf("recording %d at %.2f: %6.1f %6.1f %6.1f\n", b, (double)ticks[t],
             (double)aligned[b][t][0], (double)aligned[b][t][1], (double)aligned[b][t][2]);
    }
  }

  const rbcTensor tensors[] = {values, times, query_times, out};
  for (int i = 0; i < 4; ++i) checkCuda(cudaFree(tensors[i].data));
  check(rbcContextDestroy(context)); /* before its stream */
  checkCuda(cudaStreamDestroy(stream));
  return EXIT_SUCCESS;
}
