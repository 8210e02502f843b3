// SPDX-License-Identifier: Apache-2.0
package io.robocache;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;

/** A case of the golden vectors: see tests/golden/README.md. */
final class GoldenCase {
  /** The statements about a call or one of its streams. */
  static final class Section {
    final Map<String, String> fields = new LinkedHashMap<>();
    final List<ChannelGroup> groups = new ArrayList<>();
    final List<WindowsTransform> transforms = new ArrayList<>();
    VoxelGrid grid;
    final Map<String, Tensor> inputs = new HashMap<>();
    /** The names in {@code outputs}, by the fields of a stream. */
    final Map<String, String> outputs = new LinkedHashMap<>();

    /** The statements except those of the taken names, for a struct that another one points to. */
    Section without(Predicate<String> taken) {
      Section rest = new Section();
      rest.fields.putAll(fields);
      rest.fields.keySet().removeIf(taken);
      rest.groups.addAll(groups);
      rest.grid = grid;
      rest.inputs.putAll(inputs);
      rest.inputs.keySet().removeIf(taken);
      return rest;
    }
  }

  String name;
  String op;
  /** The operation's arguments in order: the name and the kind of each. */
  Map<String, String> signature;
  final Section call = new Section();
  final List<Section> streams = new ArrayList<>();
  final Map<String, Tensor> outputs = new LinkedHashMap<>();
  final Map<String, byte[]> expected = new LinkedHashMap<>();

  /** The call without its tensor arguments: the contents of structs. */
  Section ofStructs() {
    Section own = new Section();
    own.fields.putAll(call.fields);
    own.groups.addAll(call.groups);
    own.grid = call.grid;
    own.inputs.putAll(call.inputs);
    own.inputs.keySet().removeAll(signature.keySet());
    return own;
  }

  static List<GoldenCase> read(Path file) throws IOException {
    List<GoldenCase> cases = new ArrayList<>();
    Map<String, String> signature = null;
    GoldenCase current = null;
    for (String line : Files.readAllLines(file)) {
      if (line.isEmpty() || line.startsWith("#")) continue;
      if (line.startsWith("signature ")) {
        signature = signature(line.split(" "));
      } else if (line.startsWith("case ")) {
        current = new GoldenCase();
        current.signature = signature;
        current.name = line.substring("case ".length());
      } else if (line.equals("end")) {
        cases.add(current);
      } else {
        current.add(line.trim().split("\\s+"));
      }
    }
    return cases;
  }

  private static Map<String, String> signature(String[] words) {
    Map<String, String> signature = new LinkedHashMap<>();
    for (String word : Arrays.asList(words).subList(2, words.length)) {
      signature.put(word.split(":")[0], word.split(":")[1]);
    }
    return signature;
  }

  private void add(String[] words) {
    Section section = streams.isEmpty() ? call : streams.get(streams.size() - 1);
    switch (words[0]) {
      case "op":
        op = words[1];
        break;
      case "set":
        section.fields.put(
            words[1], String.join(" ", Arrays.asList(words).subList(2, words.length)));
        break;
      case "group":
        section.groups.add(
            new ChannelGroup(
                Long.parseLong(words[1]),
                Long.parseLong(words[2]),
                Integer.parseInt(words[3]),
                words.length > 4 ? Integer.parseInt(words[4]) : RoboCache.PERIOD_RADIANS));
        break;
      case "transform":
        section.transforms.add(transform(words));
        break;
      case "grid":
        section.grid = grid(words);
        break;
      case "in":
        section.inputs.put(words[1], tensor(words[2], words[3], bytes(words[4])));
        break;
      case "out":
        addOutput(section, words[1], words[2], words[3], bytes(words[4]));
        break;
      case "stream":
        streams.add(new Section());
        break;
      default:
        throw new IllegalArgumentException("unknown statement " + words[0]);
    }
  }

  /** A buffer that is also read is already an input; other buffers start poisoned. */
  private void addOutput(Section section, String field, String dtype, String shape, byte[] bytes) {
    byte[] poison = new byte[bytes.length];
    Arrays.fill(poison, (byte) 0xCD);
    String name = field;
    if (section != call) {
      name = "streams[" + (streams.size() - 1) + "]." + field;
      section.outputs.put(field, name);
    }
    Tensor input = "out".equals(signature.get(name)) ? call.inputs.get(name) : null;
    outputs.put(name, input != null ? input : tensor(dtype, shape, poison));
    expected.put(name, bytes);
  }

  private static WindowsTransform transform(String[] words) {
    WindowsTransform made = new WindowsTransform();
    made.setBegin(Long.parseLong(words[1]));
    made.setCount(Long.parseLong(words[2]));
    made.setKind(Integer.parseInt(words[3]));
    made.setFlags(Integer.parseInt(words[4]));
    made.setReferenceStreamIndex(Integer.parseInt(words[5]));
    made.setReferenceOffsetIndex(Integer.parseInt(words[6]));
    made.setReferenceBegin(Long.parseLong(words[7]));
    made.setRotation(Integer.parseInt(words[8]));
    made.setReferenceRotation(Integer.parseInt(words[9]));
    made.setOutRotation(Integer.parseInt(words[10]));
    return made;
  }

  private static VoxelGrid grid(String[] words) {
    double[] numbers = new double[6];
    for (int i = 0; i < 6; ++i) numbers[i] = Double.parseDouble(words[1 + i]);
    long[] shape = new long[3];
    for (int i = 0; i < 3; ++i) shape[i] = Long.parseLong(words[7 + i]);
    return new VoxelGrid(
        Arrays.copyOf(numbers, 3), Arrays.copyOfRange(numbers, 3, 6), shape);
  }

  private static Tensor tensor(String dtype, String shape, byte[] bytes) {
    ByteBuffer buffer = Data.buffer(bytes.length);
    buffer.put(bytes).rewind();
    return Tensor.of(buffer, dtype(dtype), shape(shape));
  }

  private static long[] shape(String text) {
    if (text.equals("scalar")) return new long[0];
    return Arrays.stream(text.split("x")).mapToLong(Long::parseLong).toArray();
  }

  private static byte[] bytes(String hex) {
    if (hex.equals("-")) return new byte[0];
    byte[] bytes = new byte[hex.length() / 2];
    for (int i = 0; i < bytes.length; ++i) {
      bytes[i] = (byte) Integer.parseInt(hex.substring(2 * i, 2 * i + 2), 16);
    }
    return bytes;
  }

  private static DType dtype(String name) {
    switch (name) {
      case "f16":
        return DType.FLOAT16;
      case "bf16":
        return DType.BFLOAT16;
      case "f32":
        return DType.FLOAT32;
      case "f64":
        return DType.FLOAT64;
      case "i8":
        return DType.INT8;
      case "i16":
        return DType.INT16;
      case "i32":
        return DType.INT32;
      case "i64":
        return DType.INT64;
      case "u8":
        return DType.UINT8;
      case "u16":
        return DType.UINT16;
      case "u32":
        return DType.UINT32;
      case "u64":
        return DType.UINT64;
      case "bool":
        return DType.BOOL;
      default:
        throw new IllegalArgumentException("unknown dtype " + name);
    }
  }
}
