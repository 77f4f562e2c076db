// SlotCodec encodes a page and its label as a slot's bytes, and decodes them. Pure: no file, no
// index, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "kv/tiers/page_store.h"
#include "store/disk/format.h"
#include "store/disk/slot_cipher.h"

namespace pagoda::store {

class SlotCodec {
 public:
  SlotCodec(const SlotGeometry& geometry, std::optional<SlotCipher> cipher);

  const SlotGeometry& geometry() const { return geometry_; }
  Cipher cipher() const { return cipher_ ? Cipher::kAes256Gcm : Cipher::kNone; }
  std::array<std::byte, 16> key_check() const;
  KeyDigest digest(const kv::PageKey& key) const {
    return cipher_ ? cipher_->digest(key) : plain_digest(key);
  }

  // Fills the whole slot; returns its sum. Nothing: the cipher failed.
  std::optional<std::uint64_t> seal(const kv::PageLabel& label, std::span<const std::byte> page,
                                    std::uint64_t written_us, std::span<std::byte> slot) const;

  // Compares the bytes with `sum`: kNone, kDamaged, or kAbsent where the slot is whole but another
  // page took it.
  kv::StoreFault check(std::span<const std::byte> slot, std::uint64_t sum) const;
  // Checks like check(); then compares the label (kForeign) and copies the page out. The slot's
  // bytes are worthless afterwards.
  kv::StoreFault open(std::span<std::byte> slot, std::uint64_t sum, const kv::PageLabel& label,
                      std::span<std::byte> page) const;

 private:
  bool is_label(std::span<const std::byte> slot, const kv::PageLabel& label) const;

  SlotGeometry geometry_;
  std::optional<SlotCipher> cipher_;
};

}  // namespace pagoda::store
