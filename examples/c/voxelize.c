/*
 * Voxelize a depth camera's points of a floor with a box on it: count the points in each voxel, and
 * average the points of each occupied voxel.
 *
 *   cc -std=c11 voxelize.c $(pkg-config --cflags --libs robocache) -lm && ./a.out
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <robocache/robocache.h>

enum { POINTS = 4000, COLUMNS = 4, X = 12, Y = 8, Z = 4, CAPACITY = 200 };

static float points[POINTS][COLUMNS]; /* x y z in metres, and an intensity */
static int32_t counts[X][Y][Z];
static int32_t coords[CAPACITY][4]; /* cloud x y z */
static int32_t sizes[CAPACITY];
static float means[CAPACITY][COLUMNS];

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

/* Spread evenly over 3 m x 2 m. The box is 60 cm high, and brighter; every 50th ray has no return. */
static void look(void) {
  for (int i = 0; i < POINTS; ++i) {
    const double x = 3 * fmod(i * 0.7548776662, 1);
    const double y = 2 * fmod(i * 0.5698402910, 1);
    const int on_box = x > 1 && x < 1.75 && y > 0.5 && y < 1;
    points[i][0] = (float)x;
    points[i][1] = (float)y;
    points[i][2] = i % 50 == 0 ? NAN : on_box ? 0.6f : 0.1f;
    points[i][3] = on_box ? 0.8f : 0.2f;
  }
}

int main(void) {
  look();

  const rbcVoxelGrid grid = {{0, 0, 0}, {0.25, 0.25, 0.25}, {X, Y, Z}};
  int64_t dropped = 0;
  int64_t num_voxels = 0;
  int64_t points_shape[] = {POINTS, COLUMNS};
  int64_t grid_shape[] = {X, Y, Z};
  int64_t coords_shape[] = {CAPACITY, 4};
  int64_t means_shape[] = {CAPACITY, COLUMNS};
  const rbcTensor cloud = describe(points, RBC_DTYPE_FLOAT, 32, 2, points_shape);
  const rbcTensor counts_out = describe(counts, RBC_DTYPE_INT, 32, 3, grid_shape);
  const rbcTensor dropped_out = describe(&dropped, RBC_DTYPE_INT, 64, 0, NULL);
  const rbcTensor coords_out = describe(coords, RBC_DTYPE_INT, 32, 2, coords_shape);
  const rbcTensor number_out = describe(&num_voxels, RBC_DTYPE_INT, 64, 0, NULL);
  const rbcTensor sizes_out = describe(sizes, RBC_DTYPE_INT, 32, 1, coords_shape);
  const rbcTensor means_out = describe(means, RBC_DTYPE_FLOAT, 32, 2, means_shape);

  rbcContextParams context_params = rbcContextParamsInit();
  context_params.backend = RBC_BACKEND_CPU;
  rbcContext_t context;
  check(rbcContextCreate(&context_params, &context));

  rbcVoxelizeParams dense = rbcVoxelizeParamsInit();
  dense.reduction = RBC_REDUCE_COUNT;
  dense.grid = grid;
  check(rbcVoxelize(context, &cloud, NULL, &counts_out, &dropped_out, &dense));

  rbcVoxelizeSparseParams sparse = rbcVoxelizeSparseParamsInit(); /* the mean */
  sparse.grid = grid;
  rbcVoxelizeSparseOutputs voxels = rbcVoxelizeSparseOutputsInit();
  voxels.coords = &coords_out;
  voxels.num_voxels = &number_out;
  voxels.points_per_voxel = &sizes_out;
  voxels.voxel_features = &means_out; /* of the points' own columns */
  check(rbcVoxelizeSparse(context, &cloud, NULL, &voxels, &sparse));

  printf("%d points are in %d voxels, %d outside; from above, by height:\n", POINTS - (int)dropped,
         (int)num_voxels, (int)dropped);
  for (int y = Y - 1; y >= 0; --y) {
    for (int x = 0; x < X; ++x) {
      char top = ' ';
      for (int z = 0; z < Z; ++z) {
        if (counts[x][y][z] > 0) top = (char)('0' + z);
      }
      putchar(top);
    }
    putchar('\n');
  }
  for (int i = 0; i < num_voxels; ++i) {
    if (coords[i][3] == 0) continue; /* the floor */
    printf("voxel %d %d %d: %2d points around %.2f %.2f %.2f, intensity %.1f\n", coords[i][1],
           coords[i][2], coords[i][3], sizes[i], (double)means[i][0], (double)means[i][1],
           (double)means[i][2], (double)means[i][3]);
  }

  check(rbcContextDestroy(context));
  return EXIT_SUCCESS;
}
