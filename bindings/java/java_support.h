/*
 * Functions for the generated wrapper: exceptions, tensors, arrays of structs.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ROBOCACHE_JAVA_SUPPORT_H
#define ROBOCACHE_JAVA_SUPPORT_H

#include <jni.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <robocache/robocache.h>

/* ---- exceptions: a function that throws leaves one pending, and the caller returns --- */

static void throwNew(JNIEnv* env, const char* class_name, const char* message) {
  const jclass thrown = (*env)->FindClass(env, class_name);
  if (thrown != NULL) (*env)->ThrowNew(env, thrown, message);
}

static void throwRoboCache(JNIEnv* env, rbcStatus_t status, const char* message) {
  const jclass thrown = (*env)->FindClass(env, "io/robocache/RoboCacheException");
  if (thrown == NULL) return;
  const jmethodID constructor =
      (*env)->GetMethodID(env, thrown, "<init>", "(Ljava/lang/String;I)V");
  const jstring text = (*env)->NewStringUTF(env, message);
  if (constructor == NULL || text == NULL) return;
  const jobject exception = (*env)->NewObject(env, thrown, constructor, text, (jint)status);
  if (exception != NULL) (*env)->Throw(env, (jthrowable)exception);
}

static void throwStatus(JNIEnv* env, rbcStatus_t status, const char* message) {
  switch (status) {
    case RBC_STATUS_BUFFER_TOO_SMALL:
    case RBC_STATUS_DAMAGED:
    case RBC_STATUS_INVALID_ARGUMENT:
    case RBC_STATUS_DEVICE_MISMATCH:
    case RBC_STATUS_DTYPE_MISMATCH:
    case RBC_STATUS_SHAPE_MISMATCH:
      throwNew(env, "java/lang/IllegalArgumentException", message);
      return;
    case RBC_STATUS_UNSUPPORTED:
      throwNew(env, "java/lang/UnsupportedOperationException", message);
      return;
    case RBC_STATUS_OUT_OF_MEMORY: throwNew(env, "java/lang/OutOfMemoryError", message); return;
    default: break;
  }
  throwRoboCache(env, status, message);
}

/* ---- arrays: 0, or -1 after a throw --------------------------------------------------------- */

static int requireLength(JNIEnv* env, jarray array, const char* name, jsize expected) {
  const jsize length = array == NULL ? -1 : (*env)->GetArrayLength(env, array);
  if (length == expected) return 1;
  char message[128];
  if (array == NULL) {
    snprintf(message, sizeof message, "%s: is null, expected %d elements", name, (int)expected);
  } else {
    snprintf(message, sizeof message, "%s: has %d elements, expected %d", name, (int)length,
             (int)expected);
  }
  throwNew(env, "java/lang/IllegalArgumentException", message);
  return 0;
}

/* Reads one extent or stride per dimension, and returns their number. */
static int32_t readExtents(JNIEnv* env, jlongArray array, const char* name,
                           jlong extents[RBC_TENSOR_MAX_NDIM]) {
  const jsize length = array == NULL ? -1 : (*env)->GetArrayLength(env, array);
  if (length >= 0 && length <= RBC_TENSOR_MAX_NDIM) {
    (*env)->GetLongArrayRegion(env, array, 0, length, extents);
    return length;
  }
  char message[128];
  if (array == NULL) {
    snprintf(message, sizeof message, "%s: is null", name);
  } else {
    snprintf(message, sizeof message, "%s: has %d dimensions, expected at most %d", name,
             (int)length, RBC_TENSOR_MAX_NDIM);
  }
  throwNew(env, "java/lang/IllegalArgumentException", message);
  return -1;
}

static jfieldID address_field; /* of NativeObject; set before any other call */

JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM* vm, void* reserved) {
  (void)reserved;
  JNIEnv* env = NULL;
  if ((*vm)->GetEnv(vm, (void**)&env, JNI_VERSION_1_8) != JNI_OK) return JNI_ERR;
  const jclass type = (*env)->FindClass(env, "io/robocache/NativeObject");
  if (type != NULL) address_field = (*env)->GetFieldID(env, type, "swigCPtr", "J");
  return address_field != NULL ? JNI_VERSION_1_8 : JNI_ERR;
}

/* Copies the structs of an array of NativeObject, without nulls, to an array that must be freed. */
static int requireCount(JNIEnv* env, const char* name, int32_t count, int32_t expected) {
  if (count == expected) return 1;
  char message[128];
  snprintf(message, sizeof message, "%s: got %d, expected %d", name, (int)count, (int)expected);
  throwNew(env, "java/lang/IllegalArgumentException", message);
  return 0;
}

static int copyStructs(JNIEnv* env, jobjectArray objects, size_t size, void** structs,
                       int32_t* count) {
  *structs = NULL;
  *count = objects == NULL ? 0 : (*env)->GetArrayLength(env, objects);
  if (*count == 0) return 1;
  char* copies = (char*)malloc((size_t)*count * size);
  if (copies == NULL) {
    throwNew(env, "java/lang/OutOfMemoryError", "no memory for an array of structs");
    return 0;
  }
  for (int32_t i = 0; i < *count; ++i) {
    const jobject object = (*env)->GetObjectArrayElement(env, objects, i);
    const jlong address = (*env)->GetLongField(env, object, address_field);
    memcpy(copies + (size_t)i * size, (const void*)(intptr_t)address, size);
    (*env)->DeleteLocalRef(env, object);
  }
  *structs = copies;
  return 1;
}

/* ---- tensors -------------------------------------------------------------------------------- */

typedef struct TensorBlock {
  rbcTensor tensor; /* first, so that free(tensor) frees the block */
  int64_t shape[RBC_TENSOR_MAX_NDIM];
  int64_t strides[RBC_TENSOR_MAX_NDIM];
} TensorBlock;

/* Null strides: compact. */
static rbcTensor* newTensor(void* data, int32_t device_type, int32_t device_id, rbcDType dtype,
                            int32_t ndim, const int64_t* shape, const int64_t* strides) {
  TensorBlock* block = (TensorBlock*)calloc(1, sizeof *block);
  if (block == NULL) return NULL;
  block->tensor.data = data;
  block->tensor.device.type = device_type;
  block->tensor.device.id = device_id;
  block->tensor.ndim = ndim;
  block->tensor.dtype = dtype;
  block->tensor.shape = block->shape;
  memcpy(block->shape, shape, (size_t)ndim * sizeof *shape);
  if (strides != NULL) {
    block->tensor.strides = block->strides;
    memcpy(block->strides, strides, (size_t)ndim * sizeof *strides);
  }
  return &block->tensor;
}

/* The address of a buffer's first element, for any position; null if it is not direct. */
static void* bufferAddress(JNIEnv* env, jobject buffer) {
  return (*env)->GetDirectBufferAddress(env, buffer);
}

#endif /* ROBOCACHE_JAVA_SUPPORT_H */
