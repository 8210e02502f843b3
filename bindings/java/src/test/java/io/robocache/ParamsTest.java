// SPDX-License-Identifier: Apache-2.0
package io.robocache;

import static io.robocache.Data.shape;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;

class ParamsTest {
  @Test
  void startWithTheDefaultsOfC() {
    ResampleParams resample = new ResampleParams();
    assertEquals(0, resample.getFlags());
    assertEquals(RoboCache.METHOD_LINEAR, resample.getMethod());
    assertEquals(RoboCache.OUTSIDE_HOLD, resample.getOutside());
    assertEquals(0, resample.getFillValue());
    assertEquals(Double.POSITIVE_INFINITY, resample.getMaxGap());
    assertEquals(Double.POSITIVE_INFINITY, resample.getTolerance());
    assertNull(resample.getLengths());
    assertNull(resample.getGroups());
    assertEquals(RoboCache.REDUCE_MEAN, new VoxelizeSparseParams().getReduction());
    assertEquals(RoboCache.REDUCE_OCCUPANCY, new VoxelizeParams().getReduction());
    assertEquals(Double.POSITIVE_INFINITY, new VoxelizeTsdfParams().getMaxWeight());
    assertEquals(RoboCache.BACKEND_AUTO, new ContextParams().getBackend());
    assertEquals(0, new FuseStream().getClockOffsetTicks());
  }

  @Test
  void keepWhatIsSet() {
    ResampleParams params = new ResampleParams();
    params.setFillValue(-1.5);
    params.setFlags(RoboCache.FLAG_CHECK_TIMES);
    assertEquals(-1.5, params.getFillValue());
    assertEquals(RoboCache.FLAG_CHECK_TIMES, params.getFlags());
    Tensor lengths = Tensor.allocate(DType.INT64, 2);
    params.setLengths(lengths);
    params.setShift(lengths);
    assertSame(lengths, params.getLengths());
    assertSame(lengths, params.getShift());
    params.setLengths(null);
    assertNull(params.getLengths());
    assertSame(lengths, params.getShift());

    FuseStream stream = FuseStream.of(lengths, null, params);
    stream.setClockOffsetTicks(Long.MIN_VALUE);
    assertEquals(Long.MIN_VALUE, stream.getClockOffsetTicks());
    assertSame(params, stream.getParams());
    assertNull(stream.getTimes());
  }

  @Test
  void anglesHaveAPeriod() {
    ChannelGroup degrees =
        new ChannelGroup(0, 1, RoboCache.METHOD_ANGLE, RoboCache.PERIOD_DEGREES_POSITIVE);
    assertEquals(RoboCache.PERIOD_DEGREES_POSITIVE, degrees.getPeriod());
    assertEquals(
        RoboCache.PERIOD_RADIANS, new ChannelGroup(0, 1, RoboCache.METHOD_ANGLE).getPeriod());
    ResampleParams params = new ResampleParams();
    params.setGroups(degrees);
    Tensor out = Tensor.allocate(DType.FLOAT32, 1, 1);
    Tensor values = Data.f32(shape(2, 1), 350, 20);
    Tensor times = Data.f64(shape(2), 0, 1);
    Tensor clock = Data.f64(shape(1), 0.5);
    try (Context context = Context.cpu()) {
      RoboCache.resample(context, values, times, clock, out, null, params);
    }
    assertArrayEquals(new float[] {5}, Data.floats(out));
  }

  @Test
  void groupsAreCopied() {
    ResampleParams params = new ResampleParams();
    ChannelGroup first = new ChannelGroup(0, 1, RoboCache.METHOD_LINEAR);
    ChannelGroup second = new ChannelGroup(1, 1, RoboCache.METHOD_PREVIOUS);
    params.setGroups(first, second);
    assertArrayEquals(new ChannelGroup[] {first, second}, params.getGroups());
    assertEquals(RoboCache.METHOD_PREVIOUS, second.getMethod());
    second.setMethod(99); // unseen: the copy stays
    Tensor out = Tensor.allocate(DType.FLOAT32, 1, 2);
    Tensor values = Data.f32(shape(2, 2), 0, 10, 1, 11);
    Tensor times = Data.f64(shape(2), 0, 1);
    Tensor clock = Data.f64(shape(1), 0.5);
    try (Context context = Context.cpu()) {
      RoboCache.resample(context, values, times, clock, out, null, params);
      assertArrayEquals(new float[] {0.5f, 10}, Data.floats(out));
      params.setGroups();
      RoboCache.resample(context, values, times, clock, out, null, params);
      assertArrayEquals(new float[] {0.5f, 10.5f}, Data.floats(out));
    }
    assertEquals(
        "groups[1]: is null",
        assertThrows(IllegalArgumentException.class, () -> params.setGroups(first, null))
            .getMessage());
  }

  @Test
  void aGridIsCopiedInAndSeenThrough() {
    VoxelizeParams params = new VoxelizeParams();
    VoxelGrid grid =
        new VoxelGrid(new double[] {1, 2, 3}, new double[] {.5, .25, .125}, shape(4, 5, 6));
    params.setGrid(grid);
    grid.setShape(shape(7, 8, 9));
    assertArrayEquals(new double[] {1, 2, 3}, params.getGrid().getOrigin());
    assertArrayEquals(new double[] {.5, .25, .125}, params.getGrid().getVoxelSize());
    assertArrayEquals(shape(4, 5, 6), params.getGrid().getShape());
    params.getGrid().setShape(shape(1, 1, 1L << 30));
    assertArrayEquals(shape(1, 1, 1L << 30), params.getGrid().getShape());
    assertEquals(
        "grid: is null",
        assertThrows(IllegalArgumentException.class, () -> params.setGrid(null)).getMessage());
    assertEquals(
        "shape: has 2 elements, expected 3",
        assertThrows(IllegalArgumentException.class, () -> grid.setShape(shape(1, 1)))
            .getMessage());
    assertEquals(
        "origin: is null, expected 3 elements",
        assertThrows(IllegalArgumentException.class, () -> grid.setOrigin(null)).getMessage());
  }
}
