/*
 * Parameter structs and streams with the arrays that belong to them, for the length of a call.
 *
 * A struct that Python holds has scalars alone. What it points to comes beside it in a tuple and is
 * described in a copy of the struct, which is the call's own: one struct serves many threads.
 */
#ifndef ROBOCACHE_BINDINGS_PARAMS_ARGUMENT_H
#define ROBOCACHE_BINDINGS_PARAMS_ARGUMENT_H

#include <stddef.h>

#include "tensor_argument.h"

/* A member of a struct that points to a tensor. */
typedef struct TensorMember {
  const char* name;
  size_t offset;
} TensorMember;

static const TensorMember RESAMPLE_TENSORS[] = {
    {"lengths", offsetof(rbcResampleParams, lengths)},
    {"query_lengths", offsetof(rbcResampleParams, query_lengths)},
    {"offsets", offsetof(rbcResampleParams, offsets)},
    {"mean", offsetof(rbcResampleParams, mean)},
    {"inv_std", offsetof(rbcResampleParams, inv_std)},
};
#define NUM_RESAMPLE_TENSORS ((int)(sizeof RESAMPLE_TENSORS / sizeof RESAMPLE_TENSORS[0]))

static const TensorMember FUSE_TENSORS[] = {
    {"query_lengths", offsetof(rbcFuseParams, query_lengths)},
};
#define NUM_FUSE_TENSORS ((int)(sizeof FUSE_TENSORS / sizeof FUSE_TENSORS[0]))

static const TensorMember VOXELS_TENSORS[] = {
    {"coords", offsetof(rbcSparseVoxels, coords)},
    {"num_voxels", offsetof(rbcSparseVoxels, num_voxels)},
    {"counts", offsetof(rbcSparseVoxels, counts)},
    {"voxels.features", offsetof(rbcSparseVoxels, features)},
    {"grouped", offsetof(rbcSparseVoxels, grouped)},
    {"point_to_voxel", offsetof(rbcSparseVoxels, point_to_voxel)},
    {"dropped", offsetof(rbcSparseVoxels, dropped)},
    {"overflow", offsetof(rbcSparseVoxels, overflow)},
};
#define NUM_VOXELS_TENSORS ((int)(sizeof VOXELS_TENSORS / sizeof VOXELS_TENSORS[0]))

#define NUM_CLOUD_TENSORS 2

/* Zeroed: nothing to give back. */
typedef struct ResampleArgument {
  rbcResampleParams params;
  TensorArgument tensors[NUM_RESAMPLE_TENSORS];
} ResampleArgument;

typedef struct FuseArgument {
  rbcFuseParams params;
  TensorArgument tensors[NUM_FUSE_TENSORS];
} FuseArgument;

typedef struct StreamArgument {
  TensorArgument values;
  TensorArgument times;
  ResampleArgument resample;
} StreamArgument;

typedef struct StreamsArgument {
  rbcFuseStream* streams; /* in one block with what they point to */
  StreamArgument* arguments;
  Py_ssize_t count;
} StreamsArgument;

typedef struct CloudArgument {
  TensorArgument tensors[NUM_CLOUD_TENSORS];
} CloudArgument;

typedef struct VoxelsArgument {
  rbcSparseVoxels voxels;
  TensorArgument tensors[NUM_VOXELS_TENSORS];
} VoxelsArgument;

/* clang-format off */
#define NO_RESAMPLE {.params = {0}}
#define NO_FUSE {.params = {0}}
#define NO_STREAMS {.count = 0}
#define NO_CLOUD {.tensors = {NO_TENSOR}}
#define NO_VOXELS {.voxels = {0}}
/* clang-format on */

/* Copies the struct that stands first in a tuple. */
static int openStruct(PyObject* tuple, swig_type_info* type, void* copy, size_t size) {
  PyObject* object = PyTuple_GetItem(tuple, 0);
  if (object == NULL) return -1;
  void* given = NULL;
  if (!SWIG_IsOK(SWIG_ConvertPtr(object, &given, type, 0)) || given == NULL) {
    PyErr_SetString(PyExc_TypeError, "params: is no struct of parameters");
    return -1;
  }
  memcpy(copy, given, size);
  return 0;
}

/*
 * Describes the objects of a tuple from `first` on in the members of a struct; None: null. For
 * `stream` see ArgumentName.
 */
static int openMembers(PyObject* tuple, Py_ssize_t first, const TensorMember* members, int count,
                       int stream, rbcContext_t context, int writable, TensorArgument* arguments,
                       void* structure) {
  for (int i = 0; i < count; ++i) {
    PyObject* object = PyTuple_GetItem(tuple, first + i);
    if (object == NULL) return -1;
    if (object == Py_None) continue;
    const ArgumentName name = {members[i].name, stream};
    if (requireTensor(&arguments[i], object, name, context, writable) != 0) return -1;
    const rbcTensor* tensor = &arguments[i].tensor;
    memcpy((char*)structure + members[i].offset, &tensor, sizeof tensor);
  }
  return 0;
}

