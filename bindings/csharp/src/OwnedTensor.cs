namespace RoboCache {

public partial class OwnedTensor {
  /// <summary>
  /// Allocates an uninitialized compact tensor on the context's device. The context may be disposed
  /// before the tensor.
  /// </summary>
  public static OwnedTensor Create(Context context, DType dtype, params long[] shape) {
    OwnedTensor tensor;
    Rbc.OwnedTensorCreate(context, dtype, shape, null, out tensor);
    return tensor;
  }

  /// <summary>
  /// Describes the tensor for calls. The view keeps the tensor alive, and cannot be used after the
  /// tensor is disposed.
  /// </summary>
  /// <param name="writable">True: a view to write to. Throws if the tensor is read-only.</param>
  public Tensor View(bool writable = true) {
    return Tensor.Of(this, writable);
  }
}

}
