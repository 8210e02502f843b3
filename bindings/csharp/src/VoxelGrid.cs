using System;
using System.Runtime.InteropServices;

namespace RoboCache {

/// <summary>A grid of voxels: a corner, the voxel size and the shape.</summary>
[StructLayout(LayoutKind.Sequential)]
public struct VoxelGrid {
  private readonly double originX, originY, originZ;
  private readonly double sizeX, sizeY, sizeZ;
  private readonly long shapeX, shapeY, shapeZ;

  /// <summary>Describes a grid; the elements of the arrays are for x, y, z.</summary>
  /// <param name="origin">The corner with the smallest coordinates, in the points' unit.</param>
  /// <param name="voxelSize">More than 0, in the points' unit.</param>
  /// <param name="shape">The number of voxels along each axis.</param>
  public VoxelGrid(double[] origin, double[] voxelSize, long[] shape) {
    Require(origin, "origin");
    Require(voxelSize, "voxelSize");
    Require(shape, "shape");
    originX = origin[0];
    originY = origin[1];
    originZ = origin[2];
    sizeX = voxelSize[0];
    sizeY = voxelSize[1];
    sizeZ = voxelSize[2];
    shapeX = shape[0];
    shapeY = shape[1];
    shapeZ = shape[2];
  }

  /// <summary>Describes a grid of cubes.</summary>
  public VoxelGrid(double[] origin, double voxelSize, long[] shape)
      : this(origin, new double[] {voxelSize, voxelSize, voxelSize}, shape) {
  }

  /// <summary>The corner with the smallest coordinates.</summary>
  public double[] Origin {
    get { return new double[] {originX, originY, originZ}; }
  }

  /// <summary>The extents of a voxel.</summary>
  public double[] VoxelSize {
    get { return new double[] {sizeX, sizeY, sizeZ}; }
  }

  /// <summary>The number of voxels along x, y, z.</summary>
  public long[] Shape {
    get { return new long[] {shapeX, shapeY, shapeZ}; }
  }

  private static void Require(Array elements, string name) {
    if (elements == null) throw new ArgumentNullException(name);
    if (elements.Length != 3) {
      throw new ArgumentException(name + ": has " + elements.Length + " elements, expected 3");
    }
  }
}

}
