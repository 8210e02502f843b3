// Files below the store's folder: opened without following links, written whole or not at all.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "robocache/store.h"

namespace rbc::store {

// A file descriptor that is closed at the end.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int number) noexcept : number_(number) {}
  Fd(Fd&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Fd() { reset(); }
  void reset() noexcept;
  int release() noexcept { return std::exchange(number_, -1); }
  int get() const noexcept { return number_; }
  explicit operator bool() const noexcept { return number_ >= 0; }

 private:
  int number_ = -1;
};

// Fails with IO_ERROR: "store: cannot <what> <path>: <the system's text>", and a remedy for common
// errors. `error` is an errno.
[[noreturn]] void failSystem(const char* what, const std::string& path, int error);

// Users whose files count.
struct Owners {
  std::vector<uint32_t> trusted;
  bool accept(uint32_t uid) const noexcept;
};

// Fails with UNSUPPORTED unless the owner is accepted, and only owners may write.
void requireOwner(const struct stat& file, const Owners& owners, const std::string& path);

// Fails unless the folder and each folder above it is safe from other users.
void requireSafeFolders(const std::string& path, const Owners& owners);

// Creates the folders of a path that are missing, with mode 0700.
void createFolders(const std::string& path);

// Opens a folder, or a regular file for reading, that is no link. An absent one gives an empty
// descriptor; other errors fail.
Fd openFolder(int parent, const char* name, const std::string& shown);
Fd openFile(int folder, const char* name, const std::string& shown);
// Opens a folder and creates it if it is absent.
Fd makeFolder(int parent, const char* name, const std::string& shown);

struct stat statusOf(int file, const std::string& shown);

void writeAll(int file, const void* data, size_t bytes, uint64_t at, const std::string& shown);
// Returns false if the file ends before.
bool readAll(int file, void* data, size_t bytes, uint64_t at, const std::string& shown);

// A file without a name in a folder; if it is never published, nothing is left of it.
class NewFile {
 public:
  // `temporary` is the store's folder for file systems that only have files with names.
  NewFile(int folder, int temporary, std::string shown);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  int get() const noexcept { return file_.get(); }
  // Reserves the bytes, if the file system can; fails if it is full or would have less left than
  // `min_free` bytes; -1: see rbcStoreParams.
  void allocate(uint64_t bytes, int64_t min_free) const;
  // Puts the bytes on the disk and gives the file its name. Returns false if the name is taken.
  bool publish(const char* name);

 private:
  int folder_;
  int temporary_;
  std::string shown_;  // the folder, for messages
  std::string name_;   // in the temporary folder; "": it has none
  Fd file_;
};

// Writes a small file; nothing happens if the name is taken.
void publishBytes(int folder, int temporary, const char* name, const void* data, size_t bytes,
                  int64_t min_free, const std::string& shown);

// Nanoseconds since 1970 of a file's last change.
int64_t changeTime(const struct stat& file) noexcept;
// The present, by the clock that stamps files of this folder.
int64_t fileSystemTime(int folder, int temporary, const std::string& shown);

// The names in a folder, without "." and ".."; an absent folder has none.
std::vector<std::string> namesIn(int parent, const char* name, const std::string& shown);

// "0123...": the key as hexadecimal digits.
std::string keyText(const uint8_t* key);
bool isKeyText(const std::string& text) noexcept;
// "000000.rbs"
std::string segmentName(int64_t segment);
// The number, or -1 if the name is not that of a segment.
int64_t segmentNumber(const std::string& name) noexcept;

}  // namespace rbc::store
