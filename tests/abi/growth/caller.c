/*
 * A program that calls every function and verifies all that comes back.
 *
 *   caller LIBRARY    where LIBRARY is the file that must have been loaded
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"

#define SUCCEEDS(call) require((call) == RBC_STATUS_SUCCESS, #call)

struct DLManagedTensor {
  rbcTensor tensor;
  void* manager;
  void (*deleter)(struct DLManagedTensor* self);
};

struct DLManagedTensorVersioned {
  uint32_t major;
  uint32_t minor;
  void* manager;
  void (*deleter)(struct DLManagedTensorVersioned* self);
  uint64_t flags;
  rbcTensor tensor;
};

static void checkLibrary(const char* expected) {
  Dl_info info;
  void* address = NULL;
  rbcStatus_t (*function)(int32_t*, int32_t*) = rbcGetVersion;
  memcpy(&address, &function, sizeof address);
  require(dladdr(address, &info) != 0, "dladdr");
  char* loaded = realpath(info.dli_fname, NULL);
  char* wanted = realpath(expected, NULL);
  require(loaded != NULL && wanted != NULL && strcmp(loaded, wanted) == 0,
          "the library that was to be tested is loaded");
  free(loaded);
  free(wanted);

  int32_t release = 0;
  int32_t abi = 0;
  SUCCEEDS(rbcGetVersion(&release, &abi));
  require(release >= 100, "a release of 0.1.0 or later");
  require(abi == RBC_ABI_VERSION, "the same ABI");
}

static void checkContext(void) {
  void* stream = &stream;
  SUCCEEDS(rbcContextSetStream(context, NULL));
  SUCCEEDS(rbcContextGetStream(context, &stream));
  require(stream == NULL, "the null stream");
  SUCCEEDS(rbcContextWarmUp(context));
  SUCCEEDS(rbcContextSynchronize(context));
}

/* The library must write no byte beyond the struct that the caller knows. */
static void checkInfo(size_t workspace) {
  enum { BEYOND = 64 };
  unsigned char* memory = malloc(sizeof(rbcContextInfo) + BEYOND);
  require(memory != NULL, "memory");
  memset(memory, 0x5a, sizeof(rbcContextInfo) + BEYOND);
  rbcContextInfo* info = (rbcContextInfo*)memory;
  *info = rbcContextInfoInit();
  SUCCEEDS(rbcContextGetInfo(context, info));
  require(info->struct_size == sizeof *info, "info: struct_size stays");
  require(info->backend == RBC_BACKEND_CPU && info->device_id == 0, "info: the CPU");
  require(info->num_threads == 2 && info->simd == RBC_SIMD_PORTABLE, "info: as was asked for");
  require(info->workspace_bytes >= workspace && info->total_memory > 0, "info: memory");
  require(info->device_name[0] != '\0' && info->cuda_unavailable[0] == '\0', "info: names");
  for (size_t i = 0; i < BEYOND; ++i)
    require(memory[sizeof *info + i] == 0x5a, "info: nothing beyond the struct is written");
  free(memory);
}

static void checkTensors(void) {
  float source[3] = {1, 2, 3};
  int64_t shape[1] = {3};
  const rbcTensor host = {source, {RBC_DEVICE_CPU, 0}, 1, {RBC_DTYPE_FLOAT, 32, 1}, shape, NULL, 0};
  rbcTensorInfo info;
  SUCCEEDS(rbcTensorNormalize(&host, &info));
  require(info.data == source && info.num_elements == 3 && info.num_bytes == 12 &&
              info.shape[0] == 3 && info.strides[0] == 1 && info.element_size == 4 &&
              info.is_contiguous == 1,
          "rbcTensorNormalize");

  rbcOwnedTensor_t owned = NULL;
  rbcTensor view;
  const size_t before = bytes_held;
  SUCCEEDS(rbcTensorCreate(context, host.dtype, 1, shape, &owned));
  require(bytes_held == before + 12, "the caller's allocator");
  SUCCEEDS(rbcTensorGetView(owned, 1, &view));
  SUCCEEDS(rbcTensorCopy(context, &host, &view));
  require(memcmp(view.data, source, sizeof source) == 0, "rbcTensorCopy");

  struct DLManagedTensor* managed = NULL;
  struct DLManagedTensorVersioned* versioned = NULL;
  rbcOwnedTensor_t imported[2] = {NULL, NULL};
  SUCCEEDS(rbcTensorExportDLPack(owned, &managed));
  SUCCEEDS(rbcTensorExportDLPackVersioned(owned, &versioned));
  require(managed->tensor.data == view.data, "rbcTensorExportDLPack");
  require(versioned->tensor.data == view.data && versioned->major == 1 && versioned->flags == 0,
          "rbcTensorExportDLPackVersioned");
  SUCCEEDS(rbcTensorDestroy(owned));
  SUCCEEDS(rbcTensorImportDLPack(managed, &imported[0]));
  SUCCEEDS(rbcTensorImportDLPackVersioned(versioned, &imported[1]));
  for (int i = 0; i < 2; ++i) {
    rbcTensor again;
    SUCCEEDS(rbcTensorGetView(imported[i], 0, &again));
    require(again.data == view.data && again.ndim == 1 && again.shape[0] == 3, "an import");
    SUCCEEDS(rbcTensorDestroy(imported[i]));
  }
  require(bytes_held == before, "the last reference gives the memory back");
}

