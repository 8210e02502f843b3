/*
 * Memory of large results. The memory of a deleted result is kept for the next one: each fresh page
 * of the system costs a fault and a clearing, which can take longer than writing the result.
 *
 * A block is a header of one cache line, followed by the data. Idle blocks are in one list with the
 * last used block first, since its memory is the most likely to be in the caches.
 */
#ifndef ROBOCACHE_BINDINGS_WARM_MEMORY_H
#define ROBOCACHE_BINDINGS_WARM_MEMORY_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define WARM_LEAST ((size_t)1 << 20) /* smaller blocks use malloc, which keeps them warm */
#define WARM_HUGE_PAGE ((size_t)2 << 20)
#define WARM_HEADER ((size_t)64)

typedef struct WarmBlock {
  size_t bytes;  /* including the header */
  int is_mapped; /* else from malloc */
  struct WarmBlock* next;
} WarmBlock;

/* All members except `mutex` are guarded by it. */
static struct {
  pthread_mutex_t mutex;
  WarmBlock* idle;
  size_t idle_bytes;
  size_t limit; /* for idle_bytes */
} warm = {PTHREAD_MUTEX_INITIALIZER, NULL, 0, (size_t)256 << 20};

static void unmapWarmBlocks(WarmBlock* first) {
  while (first != NULL) {
    WarmBlock* next = first->next;
    munmap(first, first->bytes);
    first = next;
  }
}

/* With the mutex held: removes blocks, the longest idle first, until `most` bytes are left. */
static WarmBlock* takeIdleAbove(size_t most) {
  WarmBlock** at = &warm.idle;
  size_t kept = 0;
  while (*at != NULL && kept + (*at)->bytes <= most) {
    kept += (*at)->bytes;
    at = &(*at)->next;
  }
  WarmBlock* rest = *at;
  *at = NULL;
  warm.idle_bytes = kept;
  return rest;
}

static size_t idleWarmMemory(void) {
  pthread_mutex_lock(&warm.mutex);
  const size_t bytes = warm.idle_bytes;
  pthread_mutex_unlock(&warm.mutex);
  return bytes;
}

/* Frees idle blocks down to `most` bytes; returns the number of bytes freed. */
static size_t releaseWarmMemory(size_t most) {
  pthread_mutex_lock(&warm.mutex);
  const size_t before = warm.idle_bytes;
  WarmBlock* rest = takeIdleAbove(most);
  const size_t after = warm.idle_bytes;
  pthread_mutex_unlock(&warm.mutex);
  unmapWarmBlocks(rest);
  return before - after;
}

static size_t limitWarmMemory(size_t limit) {
  pthread_mutex_lock(&warm.mutex);
  warm.limit = limit;
  pthread_mutex_unlock(&warm.mutex);
  return releaseWarmMemory(limit);
}

/* In a forked child the idle blocks are pages of the parent, which a write would copy. */
static void lockWarmMemory(void) { pthread_mutex_lock(&warm.mutex); }
static void unlockWarmMemory(void) { pthread_mutex_unlock(&warm.mutex); }
static void forgetWarmMemory(void) {
  WarmBlock* all = takeIdleAbove(0);
  pthread_mutex_unlock(&warm.mutex);
  unmapWarmBlocks(all);
}

static void watchForksOnce(void) {
  pthread_atfork(lockWarmMemory, unlockWarmMemory, forgetWarmMemory);
}

/* Results of similar size share blocks: eight sizes from each power of two to the next. */
static size_t roundedWarmSize(size_t bytes) {
  size_t step = WARM_LEAST / 8;
  while (step <= bytes / 16) step *= 2;
  return (bytes + step - 1) / step * step;
}

/* Uses huge pages if the system has them and the block spans several. */
static WarmBlock* mapWarmBlock(size_t bytes) {
  const int huge = bytes >= 2 * WARM_HUGE_PAGE;
  const size_t more = huge ? WARM_HUGE_PAGE : 0;
  char* mapped =
      (char*)mmap(NULL, bytes + more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return NULL;
  char* begin = mapped;
  if (huge) {
    const size_t ahead = (size_t)(-(uintptr_t)mapped) % WARM_HUGE_PAGE;
    begin = mapped + ahead;
    if (ahead > 0) munmap(mapped, ahead);
    if (ahead < more) munmap(begin + bytes, more - ahead);
    madvise(begin, bytes, MADV_HUGEPAGE);
  }
  WarmBlock* block = (WarmBlock*)begin;
  block->bytes = bytes;
  block->is_mapped = 1;
  return block;
}

static WarmBlock* takeWarmBlock(size_t bytes) {
  pthread_mutex_lock(&warm.mutex);
  WarmBlock** at = &warm.idle;
  while (*at != NULL && (*at)->bytes != bytes) at = &(*at)->next;
  WarmBlock* block = *at;
  if (block != NULL) {
    *at = block->next;
    warm.idle_bytes -= bytes;
  }
  pthread_mutex_unlock(&warm.mutex);
  return block;
}

/* Returns memory aligned to 64 bytes with any contents; null if no memory is available. */
static void* allocateWarm(size_t bytes) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (bytes > SIZE_MAX / 4) return NULL;
  if (bytes < WARM_LEAST) {
    const size_t all = (WARM_HEADER + bytes + WARM_HEADER - 1) / WARM_HEADER * WARM_HEADER;
    WarmBlock* block = (WarmBlock*)aligned_alloc(WARM_HEADER, all);
    if (block == NULL) return NULL;
    block->bytes = all;
    block->is_mapped = 0;
    return (char*)block + WARM_HEADER;
  }
  pthread_once(&once, watchForksOnce);
  const size_t rounded = roundedWarmSize(WARM_HEADER + bytes);
  WarmBlock* block = takeWarmBlock(rounded);
  if (block == NULL) block = mapWarmBlock(rounded);
  if (block == NULL && releaseWarmMemory(0) > 0) block = mapWarmBlock(rounded);
  return block == NULL ? NULL : (char*)block + WARM_HEADER;
}

static void freeWarm(void* data) {
  if (data == NULL) return;
  WarmBlock* block = (WarmBlock*)((char*)data - WARM_HEADER);
  if (!block->is_mapped) {
    free(block);
    return;
  }
  pthread_mutex_lock(&warm.mutex);
  block->next = warm.idle;
  warm.idle = block;
  WarmBlock* rest = takeIdleAbove(warm.limit);
  pthread_mutex_unlock(&warm.mutex);
  unmapWarmBlocks(rest);
}

static void* reallocateWarm(void* data, size_t bytes) {
  void* moved = allocateWarm(bytes);
  if (data == NULL || moved == NULL) return moved;
  const WarmBlock* block = (const WarmBlock*)((char*)data - WARM_HEADER);
  const size_t held = block->bytes - WARM_HEADER;
  memcpy(moved, data, held < bytes ? held : bytes);
  freeWarm(data);
  return moved;
}

#endif /* ROBOCACHE_BINDINGS_WARM_MEMORY_H */
