#include "store/disk/faulty_disk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/random.h"

namespace pagoda::store {

class FaultyFile final : public DiskFile {
 public:
  FaultyFile(FaultyDisk& disk, FaultyDisk::Content& content) : disk_(disk), content_(content) {}
  IoResult read_at(std::uint64_t offset, std::span<std::byte> bytes) override {
    return disk_.read(content_, offset, bytes);
  }
  IoResult write_at(std::uint64_t offset, std::span<const std::byte> bytes) override {
    return disk_.write(content_, offset, bytes);
  }
  int sync() override { return disk_.sync(content_); }
  int resize(std::uint64_t bytes) override { return disk_.resize(content_, bytes); }
  std::uint64_t bytes() const override { return content_.cached.size(); }
  ByteRange next_data(std::uint64_t offset) override { return disk_.next_data(content_, offset); }
  void make_hole(std::uint64_t offset, std::size_t bytes) override {
    disk_.make_hole(content_, offset, bytes);
  }

 private:
  FaultyDisk& disk_;
  FaultyDisk::Content& content_;
};

class FaultyLayer final : public FileLayer {
 public:
  explicit FaultyLayer(FaultyDisk& disk) : disk_(disk) {}
  std::string path() const override { return "/simulated"; }
  int make_folder() override { return 0; }
  int lock(bool /*shared*/) override { return 0; }
  OpenedFile open(const std::string& name, OpenMode mode) override {
    if (disk_.is_dead_) return {nullptr, EIO};
    const bool is_there = disk_.files_.contains(name);
    if (!is_there && mode == OpenMode::kReadOnly) return {nullptr, ENOENT};
    if (mode != OpenMode::kReadOnly && disk_.faults.is_read_only) return {nullptr, EROFS};
    if (!is_there && disk_.crashes_now()) return {nullptr, EIO};
    return {std::make_unique<FaultyFile>(disk_, disk_.files_[name]), 0};
  }
  std::vector<FileSize> list() override {
    std::vector<FileSize> files;
    for (const auto& [name, content] : disk_.files_) {
      files.push_back({name, content.sectors_taken.size() * FaultyDisk::kSectorBytes, 0});
    }
    return files;
  }
  int remove(const std::string& name) override { return disk_.files_.erase(name) > 0 ? 0 : ENOENT; }
  int sync_folder() override {
    if (disk_.is_dead_ || disk_.crashes_now()) return EIO;
    for (auto& [name, content] : disk_.files_) content.is_name_synced = true;
    return 0;
  }

