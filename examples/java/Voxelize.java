/*
 * Voxelize a depth camera's points of a floor with a box on it: count the points in each voxel, and
 * average the points of each occupied voxel.
 *
 *   java -cp robocache.jar Voxelize.java
 *
 * SPDX-License-Identifier: Apache-2.0
 */
import io.robocache.Context;
import io.robocache.DType;
import io.robocache.RoboCache;
import io.robocache.VoxelizeSparseOutputs;
import io.robocache.Tensor;
import io.robocache.VoxelGrid;
import io.robocache.VoxelizeParams;
import io.robocache.VoxelizeSparseParams;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.util.Locale;

public class Voxelize {
  static final int POINTS = 4000;
  static final int COLUMNS = 4; // x y z in metres, and an intensity
  static final int X = 12;
  static final int Y = 8;
  static final int Z = 4;
  static final int CAPACITY = 200;

  // Zeros in direct buffers, which C and Java share.
  static final Tensor points = Tensor.allocate(DType.FLOAT32, POINTS, COLUMNS);

  /** Over 3 m x 2 m. The box is 60 cm high, and brighter; every 50th ray has no return. */
  static void look() {
    FloatBuffer out = points.getBuffer().asFloatBuffer();
    for (int i = 0; i < POINTS; ++i) {
      double x = 3 * (i * 0.7548776662 % 1);
      double y = 2 * (i * 0.5698402910 % 1);
      boolean onBox = x > 1 && x < 1.75 && y > 0.5 && y < 1;
      out.put((float) x).put((float) y);
      out.put(i % 50 == 0 ? Float.NaN : onBox ? 0.6f : 0.1f);
      out.put(onBox ? 0.8f : 0.2f);
    }
  }

  public static void main(String[] arguments) {
    look();
    VoxelGrid grid =
        new VoxelGrid(
            new double[] {0, 0, 0}, new double[] {0.25, 0.25, 0.25}, new long[] {X, Y, Z});

    VoxelizeParams dense = new VoxelizeParams();
    dense.setReduction(RoboCache.REDUCE_COUNT);
    dense.setGrid(grid);
    Tensor counts = Tensor.allocate(DType.INT32, X, Y, Z);
    Tensor dropped = Tensor.allocate(DType.INT64);

    VoxelizeSparseParams sparse = new VoxelizeSparseParams(); // the mean
    sparse.setGrid(grid);
    VoxelizeSparseOutputs voxels = new VoxelizeSparseOutputs();
    voxels.setCoords(Tensor.allocate(DType.INT32, CAPACITY, 4)); // cloud x y z
    voxels.setNumVoxels(Tensor.allocate(DType.INT64));
    voxels.setPointsPerVoxel(Tensor.allocate(DType.INT32, CAPACITY));
    voxels.setVoxelFeatures(Tensor.allocate(DType.FLOAT32, CAPACITY, COLUMNS)); // of the points' own

    try (Context context = Context.cpu()) {
      RoboCache.voxelize(context, points, null, counts, dropped, dense);
      RoboCache.voxelizeSparse(context, points, null, voxels, sparse);
    }

    long numDropped = dropped.getBuffer().getLong();
    long numVoxels = voxels.getNumVoxels().getBuffer().getLong();
    System.out.printf(
        Locale.ROOT,
        "%d points are in %d voxels, %d outside; from above, by height:%n",
        POINTS - numDropped,
        numVoxels,
        numDropped);
    IntBuffer inVoxel = counts.getBuffer().asIntBuffer();
    for (int y = Y - 1; y >= 0; --y) {
      StringBuilder row = new StringBuilder();
      for (int x = 0; x < X; ++x) {
        char top = ' ';
        for (int z = 0; z < Z; ++z) {
          if (inVoxel.get((x * Y + y) * Z + z) > 0) top = (char) ('0' + z);
        }
        row.append(top);
      }
      System.out.println(row);
    }
    IntBuffer coords = voxels.getCoords().getBuffer().asIntBuffer();
    IntBuffer sizes = voxels.getPointsPerVoxel().getBuffer().asIntBuffer();
    FloatBuffer means = voxels.getVoxelFeatures().getBuffer().asFloatBuffer();
    for (int i = 0; i < numVoxels; ++i) {
      if (coords.get(4 * i + 3) == 0) continue; // the floor
      System.out.printf(
          Locale.ROOT,
          "voxel %d %d %d: %2d points around %.2f %.2f %.2f, intensity %.1f%n",
          coords.get(4 * i + 1),
          coords.get(4 * i + 2),
          coords.get(4 * i + 3),
          sizes.get(i),
          means.get(4 * i),
          means.get(4 * i + 1),
          means.get(4 * i + 2),
          means.get(4 * i + 3));
    }
  }
}
