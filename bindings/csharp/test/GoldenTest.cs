using System;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Reflection;
using RoboCache;

/// The calls of tests/golden, byte for byte.
static class GoldenTest {
  [Test]
  internal static IEnumerable<KeyValuePair<string, Action>> All() {
    foreach (string file in Directory.GetFiles(Runner.GoldenFolder, "*.txt").OrderBy(x => x)) {
      List<string> lines = null;
      foreach (string line in File.ReadLines(file)) {
        if (line.StartsWith("case ")) lines = new List<string>();
        if (lines != null && line != "") lines.Add(line);
        if (line != "end") continue;
        List<string> statements = lines;
        yield return new KeyValuePair<string, Action>(lines[0].Substring(5),
                                                      () => new GoldenCase(statements).Run());
        lines = null;
      }
    }
  }
}

/// One case: what it calls, and which buffers must hold what afterwards.
sealed class GoldenCase {
  private readonly string operation;
  private readonly object call; // the params of the call
  private readonly SparseVoxels voxels = new SparseVoxels();
  private readonly List<FuseStream> streams = new List<FuseStream>();
  private readonly List<ChannelGroup> groups = new List<ChannelGroup>();
  private readonly Dictionary<string, Tensor> arguments = new Dictionary<string, Tensor>();
  private readonly Dictionary<string, byte[]> buffers = new Dictionary<string, byte[]>();
  private readonly Dictionary<string, byte[]> expected = new Dictionary<string, byte[]>();

  internal GoldenCase(IEnumerable<string> lines) {
    foreach (string line in lines) {
      string[] words = line.Split(' ');
      switch (words[0]) {
        case "op":
          operation = words[1];
          call = MakeParams(operation);
          break;
        case "stream":
          streams.Add(new FuseStream {Params = new ResampleParams()});
          groups.Clear();
          break;
        case "set": Set(words[1], words[2]); break;
        case "group": AddGroup(words); break;
        case "grid": SetField(call, "Grid", Grid(words)); break;
        case "in": AddInput(words); break;
        case "out": AddOutput(words); break;
      }
    }
  }

  internal void Run() {
    using (Context context = Context.Cpu()) {
      switch (operation) {
        case "resample":
          context.Resample(Argument("values"), Argument("times"), Argument("query_times"),
                           Argument("out"), Argument("mask"), (ResampleParams)call);
          break;
        case "fuse":
          context.Fuse(streams.ToArray(), Argument("query_times"), Argument("out"),
                       Argument("mask"), (FuseParams)call);
          break;
        case "voxelize":
          context.Voxelize(Argument("points"), Argument("out"), (VoxelizeParams)call,
                           Argument("features"), Argument("dropped"));
          break;
        case "voxelize_sparse":
          context.VoxelizeSparse(Argument("points"), voxels, (VoxelizeSparseParams)call,
                                 Argument("features"));
          break;
        default:
          context.VoxelizeTsdf(Argument("points"), Argument("sensors"), Argument("tsdf"),
                               Argument("weight"), (TsdfParams)call, Argument("dropped"));
          break;
      }
    }
    foreach (KeyValuePair<string, byte[]> output in expected) {
      Expect.True(output.Value.SequenceEqual(buffers[output.Key]), output.Key + " differs");
    }
  }

  private static object MakeParams(string operation) {
    switch (operation) {
      case "resample": return new ResampleParams();
      case "fuse": return new FuseParams();
      case "voxelize": return new VoxelizeParams();
      case "voxelize_sparse": return new VoxelizeSparseParams();
      case "voxelize_tsdf": return new TsdfParams();
      default: throw new Exception("unknown op " + operation);
    }
  }

  /// The stream that is described now; null: still the call.
  private FuseStream Stream {
    get { return streams.LastOrDefault(); }
  }

  private object Params {
    get { return Stream == null ? call : Stream.Params; }
  }

  private Tensor Argument(string name) {
    Tensor tensor;
    arguments.TryGetValue(name, out tensor);
    return tensor;
  }

  private void Set(string name, string text) {
    object target = name.StartsWith("clock_offset") ? Stream : Params;
    Type type = Property(target, name).PropertyType;
    if (type == typeof(double)) {
      SetField(target, name, Number(text));
    } else {
      SetField(target, name, Convert.ChangeType(long.Parse(text), type));
    }
  }

  private void AddGroup(string[] words) {
    groups.Add(new ChannelGroup(long.Parse(words[1]), long.Parse(words[2]), int.Parse(words[3])));
    ((ResampleParams)Params).Groups = groups.ToArray();
  }

  private void AddInput(string[] words) {
    byte[] bytes = Bytes(words[4]);
    Tensor tensor = Describe(bytes, words);
    if (Stream != null && (words[1] == "values" || words[1] == "times")) {
      SetField(Stream, words[1], tensor);
    } else if (Property(Params, words[1]) != null) {
      SetField(Params, words[1], tensor);
    } else {
      arguments[words[1]] = tensor;
      buffers[words[1]] = bytes;
    }
  }

  private void AddOutput(string[] words) {
    byte[] bytes = Bytes(words[4]);
    expected[words[1]] = bytes;
    if (operation == "voxelize_tsdf" && buffers.ContainsKey(words[1])) return; // read and written
    byte[] buffer = Enumerable.Repeat((byte)0xCD, bytes.Length).ToArray();
    buffers[words[1]] = buffer;
    Tensor tensor = Describe(buffer, words);
    if (operation == "voxelize_sparse") {
      SetField(voxels, words[1], tensor);
    } else {
      arguments[words[1]] = tensor;
    }
  }

  private static Tensor Describe(byte[] bytes, string[] words) {
    long[] shape = words[3] == "scalar" ? new long[0]
                                        : words[3].Split('x').Select(long.Parse).ToArray();
    return Tensor.Of(bytes, ParseDType(words[2]), shape);
  }

  private static DType ParseDType(string name) {
    switch (name) {
      case "f16": return DType.Float16;
      case "bf16": return DType.BFloat16;
      case "f32": return DType.Float32;
      case "f64": return DType.Float64;
      case "i8": return DType.Int8;
      case "i16": return DType.Int16;
      case "i32": return DType.Int32;
      case "i64": return DType.Int64;
      case "u8": return DType.UInt8;
      case "bool": return DType.Bool;
      default: throw new Exception("unknown dtype " + name);
    }
  }

  private static byte[] Bytes(string hex) {
    if (hex == "-") return new byte[0];
    byte[] bytes = new byte[hex.Length / 2];
    for (int i = 0; i < bytes.Length; ++i) bytes[i] = Convert.ToByte(hex.Substring(2 * i, 2), 16);
    return bytes;
  }

  private static VoxelGrid Grid(string[] words) {
    double[] numbers = words.Skip(1).Where(word => word != "").Select(Number).ToArray();
    return new VoxelGrid(numbers.Take(3).ToArray(), numbers.Skip(3).Take(3).ToArray(),
                         numbers.Skip(6).Select(number => (long)number).ToArray());
  }

  private static double Number(string text) {
    switch (text) {
      case "inf": return double.PositiveInfinity;
      case "-inf": return double.NegativeInfinity;
      case "nan": return double.NaN;
      default: return double.Parse(text, CultureInfo.InvariantCulture);
    }
  }

  /// The property of a field by its C name; null: there is none.
  private static PropertyInfo Property(object target, string name) {
    return target.GetType().GetProperty(
        string.Concat(name.Split('_').Select(word => char.ToUpper(word[0]) + word.Substring(1))));
  }

  private static void SetField(object target, string name, object value) {
    Property(target, name).SetValue(target, value);
  }
}
