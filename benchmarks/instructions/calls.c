/*
 * Calls whose instructions aarch64.py counts: calls CASE LEVEL TIMES, where LEVEL is RBC_SIMD_...
 * Without arguments it lists the cases.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <robocache/robocache.h>

enum { SAMPLES = 100, QUERIES = 64, WIDE = 256, MOST = QUERIES * WIDE };

typedef struct Case {
  const char* name;
  int32_t method;
  int64_t channels;
  rbcDType in;
  rbcDType out;
} Case;

#define F16 \
  { RBC_DTYPE_FLOAT, 16, 1 }
#define BF16 \
  { RBC_DTYPE_BFLOAT, 16, 1 }
#define F32 \
  { RBC_DTYPE_FLOAT, 32, 1 }
#define F64 \
  { RBC_DTYPE_FLOAT, 64, 1 }

static const Case cases[] = {
    {"linear f32, 256 channels", RBC_METHOD_LINEAR, WIDE, F32, F32},
    {"linear f64, 256 channels", RBC_METHOD_LINEAR, WIDE, F64, F64},
    {"linear bf16, 256 channels", RBC_METHOD_LINEAR, WIDE, BF16, BF16},
    {"linear f16, 256 channels", RBC_METHOD_LINEAR, WIDE, F16, F16},
    {"linear f32 to bf16, 256 channels", RBC_METHOD_LINEAR, WIDE, F32, BF16},
    {"cubic f32, 256 channels", RBC_METHOD_CUBIC, WIDE, F32, F32},
    {"pchip f32, 256 channels", RBC_METHOD_PCHIP, WIDE, F32, F32},
    {"angle f32, 256 channels", RBC_METHOD_ANGLE, WIDE, F32, F32},
    {"slerp f32, 4 channels", RBC_METHOD_SLERP, 4, F32, F32},
    {"linear f32, 7 channels", RBC_METHOD_LINEAR, 7, F32, F32},
};

static uint64_t values[SAMPLES * WIDE];
static uint64_t out[MOST];
static double times[SAMPLES];
static double queries[QUERIES];

static void check(rbcStatus_t status) {
  if (status == RBC_STATUS_SUCCESS) return;
  fprintf(stderr, "%s: %s\n", rbcStatusName(status), rbcGetLastError());
  exit(EXIT_FAILURE);
}

static void fill(const Case* c) {
  for (int64_t i = 0; i < SAMPLES * c->channels; ++i) {
    const float value = (float)sin((double)i);
    const double wide = (double)value;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint16_t high = (uint16_t)(bits >> 16);                /* bf16 */
    const uint16_t half = (uint16_t)(0x3800 | (i * 37 & 0x3ff)); /* f16, 0.5 to 1 */
    const int size = c->in.bits / 8;
    const void* from = size == 8                        ? (const void*)&wide
                       : size == 4                      ? (const void*)&value
                       : c->in.code == RBC_DTYPE_BFLOAT ? (const void*)&high
                                                        : (const void*)&half;
    memcpy((char*)values + i * size, from, (size_t)size);
  }
  for (int i = 0; i < SAMPLES; ++i) times[i] = i + 0.2 * sin(i);
  for (int i = 0; i < QUERIES; ++i) queries[i] = 2 + 1.5 * i;
}

int main(int argc, char** argv) {
  const int count = (int)(sizeof cases / sizeof *cases);
  if (argc != 4) {
    for (int i = 0; i < count; ++i) puts(cases[i].name);
    return EXIT_SUCCESS;
  }
  const Case* c = &cases[atoi(argv[1]) % count];
  fill(c);
  rbcContextParams params = rbcContextParamsInit();
  params.backend = RBC_BACKEND_CPU;
  params.num_threads = 1;
  params.simd = atoi(argv[2]);
  rbcContext_t context = NULL;
  check(rbcContextCreate(&params, &context));
  rbcResampleParams resample = rbcResampleParamsInit();
  resample.method = c->method;
  int64_t value_shape[] = {SAMPLES, c->channels};
  int64_t time_shape[] = {SAMPLES};
  int64_t query_shape[] = {QUERIES, c->channels};
  const rbcDevice cpu = {RBC_DEVICE_CPU, 0};
  const rbcDType f64 = F64;
  const rbcTensor value_tensor = {values, cpu, 2, c->in, value_shape, NULL, 0};
  const rbcTensor time_tensor = {times, cpu, 1, f64, time_shape, NULL, 0};
  const rbcTensor query_tensor = {queries, cpu, 1, f64, query_shape, NULL, 0};
  const rbcTensor out_tensor = {out, cpu, 2, c->out, query_shape, NULL, 0};
  for (int i = 0; i < atoi(argv[3]); ++i) {
    check(rbcResample(context, &value_tensor, &time_tensor, &query_tensor, &out_tensor, NULL,
                      &resample));
  }
  check(rbcContextDestroy(context));
  return EXIT_SUCCESS;
}
