/*
 * Align a robot's joints, recorded at about 100 Hz with jitter, on a camera's 30 Hz clock.
 *
 *   cc -std=c11 resample.c $(pkg-config --cflags --libs robocache) -lm && ./a.out
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <robocache/robocache.h>

enum { SAMPLES = 200, FRAMES = 60, JOINTS = 7 };

static float positions[SAMPLES][JOINTS];
static int64_t stamps[SAMPLES]; /* nanoseconds since the epoch, as a robot's logger writes them */
static int64_t frames[FRAMES];
static float aligned[FRAMES][JOINTS];
static uint8_t valid[FRAMES];

/* A failed call says in one line which argument was wrong, what it was and what was expected. */
static void check(rbcStatus_t status) {
  if (status == RBC_STATUS_SUCCESS) return;
  fprintf(stderr, "%s: %s\n", rbcStatusName(status), rbcGetLastError());
  exit(EXIT_FAILURE);
}

/* Describes a compact array in host memory. Nothing is copied: the shape must outlive the call. */
static rbcTensor describe(void* data, uint8_t code, uint8_t bits, int32_t ndim, int64_t* shape) {
  const rbcTensor tensor = {
      .data = data,
      .device = {RBC_DEVICE_CPU, 0},
      .ndim = ndim,
      .dtype = {code, bits, 1},
      .shape = shape,
  };
  return tensor;
}

/* Two seconds of motion. The joint stamps jitter by up to 4 ms, and 0.2 s were lost at second 1. */
static void record(void) {
  const int64_t start = INT64_C(1700000000000000000);
  uint32_t seed = 1;
  for (int i = 0; i < SAMPLES; ++i) {
    seed = seed * 1664525u + 1013904223u;
    const int64_t jitter = (int64_t)(seed >> 8) % 8000001 - 4000000;
    const int64_t lost = i < 100 ? 0 : INT64_C(200000000);
    const int64_t since_start = i * INT64_C(10000000) + jitter + lost;
    stamps[i] = start + since_start;
    for (int j = 0; j < JOINTS; ++j) {
      positions[i][j] = (float)sin(1e-9 * (double)since_start + j);
    }
  }
  for (int i = 0; i < FRAMES; ++i) frames[i] = start + i * INT64_C(1000000000) / 30;
}

int main(void) {
  record();

  int64_t values_shape[] = {SAMPLES, JOINTS};
  int64_t times_shape[] = {SAMPLES};
  int64_t out_shape[] = {FRAMES, JOINTS};
  int64_t frames_shape[] = {FRAMES};
  const rbcTensor values = describe(positions, RBC_DTYPE_FLOAT, 32, 2, values_shape);
  const rbcTensor times = describe(stamps, RBC_DTYPE_INT, 64, 1, times_shape);
  const rbcTensor query_times = describe(frames, RBC_DTYPE_INT, 64, 1, frames_shape);
  const rbcTensor out = describe(aligned, RBC_DTYPE_FLOAT, 32, 2, out_shape);
  const rbcTensor mask = describe(valid, RBC_DTYPE_UINT, 8, 1, frames_shape);

  /* On a GPU's tensors this would be RBC_BACKEND_CUDA, and the call would return at once. */
  rbcContextParams context_params = rbcContextParamsInit();
  context_params.backend = RBC_BACKEND_CPU;
  rbcContext_t context;
  check(rbcContextCreate(&context_params, &context));

  rbcResampleParams params = rbcResampleParamsInit();
  params.flags = RBC_FLAG_CHECK_TIMES;
  params.max_gap = 50e6; /* ns: across a longer hole in the stream, nothing is made up */
  check(rbcResample(context, &values, &times, &query_times, &out, &mask, &params));

  int filled = 0;
  double error = 0;
  for (int i = 0; i < FRAMES; ++i) {
    filled += valid[i];
    for (int j = 0; j < JOINTS && valid[i]; ++j) {
      error = fmax(error, fabs((double)aligned[i][j] - sin(i / 30.0 + j)));
    }
  }
  printf("%d of %d frames have joint positions, off by at most %.0e\n", filled, FRAMES, error);
  for (int i = 28; i < 38; ++i) {
    printf("frame %d  %s  %7.4f %7.4f\n", i, valid[i] ? "valid" : "     ", (double)aligned[i][0],
           (double)aligned[i][1]);
  }

  check(rbcContextDestroy(context));
  return EXIT_SUCCESS;
}
