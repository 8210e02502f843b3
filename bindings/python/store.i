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
  $1 = PyBytes_AsString($input);
  if ($1 == NULL) SWIG_fail;
}
%apply const char* name { const char* about };
%typemap(in) (const void* rows, size_t num_bytes) (TensorArgument argument = NO_TENSOR) {
  if (readMemory($input, "rows", &argument, (const void**)&$1, &$2) != 0) SWIG_fail;
}
%typemap(freearg) (const void* rows, size_t num_bytes) "closeTensor(&argument$argnum);"
%typemap(in) (const int64_t* episode_offsets, int64_t num_offsets) (
    TensorArgument argument = NO_TENSOR, size_t bytes = 0) {
  if (readMemory($input, "episode_offsets", &argument, (const void**)&$1, &bytes) != 0) SWIG_fail;
  $2 = (int64_t)(bytes / sizeof(int64_t));
}
%typemap(freearg) (const int64_t* episode_offsets, int64_t num_offsets) {
  closeTensor(&argument$argnum);
}
%typemap(in, numinputs=0) const char** name (const char* text = NULL) "$1 = (char**)&text;"
%typemap(argout) const char** name {
  $result = SWIG_AppendOutput($result, PyUnicode_FromString(*$1));
}

/* Users whose files count: a list of numbers. */
%typemap(in) uint32_t [ANY] (uint32_t numbers[$1_dim0]) {
  memset(numbers, 0, sizeof numbers);
  const Py_ssize_t count = PySequence_Size($input);
  if (count > $1_dim0) SWIG_exception_fail(SWIG_ValueError, "$1_name: has too many numbers");
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* number = PySequence_GetItem($input, i);
    numbers[i] = number != NULL ? (uint32_t)PyLong_AsUnsignedLong(number) : 0;
    Py_XDECREF(number);
  }
  if (PyErr_Occurred()) SWIG_fail;
  $1 = numbers;
}
%typemap(memberin) uint32_t [ANY] "memcpy($1, $input, sizeof $1);"
%ignore rbcStoreParams::trusted_uids;
%rename(set_trusted_uids) setTrustedUids;
%extend rbcStoreParams {
  void setTrustedUids(const uint32_t trusted_uids[RBC_STORE_MAX_TRUSTED], int32_t count) {
    memcpy($self->trusted_uids, trusted_uids, sizeof $self->trusted_uids);
    $self->num_trusted_uids = count;
  }
}
%noexception rbcStoreParams::setTrustedUids;

/* store_calls.i has functions for these. */
%ignore rbcTrackInfo;
%ignore rbcStoreItem;
%ignore rbcEntryGetTrack;
%ignore rbcEntryGetTensor;
%ignore rbcEntryGetEpisodes;
%ignore rbcEntryRetain;
%ignore rbcStoreList;
