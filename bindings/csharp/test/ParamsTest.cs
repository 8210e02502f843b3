using System;
using System.Runtime.CompilerServices;
using RoboCache;

/// Structs of parameters: defaults, objects that they keep alive, and errors.
static class ParamsTest {
  [Test]
  static void DefaultsAreThoseOfC() {
    ResampleParams resample = new ResampleParams();
    Expect.Equal(Rbc.MethodLinear, resample.Method);
    Expect.Equal(Rbc.OutsideHold, resample.Outside);
    Expect.Equal(0u, resample.Flags);
    Expect.Equal(0.0, resample.FillValue);
    Expect.Equal(double.PositiveInfinity, resample.MaxGap);
    Expect.Equal(double.PositiveInfinity, resample.Tolerance);
    Expect.True(resample.Lengths == null && resample.Groups == null, "is not null");
    FuseStream stream = new FuseStream();
    Expect.True(stream.Values == null && stream.Params == null, "is not null");
    Expect.Equal(0L, stream.ClockOffsetTicks);
    Expect.Equal(0u, new FuseParams().Flags);
    Expect.Equal(Rbc.ReduceOccupancy, new VoxelizeParams().Reduction);
    Expect.Equal(new long[] {0, 0, 0}, new VoxelizeParams().Grid.Shape);
    Expect.Equal(Rbc.ReduceMean, new VoxelizeSparseParams().Reduction);
    Expect.Equal(Rbc.VoxelizeSparseOrderLexicographic, new VoxelizeSparseParams().Order);
    Expect.Equal(double.PositiveInfinity, new VoxelizeTsdfParams().MaxWeight);
    Expect.Equal(Rbc.BackendAuto, new ContextParams().Backend);
  }

  [Test]
  static void PropertiesHoldWhatWasSet() {
    FuseStream stream = new FuseStream {ClockOffsetTicks = long.MinValue, ClockOffset = 0.125};
    Expect.Equal(long.MinValue, stream.ClockOffsetTicks);
    Expect.Equal(0.125, stream.ClockOffset);
    VoxelizeParams voxelize = new VoxelizeParams {
      Grid = new VoxelGrid(new double[] {-1, -2, -3}, new double[] {0.5, 0.25, 2},
                           new long[] {4, 5, 1L << 30})
    };
    Expect.Equal(new double[] {-1, -2, -3}, voxelize.Grid.Origin);
    Expect.Equal(new double[] {0.5, 0.25, 2}, voxelize.Grid.VoxelSize);
    Expect.Equal(new long[] {4, 5, 1L << 30}, voxelize.Grid.Shape);
    Expect.Throws<ArgumentException>("has 2 elements", () =>
        new VoxelGrid(new double[2], 1, new long[3]));
    ResampleParams resample = new ResampleParams {
      Groups = new ChannelGroup[] {new ChannelGroup(0, 3, Rbc.MethodPchip)}
    };
    Expect.Equal(3L, resample.Groups[0].Count);
    Expect.Equal(Rbc.PeriodRadians, resample.Groups[0].Period);
    ChannelGroup degrees = new ChannelGroup(0, 1, Rbc.MethodAngle, Rbc.PeriodDegreesPositive);
    Expect.Equal(Rbc.PeriodDegreesPositive, degrees.Period);
    Tensor lengths = new int[] {4};
    resample.Lengths = lengths;
    Expect.True(ReferenceEquals(lengths, resample.Lengths), "is another tensor");
    resample.Lengths = null;
    resample.Groups = null;
    Expect.True(resample.Lengths == null && resample.Groups == null, "is not null");
  }

  [Test]
  static void NoGroupsAreNone() {
    ResampleParams parameters = new ResampleParams {Method = Rbc.MethodPrevious};
    foreach (ChannelGroup[] groups in new ChannelGroup[][] {
        new ChannelGroup[] {new ChannelGroup(0, 1, Rbc.MethodLinear)}, new ChannelGroup[0]}) {
      parameters.Groups = groups;
      Expect.Equal(groups.Length, parameters.Groups.Length);
      float[,] output = new float[1, 1];
      using (Context context = Context.Cpu(1)) {
        context.Resample(new float[,] {{0}, {1}}, new double[] {0, 1}, new double[] {0.5}, output,
                         null, parameters);
      }
      Expect.Equal(groups.Length == 0 ? 0 : 0.5f, output[0, 0]);
    }
  }

  [Test]
  static void VersionsAreThoseOfTheLibrary() {
    int release, abi;
    Rbc.GetVersion(out release, out abi);
    Expect.Equal(1, abi);
    Version version = typeof(Rbc).Assembly.GetName().Version;
    Expect.Equal(version.Major * 10000 + version.Minor * 100 + version.Build, release);
  }

  /// Streams that hold the only references to their tensors and params.
  [MethodImpl(MethodImplOptions.NoInlining)]
  private static FuseStream[] MakeStreams(int count) {
    FuseStream[] streams = new FuseStream[count];
    for (int i = 0; i < count; ++i) {
      streams[i] = new FuseStream {
        Values = new float[,,] {{{i, i}, {i + 1, i + 1}}},
        Times = new double[,] {{0, 1}},
        Params = new ResampleParams {
          Groups = new ChannelGroup[] {new ChannelGroup(0, 1, Rbc.MethodLinear),
                                       new ChannelGroup(1, 1, Rbc.MethodPrevious)},
          Lengths = new long[] {2},
          Shift = new float[] {0, 100},
        },
      };
    }
    return streams;
  }

  [Test]
  static void WhatAStructPointsToStaysAlive() {
    using (Context context = Context.Cpu(1)) {
      for (int round = 0; round < 20; ++round) {
        FuseStream[] streams = MakeStreams(8);
        GC.Collect();
        GC.WaitForPendingFinalizers();
        float[,,] output = new float[1, 1, 16];
        context.Fuse(streams, new double[,] {{0.5}}, output);
        for (int i = 0; i < 8; ++i) {
          Expect.Equal(i + 0.5f, output[0, 0, 2 * i]);
          Expect.Equal(i - 100f, output[0, 0, 2 * i + 1]);
        }
      }
    }
  }

  [Test]
  static void ADisposedPartIsRefused() {
    using (Context context = Context.Cpu(1)) {
      Tensor lengths = new long[] {2};
      ResampleParams parameters = new ResampleParams {Lengths = lengths};
      Action call = () => context.Resample(new float[1, 2, 1], new double[2], new double[1],
                                           new float[1, 1, 1], null, parameters);
      call();
      lengths.Dispose();
      Expect.Throws<ObjectDisposedException>("", call);
      parameters.Lengths = null;
      call();
      parameters.Dispose();
      parameters.Dispose();
      Expect.Throws<ObjectDisposedException>("", call);
      Expect.Throws<ObjectDisposedException>("", () => parameters.Method = 1);
    }
  }

  [Test]
  static void WorkspaceSizes() {
    using (Context context = Context.Cpu(1)) {
      VoxelizeParams parameters = new VoxelizeParams {
        Reduction = Rbc.ReduceMean, Grid = new VoxelGrid(new double[3], 1, new long[] {4, 4, 4})
      };
      Tensor points = new float[100, 3];
      Tensor output = new float[4, 4, 4, 3];
      long bytes;
      Rbc.VoxelizeWorkspaceSize(context, points, null, output, null, parameters, out bytes);
      Expect.True(bytes > 0, "needs nothing");
      Rbc.ContextReserve(context, bytes);
      Expect.True(context.Info.WorkspaceBytes >= bytes, "is not reserved");
      context.Voxelize(points, output, parameters);
    }
  }
}