 private:
  FaultyDisk& disk_;
};

std::unique_ptr<FileLayer> FaultyDisk::layer() { return std::make_unique<FaultyLayer>(*this); }

std::uint64_t FaultyDisk::draw(std::uint64_t below) {
  return random_bits(seed_, 77, draws_++) % below;
}

bool FaultyDisk::chance(double probability) {
  return probability > 0 && random_unit(seed_, 78, draws_++) < probability;
}

bool FaultyDisk::crashes_now() {
  ++changes_;
  if (changes_until_crash < 0) return false;
  if (changes_until_crash-- > 0) return false;
  is_dead_ = true;
  return true;
}

IoResult FaultyDisk::read(Content& file, std::uint64_t offset, std::span<std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  if (is_dead_ || chance(faults.read_error)) return {0, EIO};
  if (offset >= file.cached.size()) return {0, 0};
  std::size_t count = std::min<std::size_t>(bytes.size(), file.cached.size() - offset);
  if (count > 1 && chance(faults.short_transfer)) count = 1 + draw(count - 1);
  std::memcpy(bytes.data(), file.cached.data() + offset, count);
  return {count, 0};
}

ByteRange FaultyDisk::next_data(const Content& file, std::uint64_t offset) {
  const std::lock_guard lock(mutex_);
  auto sector = file.sectors_taken.lower_bound(offset / kSectorBytes);
  if (sector == file.sectors_taken.end()) return {UINT64_MAX, UINT64_MAX};
  ByteRange data = {std::max(offset, sector->first * kSectorBytes), 0};
  for (; sector != file.sectors_taken.end(); ++sector) {
    if (data.end != 0 && data.end != sector->first * kSectorBytes) break;
    data.end = (sector->first + 1) * kSectorBytes;
  }
  return data;
}

void FaultyDisk::make_hole(Content& file, std::uint64_t offset, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (is_dead_) return;
  // The synced bytes under a hole stay on the platter.
  for (std::size_t at = offset; at < std::min(offset + bytes, file.synced.size()); ++at) {
    if (file.synced[at] != std::byte{0}) {
      ADD_FAILURE() << "room is given back at " << at << " whose bytes are not gone";
      return;
    }
  }
  file.sectors_taken.erase(file.sectors_taken.lower_bound(offset / kSectorBytes),
                           file.sectors_taken.lower_bound((offset + bytes) / kSectorBytes));
}

IoResult FaultyDisk::write(Content& file, std::uint64_t offset, std::span<const std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  if (is_dead_) return {0, EIO};
  if (faults.is_read_only) return {0, EROFS};
  const bool crashes = crashes_now();
  if (!crashes && chance(faults.write_error)) return {0, EIO};
  std::size_t count = bytes.size();
  if (crashes || chance(faults.short_transfer)) {
    const std::size_t end = (offset + 1 + draw(count)) / kSectorBytes * kSectorBytes;
    if (end > offset) count = std::min<std::size_t>(count, end - offset);
  }
  const std::size_t first = offset / kSectorBytes;
  const std::size_t last = (offset + count - 1) / kSectorBytes;
  for (std::size_t sector = first; sector <= last; ++sector) {
    if (faults.is_full && !file.sectors_taken.contains(sector)) return {0, ENOSPC};
  }
  if (offset + count > file.cached.size()) file.cached.resize(offset + count);
  std::memcpy(file.cached.data() + offset, bytes.data(), count);
  for (std::size_t sector = first; sector <= last; ++sector) {
    file.sectors_taken[sector] = true;
    const std::size_t begin = sector * kSectorBytes;
    const std::size_t end = std::min(begin + kSectorBytes, file.cached.size());
    file.versions[sector].emplace_back(file.cached.begin() + static_cast<std::ptrdiff_t>(begin),
                                       file.cached.begin() + static_cast<std::ptrdiff_t>(end));
  }
  return crashes ? IoResult{0, EIO} : IoResult{count, 0};
}

// Each sector written since the last sync keeps the old bytes or any version of the new ones.
void FaultyDisk::settle(Content& file) {
  if (file.synced.size() != file.cached.size() && draw(2) == 0) {
    file.synced.resize(file.cached.size());
  }
  for (const auto& [sector, versions] : file.versions) {
    const std::size_t choice = draw(versions.size() + 1);
    if (choice == versions.size()) continue;
    const std::size_t begin = sector * kSectorBytes;
    const Sector& bytes = versions[choice];
    for (std::size_t i = 0; i < bytes.size() && begin + i < file.synced.size(); ++i) {
      file.synced[begin + i] = bytes[i];
    }
  }
  file.versions.clear();
}

int FaultyDisk::sync(Content& file) {
  const std::lock_guard lock(mutex_);
  if (is_dead_) return EIO;
  if (crashes_now()) return EIO;
  if (chance(faults.sync_error)) {
    settle(file);
    return EIO;
  }
  file.synced.resize(file.cached.size());
  for (const auto& [sector, versions] : file.versions) {
    const std::size_t begin = sector * kSectorBytes;
    const std::size_t end = std::min(begin + kSectorBytes, file.cached.size());
    std::copy(file.cached.begin() + static_cast<std::ptrdiff_t>(begin),
              file.cached.begin() + static_cast<std::ptrdiff_t>(std::max(begin, end)),
              file.synced.begin() + static_cast<std::ptrdiff_t>(begin));
  }
  file.versions.clear();
  return 0;
}

int FaultyDisk::resize(Content& file, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (is_dead_) return EIO;
  if (faults.is_read_only) return EROFS;
  if (crashes_now()) return EIO;
  file.cached.resize(bytes);
  file.versions.erase(file.versions.lower_bound((bytes + kSectorBytes - 1) / kSectorBytes),
                      file.versions.end());
  file.sectors_taken.erase(file.sectors_taken.lower_bound(bytes / kSectorBytes),
                           file.sectors_taken.end());
  return 0;
}

void FaultyDisk::crash() {
  for (auto file = files_.begin(); file != files_.end();) {
    if (!file->second.is_name_synced && draw(2) == 0) {
      file = files_.erase(file);
      continue;
    }
    settle(file->second);
    file->second.cached = file->second.synced;
    // A truncation that was lost brings sectors back.
    for (std::size_t at = 0; at < file->second.cached.size(); ++at) {
      if (file->second.cached[at] != std::byte{0}) {
        file->second.sectors_taken[at / kSectorBytes] = true;
      }
    }
    file->second.is_name_synced = true;
    ++file;
  }
  is_dead_ = false;
  changes_until_crash = -1;
}

bool FaultyDisk::flip_bit() {
  std::size_t taken = 0;
  for (const auto& [name, content] : files_) taken += content.sectors_taken.size();
  if (taken == 0) return false;
  std::size_t choice = draw(taken);
  for (auto& [name, content] : files_) {
    if (choice >= content.sectors_taken.size()) {
      choice -= content.sectors_taken.size();
      continue;
    }
    const auto sector = std::next(content.sectors_taken.begin(), static_cast<long>(choice));
    const std::size_t at = sector->first * kSectorBytes + draw(kSectorBytes);
    const auto bit = static_cast<std::byte>(1u << draw(8));
    if (at < content.cached.size()) content.cached[at] ^= bit;
    if (at < content.synced.size()) content.synced[at] ^= bit;
    return true;
  }
  return false;
}

void FaultyDisk::damage_slab(std::size_t offset) {
  const std::lock_guard lock(mutex_);
  for (auto& [name, content] : files_) {
    if (name.ends_with(".slab")) content.cached.at(offset) ^= std::byte{1};
  }
}

void FaultyDisk::truncate(const std::string& name, std::uint64_t bytes) {
  Content& file = files_.at(name);
  file.cached.resize(bytes);
  file.synced.resize(bytes);
}

std::uint64_t FaultyDisk::bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [name, content] : files_) bytes += content.cached.size();
  return bytes;
}

bool FaultyDisk::holds(const std::string& bytes) const {
  const auto* const first = reinterpret_cast<const std::byte*>(bytes.data());
  const auto has = [&](const std::vector<std::byte>& content) {
    return std::search(content.begin(), content.end(), first, first + bytes.size()) !=
           content.end();
  };
  return std::any_of(files_.begin(), files_.end(), [&](const auto& file) {
    return has(file.second.cached) || has(file.second.synced);
  });
}

}  // namespace pagoda::store
