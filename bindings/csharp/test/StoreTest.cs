using System;
using System.IO;
using RoboCache;

/// Reads the store of tests/golden.
static class StoreTest {
  private static byte[] Key() {
    byte[] key = new byte[32];
    for (int i = 0; i < key.Length; ++i) key[i] = (byte)i;
    return key;
  }

  /// Copies the store to a folder of this user, as a store has to be, and removes the copy.
  private static void With(Action<string> test) {
    string folder = Path.Combine(Path.GetTempPath(), Path.GetRandomFileName());
    string golden = Path.Combine(Runner.GoldenFolder, "store");
    Directory.CreateDirectory(folder);
    try {
      foreach (string file in Directory.GetFiles(golden, "*", SearchOption.AllDirectories)) {
        string target = folder + file.Substring(golden.Length);
        Directory.CreateDirectory(Path.GetDirectoryName(target));
        File.Copy(file, target);
      }
      test(folder);
    } finally {
      Directory.Delete(folder, true);
    }
  }

  [Test]
  static void Finds() {
    With(folder => {
      using (Store store = Store.Open(folder))
      using (Entry entry = store.Find(Key())) {
        Expect.Equal(true, store.Find(new byte[32]) == null);
        Expect.Equal(2L, entry.Info.NumEpisodes);
        Expect.Equal(5L, entry.Info.NumRows);
        Expect.Equal("state, größe, valid", string.Join(", ", entry.Names));
        TrackInfo track = entry.Track("state");
        Expect.Equal(DType.Float32, track.DType);
        Expect.Equal(new long[] {5, 2}, track.Shape);
        Expect.Equal(8L, track.RowBytes);
      }
    });
  }

  [Test]
  static void Gathers() {
    With(folder => {
      using (Store store = Store.Open(folder))
      using (Entry entry = store.Find(Key()))
      using (Context context = Context.Cpu(1)) {
        float[,] found = new float[3, 2];
        Rbc.EntryGather(context, entry, "state", new long[] {4, 0, 4}, found);
        Expect.Equal(2.25f, found[0, 1]);
        Expect.Equal(0.25f, found[1, 1]);
        Expect.Equal(2f, found[2, 0]);
        Expect.Throws<ArgumentException>("", () =>
            Rbc.EntryGather(context, entry, "state", new long[] {5, 0, 0}, found));
      }
    });
  }

  [Test]
  static void Views() {
    With(folder => {
      Tensor view;
      using (Store store = Store.Open(folder))
      using (Entry entry = store.Find(Key()))
      using (Context context = Context.Cpu(1)) {
        store.Dispose();
        view = entry.Tensor("größe");
        Expect.Equal(new long[] {5}, view.Shape);
        long[] found = new long[5];
        context.Copy(view, found);
        Expect.Equal(new long[] {1, -2, 3, -4, 1L << 62}, found);
        Expect.Throws<ArgumentException>("", () => context.Copy(found, view));
        Expect.Throws<RoboCacheException>("", () => entry.Tensor("missing"));
        Expect.Throws<ArgumentException>("", () => entry.Tensor("state", 1));
      }
      Expect.Throws<ObjectDisposedException>("", () => view.Shape.ToString());
    });
  }

  [Test]
  static void Refuses() {
    With(folder => {
      using (Store store = Store.Open(folder)) {
        Expect.Throws<ArgumentException>("key: has 31 bytes, expected 32", () =>
            store.Find(new byte[31]));
        Expect.Throws<ArgumentException>("key: has 0 bytes", () => store.Find(null));
      }
      string missing = Path.Combine(folder, "none");
      Expect.Throws<RoboCacheException>("", () => Store.Open(missing));
      Expect.Equal(false, Directory.Exists(missing));
    });
  }
}
