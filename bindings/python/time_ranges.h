/*
 * Cheap checks for times that are probably wrong, made along with a call: no query is in the range
 * of its samples (milliseconds instead of nanoseconds), or times of float32 are too large to differ
 * (seconds since the epoch).
 *
 * The check reads the first and the last time and query of each row, up to the first row that
 * decides. It reads all queries only if no row decides. It reads only CPU memory, since other
 * memory would require waiting. Indexes are bounded here, because another thread may write them
 * after the library has read them.
 */
#ifndef ROBOCACHE_BINDINGS_TIME_RANGES_H
#define ROBOCACHE_BINDINGS_TIME_RANGES_H

#include <Python.h>
#include <math.h>
#include <robocache/robocache.h>
#include <stdint.h>
#include <string.h>

/* Converts times to integers of the same order, and back: i64 is unchanged, floats become bits. */
static int64_t orderedBits(int64_t bits) { return bits < 0 ? INT64_MIN - bits : bits; }

/* A tensor of up to two dimensions, [rows, count]. */
typedef struct TimeRows {
  const char* data;
  int64_t stride;
  int64_t row_stride;
  int64_t count;
  int64_t rows; /* -1: one row for all */
  int32_t size;
  int is_float;
  int is_there; /* the tensor was passed; the pointer of an empty tensor may be null */
} TimeRows;

static TimeRows timeRowsOf(const rbcTensor* tensor) {
  TimeRows given = {NULL, 0, 0, 0, -1, 0, 0, 0};
  if (tensor == NULL || tensor->ndim < 1) return given;
  const int last = tensor->ndim - 1;
  given.is_there = 1;
  given.size = tensor->dtype.bits / 8;
  given.is_float = tensor->dtype.code == RBC_DTYPE_FLOAT;
  given.data = (const char*)tensor->data + tensor->byte_offset;
  given.count = tensor->shape[last];
  given.stride = tensor->strides != NULL ? tensor->strides[last] : 1;
  if (last > 0) {
    given.rows = tensor->shape[0];
    given.row_stride = tensor->strides != NULL ? tensor->strides[0] : given.count;
  }
  return given;
}

static double floatAt(const TimeRows* given, int64_t row, int64_t i) {
  const char* from = given->data + (row * given->row_stride + i * given->stride) * given->size;
  float narrow;
  double wide;
  if (given->size == 8) {
    memcpy(&wide, from, sizeof wide);
    return wide;
  }
  memcpy(&narrow, from, sizeof narrow);
  return (double)narrow;
}

static int64_t integerAt(const TimeRows* given, int64_t row, int64_t i) {
  const char* from = given->data + (row * given->row_stride + i * given->stride) * given->size;
  int32_t narrow;
  int64_t wide;
  if (given->size == 8) {
    memcpy(&wide, from, sizeof wide);
    return wide;
  }
  memcpy(&narrow, from, sizeof narrow);
  return narrow;
}

/* A shift of times: a clock offset, or a tolerance. */
typedef struct Shift {
  double real;
  int64_t ticks;
} Shift;

/* Returns 0 if the time is NaN. */
static int orderAt(const TimeRows* given, int64_t row, int64_t i, Shift shift, int64_t* order) {
  if (!given->is_float) {
    const int64_t time = integerAt(given, row, i);
    if (__builtin_add_overflow(time, shift.ticks, order))
      *order = shift.ticks < 0 ? INT64_MIN : INT64_MAX;
    return 1;
  }
  const double time = floatAt(given, row, i) + shift.real;
  int64_t bits;
  memcpy(&bits, &time, sizeof bits);
  *order = orderedBits(bits);
  return !isnan(time);
}

static PyObject* timeObject(const TimeRows* given, int64_t order) {
  if (!given->is_float) return PyLong_FromLongLong(order);
  const int64_t bits = orderedBits(order);
  double time;
  memcpy(&time, &bits, sizeof time);
  return PyFloat_FromDouble(time);
}

typedef struct Range {
  int64_t low;
  int64_t high;
} Range;

static const Range kNoRange = {INT64_MAX, INT64_MIN};

static void include(Range* range, int64_t order) {
  if (order < range->low) range->low = order;
  if (order > range->high) range->high = order;
}

/* One stream and the queries of its call. */
typedef struct TimedCall {
  TimeRows times;
  TimeRows queries;
  TimeRows lengths;
  TimeRows query_lengths;
  TimeRows batch_offsets;
  double tolerance;
  Shift shift; /* of the samples, to the clock of the queries */
} TimedCall;

