// SPDX-License-Identifier: Apache-2.0
package io.robocache;

import static io.robocache.Data.shape;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Fusion at run time, with one thread per sensor: the same bits as fusing a recording. */
class LiveTest {
  private static final int SAMPLES = 300;
  private static final int KEPT = 64;
  private static final int CHANNELS = 3;

  private final Context context = Context.cpu();

  @AfterEach
  void close() {
    context.close();
  }

  private static double timeOf(int sensor, int i) {
    return 0.01 * i + 0.003 * sensor;
  }

  private static float valueOf(int sensor, int i, int d) {
    return (float) Math.sin(0.1 * i + d) + sensor;
  }

  private static LiveStream stream(ResampleParams params) {
    LiveStream stream = new LiveStream();
    stream.setNumChannels(CHANNELS);
    stream.setCapacity(KEPT);
    stream.setParams(params);
    return stream;
  }

  private void push(Live live, int sensor, double time, float... row) {
    RoboCache.livePush(
        live, sensor, Data.f32(shape(1, row.length), row), Data.f64(shape(1), time), null);
  }

  private Thread sensor(Live live, int sensor) {
    return new Thread(
        () -> {
          for (int i = 0; i < SAMPLES; ++i) {
            float[] row = new float[CHANNELS];
            for (int d = 0; d < CHANNELS; ++d) row[d] = valueOf(sensor, i, d);
            push(live, sensor, timeOf(sensor, i), row);
          }
        });
  }

  private static FuseStream recorded(int sensor, ResampleParams params) {
    Tensor values = Tensor.allocate(DType.FLOAT32, KEPT, CHANNELS);
    Tensor times = Tensor.allocate(DType.FLOAT64, KEPT);
    for (int k = 0; k < KEPT; ++k) {
      int i = SAMPLES - KEPT + k;
      times.getBuffer().putDouble(8 * k, timeOf(sensor, i));
      for (int d = 0; d < CHANNELS; ++d) {
        values.getBuffer().putFloat(4 * (CHANNELS * k + d), valueOf(sensor, i, d));
      }
    }
    return FuseStream.of(values, times, params);
  }

  @Test
  void theBitsOfFuse() throws InterruptedException {
    ResampleParams cubic = new ResampleParams();
    cubic.setMethod(RoboCache.METHOD_CUBIC);
    Tensor queries = Data.f64(shape(3), 2.5, 2.75, 2.98);
    Tensor out = Tensor.allocate(DType.FLOAT32, 3, 2 * CHANNELS);
    Tensor mask = Tensor.allocate(DType.BOOL, 3, 2);
    Tensor ages = Tensor.allocate(DType.FLOAT64, 2);
    LiveStream[] streams = {stream(null), stream(cubic)};
    try (Live live = RoboCache.liveCreate(context, streams, null)) {
      Thread[] sensors = {sensor(live, 0), sensor(live, 1)};
      for (Thread sensor : sensors) sensor.start();
      for (int tick = 0; tick < 100; ++tick) { // while they push
        RoboCache.liveFuse(live, queries, out, mask, ages, null);
      }
      for (Thread sensor : sensors) sensor.join();
      RoboCache.liveFuse(live, queries, out, mask, ages, null);

      LiveCounters counters = new LiveCounters();
      for (int n = 0; n < 2; ++n) {
        RoboCache.liveGetCounters(live, n, counters);
        assertEquals(SAMPLES, counters.getKept());
        assertEquals(SAMPLES - KEPT, counters.getOverwritten());
        assertEquals(0, counters.getDropped());
      }
    }
    assertEquals(2.98 - timeOf(0, SAMPLES - 2), ages.getBuffer().getDouble(0));
    assertEquals(2.98 - timeOf(1, SAMPLES - 3), ages.getBuffer().getDouble(8));

    Tensor offline = Tensor.allocate(DType.FLOAT32, 3, 2 * CHANNELS);
    Tensor offlineMask = Tensor.allocate(DType.BOOL, 3, 2);
    FuseStream[] recordings = {recorded(0, null), recorded(1, cubic)};
    RoboCache.fuse(context, recordings, queries, offline, offlineMask, null);
    assertArrayEquals(Data.bytes(offline), Data.bytes(out));
    assertArrayEquals(new byte[] {1, 1, 1, 1, 1, 1}, Data.bytes(mask));
    assertArrayEquals(Data.bytes(offlineMask), Data.bytes(mask));
  }

  @Test
  void lateSamplesAndMistakes() {
    LiveStream few = stream(null);
    few.setLateBound(1);
    few.setMaxAhead(10);
    LiveParams params = new LiveParams();
    params.setDType(DType.FLOAT64);
    Live live = RoboCache.liveCreate(context, new LiveStream[] {few}, params);
    push(live, 0, 1, 1, 1, 1);
    push(live, 0, 2, 2, 2, 2);
    push(live, 0, 1.5, 9, 9, 9); // one is newer
    push(live, 0, 1.2, 7, 7, 7); // two are
    push(live, 0, Double.NaN, 7, 7, 7);
    push(live, 0, Double.POSITIVE_INFINITY, 7, 7, 7);
    push(live, 0, 1e9, 7, 7, 7); // far ahead
    LiveCounters counters = new LiveCounters();
    RoboCache.liveGetCounters(live, 0, counters);
    assertEquals(3, counters.getKept());
    assertEquals(1, counters.getLate());
    assertEquals(1, counters.getDropped());
    assertEquals(2, counters.getInvalid());
    assertEquals(1, counters.getAhead());
    Tensor out = Tensor.allocate(DType.FLOAT32, 1, CHANNELS);
    RoboCache.liveFuse(live, Data.f64(shape(1), 1.25), out, null, null, null);
    assertArrayEquals(new float[] {5, 5, 5}, Data.floats(out));

    RoboCache.liveReset(live, 0);
    push(live, 0, 0.5, 4, 4, 4);
    RoboCache.liveFuse(live, Data.f64(shape(1), 0.5), out, null, null, null);
    assertArrayEquals(new float[] {4, 4, 4}, Data.floats(out));
    RoboCache.liveGetCounters(live, 0, counters);
    assertEquals(3, counters.getForgotten());
    assertThrows(IllegalArgumentException.class, () -> RoboCache.liveReset(live, 1));

    String told =
        assertThrows(IllegalArgumentException.class, () -> push(live, 1, 3, 1, 1, 1)).getMessage();
    assertTrue(told.contains("stream_index: is 1"), told);
    told = assertThrows(IllegalArgumentException.class, () -> push(live, 0, 3, 1)).getMessage();
    assertTrue(told.contains("values"), told);
    live.close();
    assertThrows(IllegalStateException.class, () -> push(live, 0, 3, 1, 1, 1));
  }
}
