// SPDX-License-Identifier: Apache-2.0
package io.robocache;

import static io.robocache.Data.shape;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.ref.WeakReference;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

class LifetimeTest {
  private static String closed(Executable use) {
    return assertThrows(IllegalStateException.class, use).getMessage();
  }

  /** Collects garbage until the condition is true or a time limit is reached. */
  private static boolean becomes(BooleanSupplier condition) throws InterruptedException {
    for (int i = 0; i < 100 && !condition.getAsBoolean(); ++i) {
      System.gc();
      Thread.sleep(10);
    }
    return condition.getAsBoolean();
  }

  @Test
  void closesOnce() {
    Context context = Context.cpu();
    assertFalse(context.isClosed());
    context.close();
    context.close();
    assertTrue(context.isClosed());
    assertEquals("context: is closed", closed(context::synchronize));
    assertEquals("context: is closed", closed(context::getInfo));
  }

  @Test
  void closesInAnyOrder() {
    Context context = Context.cpu();
    OwnedTensor tensor = OwnedTensor.create(context, DType.FLOAT32, 2);
    context.close();
    Tensor view = tensor.view();
    assertArrayEquals(shape(2), view.getShape());
    tensor.close();
    tensor.close();
    assertEquals("tensor: is closed", closed(tensor::view));
    assertEquals("tensor: is closed", closed(view::getShape));
    assertEquals("tensor: is closed", closed(view::getData));
    assertEquals("tensor: is closed", closed(view::getDType));
    assertEquals("tensor: is closed", closed(view::getDeviceType));
    assertEquals("tensor: is closed", closed(view::getDeviceId));
    assertEquals("tensor: is closed", closed(view::getNdim));
  }

  @Test
  void knowsOfClosedTensorsWithin() {
    try (Context context = Context.cpu()) {
      OwnedTensor owned = OwnedTensor.create(context, DType.INT64, 1);
      ResampleParams params = new ResampleParams();
      params.setLengths(owned.view());
      FuseStream[] streams = {FuseStream.of(null, null, params)};
      Tensor any = Tensor.allocate(DType.FLOAT32, 1, 1, 1);
      owned.close();
      assertEquals(
          "params.lengths: is closed",
          closed(() -> RoboCache.resample(context, any, any, any, any, null, params)));
      assertEquals(
          "streams[0].params.lengths: is closed",
          closed(() -> RoboCache.fuse(context, streams, any, any, null, null)));
      params.setLengths(null);
    }
  }

  @Test
  void buffersLiveAsLongAsTheirTensors() throws InterruptedException {
    ResampleParams params = new ResampleParams();
    WeakReference<ByteBuffer> buffer = lengthsOf(params);
    for (int i = 0; i < 5; ++i) System.gc();
    assertNotNull(buffer.get());
    assertEquals(7, params.getLengths().getBuffer().getLong());
    params.setLengths(null);
    assertTrue(becomes(() -> buffer.get() == null));
  }

  private static WeakReference<ByteBuffer> lengthsOf(ResampleParams params) {
    ByteBuffer buffer = Data.buffer(8);
    buffer.putLong(0, 7);
    params.setLengths(Tensor.of(buffer, DType.INT64, 1));
    return new WeakReference<>(buffer);
  }

  @Test
  void viewsKeepTheirOwner() throws InterruptedException {
    Tensor[] view = new Tensor[1];
    WeakReference<OwnedTensor> owner = ownerOf(view);
    for (int i = 0; i < 5; ++i) System.gc();
    assertNotNull(owner.get());
    try (Context context = Context.cpu()) {
      RoboCache.tensorCopy(context, Data.i64(shape(2), 3, 4), view[0]);
      Tensor copy = Tensor.allocate(DType.INT64, 2);
      RoboCache.tensorCopy(context, view[0], copy);
      assertEquals(4, copy.getBuffer().getLong(8));
    }
    view[0] = null;
    assertTrue(becomes(() -> owner.get() == null));
  }

  private static WeakReference<OwnedTensor> ownerOf(Tensor[] view) {
    try (Context context = Context.cpu()) {
      OwnedTensor owner = OwnedTensor.create(context, DType.INT64, 2);
      view[0] = owner.view();
      return new WeakReference<>(owner);
    }
  }

  @Test
  void gridsKeepTheirParams() throws InterruptedException {
    VoxelGrid grid = new VoxelizeParams().getGrid();
    for (int i = 0; i < 5; ++i) System.gc();
    grid.setShape(shape(1, 2, 3));
    assertArrayEquals(shape(1, 2, 3), grid.getShape());
  }

  @Test
  void garbageIsReleased() throws InterruptedException {
    for (int i = 0; i < 1000; ++i) {
      Context context = Context.cpu(); // never closed
      OwnedTensor.create(context, DType.FLOAT32, 1000).view();
      new ResampleParams().setGroups(new ChannelGroup(0, 1, 0));
    }
    assertTrue(becomes(() -> Cleaner.PENDING.size() < 100)); // objects of other tests
  }

  @Test
  void dlpackGoesRound() {
    try (Context context = Context.cpu()) {
      OwnedTensor tensor = OwnedTensor.create(context, DType.FLOAT32, 2, 3);
      long address = tensor.view().getData();
      long managed = RoboCache.ownedTensorExportDLPackVersioned(tensor);
      tensor.close(); // the export holds the memory
      try (OwnedTensor again = RoboCache.ownedTensorImportDLPackVersioned(managed)) {
        assertEquals(address, again.view().getData());
        assertArrayEquals(shape(2, 3), again.readOnlyView().getShape());
        assertFalse(again.readOnlyView().isWritable());
      }
    }
  }

  @Test
  void threadsHaveContextsOfTheirOwn() throws InterruptedException {
    List<Throwable> failures = new ArrayList<>();
    Thread[] threads = new Thread[2];
    for (int n = 0; n < threads.length; ++n) {
      float offset = n;
      threads[n] = new Thread(() -> resampleOften(offset));
      threads[n].setUncaughtExceptionHandler((thread, failure) -> failures.add(failure));
      threads[n].start();
    }
    for (Thread thread : threads) thread.join();
    assertTrue(failures.isEmpty(), failures::toString);
  }

  private static void resampleOften(float offset) {
    try (Context context = Context.cpu()) {
      for (int i = 0; i < 500; ++i) {
        Tensor out = Tensor.allocate(DType.FLOAT32, 1, 1);
        RoboCache.resample(
            context,
            Data.f32(shape(2, 1), offset, offset + i),
            Data.f64(shape(2), 0, 1),
            Data.f64(shape(1), 0.5),
            out,
            null,
            null);
        assertArrayEquals(new float[] {offset + i / 2f}, Data.floats(out));
        String name = offset + "x" + i; // each thread gets its own call's message
        ResampleParams params = new ResampleParams();
        params.setMethod(1000 + (int) offset);
        String message =
            assertThrows(
                    IllegalArgumentException.class,
                    () -> RoboCache.resample(context, out, out, out, out, null, params),
                    name)
                .getMessage();
        assertTrue(message.length() > 0, name);
      }
    }
  }
}
