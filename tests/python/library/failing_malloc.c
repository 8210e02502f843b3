/*
 * Memory that gives out when told to, for LD_PRELOAD: of the thread that calls fail_allocations,
 * the allocations `first`, ... `first + count - 1` from now on get null.
 */
#include <errno.h>
#include <stddef.h>

extern void* __libc_malloc(size_t size);
extern void* __libc_calloc(size_t count, size_t size);
extern void* __libc_realloc(void* pointer, size_t size);
extern void* __libc_memalign(size_t alignment, size_t size);

static __thread long before, refused_left, refused __attribute__((tls_model("initial-exec")));

void fail_allocations(long first, long count) {
  before = first;
  refused_left = count;
  refused = 0;
}

/* Return the number of allocations that failed; later ones succeed. */
long stop_failing(void) {
  refused_left = 0;
  return refused;
}

static int refuse(void) {
  if (refused_left <= 0 || before-- > 0) return 0;
  --refused_left;
  ++refused;
  errno = ENOMEM;
  return 1;
}

void* malloc(size_t size) { return refuse() ? NULL : __libc_malloc(size); }
void* calloc(size_t count, size_t size) { return refuse() ? NULL : __libc_calloc(count, size); }
void* realloc(void* pointer, size_t size) {
  return refuse() ? NULL : __libc_realloc(pointer, size);
}
void* memalign(size_t alignment, size_t size) {
  return refuse() ? NULL : __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void** pointer, size_t alignment, size_t size) {
  void* made = memalign(alignment, size);
  if (made == NULL) return ENOMEM;
  *pointer = made;
  return 0;
}
