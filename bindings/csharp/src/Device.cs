using System.Runtime.InteropServices;

namespace RoboCache {

/// <summary>The device that stores data.</summary>
[StructLayout(LayoutKind.Sequential)]
public struct Device {
  private readonly int type;
  private readonly int id;

  /// <summary>A device by its type, Rbc.DeviceCpu to Rbc.DeviceCudaManaged, and number.</summary>
  public Device(int type, int id) {
    this.type = type;
    this.id = id;
  }

  /// <summary>The memory of the host.</summary>
  public static readonly Device Cpu = new Device(Rbc.DeviceCpu, 0);

  /// <summary>A GPU.</summary>
  public static Device Cuda(int id) {
    return new Device(Rbc.DeviceCuda, id);
  }

  /// <summary>Rbc.DeviceCpu to Rbc.DeviceCudaManaged.</summary>
  public int Type {
    get { return type; }
  }

  /// <summary>The number of the device; 0 for the CPU.</summary>
  public int Id {
    get { return id; }
  }
}

}
