// SlabFiles are a slab and its index as files: opened, checked, mended, read and written. SlotIndex
// holds the state of pages.
//
// Thread rule: slots from any thread; records, load() and the closed mark from one at a time.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "base/result.h"
#include "store/disk/file_layer.h"
#include "store/disk/format.h"
#include "store/disk/slot_codec.h"
#include "store/disk/slot_index.h"

namespace pagoda::store {

class SlabFiles {
 public:
  // Creates missing files. All files of the folder together take at most `bytes_max`: slabs of
  // other page sizes are cut to half of it, the longest unused first. Errors: a limit without room
  // for a slot, files that are not ours or of another key, and errors of the system.
  static Result<SlabFiles> open(FileLayer& layer, const SlotCodec& codec, std::uint64_t bytes_max);
  // Opens existing files unchanged. A missing slab is an error. `any_key`: only sums are checked,
  // so that the codec's key need not be the slab's.
  static Result<SlabFiles> open_read_only(FileLayer& layer, const SlotCodec& codec,
                                          bool any_key = false);

  // Opens a slab that is not in use so that pages can be removed without its key. The slab is
  // durably marked as not closed.
  static Result<SlabFiles> open_to_remove(FileLayer& layer, const SlotCodec& codec);

  bool is_read_only() const { return is_read_only_; }
  bool was_closed() const { return was_closed_; }
  std::size_t slots_max() const { return slots_max_; }
  // Returns the bytes of a store in which so many slots are used.
  std::uint64_t bytes_with(std::uint64_t slots_used) const;

  // Reads the whole index into `index`; `on_progress` is called now and then.
  int load(SlotIndex& index, const std::function<void()>& on_progress);

  DiskFile& slab() const { return *slab_; }
  std::uint64_t offset_of(SlotNumber slot) const { return std::uint64_t{slot} * slot_bytes_; }
  IoResult read_slot(SlotNumber slot, std::span<std::byte> bytes) const {
    return read_all(*slab_, offset_of(slot), bytes);
  }
  IoResult write_slot(SlotNumber slot, std::span<const std::byte> bytes) const {
    return write_all(*slab_, offset_of(slot), bytes);
  }
  int write_records(std::span<const SlotChange> changes) const;
  int sync_slab() const { return slab_->sync(); }
  int sync_index() const { return index_->sync(); }
  // The mark is durable when this returns 0.
  int set_closed(bool closed) const;

 private:
  explicit SlabFiles(const SlotCodec& codec);

  Status open_files(FileLayer& layer, OpenMode slab_mode, OpenMode index_mode);
  Status check_header(FileLayer& layer, const SlotCodec& codec, bool any_key);
  Status fit(FileLayer& layer, const SlotCodec& codec, std::uint64_t bytes_max);

  SlotGeometry geometry_;
  std::size_t slot_bytes_;
  RecordCodec records_;
  std::unique_ptr<DiskFile> slab_;
  std::unique_ptr<DiskFile> index_;
  std::size_t slots_max_ = 0;
  std::size_t slots_found_ = 0;    // whole slots in the slab when it was opened
  std::uint64_t other_bytes_ = 0;  // bytes of slabs of other page sizes
  bool was_closed_ = false;
  bool is_read_only_ = false;
};

}  // namespace pagoda::store
