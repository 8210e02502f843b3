using System;
using RoboCache;

/// Arrays and pointers as tensors.
static class TensorTest {
  private static readonly float[,] values = {{0, 10}, {1, 11}, {2, 12}, {3, 13}};
  private static readonly double[] times = {0.0, 1, 2, 3};
  private static readonly double[] queries = {0.5, 1.5};

  internal static float[] Resample(Tensor values, Tensor times, Tensor queries) {
    float[] output = new float[4];
    using (Context context = Context.Cpu(1)) {
      context.Resample(values, times, queries, Tensor.Of(output, 2, 2));
    }
    return output;
  }

  [Test]
  static void AnArrayHasItsOwnShape() {
    Tensor tensor = values;
    Expect.Equal(new long[] {4, 2}, tensor.Shape);
    Expect.Equal(DType.Float32, tensor.DType);
    Expect.Equal(Rbc.DeviceCpu, tensor.Device.Type);
    Expect.Equal(new long[] {2, 3, 4}, Tensor.Of(new bool[2, 3, 4]).Shape);
    Expect.Equal(new float[] {0.5f, 10.5f, 1.5f, 11.5f}, Resample(values, times, queries));
  }

  [Test]
  static void EveryElementTypeHasItsDType() {
    Expect.Equal(DType.Float64, Tensor.Of(new double[1]).DType);
    Expect.Equal(DType.Int8, Tensor.Of(new sbyte[1]).DType);
    Expect.Equal(DType.Int16, Tensor.Of(new short[1]).DType);
    Expect.Equal(DType.Int32, Tensor.Of(new int[1]).DType);
    Expect.Equal(DType.Int64, Tensor.Of(new long[1]).DType);
    Expect.Equal(DType.UInt8, Tensor.Of(new byte[1]).DType);
    Expect.Equal(DType.UInt32, Tensor.Of(new uint[1]).DType);
    Expect.Equal(DType.UInt64, Tensor.Of(new ulong[1]).DType);
    Expect.Equal(DType.UInt16, Tensor.Of(new ushort[2], DType.UInt16, new long[] {2}).DType);
    Expect.Equal(DType.Bool, Tensor.Of(new bool[1]).DType);
    Expect.Equal(DType.BFloat16, Tensor.Of(new ushort[4], DType.BFloat16, new long[] {2, 2}).DType);
    Expect.Throws<ArgumentException>("System.UInt16 have no dtype", () => Tensor.Of(new ushort[1]));
    Expect.Throws<ArgumentException>("System.String", () => Tensor.Of(new string[1]));
    Expect.Throws<ArgumentException>("have 32", () => Tensor.Of(new int[2], DType.Float64,
                                                               new long[] {1}));
    Expect.Throws<ArgumentException>("is none", () => Tensor.Of(new byte[2], default(DType),
                                                                new long[] {1}));
  }

  [Test]
  static void BytesStandForAnyDType() {
    byte[] bytes = new byte[16];
    Buffer.BlockCopy(queries, 0, bytes, 0, 16);
    Tensor clock = Tensor.Of(bytes, DType.Float64, new long[] {2});
    Expect.Equal(new float[] {0.5f, 10.5f, 1.5f, 11.5f}, Resample(values, times, clock));
  }

  [Test]
  static void StridesAndOffsets() {
    float[] columns = {-1, 0, 1, 2, 3, 10, 11, 12, 13}; // column by column, after one more
    Tensor strided = Tensor.Of(columns, DType.Float32, new long[] {4, 2}, new long[] {1, 4}, 1);
    Expect.Equal(new float[] {0.5f, 10.5f, 1.5f, 11.5f}, Resample(strided, times, queries));
    double[] descending = {3, 2, 1, 0};
    Tensor reversed = Tensor.Of(descending, DType.Float64, new long[] {4}, new long[] {-1}, 3);
    Expect.Equal(new float[] {0.5f, 10.5f, 1.5f, 11.5f}, Resample(values, reversed, queries));
    Tensor repeated = Tensor.Of(new float[] {7}, DType.Float32, new long[] {4, 2}, new long[2]);
    Expect.Equal(new float[] {7, 7, 7, 7}, Resample(repeated, times, queries));
  }

  [Test]
  static void WhatDoesNotFitTheArray() {
    float[] array = new float[8];
    Expect.Throws<ArgumentException>("0 to 7, the shape reaches from 0 to 8",
                                     () => Tensor.Of(array, 3, 3));
    Action<long[], long[], long> refused = (shape, strides, offset) =>
        Expect.Throws<ArgumentException>("", () => Tensor.Of(array, DType.Float32, shape, strides,
                                                             offset));
    refused(new long[] {8}, null, 1);
    refused(new long[] {8}, null, -1);
    refused(new long[] {2}, new long[] {8}, 0);
    refused(new long[] {2}, new long[] {-1}, 0);
    refused(new long[] {0}, null, 9);
    refused(new long[] {-1}, null, 0);
    refused(new long[] {1L << 32, 1L << 32}, null, 0);
    refused(new long[] {1L << 62, 3}, new long[] {4, 1}, 0);
    refused(new long[] {3}, new long[] {long.MinValue}, 0);
    refused(new long[] {2}, new long[] {long.MinValue}, 8);
    refused(new long[] {2}, new long[] {long.MinValue}, long.MinValue);
    refused(new long[] {2}, null, long.MaxValue);
    refused(new long[] {2, 2}, new long[] {1}, 0);
    Expect.Throws<ArgumentNullException>("array", () => Tensor.Of((Array)null));
    Expect.Throws<ArgumentNullException>("shape", () => Tensor.Of(array, (long[])null));
    Tensor.Of(array, DType.Float32, new long[] {0, 1L << 40}, null, 8); // no element is reached
  }

  [Test]
  static unsafe void APointer() {
    fixed (double* pointer = queries) {
      Tensor clock = Tensor.OfPointer((IntPtr)pointer, Device.Cpu, DType.Float64, new long[] {2});
      Expect.Equal(new float[] {0.5f, 10.5f, 1.5f, 11.5f}, Resample(values, times, clock));
    }
  }
}
