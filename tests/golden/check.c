/*
 * Makes the calls of golden vectors (README.md) through the C interface, in plain C11, and compares
 * what they write byte for byte.
 *
 *   robocache_golden cpu|cuda FILE...
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "robocache/robocache.h"

enum { LINE = 8192, WORD = 32, TENSORS = 64, STREAMS = 4, GROUPS = 8 };

static void fail(const char* what, const char* which) {
  fprintf(stderr, "%s: %s\n", what, which);
  exit(EXIT_FAILURE);
}

static void require(rbcStatus_t status) {
  if (status != RBC_STATUS_SUCCESS) fail(rbcStatusName(status), rbcGetLastError());
}

/* ---- a case ---------------------------------------------------------------------------------- */

/* A tensor of the case: its bytes on the host, and those that the call sees. */
typedef struct Tensor {
  char name[WORD];
  bool is_output;
  unsigned char* bytes; /* of an input, or expected */
  int64_t num_bytes;
  int64_t shape[RBC_MAX_NDIM];
  rbcTensor host; /* describes the bytes */
  rbcTensor view; /* what the call is given */
  rbcOwnedTensor_t owned;
} Tensor;

/* What rbcResample takes, and a stream of rbcFuse. */
typedef struct Stream {
  rbcFuseStream stream;
  rbcResampleParams params;
  rbcChannelGroup groups[GROUPS];
} Stream;

typedef struct Case {
  char name[LINE];
  char op[WORD];
  Tensor tensors[TENSORS];
  int num_tensors;
  Stream streams[STREAMS]; /* the first one serves rbcResample */
  int num_streams;
  const rbcTensor *query_times, *out, *mask, *points, *features, *dropped, *sensors, *tsdf, *weight;
  rbcFuseParams fuse;
  rbcVoxelizeParams voxelize;
  rbcVoxelizeSparseParams sparse;
  rbcSparseVoxels voxels;
  rbcTsdfParams volume;
} Case;

typedef enum Kind { INT, TICKS, NUMBER, TENSOR, OUTPUT } Kind;

/* Where a name of the file lies: in a Stream, or else in the Case. */
typedef struct Field {
  const char* op;
  const char* name;
  Kind kind;
  size_t offset;
} Field;

static const Field stream_fields[] = {
    {"", "flags", INT, offsetof(Stream, params.flags)},
    {"", "method", INT, offsetof(Stream, params.method)},
    {"", "bounds", INT, offsetof(Stream, params.bounds)},
    {"", "fill_value", NUMBER, offsetof(Stream, params.fill_value)},
    {"", "max_gap", NUMBER, offsetof(Stream, params.max_gap)},
    {"", "tolerance", NUMBER, offsetof(Stream, params.tolerance)},
    {"", "clock_offset", NUMBER, offsetof(Stream, stream.clock_offset)},
    {"", "clock_offset_ticks", TICKS, offsetof(Stream, stream.clock_offset_ticks)},
    {"", "values", TENSOR, offsetof(Stream, stream.values)},
    {"", "times", TENSOR, offsetof(Stream, stream.times)},
    {"", "lengths", TENSOR, offsetof(Stream, params.lengths)},
    {"", "query_lengths", TENSOR, offsetof(Stream, params.query_lengths)},
    {"", "offsets", TENSOR, offsetof(Stream, params.offsets)},
    {"", "mean", TENSOR, offsetof(Stream, params.mean)},
    {"", "inv_std", TENSOR, offsetof(Stream, params.inv_std)},
    {NULL, NULL, INT, 0},
};

