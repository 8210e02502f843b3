/*
 * Fuse an arm's pose (100 Hz) and its force sensor (500 Hz) on a camera's 30 Hz clock, in one call.
 *
 *   cc -std=c11 fuse.c $(pkg-config --cflags --libs robocache) -lm && ./a.out
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <robocache/robocache.h>

enum { POSES = 200, FORCES = 1100, FRAMES = 60, POSE = 8, FORCE = 3, STREAMS = 2 };

static float poses[POSES][POSE]; /* x y z, a quaternion x y z w, the gripper */
static float forces[FORCES][FORCE];
static int64_t pose_stamps[POSES]; /* nanoseconds since the epoch */
static int64_t force_stamps[FORCES];
static int64_t frames[FRAMES];
static float fused[FRAMES][POSE + FORCE];
static uint8_t valid[FRAMES][STREAMS];

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

/* Two seconds: the arm circles and turns, the gripper closes. 0.2 s of its poses were lost. */
static void record(void) {
  const int64_t start = INT64_C(1700000000000000000);
  for (int i = 0; i < POSES; ++i) {
    const int64_t since_start = i * INT64_C(10000000) + (i < 100 ? 0 : INT64_C(200000000));
    const double t = 1e-9 * (double)since_start;
    const float pose[POSE] = {
        (float)cos(t),     (float)sin(t),         0.5f, 0, 0, (float)sin(t / 2),
        (float)cos(t / 2), t < 0.75 ? 0.0f : 1.0f};
    for (int j = 0; j < POSE; ++j) poses[i][j] = pose[j];
    pose_stamps[i] = start + since_start;
  }
  for (int i = 0; i < FORCES; ++i) { /* stamped when it arrives: 4 ms late */
    for (int j = 0; j < FORCE; ++j) forces[i][j] = (float)sin(0.002 * i + j);
    force_stamps[i] = start + i * INT64_C(2000000) + INT64_C(4000000);
  }
  for (int i = 0; i < FRAMES; ++i) frames[i] = start + i * INT64_C(1000000000) / 30;
}

int main(void) {
  record();

  int64_t poses_shape[] = {POSES, POSE};
  int64_t forces_shape[] = {FORCES, FORCE};
  int64_t out_shape[] = {FRAMES, POSE + FORCE};
  int64_t mask_shape[] = {FRAMES, STREAMS};
  const rbcTensor pose_values = describe(poses, RBC_DTYPE_FLOAT, 32, 2, poses_shape);
  const rbcTensor pose_times = describe(pose_stamps, RBC_DTYPE_INT, 64, 1, poses_shape);
  const rbcTensor force_values = describe(forces, RBC_DTYPE_FLOAT, 32, 2, forces_shape);
  const rbcTensor force_times = describe(force_stamps, RBC_DTYPE_INT, 64, 1, forces_shape);
  const rbcTensor query_times = describe(frames, RBC_DTYPE_INT, 64, 1, out_shape);
  const rbcTensor out = describe(fused, RBC_DTYPE_FLOAT, 32, 2, out_shape);
  const rbcTensor mask = describe(valid, RBC_DTYPE_UINT, 8, 2, mask_shape);

  /* Positions smoothly, rotations at constant speed, the gripper as it last was. */
  const rbcChannelGroup groups[] = {{.begin = 0, .count = 3, .method = RBC_METHOD_PCHIP},
                                    {.begin = 3, .count = 4, .method = RBC_METHOD_SLERP},
                                    {.begin = 7, .count = 1, .method = RBC_METHOD_PREVIOUS}};
  rbcResampleParams pose_params = rbcResampleParamsInit();
  pose_params.groups = groups;
  pose_params.num_groups = 3;
  pose_params.max_gap = 50e6; /* ns: across a longer hole in the stream, nothing is made up */

  rbcFuseStream streams[STREAMS] = {rbcFuseStreamInit(), rbcFuseStreamInit()};
  streams[0].values = &pose_values;
  streams[0].times = &pose_times;
  streams[0].params = &pose_params;
  streams[1].values = &force_values;
  streams[1].times = &force_times;
  streams[1].clock_offset_ticks = INT64_C(-4000000);

  rbcContextParams context_params = rbcContextParamsInit();
  context_params.backend = RBC_BACKEND_CPU;
  rbcContext_t context;
  check(rbcContextCreate(&context_params, &context));
  rbcFuseParams params = rbcFuseParamsInit();
  params.flags = RBC_FLAG_CHECK_TIMES;
  check(rbcFuse(context, streams, STREAMS, &query_times, &out, &mask, &params));

  int filled[STREAMS] = {0};
  double error = 0;
  for (int i = 0; i < FRAMES; ++i) {
    for (int n = 0; n < STREAMS; ++n) filled[n] += valid[i][n];
    const double turned = 2 * atan2((double)fused[i][5], (double)fused[i][6]);
    if (valid[i][0]) error = fmax(error, fabs(turned - i / 30.0));
    if (valid[i][1]) error = fmax(error, fabs((double)fused[i][8] - sin(i / 30.0)));
  }
  printf("of %d frames %d have a pose and %d a force; rotation and force are off by at most %.0e\n",
         FRAMES, filled[0], filled[1], error);
  for (int i = 20; i < 40; i += 2) {
    printf("frame %d  %s  x %7.4f  gripper %.0f  force %7.4f\n", i, valid[i][0] ? "pose" : "    ",
           (double)fused[i][0], (double)fused[i][7], (double)fused[i][8]);
  }

  check(rbcContextDestroy(context));
  return EXIT_SUCCESS;
}
