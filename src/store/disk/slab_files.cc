#include "store/disk/slab_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/byte_size.h"
#include "store/disk/slab_shrink.h"

namespace pagoda::store {
namespace {

constexpr std::size_t kLoadRecords = 16384;  // records of 1 MiB
constexpr std::uint64_t kClosed = 1;

Error refused(const FileLayer& layer, std::string_view what, int error) {
  return {ErrorCode::kIo, fmt::format("{}: {}: {}", layer.path(), what, error_text(error))};
}

int shrink_other(FileLayer& layer, const SlotGeometry& geometry, std::size_t slots) {
  const std::string stem = geometry.file_stem();
  const OpenedFile slab = layer.open(stem + std::string(kSlabSuffix), OpenMode::kReadWrite);
  if (slab.file == nullptr) return slab.error;
  const OpenedFile index = layer.open(stem + std::string(kIndexSuffix), OpenMode::kReadWrite);
  if (index.file == nullptr) return index.error;
  std::array<std::byte, 64> bytes = {};
  if (const IoResult read = read_all(*index.file, 0, bytes); read.error != 0) return read.error;
  return shrink_slab(*slab.file, *index.file, geometry, decode_header(bytes).header.cipher, slots);
}

// Cuts slabs of other page sizes until they take at most `bytes_most` together. Returns the bytes
// they take.
std::uint64_t cut_others(FileLayer& layer, const SlotGeometry& ours, std::uint64_t bytes_most) {
  struct Other {
    SlotGeometry geometry;
    std::int64_t changed_s = 0;
    std::uint64_t slab_bytes = 0;
  };
  std::vector<Other> others;
  std::uint64_t bytes = 0;
  for (const FileSize& file : layer.list()) {
    const auto slab = geometry_of(file.name, kSlabSuffix);
    const auto index = geometry_of(file.name, kIndexSuffix);
    const bool is_ours = slab == ours || index == ours || file.name == kLockName;
    if (is_ours) continue;
    bytes += file.bytes_on_disk;
    if (slab) others.push_back({*slab, file.changed_s, file.bytes_on_disk});
  }
  std::sort(others.begin(), others.end(),
            [](const Other& a, const Other& b) { return a.changed_s < b.changed_s; });
  for (const Other& other : others) {
    if (bytes <= bytes_most) break;
    const std::uint64_t excess = bytes - bytes_most;
    const std::uint64_t slot_bytes = other.geometry.slot_bytes();
    const std::uint64_t slots_left =
        other.slab_bytes > excess ? (other.slab_bytes - excess) / slot_bytes : 0;
    if (shrink_other(layer, other.geometry, slots_left) != 0) continue;
    bytes -= other.slab_bytes - std::min(other.slab_bytes, slots_left * slot_bytes);
  }
  return bytes;
}

}  // namespace

SlabFiles::SlabFiles(const SlotCodec& codec)
    : geometry_(codec.geometry()),
      slot_bytes_(geometry_.slot_bytes()),
      records_(geometry_, codec.cipher()) {}

Status SlabFiles::open_files(FileLayer& layer, OpenMode slab_mode, OpenMode index_mode) {
  const std::string stem = geometry_.file_stem();
  OpenedFile slab = layer.open(stem + std::string(kSlabSuffix), slab_mode);
  if (slab.file == nullptr) return refused(layer, stem + std::string(kSlabSuffix), slab.error);
  OpenedFile index = layer.open(stem + std::string(kIndexSuffix), index_mode);
  if (index.file == nullptr) return refused(layer, stem + std::string(kIndexSuffix), index.error);
  slab_ = std::move(slab.file);
  index_ = std::move(index.file);
  return ok_status();
}

Status SlabFiles::check_header(FileLayer& layer, const SlotCodec& codec, bool any_key) {
  std::array<std::byte, kIndexHeaderBytes> bytes;
  const IoResult read = read_all(*index_, 0, bytes);
  if (read.error != 0) return refused(layer, "the index's header", read.error);
  const ReadHeader found = decode_header(std::span(bytes).first<64>());
  const IndexHeader wanted = {geometry_, codec.cipher(), codec.key_check()};
  const std::string name = layer.path() + "/" + geometry_.file_stem() + std::string(kIndexSuffix);
  if (found.state == HeaderState::kForeign) {
    return Error{ErrorCode::kCorrupt, fmt::format("{}: not a Pagoda index", name)};
  }
  if (found.state == HeaderState::kGood && found.header.geometry != geometry_) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{}: says pages of {} bytes and blocks of {} tokens", name,
                             found.header.geometry.page_bytes, found.header.geometry.block_tokens)};
  }
  if (found.state == HeaderState::kGood && found.header != wanted && !any_key) {
    const bool was_plain = found.header.cipher == Cipher::kNone;
    const bool is_plain = wanted.cipher == Cipher::kNone;
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: was written {}, and {}; remove the folder or change the key file",
                             name, was_plain ? "without a key" : "with a key",
                             is_plain ? "none is given" : "another one is given")};
  }
  std::uint64_t mark = 0;
  std::memcpy(&mark, bytes.data() + kClosedMarkAt, sizeof(mark));
  was_closed_ = found.state == HeaderState::kGood && mark == kClosed;
  return ok_status();
}