static const Field case_fields[] = {
    {"fuse", "flags", INT, offsetof(Case, fuse.flags)},
    {"fuse", "query_lengths", TENSOR, offsetof(Case, fuse.query_lengths)},
    {"voxelize", "mode", INT, offsetof(Case, voxelize.mode)},
    {"voxelize", "empty_value", NUMBER, offsetof(Case, voxelize.empty_value)},
    {"voxelize", "lengths", TENSOR, offsetof(Case, voxelize.lengths)},
    {"voxelize", "offsets", TENSOR, offsetof(Case, voxelize.offsets)},
    {"voxelize_sparse", "reduce", INT, offsetof(Case, sparse.reduce)},
    {"voxelize_sparse", "order", INT, offsetof(Case, sparse.order)},
    {"voxelize_sparse", "lengths", TENSOR, offsetof(Case, sparse.lengths)},
    {"voxelize_sparse", "offsets", TENSOR, offsetof(Case, sparse.offsets)},
    {"voxelize_sparse", "coords", OUTPUT, offsetof(Case, voxels.coords)},
    {"voxelize_sparse", "num_voxels", OUTPUT, offsetof(Case, voxels.num_voxels)},
    {"voxelize_sparse", "counts", OUTPUT, offsetof(Case, voxels.counts)},
    {"voxelize_sparse", "features", OUTPUT, offsetof(Case, voxels.features)},
    {"voxelize_sparse", "grouped", OUTPUT, offsetof(Case, voxels.grouped)},
    {"voxelize_sparse", "point_to_voxel", OUTPUT, offsetof(Case, voxels.point_to_voxel)},
    {"voxelize_sparse", "dropped", OUTPUT, offsetof(Case, voxels.dropped)},
    {"voxelize_sparse", "overflow", OUTPUT, offsetof(Case, voxels.overflow)},
    {"voxelize_tsdf", "flags", INT, offsetof(Case, volume.flags)},
    {"voxelize_tsdf", "weighting", INT, offsetof(Case, volume.weighting)},
    {"voxelize_tsdf", "truncation", NUMBER, offsetof(Case, volume.truncation)},
    {"voxelize_tsdf", "max_weight", NUMBER, offsetof(Case, volume.max_weight)},
    {"voxelize_tsdf", "lengths", TENSOR, offsetof(Case, volume.lengths)},
    {"voxelize_tsdf", "offsets", TENSOR, offsetof(Case, volume.offsets)},
    {"voxelize_tsdf", "tsdf", TENSOR, offsetof(Case, tsdf)},
    {"voxelize_tsdf", "weight", TENSOR, offsetof(Case, weight)},
    {"", "query_times", TENSOR, offsetof(Case, query_times)},
    {"", "points", TENSOR, offsetof(Case, points)},
    {"", "features", TENSOR, offsetof(Case, features)},
    {"", "sensors", TENSOR, offsetof(Case, sensors)},
    {"", "out", OUTPUT, offsetof(Case, out)},
    {"", "mask", OUTPUT, offsetof(Case, mask)},
    {"", "dropped", OUTPUT, offsetof(Case, dropped)},
    {NULL, NULL, INT, 0},
};

static bool is(const char* word, const char* other) { return strcmp(word, other) == 0; }

static const Field* fieldIn(const Field* fields, const char* op, const char* name, bool output) {
  for (; fields->name != NULL; ++fields) {
    if (is(fields->name, name) && (fields->op[0] == '\0' || is(fields->op, op)) &&
        (fields->kind == OUTPUT) == output) {
      return fields;
    }
  }
  return NULL;
}

/* Its kind, and the address. */
static Kind find(Case* c, const char* name, bool output, void** address) {
  char* base = (char*)c;
  const Field* field = fieldIn(case_fields, c->op, name, output);
  if (field == NULL && c->num_streams > 0) {
    base = (char*)&c->streams[c->num_streams - 1];
    field = fieldIn(stream_fields, c->op, name, output);
  }
  if (field == NULL) fail("unknown name", name);
  *address = base + field->offset;
  return field->kind;
}

/* ---- reading --------------------------------------------------------------------------------- */

static rbcDType dtypeOf(const char* name) {
  const struct {
    const char* name;
    rbcDType dtype;
  } dtypes[] = {{"f16", {RBC_DTYPE_FLOAT, 16, 1}}, {"bf16", {RBC_DTYPE_BFLOAT, 16, 1}},
                {"f32", {RBC_DTYPE_FLOAT, 32, 1}}, {"f64", {RBC_DTYPE_FLOAT, 64, 1}},
                {"i8", {RBC_DTYPE_INT, 8, 1}},     {"i16", {RBC_DTYPE_INT, 16, 1}},
                {"i32", {RBC_DTYPE_INT, 32, 1}},   {"i64", {RBC_DTYPE_INT, 64, 1}},
                {"u8", {RBC_DTYPE_UINT, 8, 1}},    {"bool", {RBC_DTYPE_BOOL, 8, 1}}};
  for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; ++i) {
    if (is(dtypes[i].name, name)) return dtypes[i].dtype;
  }
  fail("unknown dtype", name);
  return dtypes[0].dtype;
}

static char* next(void) {
  char* word = strtok(NULL, " \n");
  if (word == NULL) fail("a line", "ends too early");
  return word;
}

static void addStream(Case* c) {
  if (c->num_streams == STREAMS) fail("too many streams", c->name);
  Stream* stream = &c->streams[c->num_streams++];
  stream->stream = rbcFuseStreamInit();
  stream->params = rbcResampleParamsInit();
}

