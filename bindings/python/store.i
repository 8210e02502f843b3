/*
 * The store: keys are bytes; rows come from contiguous memory, without a copy; a view of a tensor is
 * (address, dtype code, dtype bits, shape), and is valid as long as its entry.
 */
%{
#include "store_argument.h"
%}

%typemap(in) const uint8_t* key {
  $1 = (uint8_t*)readKey($input);
  if ($1 == NULL) SWIG_fail;
}
%typemap(in) const char* path {
  if (PyBytes_AsStringAndSize($input, &$1, NULL) != 0) SWIG_fail; /* refuses a 0 in it */
}
%apply const char* name { const char* about };
%typemap(in) (const void* rows, size_t num_bytes) (TensorArgument argument = NO_TENSOR) {
  if (readMemory($input, "rows", &argument, (const void**)&$1, &$2) != 0) SWIG_fail;
}
%typemap(freearg) (const void* rows, size_t num_bytes) "closeTensor(&argument$argnum);"
%typemap(in) (const int64_t* episode_offsets, int64_t num_offsets) (
    TensorArgument argument = NO_TENSOR, size_t bytes = 0) {
  if (readMemory($input, "episode_offsets", &argument, (const void**)&$1, &bytes) != 0) SWIG_fail;
  if (argument.tensor.dtype.code != RBC_DTYPE_INT || argument.tensor.dtype.bits != 64) {
    SWIG_exception_fail(SWIG_TypeError, "episode_offsets: expected an array of int64");
  }
  $2 = (int64_t)(bytes / sizeof(int64_t));
}
%typemap(freearg) (const int64_t* episode_offsets, int64_t num_offsets) {
  closeTensor(&argument$argnum);
}
%typemap(in, numinputs=0) const char** name (const char* text = NULL) "$1 = (char**)&text;"
%typemap(argout) const char** name {
  $result = SWIG_AppendOutput($result, PyUnicode_FromString(*$1));
}

/* store_calls.i has functions for these. */
%ignore rbcStoreParams::trusted_uids;
%ignore rbcTrackInfo::dtype;
%ignore rbcTrackInfo::shape;
%ignore rbcStoreItem;
%ignore rbcEntryGetTrack;
%ignore rbcEntryGetTensor;
%ignore rbcEntryGetEpisodes;
%ignore rbcEntryRetain;
%ignore rbcStoreList;
