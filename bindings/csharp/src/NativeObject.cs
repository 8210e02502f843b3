using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;

namespace RoboCache {

/// <summary>
/// The base class of objects in native memory. Disposing an object frees the memory once, and never
/// while a call uses it. An object that is not disposed is freed when it is garbage.
/// </summary>
public abstract class NativeObject : IDisposable {
  internal readonly NativeHandle swigCPtr; // the name in the generated code
  private Dictionary<string, Member> members;

  internal NativeObject(IntPtr pointer, bool owned) {
    if (pointer == IntPtr.Zero) {
      throw RbcPINVOKE.SWIGPendingException.Retrieve() ?? new OutOfMemoryException();
    }
    swigCPtr = new NativeHandle(pointer, owned);
  }

  /// <summary>Frees the native memory; further calls do nothing.</summary>
  public void Dispose() {
    swigCPtr.Dispose();
  }

  internal static SafeHandle getCPtr(NativeObject target) {
    return target == null ? NativeHandle.Null : target.swigCPtr;
  }

  /// Keeps the object alive that a field of the native struct points to.
  internal void Keep(string name, NativeObject target, bool writable) {
    if (members == null) members = new Dictionary<string, Member>();
    members[name] = new Member {Name = name, Target = target, Writable = writable};
  }

  internal NativeObject Holds(string name) {
    Member member = default(Member);
    if (members != null) members.TryGetValue(name, out member);
    return member.Target;
  }

  internal IEnumerable<Member> Members {
    get { return members == null ? (IEnumerable<Member>)NoMembers : members.Values; }
  }

  private static readonly Member[] NoMembers = new Member[0];

  /// The target of a field, and whether a call writes to it.
  internal struct Member {
    internal string Name;
    internal NativeObject Target;
    internal bool Writable;
  }

  /// Keeps the native memory, and the data that it describes, in place until LetGo().
  internal virtual void Hold(string name, bool writable) {
    bool held = false;
    swigCPtr.DangerousAddRef(ref held); // throws if it was disposed
  }

  internal virtual void LetGo() {
    swigCPtr.DangerousRelease();
  }
}

/// A pointer to native memory and how to free it.
internal sealed class NativeHandle : SafeHandle {
  internal static readonly NativeHandle Null = new NativeHandle(IntPtr.Zero, false);

  /// Called with an open handle of the same pointer.
  internal Action<SafeHandle> Release;

  internal NativeHandle(IntPtr pointer, bool owned) : base(IntPtr.Zero, owned) {
    SetHandle(pointer);
  }

  public override bool IsInvalid {
    get { return handle == IntPtr.Zero; }
  }

  protected override bool ReleaseHandle() {
    Release(new NativeHandle(handle, false));
    return true;
  }
}

}
