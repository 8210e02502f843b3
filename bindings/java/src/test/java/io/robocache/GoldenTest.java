// SPDX-License-Identifier: Apache-2.0
package io.robocache;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.lang.reflect.Array;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** Compares the golden vectors byte for byte. Finds operations and properties by their C names. */
class GoldenTest {
  @TestFactory
  List<DynamicTest> golden() throws IOException {
    List<Path> files;
    try (Stream<Path> folder = Files.list(Paths.get(System.getProperty("robocache.test.golden")))) {
      files =
          folder
              .filter(file -> file.toString().endsWith(".txt"))
              .sorted()
              .collect(Collectors.toList());
    }
    List<DynamicTest> tests = new ArrayList<>();
    for (Path file : files) {
      for (GoldenCase golden : GoldenCase.read(file)) {
        tests.add(DynamicTest.dynamicTest(golden.name, () -> check(golden)));
      }
    }
    assertFalse(tests.isEmpty(), "there are no golden vectors");
    return tests;
  }

  private static void check(GoldenCase golden) throws ReflectiveOperationException {
    try (Context context = Context.cpu()) {
      for (String output : golden.outputs.keySet()) refuseReadOnly(context, golden, output);
      run(context, golden);
    }
    for (Map.Entry<String, byte[]> output : golden.expected.entrySet()) {
      assertArrayEquals(
          output.getValue(), Data.bytes(golden.outputs.get(output.getKey())), output.getKey());
    }
  }

  private static void refuseReadOnly(Context context, GoldenCase golden, String output) {
    Tensor writable = golden.outputs.get(output);
    ByteBuffer buffer = writable.getBuffer().asReadOnlyBuffer().order(ByteOrder.nativeOrder());
    golden.outputs.put(output, Tensor.of(buffer, writable.getDType(), writable.getShape()));
    String message =
        assertThrows(IllegalArgumentException.class, () -> run(context, golden)).getMessage();
    String field = output.substring(output.lastIndexOf('.') + 1);
    assertEquals(field + ": is read-only, expected a writable tensor", message);
    golden.outputs.put(output, writable);
  }

  private static void run(Context context, GoldenCase golden) throws ReflectiveOperationException {
    Method operation = method(RoboCache.class, "", golden.op);
    Class<?>[] types = operation.getParameterTypes();
    Set<String> unused = names(golden);
    List<Object> arguments = new ArrayList<>();
    arguments.add(context);
    for (Map.Entry<String, String> argument : golden.signature.entrySet()) {
      Class<?> type = types[arguments.size()];
      switch (argument.getValue()) {
        case "in":
          arguments.add(golden.call.inputs.get(argument.getKey()));
          unused.remove("in " + argument.getKey());
          break;
        case "out":
          arguments.add(golden.outputs.get(argument.getKey()));
          unused.remove("in " + argument.getKey());
          unused.remove("out " + argument.getKey());
          break;
        case "struct":
          arguments.add(struct(type, golden.ofStructs(), fields(golden), unused));
          break;
        case "structs":
        case "each":
          arguments.add(structs(type.getComponentType(), golden, unused));
          break;
        default:
          throw new IllegalArgumentException("unknown kind " + argument);
      }
    }
    invoke(operation, null, arguments.toArray());
    assertEquals(Collections.emptySet(), unused, "what has no place");
  }

  /** All statements of a case, by name. */
  private static Set<String> names(GoldenCase golden) {
    Set<String> names = new TreeSet<>();
    List<GoldenCase.Section> sections = new ArrayList<>(golden.streams);
    sections.add(golden.call);
    for (GoldenCase.Section section : sections) {
      section.fields.keySet().forEach(name -> names.add("set " + name));
      section.inputs.keySet().forEach(name -> names.add("in " + name));
      section.outputs.keySet().forEach(name -> names.add("out " + name));
    }
    fieldsOfCall(golden).forEach(name -> names.add("out " + name));
    return names;
  }

  /** The outputs that do not belong to a stream. */
  private static Set<String> fieldsOfCall(GoldenCase golden) {
    Set<String> names = new TreeSet<>(golden.outputs.keySet());
    golden.streams.forEach(stream -> names.removeAll(stream.outputs.values()));
    return names;
  }

