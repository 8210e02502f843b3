// An open store: its folders, and the names of entries in them.
//
//   v1/e/ab/ab12.../entry.rbi, about.json, 000000.rbs    v1/tmp    v1/locks    v1/used
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "files.h"
#include "lock.h"
#include "robocache/store.h"

namespace rbc::store {

struct StoreOptions {
  bool read_only = false;
  int32_t verify = RBC_STORE_VERIFY_OPEN;
  int32_t access = RBC_STORE_ACCESS_MAP;  // AUTO is resolved
  int64_t min_free = -1;
  Owners owners;
};

class StoreRoot {
 public:
  StoreRoot(const std::string& path, StoreOptions options);

  const StoreOptions& options() const noexcept { return options_; }
  const std::string& shown() const noexcept { return shown_; }  // the folder of the version
  int folder() const noexcept { return folder_.get(); }
  int temporary() const noexcept { return temporary_.get(); }
  LockFolders lockFolders() const { return {locks_.get(), temporary_.get(), shown_ + "/locks"}; }
  // Fails with UNSUPPORTED if the store is open for reading only.
  void requireWritable(const char* what) const;

  // "e/ab/ab12..." below the folder.
  static std::string entryPath(const std::string& key);
  // The folder of an entry; an empty descriptor if it is absent.
  Fd openEntry(const std::string& key) const;
  Fd makeEntry(const std::string& key) const;

  // Notes that an entry is used, if an hour has passed since.
  void touchUsed(const std::string& key) const noexcept;
  // The time of the last use; 0 if it is not known.
  int64_t lastUse(const std::string& key) const noexcept;

  // Moves a file that was found damaged out of the way, under the lock of its segment, unless its
  // name belongs to another file by now. Keeps the thread's last error.
  void setAside(const std::string& key, const char* name, uint64_t inode) const noexcept;

 private:
  void open(const std::string& path);
  void moveAside(const std::string& key, const char* name, uint64_t inode) const;

  StoreOptions options_;
  std::string shown_;
  Fd folder_;
  Fd temporary_;  // empty if the store may only be read
  Fd locks_;
  Fd used_;
};

using StorePointer = std::shared_ptr<const StoreRoot>;

// The name of a segment's lock. Number -1 is the lock of the index.
std::string lockName(const std::string& key, int64_t segment);

}  // namespace rbc::store