static void readOp(Case* c) {
  snprintf(c->op, sizeof c->op, "%s", next());
  c->fuse = rbcFuseParamsInit();
  c->voxelize = rbcVoxelizeParamsInit();
  c->sparse = rbcVoxelizeSparseParamsInit();
  c->voxels = rbcSparseVoxelsInit();
  c->volume = rbcTsdfParamsInit();
  if (is(c->op, "resample")) addStream(c);
}

static void readSet(Case* c) {
  void* address;
  const Kind kind = find(c, next(), false, &address);
  const char* value = next();
  if (kind == INT) *(int32_t*)address = (int32_t)strtol(value, NULL, 10);
  if (kind == TICKS) *(int64_t*)address = strtoll(value, NULL, 10);
  if (kind == NUMBER) *(double*)address = strtod(value, NULL);
}

static void readGroup(Case* c) {
  Stream* stream = &c->streams[c->num_streams - 1];
  if (stream->params.num_groups == GROUPS) fail("too many groups", c->name);
  rbcChannelGroup* group = &stream->groups[stream->params.num_groups++];
  group->begin = strtoll(next(), NULL, 10);
  group->count = strtoll(next(), NULL, 10);
  group->method = (int32_t)strtol(next(), NULL, 10);
  stream->params.groups = stream->groups;
}

static void readGrid(Case* c) {
  rbcVoxelGrid grid;
  for (int i = 0; i < 3; ++i) grid.origin[i] = strtod(next(), NULL);
  for (int i = 0; i < 3; ++i) grid.voxel_size[i] = strtod(next(), NULL);
  for (int i = 0; i < 3; ++i) grid.shape[i] = strtoll(next(), NULL, 10);
  c->voxelize.grid = c->sparse.grid = c->volume.grid = grid;
}

static void readTensor(Case* c, bool is_output) {
  if (c->num_tensors == TENSORS) fail("too many tensors", c->name);
  Tensor* tensor = &c->tensors[c->num_tensors++];
  tensor->is_output = is_output;
  snprintf(tensor->name, sizeof tensor->name, "%s", next());
  tensor->host.device.type = RBC_DEVICE_CPU;
  tensor->host.dtype = dtypeOf(next());
  tensor->host.shape = tensor->shape;
  tensor->num_bytes = tensor->host.dtype.bits / 8;
  for (char* shape = next(); !is(shape, "scalar") && *shape != '\0'; shape += *shape == 'x') {
    const int64_t extent = strtoll(shape, &shape, 10);
    tensor->shape[tensor->host.ndim++] = extent;
    tensor->num_bytes *= extent;
  }
  const char* hex = next();
  if (!is(hex, "-") && strlen(hex) != 2 * (size_t)tensor->num_bytes) fail("bytes", tensor->name);
  tensor->bytes = malloc((size_t)tensor->num_bytes + 1);
  for (int64_t i = 0; i < tensor->num_bytes; ++i) {
    const char digits[] = {hex[2 * i], hex[2 * i + 1], '\0'};
    tensor->bytes[i] = (unsigned char)strtol(digits, NULL, 16);
  }
  tensor->host.data = tensor->bytes;

  /* What the call both reads and writes is given as it is before. */
  void* address;
  const bool both = is(tensor->name, "tsdf") || is(tensor->name, "weight");
  find(c, tensor->name, is_output && !both, &address);
  if (!(is_output && both)) *(const rbcTensor**)address = &tensor->view;
}

/* ---- calling --------------------------------------------------------------------------------- */

static void place(rbcContext_t context, Tensor* tensor) {
  require(rbcTensorCreate(context, tensor->host.dtype, tensor->host.ndim, tensor->shape,
                          &tensor->owned));
  require(rbcTensorGetView(tensor->owned, 1, &tensor->view));
  rbcTensor host = tensor->host;
  host.data = malloc((size_t)tensor->num_bytes + 1);
  if (tensor->is_output) {
    memset(host.data, 0xCD, (size_t)tensor->num_bytes);
  } else {
    memcpy(host.data, tensor->bytes, (size_t)tensor->num_bytes);
  }
  require(rbcTensorCopy(context, &host, &tensor->view));
  free(host.data);
}

