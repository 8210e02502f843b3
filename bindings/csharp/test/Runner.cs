using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using System.Reflection;
using System.Security;
using System.Text;

/// A method without arguments that is a test, or that returns named tests.
[AttributeUsage(AttributeTargets.Method)]
sealed class TestAttribute : Attribute {
}

/// Thrown by a test that cannot run here.
sealed class SkippedException : Exception {
  internal SkippedException(string why) : base(why) {
  }
}

/// Runs every method with [Test] and writes the results as JUnit XML.
/// Usage: Tests.exe GOLDEN_FOLDER [JUNIT_FILE]
static class Runner {
  internal static string GoldenFolder;

  private static readonly StringBuilder report = new StringBuilder();
  private static int failures;

  static int Main(string[] arguments) {
    GoldenFolder = arguments[0];
    foreach (Type type in Assembly.GetExecutingAssembly().GetTypes()) {
      foreach (MethodInfo method in
               type.GetMethods(BindingFlags.Static | BindingFlags.NonPublic)) {
        if (method.GetCustomAttribute<TestAttribute>() == null) continue;
        if (method.ReturnType == typeof(void)) {
          Run(type.Name, method.Name, (Action)method.CreateDelegate(typeof(Action)));
          continue;
        }
        foreach (var test in (IEnumerable<KeyValuePair<string, Action>>)method.Invoke(null, null)) {
          Run(type.Name, test.Key, test.Value);
        }
      }
    }
    if (arguments.Length > 1) {
      Directory.CreateDirectory(Path.GetDirectoryName(arguments[1]));
      File.WriteAllText(arguments[1], "<testsuite name=\"csharp\">\n" + report + "</testsuite>\n");
    }
    Console.WriteLine(failures == 0 ? "All tests passed" : failures + " tests failed");
    return failures == 0 ? 0 : 1;
  }

  private static void Run(string suite, string name, Action test) {
    Stopwatch watch = Stopwatch.StartNew();
    string outcome = "";
    try {
      test();
      Console.WriteLine("passed  " + suite + "." + name);
    } catch (SkippedException skipped) {
      Console.WriteLine("SKIPPED: " + suite + "." + name + ": " + skipped.Message);
      outcome = "<skipped message=\"" + SecurityElement.Escape(skipped.Message) + "\"/>";
    } catch (Exception failure) {
      ++failures;
      Console.WriteLine("FAILED  " + suite + "." + name + ": " + failure);
      outcome = "<failure message=\"" + SecurityElement.Escape(failure.ToString()) + "\"/>";
    }
    report.AppendFormat("<testcase classname=\"{0}\" name=\"{1}\" time=\"{2:F3}\">{3}</testcase>\n",
                        suite, SecurityElement.Escape(name), watch.Elapsed.TotalSeconds, outcome);
  }
}

static class Expect {
  internal static void True(bool condition, string what) {
    if (!condition) throw new Exception(what);
  }

  internal static void Equal<T>(T expected, T actual) {
    if (!EqualityComparer<T>.Default.Equals(expected, actual)) {
      throw new Exception("is " + actual + ", expected " + expected);
    }
  }

  internal static void Equal<T>(T[] expected, T[] actual) {
    Equal(string.Join(" ", expected), string.Join(" ", actual));
  }

  /// Expects an exception of exactly this class, with this text in its message.
  internal static T Throws<T>(string text, Action call) where T : Exception {
    try {
      call();
    } catch (Exception exception) {
      if (exception.GetType() != typeof(T) || !exception.Message.Contains(text)) {
        throw new Exception("threw " + exception + ", expected " + typeof(T) + ": " + text);
      }
      return (T)exception;
    }
    throw new Exception("threw nothing, expected " + typeof(T) + ": " + text);
  }
}