static int64_t boundedAt(const TimeRows* indexes, int64_t row, int64_t most) {
  if (!indexes->is_there) return most;
  const int64_t index = row < indexes->count ? integerAt(indexes, 0, row) : 0;
  return index < 0 ? 0 : index > most ? most : index;
}

static int64_t rowsOf(const TimedCall* call) {
  if (call->batch_offsets.is_there) return call->batch_offsets.count - 1;
  if (call->times.rows >= 0) return call->times.rows;
  if (call->queries.rows >= 0) return call->queries.rows;
  if (call->lengths.is_there) return call->lengths.count;
  return call->query_lengths.is_there ? call->query_lengths.count : 1;
}

/* Finds the range of a row's times. Returns 0 if the row has fewer than two times. */
static int samplesOf(const TimedCall* call, int64_t row, int64_t* begin, int64_t* end) {
  const TimeRows* offsets = &call->batch_offsets;
  if (offsets->is_there) {
    *begin = boundedAt(offsets, row, call->times.count);
    *end = boundedAt(offsets, row + 1, call->times.count);
  } else {
    *begin = 0;
    *end = boundedAt(&call->lengths, row, call->times.count);
  }
  return *end - *begin >= 2;
}

/* Finds the range that the queries of a row may have. Returns 0 if the row has no range. */
static int rangeOf(const TimedCall* call, int64_t row, Range* range) {
  int64_t begin, end;
  if (!samplesOf(call, row, &begin, &end)) return 0;
  const int64_t times_row = call->batch_offsets.is_there ? 0 : row;
  Shift low = call->shift, high = call->shift;
  if (isfinite(call->tolerance)) {
    const int64_t ticks = call->tolerance < 0x1p63 ? (int64_t)call->tolerance : INT64_MAX;
    low.real -= call->tolerance;
    high.real += call->tolerance;
    if (__builtin_sub_overflow(low.ticks, ticks, &low.ticks)) low.ticks = INT64_MIN;
    if (__builtin_add_overflow(high.ticks, ticks, &high.ticks)) high.ticks = INT64_MAX;
  }
  return orderAt(&call->times, times_row, begin, low, &range->low) &&
         orderAt(&call->times, times_row, end - 1, high, &range->high);
}

static int overlap(Range a, Range b) { return a.low <= b.high && b.low <= a.high; }

static const Shift kNoShift = {0, 0};

/* Returns 1 if the first and the last query of a row show that a query is in range. */
static int settledByEnds(const TimedCall* call, int64_t rows) {
  for (int64_t row = 0; row < rows; ++row) {
    Range samples, queries = kNoRange;
    const int64_t count = boundedAt(&call->query_lengths, row, call->queries.count);
    if (count < 1 || !rangeOf(call, row, &samples)) continue;
    int64_t order;
    if (orderAt(&call->queries, row, 0, kNoShift, &order)) include(&queries, order);
    if (orderAt(&call->queries, row, count - 1, kNoShift, &order)) include(&queries, order);
    if (overlap(samples, queries)) return 1;
  }
  return 0;
}

/* Returns 1 if a query is in its row's range or no row has both ranges. Else writes both ranges. */
static int someInRange(const TimedCall* call, int64_t rows, Range* samples, Range* queries) {
  *samples = *queries = kNoRange;
  for (int64_t row = 0; row < rows; ++row) {
    Range own;
    const int64_t count = boundedAt(&call->query_lengths, row, call->queries.count);
    if (count < 1 || !rangeOf(call, row, &own)) continue;
    include(samples, own.low);
    include(samples, own.high);
    for (int64_t i = 0; i < count; ++i) {
      int64_t order;
      if (!orderAt(&call->queries, row, i, kNoShift, &order)) continue;
      if (order >= own.low && order <= own.high) return 1;
      include(queries, order);
    }
  }
  return samples->low > samples->high || queries->low > queries->high;
}

/* Returns 1 if the first row with times has float32 times that are coarser than their period. */
static int tooCoarse(const TimedCall* call, int64_t rows, double* last, double* apart) {
  int64_t begin, end;
  int64_t row = 0;
  while (row < rows && !samplesOf(call, row, &begin, &end)) ++row;
  if (row >= rows) return 0;
  const int64_t times_row = call->batch_offsets.is_there ? 0 : row;
  const double first = floatAt(&call->times, times_row, begin);
  *last = floatAt(&call->times, times_row, end - 1);
  if (!(fabs(*last) >= 0x1p24) || isinf(*last)) return 0;
  *apart = ldexp(1, ilogb(*last) - 23);
  return *last - first < (double)(end - 1 - begin) * *apart;
}

