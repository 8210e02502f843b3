using System;
using System.Runtime.InteropServices;
using System.Text;

namespace RoboCache {

public partial class Store {
  /// <summary>Opens a folder of entries, which must exist, to read them.</summary>
  public static Store Open(string path) {
    using (StoreParams options = new StoreParams {Flags = Rbc.StoreFlagReadOnly}) {
      Store store;
      Rbc.StoreOpen(path, options, out store);
      return store;
    }
  }

  /// <summary>Opens an entry by its key of 32 bytes; null if the store does not have it.</summary>
  public Entry Find(byte[] key) {
    try {
      Entry entry;
      Rbc.StoreFind(this, key, out entry);
      return entry;
    } catch (RoboCacheException error) {
      if (error.Status == Status.NotFound) return null;
      throw;
    }
  }
}

public partial class Entry {
  /// <summary>The properties of the entry.</summary>
  public EntryInfo Info {
    get {
      EntryInfo info = new EntryInfo();
      Rbc.EntryGetInfo(this, info);
      return info;
    }
  }

  /// <summary>The names of the tensors.</summary>
  public string[] Names {
    get {
      string[] names = new string[Info.NumTensors];
      for (int i = 0; i < names.Length; ++i) {
        IntPtr name;
        Rbc.EntryGetName(this, i, out name);
        names[i] = Text(name);
      }
      return names;
    }
  }

  /// <summary>The dtype and the shape of a track, over all segments.</summary>
  public TrackInfo Track(string name) {
    TrackInfo info = new TrackInfo();
    Rbc.EntryGetTrack(this, name, info);
    return info;
  }

  /// <summary>
  /// Describes a tensor of a segment, whose memory is the file's in the page cache. The read-only view
  /// keeps the entry alive, and cannot be used after the entry is disposed.
  /// </summary>
  public Tensor Tensor(string name, long segment = 0) {
    return global::RoboCache.Tensor.Of(this, name, segment);
  }

  private static string Text(IntPtr bytes) {
    int length = 0;
    while (Marshal.ReadByte(bytes, length) != 0) ++length;
    byte[] copy = new byte[length];
    Marshal.Copy(bytes, copy, 0, length);
    return Encoding.UTF8.GetString(copy);
  }
}

public partial class TrackInfo {
  /// <summary>The number of rows, and the shape of a row.</summary>
  public long[] Shape {
    get {
      long[] shape = new long[Ndim];
      for (int i = 0; i < shape.Length; ++i) shape[i] = GetExtent(i);
      return shape;
    }
  }
}

}
