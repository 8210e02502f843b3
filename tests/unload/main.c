/*
 * A program that loads the library by itself, unloads it while a context's threads live, and loads
 * it again: their code has to stay. And then a thousand times more, which may leave nothing behind.
 */
#define _POSIX_C_SOURCE 200809L /* nanosleep, fileno */

#include <dlfcn.h>
#include <robocache/context.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

typedef rbcStatus_t (*Create)(const rbcContextParams*, rbcContext_t*);
typedef rbcStatus_t (*Use)(rbcContext_t);

/* ISO C has no cast from dlsym's void* to a function. */
static void* library;
static int find(const char* name, void* function) {
  void* found = dlsym(library, name);
  memcpy(function, &found, sizeof found);
  return found != NULL;
}

/* A new context whose threads run; null on failure. */
static rbcContext_t start(const char* path) {
  Create create = NULL;
  Use warm_up = NULL;
  rbcContext_t context = NULL;
  rbcContextParams params = rbcContextParamsInit();
  params.backend = RBC_BACKEND_CPU;
  params.num_threads = 4;
  library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) fprintf(stderr, "%s\n", dlerror());
  if (library == NULL || !find("rbcContextCreate", &create) || !find("rbcContextWarmUp", &warm_up))
    return NULL;
  if (create(&params, &context) != RBC_STATUS_SUCCESS) return NULL;
  return warm_up(context) == RBC_STATUS_SUCCESS ? context : NULL;
}

/* Lines of a file of /proc: mappings, say. */
static int lines(const char* path) {
  int found = 0, c;
  FILE* file = fopen(path, "r");
  if (file == NULL) return -1;
  while ((c = fgetc(file)) != EOF) found += c == '\n';
  fclose(file);
  return found;
}

/* Loads, uses and unloads it: 0 if all went well. */
static int cycle(const char* path) {
  Use destroy = NULL;
  rbcContext_t context = start(path);
  if (context == NULL || !find("rbcContextDestroy", &destroy)) return 1;
  return destroy(context) != RBC_STATUS_SUCCESS || dlclose(library) != 0;
}

/* A descriptor that is open now is the lowest one that was free. */
static int nextDescriptor(void) {
  FILE* file = fopen("/dev/null", "r");
  const int next = file == NULL ? -1 : fileno(file);
  if (file != NULL) fclose(file);
  return next;
}

static int manyTimes(const char* path, int times) {
  int n, mappings = 0, descriptor = 0;
  for (n = 0; n < times; ++n) {
    if (cycle(path) != 0) return 1;
    if (n == 20) { /* what is made once is made: stacks are kept for the next threads */
      mappings = lines("/proc/self/maps");
      descriptor = nextDescriptor();
    }
  }
  if (nextDescriptor() != descriptor) return 2;
  n = lines("/proc/self/maps");
  if (n > mappings + 8) fprintf(stderr, "%d mappings have become %d\n", mappings, n);
  return n > mappings + 8 ? 3 : 0;
}

int main(int count, char** arguments) {
  const struct timespec a_while = {0, 100000000};
  Use destroy = NULL;
  rbcContext_t first, second;
  if (count != 2) return 2;
  first = start(arguments[1]);
  if (first == NULL || dlclose(library) != 0) return 3;
  nanosleep(&a_while, NULL); /* the threads go to sleep, or run into what is no longer there */
  second = start(arguments[1]);
  if (second == NULL || !find("rbcContextDestroy", &destroy)) return 4;
  if (destroy(first) != RBC_STATUS_SUCCESS) return 5; /* which wakes them up */
  if (destroy(second) != RBC_STATUS_SUCCESS) return 6;
  if (dlclose(library) != 0) return 7;
  return manyTimes(arguments[1], 1000) == 0 ? 0 : 8;
}
