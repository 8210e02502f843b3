/*
 * What the generated classes and methods say in Javadoc beyond "see the C headers". Nothing depends
 * on it.
 */

%pragma(java) moduleimports="
/**
 * The operations, and the constants of their parameters. All that each needs and gives, rule
 * by rule, is written in the public C headers, such as {@code robocache/resample.h} on {@code
 * rbcResample}, which is {@code RoboCache.resample} here. Optional arguments may be null.
 *
 * <p>A failed call throws with the message of the library: {@link IllegalArgumentException},
 * {@link UnsupportedOperationException}, {@link OutOfMemoryError}, or else
 * {@link RoboCacheException}; {@link IllegalStateException} if an object is closed.
 */"

%typemap(javaimports) SWIGTYPE "
/**
 * The {@code rbc$javaclassname} of the C interface. What its properties mean, their units and their
 * defaults are written in the public headers, {@code robocache/*.h}.
 */"

%typemap(javaimports) enum rbcStatus_t "
/** What a failed call came to: the {@code rbcStatus_t} of {@code robocache/base.h}. */"

%typemap(javaimports) struct rbcContext "
/**
 * One device and one stream at a time, with the workspace and the threads that operations use. Any
 * number of contexts may be used from any threads, one thread a context at a time. On the CPU an
 * operation returns when it is done; on CUDA it enqueues and returns, and its tensors have to stay
 * until the stream is done ({@link #synchronize}). Close it, or it is closed when it is garbage.
 */"

%typemap(javaimports) struct rbcOwnedTensor "
/**
 * A tensor in memory that the library allocated on a context's device, for what Java cannot: CUDA
 * devices, and more than 2 GiB. Operations take its {@link #view}. Close it, or it is closed when
 * it is garbage; a context may be closed before its tensors.
 */"

%typemap(javaimports) struct rbcTensor "
/**
 * Describes memory for operations: its address, device, dtype, shape and strides, which never
 * change. Nothing is copied. A tensor keeps the buffer or the {@link OwnedTensor} alive that it was
 * made of. Buffers have to be direct and in native byte order. That they are large enough is
 * checked here, what an operation needs beyond that by the operation.
 */"

%define METHOD(Function, Text)
%javamethodmodifiers Function "/**" Text "   */
  public"
%enddef

METHOD(rbcResample, "
   * Resamples trajectories at their own times onto query times.
   *
   * @param context where the tensors live
   * @param values [B,S,D], [S,D] or packed [N,D]; a float; for nearest, previous and next any dtype
   * @param times [B,S], [S] or packed [N]; float32, float64 or int64, ascending in each row
   * @param query_times [B,T] or [T]; of the dtype of times, in any order
   * @param out written: [B,T,D] or [T,D]; a float, or the dtype of values that are none
   * @param mask written: [B,T] or [T], bool or uint8, 1 where a value is valid; or null
   * @param params null for the defaults; gaps and tolerances are in the unit of times
")
METHOD(rbcFuse, "
   * Resamples streams of different rates at the same query times, and writes them side by side.
   *
   * @param context where the tensors live
   * @param streams 1 to 64, each with values, times and parameters of its own
   * @param query_times [B,T] or [T]; of the dtype of every stream's times
   * @param out written: [B,T,D] or [T,D], D the sum of the streams' channels; a float
   * @param mask written: [B,T,N] or [T,N] for N streams, bool or uint8; or null
   * @param params null for the defaults
")
METHOD(rbcVoxelize, "
   * Reduces point clouds to dense grids of voxels.
   *
   * @param context where the tensors live
   * @param points [B,N,C], [N,C] or packed [N,C], C at least 3: x, y, z first; a float
   * @param features [B,N,F] or [N,F], a float; or null: the columns of points
   * @param out written: [B,X,Y,Z] or [X,Y,Z] for occupancy and count, with F at the end else
   * @param dropped written: [B] or a scalar, int64: points that lie in no voxel; or null
   * @param params the grid has no default, and is in the unit of points
")
METHOD(rbcVoxelizeSparse, "
   * Reduces point clouds to a list of the voxels that hold a point.
   *
   * @param context where the tensors live
   * @param points [B,N,C], [N,C] or packed [N,C], C at least 3: x, y, z first; a float
   * @param features [B,N,F] or [N,F], a float; or null: the columns of points
   * @param voxels the tensors to write: coords [capacity,4] and num_voxels at least
   * @param params the grid has no default, and is in the unit of points
")
METHOD(rbcVoxelizeTsdf, "
   * Integrates point clouds into a volume of signed distances.
   *
   * @param context where the tensors live
   * @param points [B,N,C], [N,C] or packed [N,C], C at least 3: x, y, z first; a float
   * @param sensors [B,3] or [3], float32 or float64: where each cloud was seen from
   * @param tsdf read and written: [X,Y,Z] float32, in the unit of points
   * @param weight read and written: [X,Y,Z] float32; 0 where nothing was observed yet
   * @param dropped written: [B] or a scalar, int64: points that updated no voxel; or null
   * @param params grid and truncation have no default, and are in the unit of points
")
METHOD(rbcTensorCopy, "
   * Copies elements, from and to any device; copies from and to the host wait for the stream.
   *
   * @param context on the device, with the stream
   * @param source of the same shape and dtype; contiguous for copies with the host
   * @param destination written
")
