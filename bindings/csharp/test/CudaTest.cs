using System;
using RoboCache;

/// Device memory: owned tensors, their pointers, streams.
static class CudaTest {
  private static Context Cuda() {
    using (Context context = Context.Auto()) {
      ContextInfo info = context.Info;
      if (info.Backend != Rbc.BackendCuda) throw new SkippedException(info.CudaUnavailable);
    }
    return Context.Cuda();
  }

  private static OwnedTensor ToDevice(Context context, Array array, DType dtype,
                                      params long[] shape) {
    OwnedTensor tensor = OwnedTensor.Create(context, dtype, shape);
    context.Copy(Tensor.Of(array, dtype, shape), tensor);
    return tensor;
  }

  [Test]
  static void ResampleOnTheDevice() {
    using (Context context = Cuda())
    using (OwnedTensor values = ToDevice(context, new float[] {0, 10, 1, 11}, DType.Float32, 2, 2))
    using (OwnedTensor times = ToDevice(context, new double[] {0, 1}, DType.Float64, 2))
    using (OwnedTensor queries = ToDevice(context, new double[] {0.5}, DType.Float64, 1))
    using (OwnedTensor output = OwnedTensor.Create(context, DType.Float32, 1, 2)) {
      context.Resample(values, times, queries, output);
      float[,] back = new float[1, 2];
      context.Copy(output, back); // waits
      Expect.Equal(0.5f, back[0, 0]);
      Expect.Equal(10.5f, back[0, 1]);

      // The same with plain pointers.
      Tensor view = output.View();
      Expect.Equal(Rbc.DeviceCuda, view.Device.Type);
      Tensor pointer = Tensor.OfPointer(view.Data, view.Device, DType.Float32, new long[] {1, 2});
      context.Resample(values, times, queries, pointer);
      context.Synchronize();
      Expect.Equal(IntPtr.Zero, context.Stream);
    }
  }

  [Test]
  static void ArraysAreNotOfTheDevice() {
    using (Context context = Cuda()) {
      Expect.Throws<ArgumentException>("values", () =>
          context.Resample(new float[2, 2], new double[2], new double[1], new float[1, 2]));
    }
  }

  [Test]
  static void DisposedBeforeTheWorkIsDone() {
    using (Context context = Cuda()) {
      OwnedTensor values = ToDevice(context, new float[100000], DType.Float32, 100000, 1);
      OwnedTensor times = ToDevice(context, new double[100000], DType.Float64, 100000);
      OwnedTensor output = OwnedTensor.Create(context, DType.Float32, 100000, 1);
      context.Resample(values, times, times, output);
      values.Dispose(); // in the order of the stream
      times.Dispose();
      output.Dispose();
      context.Synchronize();
    }
  }
}
