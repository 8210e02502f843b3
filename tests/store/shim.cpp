// The linker sends the store's system calls through these functions (-Wl,--wrap=NAME).
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

shim::Plan plan;
shim::Seen* seen = nullptr;
pthread_t counted;  // the thread that touches locks is not counted: it depends on the time

// Whether this call fails; errno is then set.
bool fails(const char* function) {
  if (seen == nullptr || pthread_equal(counted, pthread_self()) == 0) return false;
  if (++seen->calls != plan.target) return false;
  seen->fired = true;
  seen->function = function;
  if (plan.error == 0) {
    kill(getpid(), SIGKILL);
    pause();
  }
  errno = plan.error;
  return true;
}

bool refuses(bool always, int error) {
  if (seen == nullptr || !always) return false;
  errno = error;
  return true;
}

}  // namespace

namespace shim {

void begin(const Plan& new_plan, Seen* where) {
  plan = new_plan;
  counted = pthread_self();
  *where = {};
  seen = where;
}
void end() { seen = nullptr; }

}  // namespace shim

#define RBC_SHIM(result, name, parameters, arguments) \
  result __real_##name parameters;                    \
  result __wrap_##name parameters {                   \
    if (fails(#name)) return -1;                      \
    return __real_##name arguments;                   \
  }

extern "C" {

RBC_SHIM(int, mkdir, (const char* path, mode_t mode), (path, mode))
RBC_SHIM(int, mkdirat, (int folder, const char* path, mode_t mode), (folder, path, mode))
RBC_SHIM(int, fstat, (int file, struct stat* status), (file, status))
RBC_SHIM(int, fstatat, (int folder, const char* path, struct stat* status, int flags),
         (folder, path, status, flags))
RBC_SHIM(int, lstat, (const char* path, struct stat* status), (path, status))
RBC_SHIM(int, fstatvfs, (int file, struct statvfs* space), (file, space))
RBC_SHIM(ssize_t, pread, (int file, void* data, size_t bytes, off_t at), (file, data, bytes, at))
RBC_SHIM(ssize_t, pwrite, (int file, const void* data, size_t bytes, off_t at),
         (file, data, bytes, at))
RBC_SHIM(int, fallocate, (int file, int mode, off_t at, off_t bytes), (file, mode, at, bytes))
RBC_SHIM(int, ftruncate, (int file, off_t bytes), (file, bytes))
RBC_SHIM(int, fchmod, (int file, mode_t mode), (file, mode))
RBC_SHIM(int, fsync, (int file), (file))
RBC_SHIM(int, linkat, (int from, const char* path, int to, const char* name, int flags),
         (from, path, to, name, flags))
RBC_SHIM(int, unlinkat, (int folder, const char* name, int flags), (folder, name, flags))
RBC_SHIM(int, renameat, (int from, const char* path, int to, const char* name),
         (from, path, to, name))
RBC_SHIM(int, faccessat, (int folder, const char* path, int mode, int flags),
         (folder, path, mode, flags))
RBC_SHIM(int, futimens, (int file, const struct timespec times[2]), (file, times))

int __real_flock(int file, int operation);
int __wrap_flock(int file, int operation) {
  if (refuses(plan.no_locks, ENOLCK) || fails("flock")) return -1;
  return __real_flock(file, operation);
}

int __real_open(const char* path, int flags, ...);
int __wrap_open(const char* path, int flags, ...) {
  return fails("open") ? -1 : __real_open(path, flags);  // only folders: no mode
}

int __real_openat(int folder, const char* path, int flags, ...);
int __wrap_openat(int folder, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const auto mode = static_cast<mode_t>(va_arg(rest, int));
  va_end(rest);
  const bool unnamed = (flags & O_TMPFILE) == O_TMPFILE;
  if (refuses(plan.no_unnamed && unnamed, EOPNOTSUPP) || fails("openat")) return -1;
  return __real_openat(folder, path, flags, mode);
}

void* __real_mmap(void* at, size_t bytes, int protection, int flags, int file, off_t begin);
void* __wrap_mmap(void* at, size_t bytes, int protection, int flags, int file, off_t begin) {
  if (file >= 0 && fails("mmap")) return MAP_FAILED;
  return __real_mmap(at, bytes, protection, flags, file, begin);
}

// Only renameat2.
long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...) {
  va_list rest;
  va_start(rest, number);
  const int from = va_arg(rest, int);
  const char* path = va_arg(rest, const char*);
  const int to = va_arg(rest, int);
  const char* name = va_arg(rest, const char*);
  const unsigned flags = va_arg(rest, unsigned);
  va_end(rest);
  if (refuses(plan.no_replace, EINVAL) || fails("renameat2")) return -1;
  return __real_syscall(number, from, path, to, name, flags);
}
}
