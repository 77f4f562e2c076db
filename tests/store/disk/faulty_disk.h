// FaultyDisk behaves as badly as disks may: writes are lost, torn at sectors and reordered by a
// crash unless they were synced, calls do less than was asked or fail, space runs out, bits flip,
// and a sync that failed is never owned up to again. All by seed.
//
// The disk outlives its layers: a layer is one process that uses it. Its files may be used by many
// threads; everything else while none does.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "store/disk/file_layer.h"

namespace pagoda::store {

struct DiskFaults {
  double read_error = 0;  // the chance of each call
  double write_error = 0;
  double sync_error = 0;
  double short_transfer = 0;
  bool is_full = false;       // no write may make a file take more sectors
  bool is_read_only = false;  // every change is refused
};

class FaultyDisk {
 public:
  explicit FaultyDisk(std::uint64_t seed) : seed_(seed) {}

  std::unique_ptr<FileLayer> layer();

  DiskFaults faults;
  // Every call that changes something counts one down; at 0 that call is cut short and every later
  // one fails, until crash(). Negative: never.
  std::int64_t changes_until_crash = -1;
  bool is_dead() const { return is_dead_; }

  // The host loses power: each sector that was not synced keeps any of its versions.
  void crash();
  // Flips a bit of a sector that was once written; false: there is none.
  bool flip_bit();
  // Flips a bit of the slab at an offset.
  void damage_slab(std::size_t offset);
  // Cuts a file as a broken file system might.
  void truncate(const std::string& name, std::uint64_t bytes);

  std::uint64_t bytes() const;  // bytes of all files
  std::uint64_t changes() const { return changes_; }
  // True: a sector of any file, as synced or as cached, holds these bytes.
  bool holds(const std::string& bytes) const;

 private:
  friend class FaultyFile;
  friend class FaultyLayer;
  static constexpr std::size_t kSectorBytes = 512;
  using Sector = std::vector<std::byte>;

  struct Content {
    std::vector<std::byte> cached;                        // the bytes that reads see
    std::vector<std::byte> synced;                        // the bytes that a crash leaves, but for
    std::map<std::size_t, std::vector<Sector>> versions;  // the sectors written since
    bool is_name_synced = false;
    std::map<std::size_t, bool> sectors_taken;
  };

  std::uint64_t draw(std::uint64_t below);
  bool chance(double probability);
  // Counts a change; true: the disk crashes at this one.
  bool crashes_now();
  IoResult read(Content& file, std::uint64_t offset, std::span<std::byte> bytes);
  IoResult write(Content& file, std::uint64_t offset, std::span<const std::byte> bytes);
  ByteRange next_data(const Content& file, std::uint64_t offset);
  void make_hole(Content& file, std::uint64_t offset, std::size_t bytes);
  int sync(Content& file);
  int resize(Content& file, std::uint64_t bytes);
  void settle(Content& file);

  std::mutex mutex_;  // guards reads and writes
  std::uint64_t seed_;
  std::uint64_t draws_ = 0;
  std::uint64_t changes_ = 0;
  bool is_dead_ = false;
  std::map<std::string, Content> files_;
};

}  // namespace pagoda::store
