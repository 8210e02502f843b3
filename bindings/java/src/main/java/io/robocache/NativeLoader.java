// SPDX-License-Identifier: Apache-2.0
package io.robocache;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * Loads librobocache_java.so and, by its RUNPATH, librobocache.so next to it: the system's, or else
 * the libraries in the jar. The property {@code robocache.library.path} names another folder.
 */
final class NativeLoader {
  private static final String NAME = "robocache_java";
  private static final String FOLDER_PROPERTY = "robocache.library.path";
  // librobocache.so is first: librobocache_java.so cannot be loaded without it.
  private static final String[] FILES = {"librobocache.so.1", "librobocache_java.so"};

  private NativeLoader() {}

  /** Called once, by the static initializer of the class with the native methods. */
  static void load() {
    String folder = System.getProperty(FOLDER_PROPERTY);
    if (folder != null) {
      System.load(Paths.get(folder, System.mapLibraryName(NAME)).toAbsolutePath().toString());
      return;
    }
    List<String> tried = new ArrayList<>();
    try {
      System.loadLibrary(NAME);
      return;
    } catch (UnsatisfiedLinkError error) {
      tried.add("the system's: " + error.getMessage());
    }
    String platform = platform();
    try {
      loadFromJar("native/" + platform + "/");
      return;
    } catch (IOException | UnsatisfiedLinkError error) {
      tried.add("the jar's for " + platform + ": " + error.getMessage());
    }
    throw new UnsatisfiedLinkError(
        String.format(
            Locale.ROOT,
            "RoboCache's native library could not be loaded. Tried %s. Install %s where"
                + " java.library.path (%s) looks, or name its folder with -D%s=...; if the"
                + " temporary folder (%s) allows no execution, name another with"
                + " -Djava.io.tmpdir=...",
            String.join("; ", tried),
            System.mapLibraryName(NAME),
            System.getProperty("java.library.path"),
            FOLDER_PROPERTY,
            System.getProperty("java.io.tmpdir")));
  }

  /** The name of the platform, such as linux-x86_64. */
  static String platform() {
    String system = System.getProperty("os.name").toLowerCase(Locale.ROOT);
    String machine = System.getProperty("os.arch");
    return system + "-" + (machine.equals("amd64") ? "x86_64" : machine);
  }

  private static void loadFromJar(String resources) throws IOException {
    Path folder = Files.createTempDirectory("robocache"); // only for this user: mode 700
    try {
      for (String file : FILES) {
        try (InputStream library = NativeLoader.class.getResourceAsStream(resources + file)) {
          if (library == null) throw new IOException(resources + file + " is not in it");
          Files.copy(library, folder.resolve(file));
        }
      }
      System.load(folder.resolve(System.mapLibraryName(NAME)).toString());
    } finally {
      // Loaded libraries stay mapped.
      for (String file : FILES) Files.deleteIfExists(folder.resolve(file));
      Files.deleteIfExists(folder);
    }
  }
}