static size_t checkOperations(void) {
  size_t most = 0;
  for (int i = 0; i < OPERATIONS; ++i) {
    size_t bytes = SIZE_MAX;
    require(operations[i].workspace(&bytes) == RBC_STATUS_SUCCESS, operations[i].name);
    require(bytes < (1u << 30), "a workspace of some size");
    if (bytes > most) most = bytes;
  }
  SUCCEEDS(rbcContextReserve(context, most));
  for (int i = 0; i < OPERATIONS; ++i) {
    require(operations[i].run() == RBC_STATUS_SUCCESS, operations[i].name);
    require(operations[i].right(), operations[i].name);
  }
  return most;
}

/* Refused with this message, and called again as it was. */
static void checkRefused(uint32_t* struct_size, rbcStatus_t (*call)(void), const char* message) {
  const uint32_t good = *struct_size;
  *struct_size = 0;
  require(call() == RBC_STATUS_INVALID_ARGUMENT, message);
  if (strncmp(rbcGetLastError(), message, strlen(message)) != 0) require(0, message);
  *struct_size = good;
  require(call() == RBC_STATUS_SUCCESS, message);
}

static rbcStatus_t createAnother(void) {
  rbcContext_t another = NULL;
  const rbcStatus_t status = rbcContextCreate(context_params, &another);
  rbcContextDestroy(another);
  return status;
}

#define TOO_SMALL "struct_size is 0, expected at least "

static void checkErrors(void) {
  require(rbcResample(context, NULL, NULL, NULL, NULL, NULL, NULL) == RBC_STATUS_INVALID_ARGUMENT,
          "null tensors are refused");
  require(strstr(rbcGetLastError(), ": is null") != NULL, "the message tells of null");
  require(strcmp(rbcStatusName(RBC_STATUS_INVALID_ARGUMENT), "RBC_STATUS_INVALID_ARGUMENT") == 0,
          "rbcStatusName");

  /* The sizes of the first release, whatever the library's own are. */
  checkRefused(&context_params->struct_size, createAnother, "params: " TOO_SMALL "56 ");
  checkRefused(&resample_params->struct_size, operations[0].run, "params: " TOO_SMALL "128 ");
  checkRefused(&fuse_streams[0].struct_size, operations[1].run, "streams[0]: " TOO_SMALL "64 ");
  checkRefused(&fuse_params->struct_size, operations[1].run, "params: " TOO_SMALL "48 ");
  checkRefused(&voxelize_params->struct_size, operations[2].run, "params: " TOO_SMALL "144 ");
  checkRefused(&sparse_params->struct_size, operations[3].run, "params: " TOO_SMALL "136 ");
  checkRefused(&sparse_voxels->struct_size, operations[3].run, "voxels: " TOO_SMALL "104 ");
  checkRefused(&tsdf_params->struct_size, operations[4].run, "params: " TOO_SMALL "152 ");
#if !defined(RBC_TEST_HEADERS_0_1)
  checkRefused(&statistics_params->struct_size, operations[5].run, "params: " TOO_SMALL "80 ");
  checkRefused(&statistics_result->struct_size, operations[5].run, "result: " TOO_SMALL "96 ");
  checkRefused(&accumulator_params->struct_size, operations[6].run, "params: " TOO_SMALL "72 ");
  checkRefused(&update_params->struct_size, operations[6].run, "params: " TOO_SMALL "64 ");
  checkRefused(&window_streams[0].struct_size, operations[10].run, "streams[0]: " TOO_SMALL "200 ");
  checkRefused(&windows_params->struct_size, operations[10].run, "params: " TOO_SMALL "48 ");
  checkRefused(&live_streams[0].struct_size, operations[11].run, "streams[0]: " TOO_SMALL "96 ");
  checkRefused(&live_params->struct_size, operations[11].run, "params: " TOO_SMALL "48 ");
  live_counters->struct_size = 2;
  require(operations[11].run() == RBC_STATUS_INVALID_ARGUMENT, "counters: struct_size");
  live_counters->struct_size = sizeof *live_counters;
#endif
}

int main(int argc, char** argv) {
  require(argc == 2, "usage: caller LIBRARY");
  checkLibrary(argv[1]);
  prepare();
  checkContext();
  checkInfo(checkOperations());
  checkTensors();
  checkErrors();
  SUCCEEDS(rbcContextDestroy(context));
  require(bytes_held == 0, "all memory is given back");
  return EXIT_SUCCESS;
}
