// Voxelize a depth camera's points of a floor with a box on it: count the points in each voxel, and
// average the points of each occupied voxel.
//
//   mcs -r:RoboCache.dll Voxelize.cs && mono Voxelize.exe
//
// SPDX-License-Identifier: Apache-2.0
using System;
using System.Globalization;
using RoboCache;

static class Voxelize {
  private const int Points = 4000;
  private const int Columns = 4; // x y z in metres, and an intensity
  private const int X = 12;
  private const int Y = 8;
  private const int Z = 4;
  private const int Capacity = 200;

  // Spread over 3 m x 2 m. The box is 60 cm high, and brighter; every 50th ray has no return.
  private static float[,] Look() {
    float[,] points = new float[Points, Columns];
    for (int i = 0; i < Points; ++i) {
      double x = 3 * (i * 0.7548776662 % 1);
      double y = 2 * (i * 0.5698402910 % 1);
      bool onBox = x > 1 && x < 1.75 && y > 0.5 && y < 1;
      points[i, 0] = (float)x;
      points[i, 1] = (float)y;
      points[i, 2] = i % 50 == 0 ? float.NaN : onBox ? 0.6f : 0.1f;
      points[i, 3] = onBox ? 0.8f : 0.2f;
    }
    return points;
  }

  private static void Main() {
    CultureInfo.CurrentCulture = CultureInfo.InvariantCulture;
    float[,] points = Look();
    VoxelGrid grid = new VoxelGrid(new double[] {0, 0, 0}, 0.25, new long[] {X, Y, Z});

    int[,,] counts = new int[X, Y, Z];
    long[] dropped = new long[1];
    int[,] coords = new int[Capacity, 4]; // cloud x y z
    long[] numVoxels = new long[1];
    int[] sizes = new int[Capacity];
    float[,] means = new float[Capacity, Columns];
    long[] scalar = new long[0];
    using (Context context = Context.Cpu()) {
      context.Voxelize(points, counts, new VoxelizeParams {Reduction = Rbc.ReduceCount, Grid = grid},
                       numPointsOutside: Tensor.Of(dropped, scalar));
      VoxelizeSparseOutputs voxels = new VoxelizeSparseOutputs {
        Coords = coords,
        NumVoxels = Tensor.Of(numVoxels, scalar),
        PointsPerVoxel = sizes,
        VoxelFeatures = means, // of the points' own columns
      };
      context.VoxelizeSparse(points, voxels, new VoxelizeSparseParams {Grid = grid}); // the mean
    }

    Console.WriteLine("{0} points are in {1} voxels, {2} outside; from above, by height:",
                      Points - dropped[0], numVoxels[0], dropped[0]);
    for (int y = Y - 1; y >= 0; --y) {
      for (int x = 0; x < X; ++x) {
        char top = ' ';
        for (int z = 0; z < Z; ++z) {
          if (counts[x, y, z] > 0) top = (char)('0' + z);
        }
        Console.Write(top);
      }
      Console.WriteLine();
    }
    for (int i = 0; i < numVoxels[0]; ++i) {
      if (coords[i, 3] == 0) continue; // the floor
      Console.WriteLine("voxel {0} {1} {2}: {3,2} points around {4:F2} {5:F2} {6:F2}, " +
                        "intensity {7:F1}", coords[i, 1], coords[i, 2], coords[i, 3], sizes[i],
                        means[i, 0], means[i, 1], means[i, 2], means[i, 3]);
    }
  }
}
