#include "store/disk/slot_codec.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "base/assert.h"

namespace pagoda::store {
namespace {

constexpr std::uint32_t kSlotMagic = 0x3153'4750;  // "PGS1"
constexpr std::size_t kSummedFrom = 8;
constexpr std::size_t kSlotNonceAt = 16;
constexpr std::size_t kSlotTagAt = 32;

template <class T>
void put(std::span<std::byte> slot, std::size_t at, const T& value) {
  std::memcpy(slot.data() + at, &value, sizeof(T));
}

template <class T>
bool is_at(std::span<const std::byte> slot, std::size_t at, const T& value) {
  return std::memcmp(slot.data() + at, &value, sizeof(T)) == 0;
}

std::uint32_t count_of(const kv::PageLabel& label) {
  return static_cast<std::uint32_t>(label.tokens.size());
}

}  // namespace

SlotCodec::SlotCodec(const SlotGeometry& geometry, std::optional<SlotCipher> cipher)
    : geometry_(geometry), cipher_(cipher) {}

std::array<std::byte, 16> SlotCodec::key_check() const {
  return cipher_ ? cipher_->check() : std::array<std::byte, 16>{};
}

std::optional<std::uint64_t> SlotCodec::seal(const kv::PageLabel& label,
                                             std::span<const std::byte> page,
                                             std::uint64_t written_us,
                                             std::span<std::byte> slot) const {
  ASSERT(slot.size() == geometry_.slot_bytes(), "a slot has one size");
  ASSERT(page.size() == geometry_.page_bytes, "a page has one size");
  ASSERT(label.tokens.size() <= geometry_.block_tokens, "a block has so many tokens");
  const std::size_t page_at = geometry_.page_at();
  const std::size_t used = geometry_.used_bytes();
  std::memset(slot.data(), 0, page_at);
  put(slot, 8, kSlotMagic);
  put(slot, 12, cipher());
  put(slot, 48, label.key.space);
  put(slot, 64, label.key.hash);
  put(slot, 96, label.parent);
  put(slot, 128, label.owner);
  put(slot, 136, label.key.group);
  put(slot, 140, count_of(label));
  put(slot, 144, geometry_.page_bytes);
  put(slot, 152, written_us);
  for (std::size_t i = 0; i < label.tokens.size(); ++i) {
    put(slot, kSlotHeaderBytes + i * sizeof(std::uint32_t), label.tokens[i].value());
  }
  std::memcpy(slot.data() + page_at, page.data(), page.size());
  std::fill(slot.begin() + static_cast<std::ptrdiff_t>(used), slot.end(), std::byte{0});
  if (cipher_ && !cipher_->seal(label.key, slot.subspan(kSummedFrom, 8),
                                slot.subspan(kSlotSealedAt, used - kSlotSealedAt),
                                slot.subspan<kSlotNonceAt, kNonceBytes>(),
                                slot.subspan<kSlotTagAt, kTagBytes>())) {
    return std::nullopt;
  }
  const std::uint64_t sum = XXH3_64bits(slot.data() + kSummedFrom, used - kSummedFrom);
  put(slot, 0, sum);
  return sum;
}

kv::StoreFault SlotCodec::check(std::span<const std::byte> slot, std::uint64_t sum) const {
  const std::uint64_t found =
      XXH3_64bits(slot.data() + kSummedFrom, geometry_.used_bytes() - kSummedFrom);
  if (!is_at(slot, 0, found)) return kv::StoreFault::kDamaged;
  if (found != sum) return kv::StoreFault::kAbsent;
  if (!is_at(slot, 8, kSlotMagic) || !is_at(slot, 12, cipher())) return kv::StoreFault::kDamaged;
  return kv::StoreFault::kNone;
}

bool SlotCodec::is_label(std::span<const std::byte> slot, const kv::PageLabel& label) const {
  if (!is_at(slot, 48, label.key.space) || !is_at(slot, 64, label.key.hash) ||
      !is_at(slot, 96, label.parent) || !is_at(slot, 128, label.owner) ||
      !is_at(slot, 136, label.key.group) || !is_at(slot, 140, count_of(label)) ||
      !is_at(slot, 144, geometry_.page_bytes) || label.tokens.size() > geometry_.block_tokens) {
    return false;
  }
  for (std::size_t i = 0; i < label.tokens.size(); ++i) {
    if (!is_at(slot, kSlotHeaderBytes + i * sizeof(std::uint32_t), label.tokens[i].value())) {
      return false;
    }
  }
  return true;
}

kv::StoreFault SlotCodec::open(std::span<std::byte> slot, std::uint64_t sum,
                               const kv::PageLabel& label, std::span<std::byte> page) const {
  const kv::StoreFault fault = check(slot, sum);
  if (fault != kv::StoreFault::kNone) return fault;
  const std::size_t used = geometry_.used_bytes();
  if (cipher_ &&
      !cipher_->open(label.key, slot.subspan(kSummedFrom, 8),
                     slot.subspan(kSlotSealedAt, used - kSlotSealedAt),
                     std::span<const std::byte>(slot).subspan<kSlotNonceAt, kNonceBytes>(),
                     std::span<const std::byte>(slot).subspan<kSlotTagAt, kTagBytes>())) {
    return kv::StoreFault::kDamaged;
  }
  if (!is_label(slot, label)) return kv::StoreFault::kForeign;
  std::memcpy(page.data(), slot.data() + geometry_.page_at(), page.size());
  return kv::StoreFault::kNone;
}

}  // namespace pagoda::store
