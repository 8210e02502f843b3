using System;
using System.Globalization;
using System.Threading;
using RoboCache;

/// Every status as its exception, with the message of the C library.
static class ErrorTest {
  private static readonly float[,] values = {{0, 10}, {1, 11}, {2, 12}, {3, 13}};
  private static readonly double[] times = {0.0, 1, 2, 3};
  private static readonly double[] queries = {0.5, 1.5};

  private static void Refused<T>(string message, Action<Context> call) where T : Exception {
    using (Context context = Context.Cpu(1)) {
      Expect.Throws<T>(message, () => call(context));
      context.Resample(values, times, queries, new float[2, 2]); // the next call works
    }
  }

  [Test]
  static void InvalidArgument() {
    ResampleParams unknown = new ResampleParams {Method = 99};
    Refused<ArgumentException>("method", context =>
        context.Resample(values, times, queries, new float[2, 2], null, unknown));
    ResampleParams check = new ResampleParams {Flags = Rbc.FlagCheckTimes};
    Refused<ArgumentException>("times: row 0 decreases at index 2 (1 -> 0.5)", context =>
        context.Resample(values, new double[] {0, 1, 0.5, 3}, queries, new float[2, 2], null,
                         check));
    Refused<ArgumentException>("times: ", context =>
        context.Resample(values, new double[] {0, 1, double.NaN, 3}, queries, new float[2, 2],
                         null, check));
    Refused<ArgumentException>("values", context =>
        context.Resample(null, times, queries, new float[2, 2]));
    Refused<ArgumentException>("context", context =>
        Rbc.ContextWarmUp(null));
    Refused<ArgumentException>("num_streams", context =>
        context.Fuse(new FuseStream[0], queries, new float[2, 2]));
    Refused<ArgumentException>("num_streams", context => context.Fuse(null, queries, queries));
    Refused<ArgumentNullException>("streams[1]", context =>
        context.Fuse(new FuseStream[] {Stream(), null}, queries, new float[2, 4]));
    Refused<ArgumentException>("streams[1].times", context => {
      FuseStream second = Stream();
      second.Times = new float[4];
      context.Fuse(new FuseStream[] {Stream(), second}, queries, new float[2, 4]);
    });
  }

  [Test]
  static void AContextInUseByAnotherThread() {
    float[,] points = new float[200000, 3];
    string refusal = null;
    Exception failure = null;
    using (Context context = Context.Cpu(2)) {
      ThreadStart work = () => {
        VoxelizeParams parameters = new VoxelizeParams {Reduction = Rbc.ReduceCount};
        parameters.Grid = new VoxelGrid(new double[3], new double[] {1, 1, 1},
                                        new long[] {64, 64, 64});
        int[,,] counts = new int[64, 64, 64];
        DateTime end = DateTime.UtcNow.AddSeconds(30);
        while (refusal == null && failure == null && DateTime.UtcNow < end) {
          try {
            context.Voxelize(points, counts, parameters);
          } catch (NotSupportedException refused) {
            refusal = refused.Message;
          } catch (Exception other) {
            failure = other;
          }
        }
      };
      Thread second = new Thread(work);
      second.Start();
      work();
      second.Join();
      Expect.Equal(null, failure);
      Expect.True(refusal != null && refusal.Contains("in use by another thread"), refusal);
      Rbc.ContextWarmUp(context); // the next call works
    }
  }

  [Test]
  static void DTypeMismatch() {
    Refused<ArgumentException>("query_times: dtype is float32, expected float64", context =>
        context.Resample(values, times, new float[2], new float[2, 2]));
  }

  [Test]
  static void ShapeMismatch() {
    Refused<ArgumentException>("out: ", context =>
        context.Resample(values, times, queries, new float[2, 3]));
    Refused<ArgumentException>("", context =>
        OwnedTensor.Create(context, DType.Float32, new long[9]));
    Refused<ArgumentException>("", context => OwnedTensor.Create(context, DType.Float32, -1));
  }

  [Test]
  static void DeviceMismatch() {
    Tensor onDevice = Tensor.OfPointer((IntPtr)256, Device.Cuda(0), DType.Float64, new long[] {2});
    Refused<ArgumentException>("query_times", context =>
        context.Resample(values, times, onDevice, new float[2, 2]));
  }

  [Test]
  static void OutOfMemory() {
    Refused<OutOfMemoryException>("bytes", context =>
        OwnedTensor.Create(context, DType.UInt8, 1L << 60));
    Refused<OutOfMemoryException>("bytes", context => Rbc.ContextReserve(context, 1L << 60));
  }

  [Test]
  static void NegativeSizes() {
    Refused<ArgumentException>("bytes: is -1, expected 0 or more", context =>
        Rbc.ContextReserve(context, -1));
  }

  [Test]
  static void NumbersAreAlikeInEveryCulture() {
    CultureInfo before = CultureInfo.CurrentCulture;
    CultureInfo culture = (CultureInfo)CultureInfo.InvariantCulture.Clone();
    culture.NumberFormat.NegativeSign = "minus ";
    CultureInfo.CurrentCulture = culture;
    try {
      Expect.Equal("minus 1", (-1).ToString());
      Refused<ArgumentException>("shape: extent 0 is -1", context => Tensor.Of(new float[1], -1));
      Refused<ArgumentException>("elements 0 to -1, the shape reaches from -2 to 0", context =>
          Tensor.Of(new float[0], DType.Float32, new long[] {3}, new long[] {-1}));
      Refused<ArgumentException>("bytes: is -1", context => Rbc.ContextReserve(context, -1));
    } finally {
      CultureInfo.CurrentCulture = before;
    }
  }

  [Test]
  static void WhatThisBuildOrMachineLacks() {
    using (Context context = Context.Auto()) {
      ContextInfo info = context.Info;
      if (info.Backend == Rbc.BackendCuda) throw new SkippedException("CUDA is usable here");
      if (info.BuiltWithCuda == 0) {
        Expect.Throws<NotSupportedException>("CUDA", () => Context.Cuda());
      } else {
        RoboCacheException thrown =
            Expect.Throws<RoboCacheException>("", () => Context.Cuda());
        Expect.Equal(Status.NotAvailable, thrown.Status);
      }
    }
  }

  [Test]
  static void StatusNames() {
    Expect.Equal("RBC_STATUS_CUDA_ERROR", Rbc.StatusName(Status.CudaError));
  }

  private static FuseStream Stream() {
    return new FuseStream {Values = values, Times = times};
  }
}
