/*
 * A robot's control loop: two threads push the samples of their sensors, and the loop fuses them at
 * each tick, with a history of four rows. Each row is then compared with rbcFuse of the samples
 * that had arrived.
 *
 *   cc -std=c11 live.c $(pkg-config --cflags --libs robocache) -lm -pthread && ./a.out
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <robocache/robocache.h>

enum { STREAMS = 2, MOST = 1000, JOINTS = 7, FORCES = 3, WIDTH = JOINTS + FORCES };
enum { KEPT = 32, TICKS = 200, HISTORY = 4, FASTER = 4 };

typedef struct Sensor {
  int32_t stream;
  int64_t channels, count;
  double rate;
  double times[MOST];
  float values[MOST * JOINTS];
} Sensor;

static Sensor sensors[STREAMS] = {{.stream = 0, .channels = JOINTS, .count = 400, .rate = 100},
                                  {.stream = 1, .channels = FORCES, .count = 1000, .rate = 250}};
static rbcContext_t context;
static rbcLive_t live;
static rbcResampleParams resampling; /* of all streams, in rbcLive and in rbcFuse */
static struct timespec start;

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

/* Sleep until the sensors' clock reaches `seconds`. */
static void sleepUntil(double seconds) {
  const double nanoseconds = (double)start.tv_nsec + 1e9 * seconds / FASTER;
  struct timespec until = {start.tv_sec + (time_t)(nanoseconds / 1e9),
                           (long)fmod(nanoseconds, 1e9)};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

/* A sensor's thread: each sample as it comes. */
static void* produce(void* argument) {
  Sensor* sensor = argument;
  for (int64_t i = 0; i < sensor->count; ++i) {
    sleepUntil(sensor->times[i]);
    int64_t shape[] = {1, sensor->channels};
    const rbcTensor times = describe(&sensor->times[i], RBC_DTYPE_FLOAT, 64, 1, shape);
    const rbcTensor values =
        describe(&sensor->values[i * sensor->channels], RBC_DTYPE_FLOAT, 32, 2, shape);
    check(rbcLivePush(live, sensor->stream, &values, &times, NULL));
  }
  return NULL;
}

static int64_t pushed(int32_t stream) {
  rbcLiveCounters counters = rbcLiveCountersInit();
  check(rbcLiveGetCounters(live, stream, &counters));
  return counters.kept;
}

/* Whether a sensor's columns equal rbcFuse of its first `come` samples, except lost ones. */
static int isFused(Sensor* sensor, int64_t come, rbcTensor* queries, const float* columns) {
  const int64_t first = come > KEPT ? come - KEPT : 0;
  int64_t shape[] = {come - first, sensor->channels};
  int64_t out_shape[] = {HISTORY, sensor->channels};
  float fused[HISTORY * JOINTS];
  const rbcTensor times = describe(sensor->times + first, RBC_DTYPE_FLOAT, 64, 1, shape);
  const rbcTensor values =
      describe(sensor->values + first * sensor->channels, RBC_DTYPE_FLOAT, 32, 2, shape);
  const rbcTensor out = describe(fused, RBC_DTYPE_FLOAT, 32, 2, out_shape);
  rbcFuseStream stream = rbcFuseStreamInit();
  stream.values = &values;
  stream.times = &times;
  stream.params = &resampling;
  check(rbcFuse(context, &stream, 1, queries, &out, NULL, NULL));
  for (int t = 0; t < HISTORY; ++t) {
    if (memcmp(fused + t * sensor->channels, columns + t * WIDTH,
               (size_t)sensor->channels * sizeof(float)) != 0)
      return 0;
  }
  return 1;
}

int main(void) {
  resampling = rbcResampleParamsInit();
  resampling.flags = RBC_FLAG_CAUSAL;
  resampling.max_age = 10; /* s; an older sensor counts as dead */
  rbcLiveStream streams[STREAMS];
  for (int n = 0; n < STREAMS; ++n) {
    Sensor* sensor = &sensors[n];
    for (int64_t i = 0; i < sensor->count; ++i) { /* with some jitter */
      sensor->times[i] = ((double)i + 0.3 * sin(7.0 * (double)i)) / sensor->rate;
      for (int64_t d = 0; d < sensor->channels; ++d) {
        sensor->values[i * sensor->channels + d] = (float)sin(3 * sensor->times[i] + (double)d);
      }
    }
    streams[n] = rbcLiveStreamInit();
    streams[n].num_channels = sensor->channels;
    streams[n].capacity = KEPT;
    streams[n].params = &resampling;
  }
  rbcContextParams params = rbcContextParamsInit();
  params.backend = RBC_BACKEND_CPU;
  check(rbcContextCreate(&params, &context));
  check(rbcLiveCreate(context, streams, STREAMS, NULL, &live));

  clock_gettime(CLOCK_MONOTONIC, &start);
  pthread_t threads[STREAMS];
  for (int n = 0; n < STREAMS; ++n) pthread_create(&threads[n], NULL, produce, &sensors[n]);

  int equal = 0;
  for (int i = 0; i < TICKS; ++i) { /* 50 Hz */
    const double now = 0.02 * i;
    sleepUntil(now);
    double query_times[HISTORY];
    for (int t = 0; t < HISTORY; ++t) query_times[t] = now - 0.02 * (HISTORY - 1 - t);
    float row[HISTORY][WIDTH];
    double ages[STREAMS];
    int64_t shape[] = {HISTORY, WIDTH};
    int64_t age_shape[] = {STREAMS};
    rbcTensor queries = describe(query_times, RBC_DTYPE_FLOAT, 64, 1, shape);
    const rbcTensor out = describe(row, RBC_DTYPE_FLOAT, 32, 2, shape);
    const rbcTensor age = describe(ages, RBC_DTYPE_FLOAT, 64, 1, age_shape);
    const int64_t before[STREAMS] = {pushed(0), pushed(1)};
    check(rbcLiveFuse(live, &queries, &out, NULL, &age, NULL));
    const int64_t after[STREAMS] = {pushed(0), pushed(1)};

    /* A sample that came during the call may or may not be in it. */
    const float* columns = row[0];
    int right = 0;
    for (int n = 0; n < STREAMS; ++n) {
      int found = 0;
      for (int64_t come = before[n]; come <= after[n] && !found; ++come) {
        found = isFused(&sensors[n], come, &queries, columns);
      }
      right += found;
      columns += sensors[n].channels;
    }
    equal += right == STREAMS;
  }
  for (int n = 0; n < STREAMS; ++n) pthread_join(threads[n], NULL);

  printf("%d of %d ticks equal rbcFuse, bit for bit\n", equal, TICKS);
  for (int32_t n = 0; n < STREAMS; ++n) printf("sensor %d: %d samples\n", n, (int)pushed(n));
  check(rbcLiveDestroy(live));
  check(rbcContextDestroy(context));
  return EXIT_SUCCESS;
}
