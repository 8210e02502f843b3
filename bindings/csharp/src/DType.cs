using System;
using System.Runtime.InteropServices;

namespace RoboCache {

/// <summary>The type of a tensor's elements, as DLPack describes it.</summary>
[StructLayout(LayoutKind.Sequential)]
public struct DType : IEquatable<DType> {
  private readonly byte code;
  private readonly byte bits;
  private readonly short lanes;

  private DType(int code, int bits) {
    this.code = (byte)code;
    this.bits = (byte)bits;
    lanes = 1;
  }

  /// <summary>float.</summary>
  public static readonly DType Float32 = new DType(Rbc.DtypeFloat, 32);

  /// <summary>double.</summary>
  public static readonly DType Float64 = new DType(Rbc.DtypeFloat, 64);

  /// <summary>IEEE half precision, in an array of ushort or short.</summary>
  public static readonly DType Float16 = new DType(Rbc.DtypeFloat, 16);

  /// <summary>The upper half of a float, in an array of ushort or short.</summary>
  public static readonly DType BFloat16 = new DType(Rbc.DtypeBfloat, 16);

  /// <summary>sbyte.</summary>
  public static readonly DType Int8 = new DType(Rbc.DtypeInt, 8);

  /// <summary>short.</summary>
  public static readonly DType Int16 = new DType(Rbc.DtypeInt, 16);

  /// <summary>int.</summary>
  public static readonly DType Int32 = new DType(Rbc.DtypeInt, 32);

  /// <summary>long.</summary>
  public static readonly DType Int64 = new DType(Rbc.DtypeInt, 64);

  /// <summary>byte.</summary>
  public static readonly DType UInt8 = new DType(Rbc.DtypeUint, 8);

  /// <summary>ushort, such as depth in millimetres. Name it: a ushort[] may have halves.</summary>
  public static readonly DType UInt16 = new DType(Rbc.DtypeUint, 16);

  /// <summary>uint.</summary>
  public static readonly DType UInt32 = new DType(Rbc.DtypeUint, 32);

  /// <summary>ulong.</summary>
  public static readonly DType UInt64 = new DType(Rbc.DtypeUint, 64);

  /// <summary>bool, one byte each.</summary>
  public static readonly DType Bool = new DType(Rbc.DtypeBool, 8);

  /// <summary>Rbc.DtypeInt to Rbc.DtypeBool.</summary>
  public int Code {
    get { return code; }
  }

  /// <summary>8, 16, 32 or 64.</summary>
  public int Bits {
    get { return bits; }
  }

  /// <summary>Returns the dtype of a C# type.</summary>
  /// <exception cref="ArgumentException">The type has no dtype, or more than one.</exception>
  public static DType Of(Type type) {
    switch (Type.GetTypeCode(type)) {
      case TypeCode.Single: return Float32;
      case TypeCode.Double: return Float64;
      case TypeCode.SByte: return Int8;
      case TypeCode.Int16: return Int16;
      case TypeCode.Int32: return Int32;
      case TypeCode.Int64: return Int64;
      case TypeCode.Byte: return UInt8;
      case TypeCode.UInt32: return UInt32;
      case TypeCode.UInt64: return UInt64;
      case TypeCode.Boolean: return Bool;
      default: throw new ArgumentException("elements of " + type + " have no dtype: name it");
    }
  }

  /// <summary>Compares.</summary>
  public bool Equals(DType other) {
    return code == other.code && bits == other.bits && lanes == other.lanes;
  }

  /// <summary>Compares.</summary>
  public override bool Equals(object other) {
    return other is DType && Equals((DType)other);
  }

  /// <summary>Hashes.</summary>
  public override int GetHashCode() {
    return code << 8 | bits;
  }

  /// <summary>Compares.</summary>
  public static bool operator ==(DType left, DType right) {
    return left.Equals(right);
  }

  /// <summary>Compares.</summary>
  public static bool operator !=(DType left, DType right) {
    return !left.Equals(right);
  }
}

}
