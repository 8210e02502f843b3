using System;
using System.Collections.Generic;
using System.Threading;
using RoboCache;

/// Contexts and owned tensors: released once, in any order, never during a call.
static class LifetimeTest {
  [Test]
  static void DisposingTwiceAndUseAfter() {
    Context context = Context.Cpu(1);
    OwnedTensor owned = OwnedTensor.Create(context, DType.Float32, 2, 3);
    Tensor view = owned.View();
    Expect.Equal(new long[] {2, 3}, view.Shape);
    context.Dispose();
    context.Dispose();
    Expect.Throws<ObjectDisposedException>("", () => context.Synchronize());
    Expect.Throws<ObjectDisposedException>("", () => context.Info.ToString());
    Expect.Throws<ObjectDisposedException>("", () =>
        OwnedTensor.Create(context, DType.Float32, 1));
    using (Context other = Context.Cpu(1)) { // the tensor outlives its context
      float[,] array = {{1, 2, 3}, {4, 5, 6}};
      float[,] back = new float[2, 3];
      other.Copy(array, owned);
      other.Copy(view, back);
      Expect.Equal(6f, back[1, 2]);
      owned.Dispose();
      owned.Dispose();
      Expect.Throws<ObjectDisposedException>("", () => other.Copy(view, back));
      Expect.Throws<ObjectDisposedException>("", () => owned.View());
      Expect.Throws<ObjectDisposedException>("", () => view.Data.ToString());
      Expect.Throws<ObjectDisposedException>("", () => view.Device.ToString());
      Expect.Throws<ObjectDisposedException>("", () => view.DType.ToString());
      Expect.Throws<ObjectDisposedException>("", () => view.Ndim.ToString());
      Expect.Throws<ObjectDisposedException>("", () => view.Shape.ToString());
      view.Dispose();
      view.Dispose();
    }
  }

  [Test]
  static void InAnyOrder() {
    int[][] orders = {new int[] {0, 1, 2}, new int[] {0, 2, 1}, new int[] {1, 0, 2},
                      new int[] {1, 2, 0}, new int[] {2, 0, 1}, new int[] {2, 1, 0}};
    foreach (int[] order in orders) {
      Context context = Context.Cpu(1);
      OwnedTensor owned = OwnedTensor.Create(context, DType.Int64, 1000);
      NativeObject[] objects = {context, owned, owned.View()};
      foreach (int i in order) objects[i].Dispose();
    }
  }

  [Test]
  static void AViewKeepsItsTensor() {
    using (Context context = Context.Cpu(1)) {
      for (int round = 0; round < 20; ++round) {
        Tensor view = MakeView(context, round);
        GC.Collect();
        GC.WaitForPendingFinalizers();
        long[] back = new long[1];
        context.Copy(view, back);
        Expect.Equal((long)round, back[0]);
      }
    }
  }

  [System.Runtime.CompilerServices.MethodImpl(
      System.Runtime.CompilerServices.MethodImplOptions.NoInlining)]
  private static Tensor MakeView(Context context, long value) {
    OwnedTensor owned = OwnedTensor.Create(context, DType.Int64, 1);
    context.Copy(new long[] {value}, owned);
    return owned.View();
  }

  [Test]
  static void GarbageOfManyOwners() {
    for (int round = 0; round < 200; ++round) {
      Context context = Context.Cpu(1);
      for (int i = 0; i < 10; ++i) OwnedTensor.Create(context, DType.UInt8, 1 << 16).View();
      if (round % 20 == 0) GC.Collect();
    }
    GC.Collect();
    GC.WaitForPendingFinalizers();
  }

  [Test]
  static void CallsWhileTheCollectorMovesArrays() {
    bool done = false;
    Thread collector = new Thread(() => {
      while (!Volatile.Read(ref done)) {
        List<byte[]> garbage = new List<byte[]>();
        for (int i = 0; i < 100; ++i) garbage.Add(new byte[1000]);
        GC.Collect(0);
      }
    });
    collector.Start();
    try {
      using (Context context = Context.Cpu(1)) {
        for (int round = 0; round < 500; ++round) {
          float[,] values = {{0}, {round}};
          float[,] output = new float[1, 1];
          context.Resample(values, new double[] {0, 1}, new double[] {0.5}, output);
          Expect.Equal(round * 0.5f, output[0, 0]);
        }
      }
    } finally {
      Volatile.Write(ref done, true);
      collector.Join();
    }
  }

  [Test]
  static void DisposingWhileAPropertyIsRead() {
    Tensor current = new float[1];
    current.Dispose();
    bool done = false;
    string wrong = null;
    Thread reader = new Thread(() => {
      while (!Volatile.Read(ref done)) {
        Tensor tensor = Volatile.Read(ref current);
        try {
          while (wrong == null) {
            Device device = tensor.Device;
            if (device.Type != Rbc.DeviceCpu || device.Id != 0) {
              wrong = "device " + device.Type + ", " + device.Id;
            }
          }
        } catch (ObjectDisposedException) {
        }
      }
    });
    reader.Start();
    System.Diagnostics.Stopwatch watch = System.Diagnostics.Stopwatch.StartNew();
    while (watch.ElapsedMilliseconds < 2000 && Volatile.Read(ref wrong) == null) {
      Tensor next = new float[1];
      Volatile.Write(ref current, next);
      Thread.SpinWait(200);
      next.Dispose();
    }
    Volatile.Write(ref done, true);
    reader.Join();
    Expect.Equal(null, wrong);
  }

  [Test]
  static void ThreadsWithAContextEach() {
    Tensor shared = new float[,] {{0}, {1000}};
    List<Exception> failures = new List<Exception>();
    List<Thread> threads = new List<Thread>();
    for (int n = 0; n < 2; ++n) {
      double query = n + 1;
      threads.Add(new Thread(() => {
        try {
          using (Context context = Context.Cpu(1)) {
            for (int round = 0; round < 2000; ++round) {
              float[,] output = new float[1, 1];
              context.Resample(shared, new double[] {0, 1000}, new double[] {query}, output);
              Expect.Equal((float)query, output[0, 0]);
              float[,] wrong = new float[1, (int)query + 7]; // each thread has its own message
              Expect.Throws<ArgumentException>("[1," + wrong.Length + "]", () =>
                  context.Resample(shared, new double[] {0, 1000}, new double[1], wrong));
            }
          }
        } catch (Exception exception) {
          lock (failures) failures.Add(exception);
        }
      }));
    }
    foreach (Thread thread in threads) thread.Start();
    foreach (Thread thread in threads) thread.Join();
    foreach (Exception failure in failures) throw failure;
    Expect.Equal(IntPtr.Zero, shared.Data);
  }

  [Test]
  static void DLPackGoesRound() {
    using (Context context = Context.Cpu(1)) {
      OwnedTensor owned = OwnedTensor.Create(context, DType.Int32, 3);
      context.Copy(new int[] {1, 2, 3}, owned);
      IntPtr managed;
      Rbc.OwnedTensorExportDLPackVersioned(owned, out managed);
      owned.Dispose(); // the export has its own reference
      OwnedTensor imported;
      Rbc.OwnedTensorImportDLPackVersioned(managed, out imported);
      int[] back = new int[3];
      context.Copy(imported, back);
      Expect.Equal(new int[] {1, 2, 3}, back);
      imported.Dispose();
    }
  }
}
