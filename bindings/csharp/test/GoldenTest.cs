using System;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Reflection;
using RoboCache;

/// Compares the calls of tests/golden byte for byte.
static class GoldenTest {
  [Test]
  internal static IEnumerable<KeyValuePair<string, Action>> All() {
    foreach (string file in Directory.GetFiles(Runner.GoldenFolder, "*.txt").OrderBy(x => x)) {
      List<string> lines = null;
      string signature = null;
      foreach (string line in File.ReadLines(file)) {
        if (line.StartsWith("signature ")) signature = line;
        if (line.StartsWith("case ")) lines = new List<string>();
        if (lines != null && line != "") lines.Add(line);
        if (line != "end") continue;
        string operation = signature;
        List<string> statements = lines;
        yield return new KeyValuePair<string, Action>(
            lines[0].Substring(5), () => new GoldenCase(operation, statements).Run());
        lines = null;
      }
    }
  }
}

/// One case: its call, and the expected contents of buffers afterwards. Throws for unknown names.
sealed class GoldenCase {
  private readonly MethodInfo operation;
  private readonly string[][] signature; // name and kind of each argument
  private readonly object[] arguments; // the context first
  // For the arrays of structs: an element of each for every stream.
  private readonly List<object[]> elements = new List<object[]>();
  private readonly List<ChannelGroup> groups = new List<ChannelGroup>();
  private readonly List<WindowsTransform> transforms = new List<WindowsTransform>();
  private readonly Dictionary<string, byte[]> buffers = new Dictionary<string, byte[]>();
  private readonly Dictionary<string, byte[]> expected = new Dictionary<string, byte[]>();

  internal GoldenCase(string operation, IEnumerable<string> lines) {
    string[] words = operation.Split(' ');
    this.operation = typeof(Rbc).GetMethod(Name(words[1]));
    signature = words.Skip(2).Select(word => word.Split(':')).ToArray();
    arguments = new object[signature.Length + 1];
    for (int i = 0; i < signature.Length; ++i) {
      if (signature[i][1] == "struct") arguments[i + 1] = Make(TypeOf(i));
    }
    foreach (string line in lines) Add(line.Split(' '));
    int[] arrays = Arrays();
    for (int k = 0; k < arrays.Length; ++k) {
      Array array = Array.CreateInstance(TypeOf(arrays[k]).GetElementType(), elements.Count);
      for (int n = 0; n < elements.Count; ++n) array.SetValue(elements[n][k], n);
      arguments[arrays[k] + 1] = array;
    }
  }

  internal void Run() {
    using (Context context = Context.Cpu()) {
      arguments[0] = context;
      try {
        operation.Invoke(null, arguments);
      } catch (TargetInvocationException thrown) {
        throw thrown.InnerException;
      }
    }
    foreach (KeyValuePair<string, byte[]> output in expected) {
      Expect.True(output.Value.SequenceEqual(buffers[output.Key]), output.Key + " differs");
    }
  }

  private void Add(string[] words) {
    switch (words[0]) {
      case "stream":
        elements.Add(Arrays().Select(i => Make(TypeOf(i).GetElementType())).ToArray());
        groups.Clear();
        transforms.Clear();
        break;
      case "set":
        SetField(words[1], type => ValueOf(words, type));
        break;
      case "group":
        groups.Add(new ChannelGroup(long.Parse(words[1]), long.Parse(words[2]),
                                    int.Parse(words[3]),
                                    words.Length > 4 ? int.Parse(words[4]) : Rbc.PeriodRadians));
        SetField("groups", type => groups.ToArray());
        break;
      case "transform":
        transforms.Add(Transform(words));
        SetField("transforms", type => transforms.ToArray());
        break;
      case "grid": SetField("grid", type => Grid(words)); break;
      case "in": AddInput(words); break;
      case "out": AddOutput(words); break;
    }
  }

  private void AddInput(string[] words) {
    byte[] bytes = Bytes(words[4]);
    buffers[words[1]] = bytes;
    Place(words, Describe(bytes, words), "in", "out");
  }

