/*
 * Fuse an arm's pose (100 Hz) and its force sensor (500 Hz) on a camera's 30 Hz clock, in one call.
 *
 *   java -cp robocache.jar Fuse.java
 *
 * SPDX-License-Identifier: Apache-2.0
 */
import io.robocache.ChannelGroup;
import io.robocache.Context;
import io.robocache.DType;
import io.robocache.FuseParams;
import io.robocache.FuseStream;
import io.robocache.ResampleParams;
import io.robocache.RoboCache;
import io.robocache.Tensor;
import java.nio.ByteBuffer;
import java.nio.FloatBuffer;
import java.nio.LongBuffer;
import java.util.Locale;

public class Fuse {
  static final int POSES = 200;
  static final int FORCES = 1100;
  static final int FRAMES = 60;
  static final int POSE = 8; // x y z, a quaternion x y z w, the gripper
  static final int FORCE = 3;
  static final int STREAMS = 2;

  // Zeros in direct buffers, which C and Java share.
  static final Tensor poses = Tensor.allocate(DType.FLOAT32, POSES, POSE);
  static final Tensor forces = Tensor.allocate(DType.FLOAT32, FORCES, FORCE);
  static final Tensor poseStamps = Tensor.allocate(DType.INT64, POSES); // nanoseconds
  static final Tensor forceStamps = Tensor.allocate(DType.INT64, FORCES);
  static final Tensor frames = Tensor.allocate(DType.INT64, FRAMES);

  /** Two seconds: the arm circles and turns, the gripper closes. 0.2 s of its poses were lost. */
  static void record() {
    long start = 1_700_000_000_000_000_000L;
    FloatBuffer values = poses.getBuffer().asFloatBuffer();
    LongBuffer stamps = poseStamps.getBuffer().asLongBuffer();
    for (int i = 0; i < POSES; ++i) {
      long sinceStart = i * 10_000_000L + (i < 100 ? 0 : 200_000_000L);
      double t = 1e-9 * sinceStart;
      values.put((float) Math.cos(t)).put((float) Math.sin(t)).put(0.5f);
      values.put(0).put(0).put((float) Math.sin(t / 2)).put((float) Math.cos(t / 2));
      values.put(t < 0.75 ? 0 : 1);
      stamps.put(start + sinceStart);
    }
    values = forces.getBuffer().asFloatBuffer();
    stamps = forceStamps.getBuffer().asLongBuffer();
    for (int i = 0; i < FORCES; ++i) { // stamped when it arrives: 4 ms late
      for (int j = 0; j < FORCE; ++j) values.put((float) Math.sin(0.002 * i + j));
      stamps.put(start + i * 2_000_000L + 4_000_000L);
    }
    stamps = frames.getBuffer().asLongBuffer();
    for (int i = 0; i < FRAMES; ++i) stamps.put(start + i * 1_000_000_000L / 30);
  }

  public static void main(String[] arguments) {
    record();
    Tensor out = Tensor.allocate(DType.FLOAT32, FRAMES, POSE + FORCE);
    Tensor mask = Tensor.allocate(DType.BOOL, FRAMES, STREAMS);

    // Positions smoothly, rotations at constant speed, the gripper as it last was.
    ResampleParams poseParams = new ResampleParams();
    poseParams.setGroups(
        new ChannelGroup(0, 3, RoboCache.METHOD_PCHIP),
        new ChannelGroup(3, 4, RoboCache.METHOD_SLERP),
        new ChannelGroup(7, 1, RoboCache.METHOD_PREVIOUS));
    poseParams.setMaxGap(50e6); // ns: across a longer hole in the stream, nothing is made up

    FuseStream[] streams = {
      FuseStream.of(poses, poseStamps, poseParams), FuseStream.of(forces, forceStamps, null)
    };
    streams[1].setClockOffsetTicks(-4_000_000);

    FuseParams params = new FuseParams();
    params.setFlags(RoboCache.FLAG_CHECK_TIMES);
    try (Context context = Context.cpu()) {
      RoboCache.fuse(context, streams, frames, out, mask, params);
    }

    FloatBuffer fused = out.getBuffer().asFloatBuffer();
    ByteBuffer valid = mask.getBuffer();
    int width = POSE + FORCE;
    int[] filled = new int[STREAMS];
    double error = 0;
    for (int i = 0; i < FRAMES; ++i) {
      for (int n = 0; n < STREAMS; ++n) filled[n] += valid.get(i * STREAMS + n);
      double turned = 2 * Math.atan2(fused.get(i * width + 5), fused.get(i * width + 6));
      double pushed = fused.get(i * width + 8);
      if (valid.get(i * STREAMS) != 0) error = Math.max(error, Math.abs(turned - i / 30.0));
      if (valid.get(i * STREAMS + 1) != 0) {
        error = Math.max(error, Math.abs(pushed - Math.sin(i / 30.0)));
      }
    }
    System.out.printf(
        Locale.ROOT,
        "of %d frames %d have a pose and %d a force; rotation and force are off by at most %.0e%n",
        FRAMES,
        filled[0],
        filled[1],
        error);
    for (int i = 20; i < 40; i += 2) {
      System.out.printf(
          Locale.ROOT,
          "frame %d  %s  x %7.4f  gripper %.0f  force %7.4f%n",
          i,
          valid.get(i * STREAMS) != 0 ? "pose" : "    ",
          fused.get(i * width),
          fused.get(i * width + 7),
          fused.get(i * width + 8));
    }
  }
}