  /** The outputs that are not arguments: fields of a struct. */
  private static Map<String, Tensor> fields(GoldenCase golden) {
    Map<String, Tensor> fields = new LinkedHashMap<>(golden.outputs);
    fields.keySet().retainAll(fieldsOfCall(golden));
    fields.keySet().removeIf(name -> "out".equals(golden.signature.get(name)));
    return fields;
  }

  private static Object structs(Class<?> type, GoldenCase golden, Set<String> unused)
      throws ReflectiveOperationException {
    Object structs = Array.newInstance(type, golden.streams.size());
    for (int i = 0; i < golden.streams.size(); ++i) {
      GoldenCase.Section section = golden.streams.get(i);
      Map<String, Tensor> outputs = new LinkedHashMap<>();
      section.outputs.forEach((field, name) -> outputs.put(field, golden.outputs.get(name)));
      Object struct = struct(type, section, outputs, unused);
      Array.set(structs, i, struct);
    }
    return structs;
  }

  /** Sets the properties of a struct; the section includes structs that it points to. */
  private static Object struct(
      Class<?> type, GoldenCase.Section section, Map<String, Tensor> outputs, Set<String> unused)
      throws ReflectiveOperationException {
    Object struct = type.getConstructor().newInstance();
    for (Map.Entry<String, String> field : section.fields.entrySet()) {
      if (set(struct, field.getKey(), field.getValue())) unused.remove("set " + field.getKey());
    }
    for (Map.Entry<String, Tensor> output : outputs.entrySet()) {
      if (set(struct, output.getKey(), output.getValue())) unused.remove("out " + output.getKey());
    }
    for (Map.Entry<String, Tensor> input : section.inputs.entrySet()) {
      if (set(struct, input.getKey(), input.getValue())) unused.remove("in " + input.getKey());
    }
    if (section.grid != null) set(struct, "grid", section.grid);
    if (!section.groups.isEmpty()) {
      set(struct, "groups", section.groups.toArray(new ChannelGroup[0]));
    }
    if (!section.transforms.isEmpty()) {
      set(struct, "transforms", section.transforms.toArray(new WindowsTransform[0]));
    }
    for (Method method : type.getMethods()) {
      Class<?>[] types = method.getParameterTypes();
      if (!method.getName().startsWith("set") || !isStruct(types[0])) continue;
      GoldenCase.Section rest = section.without(name -> method(type, "set_", name) != null);
      invoke(method, struct, struct(types[0], rest, outputs, unused));
    }
    return struct;
  }

  /** Returns whether an object of the class can be filled. */
  private static boolean isStruct(Class<?> type) {
    return NativeStruct.class.isAssignableFrom(type)
        && Arrays.stream(type.getConstructors()).anyMatch(made -> made.getParameterCount() == 0);
  }

  /** Returns false if the property does not exist. */
  private static boolean set(Object struct, String field, Object value)
      throws ReflectiveOperationException {
    Method setter = method(struct.getClass(), "set_", field);
    if (setter == null) return false;
    invoke(setter, struct, convert(value, setter.getParameterTypes()[0]));
    return true;
  }

  /** Finds a method by its C name; null if none is found. */
  private static Method method(Class<?> type, String prefix, String name) {
    StringBuilder words = new StringBuilder();
    for (String word : (prefix + name).split("_")) {
      words.append(words.length() == 0 ? word.charAt(0) : Character.toUpperCase(word.charAt(0)));
      words.append(word.substring(1));
    }
    for (Method method : type.getMethods()) {
      if (method.getName().contentEquals(words)) return method;
    }
    return null;
  }

  /** Calls a method, and rethrows its exception. */
  private static void invoke(Method method, Object target, Object... arguments)
      throws ReflectiveOperationException {
    try {
      method.invoke(target, arguments);
    } catch (InvocationTargetException thrown) {
      if (thrown.getCause() instanceof RuntimeException) throw (RuntimeException) thrown.getCause();
      throw thrown;
    }
  }

  private static Object convert(Object value, Class<?> type) {
    if (type == int.class) return Integer.valueOf((String) value);
    if (type == long.class) return Long.valueOf((String) value);
    if (type == double.class) return number((String) value);
    if (type == double[].class) {
      return Arrays.stream(((String) value).split(" ")).mapToDouble(GoldenTest::number).toArray();
    }
    return value;
  }

  private static double number(String text) {
    switch (text) {
      case "inf":
        return Double.POSITIVE_INFINITY;
      case "nan":
        return Double.NaN;
      default:
        return Double.parseDouble(text);
    }
  }
}