  private void AddOutput(string[] words) {
    byte[] bytes = Bytes(words[4]);
    string name = elements.Count > 0 ? "streams[" + (elements.Count - 1) + "]." + words[1]
                                     : words[1];
    expected[name] = bytes;
    int argument = Argument(name, "out");
    if (argument >= 0 && arguments[argument + 1] != null) return; // read and written
    byte[] buffer = Enumerable.Repeat((byte)0xCD, bytes.Length).ToArray();
    buffers[name] = buffer;
    Place(words, Describe(buffer, words), "out");
  }

  /// Sets an argument of one of these kinds, or else a field.
  private void Place(string[] words, Tensor tensor, params string[] kinds) {
    int argument = elements.Count > 0 ? -1 : Argument(words[1], kinds);
    if (argument >= 0) {
      arguments[argument + 1] = tensor;
    } else {
      SetField(words[1], type => tensor);
    }
  }

  private int Argument(string name, params string[] kinds) {
    return Array.FindIndex(signature, x => x[0] == name && kinds.Contains(x[1]));
  }

  /// The arguments that are arrays of structs, `streams` and `outputs`.
  private int[] Arrays() {
    return Enumerable.Range(0, signature.Length)
        .Where(i => signature[i][1] == "structs" || signature[i][1] == "each")
        .ToArray();
  }

  private Type TypeOf(int argument) {
    return operation.GetParameters()[argument + 1].ParameterType;
  }

  /// Sets a field of the current stream, or else of a struct of the call.
  private void SetField(string name, Func<Type, object> valueOf) {
    IEnumerable<object> structs = elements.Count > 0
                                      ? elements.Last()
                                      : arguments.Where(x => x != null && !(x is Tensor));
    foreach (object target in structs.Concat(structs.SelectMany(Inner)).ToArray()) {
      PropertyInfo property = target.GetType().GetProperty(Name(name));
      if (property == null) continue;
      property.SetValue(target, valueOf(property.PropertyType));
      return;
    }
    throw new Exception("no place for " + name);
  }

  /// A struct and the structs that it points to.
  private static object Make(Type type) {
    object made = Activator.CreateInstance(type);
    foreach (PropertyInfo property in type.GetProperties().Where(PointsToStruct)) {
      property.SetValue(made, Make(property.PropertyType));
    }
    return made;
  }

  private static IEnumerable<object> Inner(object made) {
    return made.GetType().GetProperties().Where(PointsToStruct).Select(x => x.GetValue(made));
  }

  private static bool PointsToStruct(PropertyInfo property) {
    return property.PropertyType.IsSubclassOf(typeof(NativeObject)) &&
           property.PropertyType.GetConstructor(Type.EmptyTypes) != null;
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
      case "u16": return DType.UInt16;
      case "u32": return DType.UInt32;
      case "u64": return DType.UInt64;
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

  private static WindowsTransform Transform(string[] words) {
    long[] numbers = words.Skip(1).Select(long.Parse).ToArray();
    return new WindowsTransform {
      Begin = numbers[0],
      Count = numbers[1],
      Kind = (int)numbers[2],
      Flags = (uint)numbers[3],
      ReferenceStreamIndex = (int)numbers[4],
      ReferenceOffsetIndex = (int)numbers[5],
      ReferenceBegin = numbers[6],
      Rotation = (int)numbers[7],
      ReferenceRotation = (int)numbers[8],
      OutRotation = (int)numbers[9],
    };
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

  /// The value of a property in a `set` statement.
  private static object ValueOf(string[] words, Type type) {
    if (type == typeof(double[])) return words.Skip(2).Select(Number).ToArray();
    if (type == typeof(double)) return Number(words[2]);
    return Convert.ChangeType(long.Parse(words[2]), type);
  }

  /// Converts a name of C to C#.
  private static string Name(string name) {
    return string.Concat(name.Split('_').Select(word => char.ToUpper(word[0]) + word.Substring(1)));
  }
}
