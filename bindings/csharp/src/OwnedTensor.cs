namespace RoboCache {

public partial class OwnedTensor {
  /// <summary>
  /// Allocates an uninitialized compact tensor on the context's device. It outlives the context,
  /// where that is disposed first.
  /// </summary>
  public static OwnedTensor Create(Context context, DType dtype, params long[] shape) {
    OwnedTensor tensor;
    Rbc.OwnedTensorCreate(context, dtype, shape, null, out tensor);
    return tensor;
  }

  /// <summary>
  /// Describes the tensor for calls. The view keeps it from becoming garbage, and cannot be used
  /// any more once it is disposed.
  /// </summary>
  /// <param name="writable">Refused for a tensor that was imported read-only.</param>
  public Tensor View(bool writable = true) {
    return Tensor.Of(this, writable);
  }
}

}
