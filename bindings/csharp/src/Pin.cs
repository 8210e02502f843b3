using System;
using System.Collections.Generic;

namespace RoboCache {

/// Pins an argument, and everything that it points to, for the duration of a call.
internal sealed class Pin : IDisposable {
  private readonly List<NativeObject> held = new List<NativeObject>();

  internal static Pin Of(NativeObject target, string name, bool writable) {
    if (target == null) return null;
    Pin pin = new Pin();
    try {
      pin.Add(target, name, writable);
    } catch {
      pin.Dispose();
      throw;
    }
    return pin;
  }

  internal static Pin Of(NativeObject[] targets, string name) {
    Pin pin = new Pin();
    try {
      for (int i = 0; targets != null && i < targets.Length; ++i) {
        if (targets[i] == null) throw new ArgumentNullException(name + "[" + i + "]");
        pin.Add(targets[i], name, false);
      }
    } catch {
      pin.Dispose();
      throw;
    }
    return pin;
  }

  public void Dispose() {
    foreach (NativeObject target in held) target.LetGo();
    held.Clear();
  }

  private void Add(NativeObject target, string name, bool writable) {
    target.Hold(name, writable);
    held.Add(target);
    foreach (NativeObject.Member member in target.Members) {
      if (member.Target != null) Add(member.Target, member.Name, member.Writable);
    }
  }
}

}
