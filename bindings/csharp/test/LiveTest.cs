using System;
using System.Threading;
using RoboCache;

/// Fusion at run time, with one thread per sensor: the same bits as fusing a recording.
static class LiveTest {
  private const int Samples = 300, Kept = 64, Channels = 3;

  private static double TimeOf(int sensor, int i) {
    return 0.01 * i + 0.003 * sensor;
  }

  private static float ValueOf(int sensor, int i, int d) {
    return (float)Math.Sin(0.1 * i + d) + sensor;
  }

  private static void Push(Context context, Live live, int sensor, double time,
                           params float[] row) {
    float[,] rows = new float[1, row.Length];
    Buffer.BlockCopy(row, 0, rows, 0, 4 * row.Length);
    Rbc.LivePush(live, sensor, rows, new double[] {time}, null);
  }

  private static void Replay(Context context, Live live, int sensor) {
    for (int i = 0; i < Samples; ++i) {
      float[] row = new float[Channels];
      for (int d = 0; d < Channels; ++d) row[d] = ValueOf(sensor, i, d);
      Push(context, live, sensor, TimeOf(sensor, i), row);
    }
  }

  private static FuseStream Recorded(int sensor, ResampleParams parameters) {
    float[,] values = new float[Kept, Channels];
    double[] times = new double[Kept];
    for (int k = 0; k < Kept; ++k) {
      int i = Samples - Kept + k;
      times[k] = TimeOf(sensor, i);
      for (int d = 0; d < Channels; ++d) values[k, d] = ValueOf(sensor, i, d);
    }
    return new FuseStream {Values = values, Times = times, Params = parameters};
  }

  [Test]
  static void TheBitsOfFuse() {
    ResampleParams cubic = new ResampleParams {Method = Rbc.MethodCubic};
    double[] queries = {2.5, 2.75, 2.98};
    float[,] values = new float[3, 2 * Channels];
    byte[,] mask = new byte[3, 2];
    double[] ages = new double[2];
    LiveStream[] streams = {new LiveStream {NumChannels = Channels, Capacity = Kept},
                            new LiveStream {NumChannels = Channels, Capacity = Kept, Params = cubic}};
    using (Context context = Context.Cpu(1)) {
      Live live;
      Rbc.LiveCreate(context, streams, null, out live);
      Thread[] sensors = {new Thread(() => Replay(context, live, 0)),
                          new Thread(() => Replay(context, live, 1))};
      foreach (Thread sensor in sensors) sensor.Start();
      for (int tick = 0; tick < 100; ++tick) { // while they push
        Rbc.LiveFuse(live, queries, values, mask, ages, null);
      }
      foreach (Thread sensor in sensors) sensor.Join();
      Rbc.LiveFuse(live, queries, values, mask, ages, null);

      LiveCounters counters = new LiveCounters();
      for (int n = 0; n < 2; ++n) {
        Rbc.LiveGetCounters(live, n, counters);
        Expect.Equal((long)Samples, counters.Kept);
        Expect.Equal((long)(Samples - Kept), counters.Overwritten);
        Expect.Equal(0L, counters.Dropped);
        Expect.Equal(2.98 - TimeOf(n, Samples - 2 - n), ages[n]);  // the newest up to the query
      }
      live.Dispose();

      float[,] offline = new float[3, 2 * Channels];
      byte[,] offlineMask = new byte[3, 2];
      FuseStream[] recordings = {Recorded(0, null), Recorded(1, cubic)};
      context.Fuse(recordings, queries, offline, offlineMask);
      for (int t = 0; t < 3; ++t) {
        for (int d = 0; d < 2 * Channels; ++d) {
          Expect.Equal(BitConverter.SingleToInt32Bits(offline[t, d]),
                       BitConverter.SingleToInt32Bits(values[t, d]));
        }
        for (int n = 0; n < 2; ++n) {
          Expect.Equal((byte)1, mask[t, n]);
          Expect.Equal(offlineMask[t, n], mask[t, n]);
        }
      }
    }
  }

  [Test]
  static void LateSamplesAndMistakes() {
    using (Context context = Context.Cpu(1)) {
      LiveStream few = new LiveStream {NumChannels = Channels, Capacity = Kept, LateBound = 1,
                                       MaxAhead = 10};
      Live live;
      Rbc.LiveCreate(context, new LiveStream[] {few}, new LiveParams(), out live);
      Push(context, live, 0, 1, 1, 1, 1);
      Push(context, live, 0, 2, 2, 2, 2);
      Push(context, live, 0, 1.5, 9, 9, 9); // one is newer
      Push(context, live, 0, 1.2, 7, 7, 7); // two are
      Push(context, live, 0, double.NaN, 7, 7, 7);
      Push(context, live, 0, double.PositiveInfinity, 7, 7, 7);
      Push(context, live, 0, 1e9, 7, 7, 7); // far ahead
      LiveCounters counters = new LiveCounters();
      Rbc.LiveGetCounters(live, 0, counters);
      Expect.Equal(3L, counters.Kept);
      Expect.Equal(1L, counters.Late);
      Expect.Equal(1L, counters.Dropped);
      Expect.Equal(2L, counters.Invalid);
      Expect.Equal(1L, counters.Ahead);
      float[,] values = new float[1, Channels];
      Rbc.LiveFuse(live, new double[] {1.25}, values, null, null, null);
      for (int d = 0; d < Channels; ++d) Expect.Equal(5f, values[0, d]);
      Rbc.LiveReset(live, 0);
      Push(context, live, 0, 0.5, 4, 4, 4);
      Rbc.LiveFuse(live, new double[] {0.5}, values, null, null, null);
      for (int d = 0; d < Channels; ++d) Expect.Equal(4f, values[0, d]);
      Rbc.LiveGetCounters(live, 0, counters);
      Expect.Equal(3L, counters.Forgotten);
      Expect.Throws<ArgumentException>("stream_index: is 1", () => Rbc.LiveReset(live, 1));
      Expect.Throws<ArgumentException>("stream_index: is 1", () => Push(context, live, 1, 3, 1, 1, 1));
      Expect.Throws<ArgumentException>("values", () => Push(context, live, 0, 3, 1));
      live.Dispose();
      Expect.Throws<ObjectDisposedException>("", () => Push(context, live, 0, 3, 1, 1, 1));
    }
  }
}