// Sizes the files. A slab that is shorter than its index says has lost its last slots.
Status SlabFiles::fit(FileLayer& layer, const SlotCodec& codec, std::uint64_t bytes_max) {
  other_bytes_ = cut_others(layer, geometry_, bytes_max / 2);
  const std::uint64_t fixed = kIndexHeaderBytes + kIoAlignment + other_bytes_;
  const std::uint64_t room = bytes_max > fixed ? bytes_max - fixed : 0;
  slots_max_ = std::min<std::uint64_t>(room / (slot_bytes_ + kRecordBytes), kSlotsMax);
  if (slots_max_ == 0) {
    return Error{ErrorCode::kOutOfRange,
                 fmt::format("{}: a limit of {} bytes has no room for a slot of {} bytes",
                             layer.path(), format_grouped(bytes_max), format_grouped(slot_bytes_))};
  }
  if (slab_->bytes() / slot_bytes_ > slots_max_) {
    // Where shrinking fails, the slab is cut as it is, and no record is trusted before its page is
    // read.
    if (shrink_slab(*slab_, *index_, geometry_, codec.cipher(), slots_max_) != 0) {
      was_closed_ = false;
    }
  }
  slots_found_ = std::min<std::uint64_t>(slab_->bytes() / slot_bytes_, slots_max_);
  const IndexHeaderBytes header = encode_header({geometry_, codec.cipher(), codec.key_check()});
  int error = slab_->resize(slots_max_ * slot_bytes_);
  if (error == 0) error = index_->resize(kIndexHeaderBytes + slots_max_ * kRecordBytes);
  if (error == 0) error = write_all(*index_, 0, header).error;
  if (error == 0) error = set_closed(false);
  if (error == 0) error = sync_slab();
  if (error == 0) error = layer.sync_folder();
  if (error != 0) return refused(layer, "preparing its files", error);
  return ok_status();
}

Result<SlabFiles> SlabFiles::open(FileLayer& layer, const SlotCodec& codec,
                                  std::uint64_t bytes_max) {
  SlabFiles files(codec);
  RETURN_IF_ERROR(files.open_files(layer, OpenMode::kReadWriteDirect, OpenMode::kReadWrite));
  RETURN_IF_ERROR(files.check_header(layer, codec, false));
  RETURN_IF_ERROR(files.fit(layer, codec, bytes_max));
  return files;
}

Result<SlabFiles> SlabFiles::open_read_only(FileLayer& layer, const SlotCodec& codec,
                                            bool any_key) {
  SlabFiles files(codec);
  RETURN_IF_ERROR(files.open_files(layer, OpenMode::kReadOnly, OpenMode::kReadOnly));
  RETURN_IF_ERROR(files.check_header(layer, codec, any_key));
  const std::uint64_t bytes = files.index_->bytes();
  const std::uint64_t records =
      bytes > kIndexHeaderBytes ? (bytes - kIndexHeaderBytes) / kRecordBytes : 0;
  files.slots_max_ = std::min(records, kSlotsMax);
  files.slots_found_ = files.slab_->bytes() / files.slot_bytes_;
  files.is_read_only_ = true;
  return files;
}

Result<SlabFiles> SlabFiles::open_to_remove(FileLayer& layer, const SlotCodec& codec) {
  SlabFiles files(codec);
  RETURN_IF_ERROR(files.open_files(layer, OpenMode::kReadWriteDirect, OpenMode::kReadWrite));
  RETURN_IF_ERROR(files.check_header(layer, codec, true));
  files.slots_found_ = files.slab_->bytes() / files.slot_bytes_;
  files.slots_max_ = std::min<std::uint64_t>(files.slots_found_, kSlotsMax);
  if (const int error = files.set_closed(false); error != 0) {
    return refused(layer, files.geometry_.file_stem() + std::string(kIndexSuffix), error);
  }
  return files;
}

std::uint64_t SlabFiles::bytes_with(std::uint64_t slots_used) const {
  return other_bytes_ + kIndexHeaderBytes + slots_max_ * kRecordBytes + slots_used * slot_bytes_;
}

int SlabFiles::load(SlotIndex& index, const std::function<void()>& on_progress) {
  std::vector<std::byte> chunk(kLoadRecords * kRecordBytes);
  for (std::size_t first = 0; first < slots_max_; first += kLoadRecords) {
    const std::size_t count = std::min(kLoadRecords, slots_max_ - first);
    const std::span<std::byte> bytes = std::span(chunk).first(count * kRecordBytes);
    const IoResult read = read_all(*index_, kIndexHeaderBytes + first * kRecordBytes, bytes);
    if (read.error != 0) return read.error;
    for (std::size_t i = 0; i < count; ++i) {
      const auto slot = static_cast<SlotNumber>(first + i);
      const auto record = records_.decode(
          slot, std::span<const std::byte>(bytes).subspan(i * kRecordBytes).first<kRecordBytes>());
      if (!record || (!record->is_free() && slot >= slots_found_)) {
        index.load_damaged(slot);
      } else if (!record->is_free()) {
        index.load(slot, *record, was_closed_);
      }
    }
    on_progress();
  }
  index.finish_loading();
  return 0;
}

// Neighbouring records are written together. Only changed records are written: no write touches a
// durable one.
int SlabFiles::write_records(std::span<const SlotChange> changes) const {
  std::vector<std::byte> run;
  for (std::size_t i = 0; i < changes.size();) {
    run.clear();
    const SlotNumber first = changes[i].slot;
    while (i < changes.size() && changes[i].slot == first + run.size() / kRecordBytes) {
      run.resize(run.size() + kRecordBytes);
      records_.encode(changes[i].slot, changes[i].record, std::span(run).last<kRecordBytes>());
      ++i;
    }
    const std::uint64_t offset = kIndexHeaderBytes + std::uint64_t{first} * kRecordBytes;
    const IoResult written = write_all(*index_, offset, run);
    if (written.error != 0) return written.error;
  }
  return 0;
}

int SlabFiles::set_closed(bool closed) const {
  const std::uint64_t mark = closed ? kClosed : 0;
  const IoResult written = write_all(*index_, kClosedMarkAt, std::as_bytes(std::span(&mark, 1)));
  return written.error != 0 ? written.error : sync_index();
}

}  // namespace pagoda::store
