// SPDX-License-Identifier: Apache-2.0
package io.robocache;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Each test runs in a separate JVM, since a JVM loads a library only once. */
class LoaderTest {
  /** The program of the child. */
  public static final class Child {
    /**
     * Prints the version.
     *
     * @param arguments none
     */
    public static void main(String[] arguments) {
      System.out.println(RoboCache.version());
    }
  }

  @TempDir Path folder;

  /** The last line of the child must be the version; newer JVMs print warnings before it. */
  private static void runs(String... options) throws IOException, InterruptedException {
    String output = run(options);
    assertTrue(output.endsWith(RoboCache.version()), output);
  }

  private static String run(String... options) throws IOException, InterruptedException {
    List<String> command = new ArrayList<>();
    command.add(Paths.get(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(Arrays.asList("-cp", System.getProperty("java.class.path")));
    command.addAll(Arrays.asList(options));
    command.add(Child.class.getName());
    Process child = new ProcessBuilder(command).redirectErrorStream(true).start();
    ByteArrayOutputStream output = new ByteArrayOutputStream();
    try (InputStream stream = child.getInputStream()) {
      for (int read = stream.read(); read >= 0; read = stream.read()) output.write(read);
    }
    child.waitFor();
    return output.toString("UTF-8").trim();
  }

  private void unpack() throws IOException {
    for (String file : new String[] {"librobocache.so.1", "librobocache_java.so"}) {
      String resource = "native/" + NativeLoader.platform() + "/" + file;
      try (InputStream library = NativeLoader.class.getResourceAsStream(resource)) {
        Files.copy(library, folder.resolve(file));
      }
    }
  }

  private int numFiles() throws IOException {
    try (Stream<Path> files = Files.list(folder)) {
      return (int) files.count();
    }
  }

  @Test
  void unpacksFromTheJarAndLeavesNothing() throws Exception {
    runs("-Djava.io.tmpdir=" + folder);
    assertEquals(0, numFiles());
  }

  @Test
  void takesTheFolderOfTheProperty() throws Exception {
    unpack();
    String nowhere = "-Djava.io.tmpdir=" + folder.resolve("missing");
    runs("-Drobocache.library.path=" + folder, nowhere);
    String output = run("-Drobocache.library.path=" + folder.resolve("missing"));
    assertTrue(output.contains("UnsatisfiedLinkError"), output);
  }

  @Test
  void triesTheSystemFirst() throws Exception {
    unpack();
    String nowhere = "-Djava.io.tmpdir=" + folder.resolve("missing");
    runs("-Djava.library.path=" + folder, nowhere);
  }

  @Test
  void saysWhatWasTriedAndHowToMendIt() throws Exception {
    String missing = folder.resolve("missing").toString();
    String output = run("-Djava.library.path=" + folder, "-Djava.io.tmpdir=" + missing);
    String[] parts = {"java.library.path", folder.toString(), missing, "-Drobocache.library.path"};
    for (String part : parts) {
      assertTrue(output.contains(part), output);
    }
  }
}
