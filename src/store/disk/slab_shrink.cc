#include "store/disk/slab_shrink.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "store/disk/aligned_bytes.h"

namespace pagoda::store {
namespace {

constexpr std::size_t kRecordsAtOnce = 16384;  // records of 1 MiB

struct Held {
  SlotNumber slot = 0;
  SlotRecord record;
};

std::uint64_t record_at(std::size_t slot) { return kIndexHeaderBytes + slot * kRecordBytes; }

// Reads what the first `slots` slots hold, as far as the index knows.
int read_held(DiskFile& index, const RecordCodec& codec, std::size_t slots,
              std::vector<Held>& held) {
  std::vector<std::byte> chunk(kRecordsAtOnce * kRecordBytes);
  for (std::size_t first = 0; first < slots; first += kRecordsAtOnce) {
    const std::size_t count = std::min(kRecordsAtOnce, slots - first);
    const std::span<std::byte> bytes = std::span(chunk).first(count * kRecordBytes);
    if (const IoResult read = read_all(index, record_at(first), bytes); read.error != 0) {
      return read.error;
    }
    for (std::size_t i = 0; i < count; ++i) {
      const auto slot = static_cast<SlotNumber>(first + i);
      const auto record = codec.decode(
          slot, std::span<const std::byte>(bytes).subspan(i * kRecordBytes).first<kRecordBytes>());
      if (record && !record->is_free()) held.push_back({slot, *record});
    }
  }
  return 0;
}

// Returns the slots among the first `slots` that hold none of these pages.
std::vector<SlotNumber> places_beside(std::span<const Held> kept, std::size_t slots) {
  std::vector<bool> is_kept(slots, false);
  for (const Held& page : kept) {
    if (page.slot < slots) is_kept[page.slot] = true;
  }
  std::vector<SlotNumber> places;
  for (std::size_t slot = 0; slot < slots; ++slot) {
    if (!is_kept[slot]) places.push_back(static_cast<SlotNumber>(slot));
  }
  return places;
}

// Reads the `slots` most recently used pages of the first `slots_before` slots.
int read_latest(DiskFile& index, const RecordCodec& codec, std::size_t slots_before,
                std::size_t slots, std::vector<Held>& kept) {
  if (const int error = read_held(index, codec, slots_before, kept); error != 0) return error;
  std::stable_sort(kept.begin(), kept.end(), [](const Held& a, const Held& b) {
    return a.record.used_us > b.record.used_us;
  });
  kept.resize(std::min(kept.size(), slots));
  return 0;
}

// A slot may hold another page than its record says from here on.
int mark_open(DiskFile& index) {
  const std::uint64_t mark = 0;
  const IoResult marked = write_all(index, kClosedMarkAt, std::as_bytes(std::span(&mark, 1)));
  return marked.error != 0 ? marked.error : index.sync();
}

// Copies the pages behind the cut to the slots before it, and makes the copies durable. A page that
// cannot be copied is lost, as it would be without the copy.
int move_pages(DiskFile& slab, DiskFile& index, const RecordCodec& codec,
               std::span<const Held> pages, std::span<const SlotNumber> places,
               std::size_t slot_bytes) {
  std::vector<Held> moved;
  const AlignedBytes bytes(slot_bytes);
  for (const Held& page : pages) {
    const SlotNumber place = places[moved.size()];
    if (read_all(slab, std::uint64_t{page.slot} * slot_bytes, bytes.span()).error != 0) continue;
    if (write_all(slab, std::uint64_t{place} * slot_bytes, bytes.span()).error != 0) continue;
    moved.push_back({place, page.record});
  }
  if (const int error = slab.sync(); error != 0) return error;
  for (const Held& page : moved) {
    std::array<std::byte, kRecordBytes> record;
    codec.encode(page.slot, page.record, record);
    const IoResult written = write_all(index, record_at(page.slot), record);
    if (written.error != 0) return written.error;
  }
  return index.sync();
}

}  // namespace

int shrink_slab(DiskFile& slab, DiskFile& index, const SlotGeometry& geometry, Cipher cipher,
                std::size_t slots) {
  const std::size_t slot_bytes = geometry.slot_bytes();
  const std::uint64_t index_bytes = index.bytes();
  const std::uint64_t records =
      index_bytes > kIndexHeaderBytes ? (index_bytes - kIndexHeaderBytes) / kRecordBytes : 0;
  const std::size_t slots_before = std::min<std::uint64_t>(slab.bytes() / slot_bytes, records);
  const RecordCodec codec(geometry, cipher);
  std::vector<Held> kept;
  int error = read_latest(index, codec, slots_before, slots, kept);
  const std::vector<SlotNumber> places = places_beside(kept, slots);
  std::erase_if(kept, [&](const Held& page) { return page.slot < slots; });
  if (error == 0 && !kept.empty()) {
    error = mark_open(index);
    if (error == 0) error = move_pages(slab, index, codec, kept, places, slot_bytes);
  }
  if (error == 0) error = slab.resize(slots * slot_bytes);
  if (error == 0) error = index.resize(record_at(slots));
  return error;
}

}  // namespace pagoda::store