/* (ResampleParams, groups or None, then RESAMPLE_TENSORS); groups are rbcChannelGroup as bytes. */
static int openResample(PyObject* tuple, int stream, rbcContext_t context,
                        ResampleArgument* argument) {
  rbcResampleParams* params = &argument->params;
  if (openStruct(tuple, SWIGTYPE_p_rbcResampleParams, params, sizeof *params) != 0) return -1;
  PyObject* groups = PyTuple_GetItem(tuple, 1);
  if (groups == NULL) return -1;
  if (groups != Py_None) {
    char* bytes = NULL;
    Py_ssize_t size = 0;
    if (PyBytes_AsStringAndSize(groups, &bytes, &size) != 0) return -1;
    params->groups = (const rbcChannelGroup*)bytes;
    params->num_groups = (int32_t)(size / (Py_ssize_t)sizeof(rbcChannelGroup));
  }
  return openMembers(tuple, 2, RESAMPLE_TENSORS, NUM_RESAMPLE_TENSORS, stream, context, 0,
                     argument->tensors, params);
}

static void closeResample(ResampleArgument* argument) {
  for (int i = 0; i < NUM_RESAMPLE_TENSORS; ++i) closeTensor(&argument->tensors[i]);
}

/* (FuseParams, then FUSE_TENSORS) */
static int openFuse(PyObject* tuple, rbcContext_t context, FuseArgument* argument) {
  rbcFuseParams* params = &argument->params;
  if (openStruct(tuple, SWIGTYPE_p_rbcFuseParams, params, sizeof *params) != 0) return -1;
  return openMembers(tuple, 1, FUSE_TENSORS, NUM_FUSE_TENSORS, -1, context, 0, argument->tensors,
                     params);
}

static void closeFuse(FuseArgument* argument) {
  for (int i = 0; i < NUM_FUSE_TENSORS; ++i) closeTensor(&argument->tensors[i]);
}

/* (values, times, a tuple for openResample, clock offset, clock offset in ticks) */
static int openStream(PyObject* tuple, int index, rbcContext_t context, StreamArgument* argument,
                      rbcFuseStream* stream) {
  PyObject* members[5];
  for (int i = 0; i < 5; ++i) {
    members[i] = PyTuple_GetItem(tuple, i);
    if (members[i] == NULL) return -1;
  }
  const ArgumentName values = {"values", index};
  const ArgumentName times = {"times", index};
  if (requireTensor(&argument->values, members[0], values, context, 0) != 0) return -1;
  if (requireTensor(&argument->times, members[1], times, context, 0) != 0) return -1;
  if (openResample(members[2], index, context, &argument->resample) != 0) return -1;
  *stream = rbcFuseStreamInit();
  stream->values = &argument->values.tensor;
  stream->times = &argument->times.tensor;
  stream->params = &argument->resample.params;
  stream->clock_offset = PyFloat_AsDouble(members[3]);
  stream->clock_offset_ticks = PyLong_AsLongLong(members[4]);
  return PyErr_Occurred() ? -1 : 0;
}

static int openStreams(PyObject* list, rbcContext_t context, StreamsArgument* argument) {
  const Py_ssize_t count = PyList_Size(list);
  if (count < 0) return -1;
  void* block = PyMem_Calloc((size_t)count, sizeof(rbcFuseStream) + sizeof(StreamArgument));
  if (block == NULL) {
    PyErr_NoMemory();
    return -1;
  }
  argument->streams = (rbcFuseStream*)block;
  argument->arguments = (StreamArgument*)(argument->streams + count);
  argument->count = count;
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (openStream(PyList_GetItem(list, i), (int)i, context, &argument->arguments[i],
                   &argument->streams[i]) != 0)
      return -1;
  }
  return 0;
}

static void closeStreams(StreamsArgument* argument) {
  for (Py_ssize_t i = 0; i < argument->count; ++i) {
    closeTensor(&argument->arguments[i].values);
    closeTensor(&argument->arguments[i].times);
    closeResample(&argument->arguments[i].resample);
  }
  PyMem_Free(argument->streams);
}

/* (a struct that openStruct copied, rbcVoxelGrid as bytes, lengths, offsets) */
static int openCloud(PyObject* tuple, rbcContext_t context, rbcVoxelGrid* grid,
                     const TensorMember* members, void* params, CloudArgument* argument) {
  PyObject* given = PyTuple_GetItem(tuple, 1);
  char* bytes = NULL;
  Py_ssize_t size = 0;
  if (given == NULL || PyBytes_AsStringAndSize(given, &bytes, &size) != 0) return -1;
  if (size != (Py_ssize_t)sizeof *grid) {
    PyErr_Format(PyExc_ValueError, "params: grid has %zd bytes", size);
    return -1;
  }
  memcpy(grid, bytes, sizeof *grid);
  return openMembers(tuple, 2, members, NUM_CLOUD_TENSORS, -1, context, 0, argument->tensors,
                     params);
}

static void closeCloud(CloudArgument* argument) {
  for (int i = 0; i < NUM_CLOUD_TENSORS; ++i) closeTensor(&argument->tensors[i]);
}

/* VOXELS_TENSORS */
static int openVoxels(PyObject* tuple, rbcContext_t context, VoxelsArgument* argument) {
  rbcSparseVoxels* voxels = &argument->voxels;
  *voxels = rbcSparseVoxelsInit();
  return openMembers(tuple, 0, VOXELS_TENSORS, NUM_VOXELS_TENSORS, -1, context, 1,
                     argument->tensors, voxels);
}

static void closeVoxels(VoxelsArgument* argument) {
  for (int i = 0; i < NUM_VOXELS_TENSORS; ++i) closeTensor(&argument->tensors[i]);
}

#endif /* ROBOCACHE_BINDINGS_PARAMS_ARGUMENT_H */
