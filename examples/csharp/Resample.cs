// Align a robot's joints, recorded at about 100 Hz with jitter, on a camera's 30 Hz clock.
//
//   mcs -r:RoboCache.dll Resample.cs && mono Resample.exe
//
// SPDX-License-Identifier: Apache-2.0
using System;
using System.Globalization;
using System.Linq;
using RoboCache;

static class Resample {
  private const int Samples = 200;
  private const int Frames = 60;
  private const int Joints = 7;

  private static readonly float[,] positions = new float[Samples, Joints];
  private static readonly long[] stamps = new long[Samples]; // nanoseconds since the epoch
  private static readonly long[] frames = new long[Frames];

  // Two seconds of motion. The stamps jitter by up to 4 ms, and 0.2 s were lost at second 1.
  private static void Record() {
    const long start = 1700000000000000000;
    uint seed = 1;
    for (int i = 0; i < Samples; ++i) {
      seed = unchecked(seed * 1664525u + 1013904223u);
      long jitter = (long)(seed >> 8) % 8000001 - 4000000;
      long sinceStart = i * 10000000L + jitter + (i < 100 ? 0 : 200000000);
      stamps[i] = start + sinceStart;
      for (int j = 0; j < Joints; ++j) positions[i, j] = (float)Math.Sin(1e-9 * sinceStart + j);
    }
    for (int i = 0; i < Frames; ++i) frames[i] = start + i * 1000000000L / 30;
  }

  private static void Main() {
    CultureInfo.CurrentCulture = CultureInfo.InvariantCulture;
    Record();
    float[,] aligned = new float[Frames, Joints];
    bool[] valid = new bool[Frames];

    // On a GPU's tensors this would be Context.Cuda(), and the call would return at once.
    using (Context context = Context.Cpu())
    using (ResampleParams parameters = new ResampleParams()) {
      parameters.Flags = Rbc.FlagCheckTimes;
      parameters.MaxGap = 50e6; // ns: across a longer hole in the stream, nothing is made up
      context.Resample(positions, stamps, frames, aligned, valid, parameters);
    }

    double error = 0;
    for (int i = 0; i < Frames; ++i) {
      for (int j = 0; j < Joints && valid[i]; ++j) {
        error = Math.Max(error, Math.Abs(aligned[i, j] - Math.Sin(i / 30.0 + j)));
      }
    }
    Console.WriteLine("{0} of {1} frames have joint positions, off by at most {2:0e-00}",
                      valid.Count(x => x), Frames, error);
    for (int i = 28; i < 38; ++i) {
      Console.WriteLine("frame {0}  {1}  {2,7:F4} {3,7:F4}", i, valid[i] ? "valid" : "     ",
                        aligned[i, 0], aligned[i, 1]);
    }
  }
}
