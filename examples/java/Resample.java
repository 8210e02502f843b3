/*
 * Align a robot's joints, recorded at about 100 Hz with jitter, on a camera's 30 Hz clock.
 *
 *   java -cp robocache.jar Resample.java
 *
 * SPDX-License-Identifier: Apache-2.0
 */
import io.robocache.Context;
import io.robocache.DType;
import io.robocache.ResampleParams;
import io.robocache.RoboCache;
import io.robocache.Tensor;
import java.nio.ByteBuffer;
import java.nio.FloatBuffer;
import java.nio.LongBuffer;
import java.util.Locale;

public class Resample {
  static final int SAMPLES = 200;
  static final int FRAMES = 60;
  static final int JOINTS = 7;

  // Zeros in direct buffers, which C and Java share.
  static final Tensor positions = Tensor.allocate(DType.FLOAT32, SAMPLES, JOINTS);
  static final Tensor stamps = Tensor.allocate(DType.INT64, SAMPLES); // nanoseconds, as logged
  static final Tensor frames = Tensor.allocate(DType.INT64, FRAMES);

  /** Two seconds of motion. The stamps jitter by up to 4 ms, and 0.2 s were lost at second 1. */
  static void record() {
    FloatBuffer positionsOut = positions.getBuffer().asFloatBuffer();
    LongBuffer stampsOut = stamps.getBuffer().asLongBuffer();
    LongBuffer framesOut = frames.getBuffer().asLongBuffer();
    long start = 1_700_000_000_000_000_000L;
    int seed = 1;
    for (int i = 0; i < SAMPLES; ++i) {
      seed = seed * 1664525 + 1013904223;
      long jitter = (seed >>> 8) % 8_000_001 - 4_000_000;
      long lost = i < 100 ? 0 : 200_000_000;
      long sinceStart = i * 10_000_000L + jitter + lost;
      stampsOut.put(start + sinceStart);
      for (int j = 0; j < JOINTS; ++j) {
        positionsOut.put((float) Math.sin(1e-9 * sinceStart + j));
      }
    }
    for (int i = 0; i < FRAMES; ++i) framesOut.put(start + i * 1_000_000_000L / 30);
  }

  public static void main(String[] arguments) {
    record();
    Tensor out = Tensor.allocate(DType.FLOAT32, FRAMES, JOINTS);
    Tensor mask = Tensor.allocate(DType.BOOL, FRAMES);

    ResampleParams params = new ResampleParams();
    params.setFlags(RoboCache.FLAG_CHECK_TIMES);
    params.setMaxGap(50e6); // ns: across a longer hole in the stream, nothing is made up

    // On a GPU's tensors this would be Context.cuda(0), and the call would return at once.
    try (Context context = Context.cpu()) {
      RoboCache.resample(context, positions, stamps, frames, out, mask, params);
    }

    FloatBuffer aligned = out.getBuffer().asFloatBuffer();
    ByteBuffer valid = mask.getBuffer();
    int filled = 0;
    double error = 0;
    for (int i = 0; i < FRAMES; ++i) {
      filled += valid.get(i);
      for (int j = 0; j < JOINTS && valid.get(i) != 0; ++j) {
        error = Math.max(error, Math.abs(aligned.get(i * JOINTS + j) - Math.sin(i / 30.0 + j)));
      }
    }
    System.out.printf(
        Locale.ROOT,
        "%d of %d frames have joint positions, off by at most %.0e%n",
        filled,
        FRAMES,
        error);
    for (int i = 28; i < 38; ++i) {
      System.out.printf(
          Locale.ROOT,
          "frame %d  %s  %7.4f %7.4f%n",
          i,
          valid.get(i) != 0 ? "valid" : "     ",
          aligned.get(i * JOINTS),
          aligned.get(i * JOINTS + 1));
    }
  }
}
