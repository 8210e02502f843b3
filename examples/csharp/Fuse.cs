// Fuse an arm's pose (100 Hz) and its force sensor (500 Hz) on a camera's 30 Hz clock, in one call.
//
//   mcs -r:RoboCache.dll Fuse.cs && mono Fuse.exe
//
// SPDX-License-Identifier: Apache-2.0
using System;
using System.Globalization;
using RoboCache;

static class Fuse {
  private const int Poses = 200;
  private const int Forces = 1100;
  private const int Frames = 60;
  private const int PoseSize = 8; // x y z, a quaternion x y z w, the gripper
  private const int ForceSize = 3;

  private static readonly float[,] poses = new float[Poses, PoseSize];
  private static readonly float[,] forces = new float[Forces, ForceSize];
  private static readonly long[] poseStamps = new long[Poses]; // nanoseconds since the epoch
  private static readonly long[] forceStamps = new long[Forces];
  private static readonly long[] frames = new long[Frames];

  // Two seconds: the arm circles and turns, the gripper closes. 0.2 s of its poses were lost.
  private static void Record() {
    const long start = 1700000000000000000;
    for (int i = 0; i < Poses; ++i) {
      long sinceStart = i * 10000000L + (i < 100 ? 0 : 200000000);
      double t = 1e-9 * sinceStart;
      double[] pose = {Math.Cos(t), Math.Sin(t), 0.5, 0, 0, Math.Sin(t / 2), Math.Cos(t / 2),
                       t < 0.75 ? 0 : 1};
      for (int j = 0; j < PoseSize; ++j) poses[i, j] = (float)pose[j];
      poseStamps[i] = start + sinceStart;
    }
    for (int i = 0; i < Forces; ++i) { // stamped when it arrives: 4 ms late
      for (int j = 0; j < ForceSize; ++j) forces[i, j] = (float)Math.Sin(0.002 * i + j);
      forceStamps[i] = start + i * 2000000L + 4000000;
    }
    for (int i = 0; i < Frames; ++i) frames[i] = start + i * 1000000000L / 30;
  }

  private static void Main() {
    CultureInfo.CurrentCulture = CultureInfo.InvariantCulture;
    Record();
    float[,] fused = new float[Frames, PoseSize + ForceSize];
    bool[,] valid = new bool[Frames, 2];

    // Positions smoothly, rotations at constant speed, the gripper as it last was.
    FuseStream pose = new FuseStream {
      Values = poses,
      Times = poseStamps,
      Params = new ResampleParams {
        Groups = new ChannelGroup[] {new ChannelGroup(0, 3, Rbc.MethodPchip),
                                     new ChannelGroup(3, 4, Rbc.MethodSlerp),
                                     new ChannelGroup(7, 1, Rbc.MethodPrevious)},
        MaxGap = 50e6, // ns: across a longer hole in the stream, nothing is made up
      },
    };
    FuseStream force = new FuseStream {
      Values = forces, Times = forceStamps, ClockOffsetTicks = -4000000,
    };
    using (Context context = Context.Cpu()) {
      context.Fuse(new FuseStream[] {pose, force}, frames, fused, valid,
                   new FuseParams {Flags = Rbc.FlagCheckTimes});
    }

    int posed = 0;
    int forced = 0;
    double error = 0;
    for (int i = 0; i < Frames; ++i) {
      double turned = 2 * Math.Atan2(fused[i, 5], fused[i, 6]);
      if (valid[i, 0]) {
        ++posed;
        error = Math.Max(error, Math.Abs(turned - i / 30.0));
      }
      if (valid[i, 1]) {
        ++forced;
        error = Math.Max(error, Math.Abs(fused[i, 8] - Math.Sin(i / 30.0)));
      }
    }
    Console.WriteLine("of {0} frames {1} have a pose and {2} a force; rotation and force are off " +
                      "by at most {3:0e-00}", Frames, posed, forced, error);
    for (int i = 20; i < 40; i += 2) {
      Console.WriteLine("frame {0}  {1}  x {2,7:F4}  gripper {3:F0}  force {4,7:F4}", i,
                        valid[i, 0] ? "pose" : "    ", fused[i, 0], fused[i, 7], fused[i, 8]);
    }
  }
}
