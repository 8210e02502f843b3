/*
 * A program that loads the library by itself, unloads it while a context's threads live, and loads
 * it again: their code has to stay.
 */
#define _POSIX_C_SOURCE 200809L /* nanosleep */

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
  return dlclose(library) == 0 ? 0 : 7;
}
