using System;
using System.Buffers;
using RoboCache;

/// Memory as tensors.
static class MemoryTest {
  private static readonly float[,] values = {{0, 10}, {1, 11}, {2, 12}, {3, 13}};
  private static readonly double[] times = {0.0, 1, 2, 3};
  private static readonly double[] queries = {0.5, 1.5};

  [Test]
  static void MemoryIsPinnedAsItLies() {
    float[] array = new float[12];
    Buffer.BlockCopy(values, 0, array, 8, 32);
    Memory<float> memory = new Memory<float>(array, 2, 8);
    ReadOnlyMemory<float> readOnly = memory;
    Expect.Equal(new float[] {0.5f, 10.5f, 1.5f, 11.5f},
                 TensorTest.Resample(Tensor.Of(memory, 4, 2), times, queries));
    Expect.Equal(new float[] {0.5f, 10.5f, 1.5f, 11.5f},
                 TensorTest.Resample(Tensor.Of(readOnly, 4, 2), times, queries));
    Expect.Throws<ArgumentException>("0 to 7", () => Tensor.Of(memory, 9));
    using (Context context = Context.Cpu(1)) {
      context.Resample(values, times, queries, Tensor.Of(memory, 2, 2));
      Expect.Throws<ArgumentException>("out: is read-only", () =>
          context.Resample(values, times, queries, Tensor.Of(readOnly, 2, 2)));
      Expect.Throws<ArgumentException>("coords: is read-only", () => {
        VoxelizeSparseOutputs voxels = new VoxelizeSparseOutputs {
          Coords = Tensor.Of(new ReadOnlyMemory<int>(new int[4]), 1, 4)
        };
        context.VoxelizeSparse(values, voxels, new VoxelizeSparseParams());
      });
    }
    Expect.Equal(new float[] {0, 0, 0.5f, 10.5f, 1.5f, 11.5f, 2, 12, 3, 13, 0, 0}, array);
  }

  /// Memory that counts how often it was pinned and unpinned.
  private sealed class CountingMemory : MemoryManager<float> {
    internal int Pins, Unpins;
    private readonly float[] array = new float[8];

    public override Span<float> GetSpan() {
      return array;
    }

    public override unsafe MemoryHandle Pin(int elementIndex = 0) {
      ++Pins;
      var handle = System.Runtime.InteropServices.GCHandle.Alloc(
          array, System.Runtime.InteropServices.GCHandleType.Pinned);
      return new MemoryHandle((float*)handle.AddrOfPinnedObject() + elementIndex, handle, this);
    }

    public override void Unpin() {
      ++Unpins;
    }

    protected override void Dispose(bool disposing) {
    }
  }

  [Test]
  static void PinnedForTheCallAlone() {
    CountingMemory memory = new CountingMemory();
    Tensor tensor = Tensor.Of(memory.Memory, 4, 2);
    Expect.Equal(0, memory.Pins);
    TensorTest.Resample(tensor, times, queries);
    Expect.Equal(1, memory.Pins);
    Expect.Equal(1, memory.Unpins);
    Expect.Throws<ArgumentException>("query_times", () =>
        TensorTest.Resample(tensor, times, new float[2]));
    Expect.Throws<ArgumentException>("valid: is read-only", () => {
      using (Context context = Context.Cpu(1)) {
        context.Resample(tensor, times, queries, new float[2, 2],
                         Tensor.Of(new ReadOnlyMemory<byte>(new byte[2]), 2));
      }
    });
    Expect.Equal(3, memory.Pins);
    Expect.Equal(3, memory.Unpins);
    Expect.Equal(IntPtr.Zero, tensor.Data);
  }
}
