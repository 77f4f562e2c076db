// The format on disk. Numbers are little-endian; sums are XXH3-64.
//
//   FOLDER/                                    mode 0700
//     lock                                     flock: one process
//     spaces                                   text for people (space_names.h)
//     pages-v1-<page bytes>x<block tokens>.slab     slots, nothing else
//     pages-v1-<page bytes>x<block tokens>.index    one record a slot
//
// Slab: slot i begins at i * slot_bytes. A slot is a header, its tokens and its page, and ends at a
// multiple of 4096 for direct I/O:
//
//     0  u64  sum of every byte after it, up to the end of the page
//     8  u32  magic "PGS1"      12  u32  cipher: 0 none, 1 AES-256-GCM
//    16  nonce, 12 bytes        28  u32  zero
//    32  GCM tag, 16 bytes      (nonce and tag are zero without a cipher)
//    48  ---- from here to the end of the page under the cipher, if there is one ----
//    48  space, 16 bytes        64  hash, 32      96  parent, 32      128  owner, 8
//   136  u32  group            140  u32  tokens   144  u64  page bytes
//   152  u64  written, microseconds since 1970
//   160  u32  tokens[block_tokens], then zeros up to a multiple of 64
//     H  page
//
// Index: 4096 bytes of header, then record i of 64 bytes, which says what slot i holds.
//
//     0  "pagoda kv index\n"    16  u32  version   20  u32  cipher
//    24  u64  page bytes        32  u32  block tokens     36  u32  zero
//    40  key check, 16 bytes    56  u64  sum of the 56 bytes before
//   512  u64  1: was closed, everything before was synced; anything else: was not
//
//   record:
//     0  key digest, 16 bytes (all zero: the slot is free)
//    16  space, 16              32  owner, 8
//    40  u64  the slot's sum    48  u64  last use known, microseconds since 1970
//    56  u64  sum of the 56 bytes before, seeded with geometry, cipher and slot number
//
// There is no journal: a record is smaller than a sector and is written over in place, so that the
// index never grows and is never compacted. Safety comes from the slot's sum in the record.
// A record is trusted for a slot only if the slot's own bytes have that very sum; whichever of the
// two a crash lost, tore or brought out of order, they do not agree and the page is absent.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "kv/tiers/page_store.h"

namespace pagoda::store {

using SlotNumber = std::uint32_t;

inline constexpr std::size_t kIoAlignment = 4096;
inline constexpr std::size_t kIndexHeaderBytes = 4096;
inline constexpr std::size_t kClosedMarkAt = 512;
inline constexpr std::size_t kRecordBytes = 64;
inline constexpr std::size_t kSlotHeaderBytes = 160;
inline constexpr std::size_t kSlotSealedAt = 48;  // where the cipher begins
inline constexpr std::uint64_t kSlotsMax = 0xFFFF'FFF0;

inline constexpr std::string_view kSlabSuffix = ".slab";
inline constexpr std::string_view kIndexSuffix = ".index";
inline constexpr std::string_view kLockName = "lock";

enum class Cipher : std::uint32_t { kNone = 0, kAes256Gcm = 1 };

// SlotGeometry holds the sizes that a slab's slots have in common.
struct SlotGeometry {
  std::uint64_t page_bytes = 0;
  std::uint32_t block_tokens = 0;

  std::size_t page_at() const;     // offset in a slot
  std::size_t used_bytes() const;  // header, tokens and page
  std::size_t slot_bytes() const;  // used bytes, aligned
  std::string file_stem() const;
  bool operator==(const SlotGeometry&) const = default;
};

// Parses "pages-v1-368640x16.slab" into its geometry; nothing for other names.
std::optional<SlotGeometry> geometry_of(std::string_view file_name, std::string_view suffix);

struct KeyDigest {
  std::array<std::byte, 16> bytes = {};
  auto operator<=>(const KeyDigest&) const = default;
};

// SlotRecord is what the index says of a slot.
struct SlotRecord {
  KeyDigest key;
  kv::SpaceId space;
  kv::OwnerTag owner;
  std::uint64_t sum = 0;
  std::uint64_t used_us = 0;

  bool is_free() const { return key == KeyDigest{}; }
  bool operator==(const SlotRecord&) const = default;
};

using RecordBytes = std::span<std::byte, kRecordBytes>;

// RecordCodec encodes and decodes records. The seed binds a record to its slot and to its store's
// geometry.
class RecordCodec {
 public:
  RecordCodec(const SlotGeometry& geometry, Cipher cipher);

  void encode(SlotNumber slot, const SlotRecord& record, RecordBytes bytes) const;
  // Nothing: the record is torn, flipped, of another slot or another geometry. A blank record is a
  // free slot.
  std::optional<SlotRecord> decode(SlotNumber slot,
                                   std::span<const std::byte, kRecordBytes> bytes) const;

 private:
  std::uint64_t seed_;
};

struct IndexHeader {
  SlotGeometry geometry;
  Cipher cipher = Cipher::kNone;
  std::array<std::byte, 16> key_check = {};
  bool operator==(const IndexHeader&) const = default;
};

using IndexHeaderBytes = std::array<std::byte, 64>;
IndexHeaderBytes encode_header(const IndexHeader& header);

enum class HeaderState { kGood, kBlank, kDamaged, kForeign };
struct ReadHeader {
  HeaderState state = HeaderState::kForeign;
  IndexHeader header;  // valid for a good header
};
// Foreign: the file never was ours. Damaged: the file begins as ours do, and its sum is wrong.
ReadHeader decode_header(std::span<const std::byte, 64> bytes);

}  // namespace pagoda::store
