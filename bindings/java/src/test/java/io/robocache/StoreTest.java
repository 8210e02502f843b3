// SPDX-License-Identifier: Apache-2.0
package io.robocache;

import static io.robocache.Data.shape;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.LongBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Reads the store of tests/golden. */
class StoreTest {
  @TempDir private Path folder;

  private static byte[] key() {
    byte[] key = new byte[32];
    for (int i = 0; i < key.length; ++i) key[i] = (byte) i;
    return key;
  }

  /** Copies the store to a folder of this user, as a store has to be. */
  @BeforeEach
  void copy() throws IOException {
    Path golden = Paths.get(System.getProperty("robocache.test.golden"), "store");
    try (Stream<Path> paths = Files.walk(golden)) {
      for (Path path : paths.collect(Collectors.toList())) {
        Path target = folder.resolve("store").resolve(golden.relativize(path).toString());
        if (Files.isDirectory(path)) {
          Files.createDirectories(target);
        } else {
          Files.copy(path, target);
        }
      }
    }
  }

  private Store open() {
    return Store.openReadOnly(folder.resolve("store").toString());
  }

  @Test
  void finds() {
    try (Store store = open();
        Entry entry = store.find(key())) {
      assertNull(store.find(new byte[32]));
      EntryInfo info = entry.getInfo();
      assertEquals(2, info.getNumEpisodes());
      assertEquals(5, info.getNumRows());
      assertEquals(1, info.getNumSegments());
      assertArrayEquals(new String[] {"state", "größe", "valid"}, entry.getNames());
      TrackInfo track = entry.getTrack("state");
      assertEquals(DType.FLOAT32, track.getDType());
      assertEquals(2, track.getNdim());
      assertEquals(5, track.getShape()[0]);
      assertEquals(8, track.getRowBytes());
    }
  }

  @Test
  void gathers() {
    FloatBuffer out =
        ByteBuffer.allocateDirect(24).order(ByteOrder.nativeOrder()).asFloatBuffer();
    LongBuffer rows = ByteBuffer.allocateDirect(24).order(ByteOrder.nativeOrder()).asLongBuffer();
    rows.put(new long[] {4, 0, 4}).flip();
    try (Store store = open();
        Entry entry = store.find(key());
        Context context = Context.cpu()) {
      RoboCache.entryGather(context, entry, "state", Tensor.of(rows, 3), Tensor.of(out, 3, 2));
      float[] found = new float[6];
      out.get(found);
      assertArrayEquals(new float[] {2, 2.25f, 0, 0.25f, 2, 2.25f}, found);
      rows.put(0, 5);
      assertThrows(
          IllegalArgumentException.class,
          () ->
              RoboCache.entryGather(
                  context, entry, "state", Tensor.of(rows, 3), Tensor.of(out, 3, 2)));
    }
  }

  /** An entry outlives the store that it was found in. */
  private Entry openEntry() {
    try (Store store = open()) {
      return store.find(key());
    }
  }

  @Test
  void views() {
    Tensor view;
    try (Entry entry = openEntry();
        Context context = Context.cpu()) {
      view = entry.getTensor("größe", 0);
      assertArrayEquals(shape(5), view.getShape());
      assertEquals(DType.INT64, view.getDType());
      assertFalse(view.isWritable());
      LongBuffer out = ByteBuffer.allocateDirect(40).order(ByteOrder.nativeOrder()).asLongBuffer();
      RoboCache.tensorCopy(context, view, Tensor.of(out, 5));
      long[] found = new long[5];
      out.get(found);
      assertArrayEquals(new long[] {1, -2, 3, -4, 1L << 62}, found);
      assertThrows(RoboCacheException.class, () -> entry.getTensor("missing", 0));
      assertThrows(IllegalArgumentException.class, () -> entry.getTensor("state", 1));
    }
    assertThrows(IllegalStateException.class, view::getShape);
  }

  @Test
  void refuses() {
    try (Store store = open()) {
      String message =
          assertThrows(IllegalArgumentException.class, () -> store.find(new byte[31])).getMessage();
      assertEquals("key: has 31 elements, expected 32", message);
      assertThrows(IllegalArgumentException.class, () -> store.find(null));
    }
    RoboCacheException missing =
        assertThrows(
            RoboCacheException.class, () -> Store.openReadOnly(folder.resolve("none").toString()));
    assertEquals(Status.NOT_FOUND, missing.getStatus());
    assertTrue(Files.notExists(folder.resolve("none")));
  }
}