static rbcStatus_t callOp(rbcContext_t context, Case* c) {
  if (is(c->op, "resample")) {
    const Stream* one = &c->streams[0];
    return rbcResample(context, one->stream.values, one->stream.times, c->query_times, c->out,
                       c->mask, &one->params);
  }
  if (is(c->op, "fuse")) {
    rbcFuseStream streams[STREAMS];
    for (int n = 0; n < c->num_streams; ++n) {
      streams[n] = c->streams[n].stream;
      streams[n].params = &c->streams[n].params;
    }
    return rbcFuse(context, streams, c->num_streams, c->query_times, c->out, c->mask, &c->fuse);
  }
  if (is(c->op, "voxelize")) {
    return rbcVoxelize(context, c->points, c->features, c->out, c->dropped, &c->voxelize);
  }
  if (is(c->op, "voxelize_sparse")) {
    return rbcVoxelizeSparse(context, c->points, c->features, &c->voxels, &c->sparse);
  }
  if (!is(c->op, "voxelize_tsdf")) fail("unknown op", c->op);
  return rbcVoxelizeTsdf(context, c->points, c->sensors, c->tsdf, c->weight, c->dropped,
                         &c->volume);
}

/* The tensor that an output is written to. */
static const rbcTensor* written(const Case* c, const Tensor* output) {
  if (is(output->name, "tsdf")) return c->tsdf;
  if (is(output->name, "weight")) return c->weight;
  return &output->view;
}

static bool same(rbcContext_t context, const Case* c, const Tensor* expected) {
  rbcTensor got = expected->host;
  unsigned char* bytes = malloc((size_t)expected->num_bytes + 1);
  got.data = bytes;
  require(rbcTensorCopy(context, written(c, expected), &got));
  int64_t i = 0;
  while (i < expected->num_bytes && bytes[i] == expected->bytes[i]) ++i;
  if (i < expected->num_bytes) {
    printf("%s: %s: byte %lld is %02x, expected %02x\n", c->name, expected->name, (long long)i,
           bytes[i], expected->bytes[i]);
  }
  free(bytes);
  return i == expected->num_bytes;
}

/* Whether all outputs are as expected. Frees what the case holds. */
static bool run(rbcContext_t context, Case* c) {
  for (int i = 0; i < c->num_tensors; ++i) place(context, &c->tensors[i]);
  const rbcStatus_t status = callOp(context, c);
  bool right = status == RBC_STATUS_SUCCESS;
  if (!right) printf("%s: %s: %s\n", c->name, rbcStatusName(status), rbcGetLastError());
  for (int i = 0; i < c->num_tensors && status == RBC_STATUS_SUCCESS; ++i) {
    if (c->tensors[i].is_output && !same(context, c, &c->tensors[i])) right = false;
  }
  for (int i = 0; i < c->num_tensors; ++i) {
    require(rbcTensorDestroy(c->tensors[i].owned));
    free(c->tensors[i].bytes);
  }
  return right;
}

/* Adds to the numbers of cases, and of those that went wrong. */
static void runFile(rbcContext_t context, const char* path, int* cases, int* wrong) {
  FILE* file = fopen(path, "r");
  if (file == NULL) fail("cannot open", path);
  static char line[LINE];
  static Case c;
  while (fgets(line, sizeof line, file) != NULL) {
    char* word = strtok(line, " \n");
    if (word == NULL || word[0] == '#') continue;
    if (is(word, "case")) {
      memset(&c, 0, sizeof c);
      snprintf(c.name, sizeof c.name, "%s", strtok(NULL, "\n"));
    } else if (is(word, "op")) {
      readOp(&c);
    } else if (is(word, "stream")) {
      addStream(&c);
    } else if (is(word, "set")) {
      readSet(&c);
    } else if (is(word, "group")) {
      readGroup(&c);
    } else if (is(word, "grid")) {
      readGrid(&c);
    } else if (is(word, "in") || is(word, "out")) {
      readTensor(&c, is(word, "out"));
    } else if (is(word, "end")) {
      ++*cases;
      if (!run(context, &c)) ++*wrong;
    } else {
      fail("unknown word", word);
    }
  }
  fclose(file);
}

int main(int argc, char** argv) {
  if (argc < 3) fail("usage", "robocache_golden cpu|cuda FILE...");
  rbcContextParams params = rbcContextParamsInit();
  params.backend = is(argv[1], "cuda") ? RBC_BACKEND_CUDA : RBC_BACKEND_CPU;
  rbcContext_t context;
  const rbcStatus_t status = rbcContextCreate(&params, &context);
  if (params.backend == RBC_BACKEND_CUDA &&
      (status == RBC_STATUS_NOT_AVAILABLE || status == RBC_STATUS_UNSUPPORTED)) {
    printf("SKIPPED: %s\n", rbcGetLastError());
    return EXIT_SUCCESS;
  }
  require(status);
  int cases = 0;
  int wrong = 0;
  for (int i = 2; i < argc; ++i) runFile(context, argv[i], &cases, &wrong);
  printf("%d cases, %d wrong\n", cases, wrong);
  require(rbcContextDestroy(context));
  return cases > 0 && wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