/*
 * Returns 1 if the first query is in the range of the first row, the usual case. For 64-bit times
 * without lengths, batch_offsets and NaN. 0 means unknown.
 */
static int plainlyInRange(const rbcTensor* times, const rbcTensor* query_times) {
  if (times->ndim < 1 || query_times->ndim < 1) return 0;
  const int last = times->ndim - 1;
  const int64_t count = times->shape[last];
  for (int i = 0; i < last; ++i) {
    if (times->shape[i] < 1) return 0;
  }
  for (int i = 0; i < query_times->ndim; ++i) {
    if (query_times->shape[i] < 1) return 0;
  }
  if (count < 2 || times->dtype.bits != 64) return 0;
  const int64_t stride = times->strides != NULL ? times->strides[last] : 1;
  const char* first = (const char*)times->data + times->byte_offset;
  const char* query = (const char*)query_times->data + query_times->byte_offset;
  const char* end = first + (count - 1) * stride * 8;
  if (times->dtype.code == RBC_DTYPE_FLOAT) {
    double low, high, at;
    memcpy(&low, first, sizeof low);
    memcpy(&high, end, sizeof high);
    memcpy(&at, query, sizeof at);
    return at >= low && at <= high;
  }
  int64_t low, high, at;
  memcpy(&low, first, sizeof low);
  memcpy(&high, end, sizeof high);
  memcpy(&at, query, sizeof at);
  return at >= low && at <= high;
}

/*
 * Returns a tuple for a warning, or NULL without an error: (stream, "range", first and last time of
 * the samples, first and last time of the queries) or (stream, "float32", last time, its distance
 * to the next float).
 */
static PyObject* odditiesOf(int stream, const rbcTensor* times, const rbcTensor* query_times,
                            const rbcResampleParams* params, const rbcTensor* query_lengths,
                            Shift shift) {
  if (times == NULL || query_times == NULL || times->device.type != RBC_DEVICE_CPU ||
      query_times->device.type != RBC_DEVICE_CPU)
    return NULL;
  const int whole = params == NULL || (params->lengths == NULL && params->batch_offsets == NULL);
  const int moved = shift.real != 0 || shift.ticks != 0;
  if (whole && !moved && query_lengths == NULL && plainlyInRange(times, query_times)) return NULL;
  TimedCall call = {timeRowsOf(times),
                    timeRowsOf(query_times),
                    timeRowsOf(NULL),
                    timeRowsOf(query_lengths),
                    timeRowsOf(NULL),
                    INFINITY,
                    shift};
  if (params != NULL) {
    call.lengths = timeRowsOf(params->lengths);
    call.batch_offsets = timeRowsOf(params->batch_offsets);
    call.tolerance = params->tolerance;
  }
  const int64_t rows = rowsOf(&call);
  double last, apart;
  if (call.times.is_float && call.times.size == 4 && tooCoarse(&call, rows, &last, &apart))
    return Py_BuildValue("isdd", stream, "float32", last, apart);
  Range samples, queries;
  if (settledByEnds(&call, rows) || someInRange(&call, rows, &samples, &queries)) return NULL;
  return Py_BuildValue("isNNNN", stream, "range", timeObject(&call.times, samples.low),
                       timeObject(&call.times, samples.high),
                       timeObject(&call.queries, queries.low),
                       timeObject(&call.queries, queries.high));
}

static PyObject* odditiesOfResample(const rbcTensor* times, const rbcTensor* query_times,
                                    const rbcResampleParams* params) {
  return odditiesOf(-1, times, query_times, params, params != NULL ? params->query_lengths : NULL,
                    kNoShift);
}

/* Returns the warning of the first stream that has one. */
static PyObject* odditiesOfFuse(const rbcFuseStream* streams, int32_t num_streams,
                                const rbcTensor* query_times, const rbcFuseParams* params) {
  PyObject* told = NULL;
  for (int32_t n = 0; n < num_streams && told == NULL && !PyErr_Occurred(); ++n) {
    const Shift shift = {streams[n].clock_offset, streams[n].clock_offset_ticks};
    told = odditiesOf(n, streams[n].times, query_times, streams[n].params,
                      params != NULL ? params->query_lengths : NULL, shift);
  }
  return told;
}

#endif /* ROBOCACHE_BINDINGS_TIME_RANGES_H */
