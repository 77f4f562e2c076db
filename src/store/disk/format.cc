#include "store/disk/format.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace pagoda::store {
namespace {

constexpr std::string_view kIndexMagic = "pagoda kv index\n";
constexpr std::string_view kStemStart = "pages-v1-";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kSummedBytes = 56;  // bytes that the sum of a record or header covers

constexpr std::size_t round_up(std::size_t value, std::size_t step) {
  return (value + step - 1) / step * step;
}

template <class T>
void put(std::byte* at, const T& value) {
  std::memcpy(at, &value, sizeof(T));
}

template <class T>
void get(const std::byte* at, T& value) {
  std::memcpy(&value, at, sizeof(T));
}

template <class T>
bool parse_whole(std::string_view text, T& value) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc{} && stop == end && value > 0;
}

}  // namespace

std::size_t SlotGeometry::page_at() const {
  return round_up(kSlotHeaderBytes + std::size_t{block_tokens} * sizeof(std::uint32_t), 64);
}

std::size_t SlotGeometry::used_bytes() const { return page_at() + page_bytes; }

std::size_t SlotGeometry::slot_bytes() const { return round_up(used_bytes(), kIoAlignment); }

std::string SlotGeometry::file_stem() const {
  return fmt::format("{}{}x{}", kStemStart, page_bytes, block_tokens);
}

std::optional<SlotGeometry> geometry_of(std::string_view file_name, std::string_view suffix) {
  if (!file_name.starts_with(kStemStart) || !file_name.ends_with(suffix)) return std::nullopt;
  file_name.remove_prefix(kStemStart.size());
  file_name.remove_suffix(suffix.size());
  const std::size_t x = file_name.find('x');
  if (x == std::string_view::npos) return std::nullopt;
  SlotGeometry geometry;
  if (!parse_whole(file_name.substr(0, x), geometry.page_bytes) ||
      !parse_whole(file_name.substr(x + 1), geometry.block_tokens)) {
    return std::nullopt;
  }
  return geometry;
}

RecordCodec::RecordCodec(const SlotGeometry& geometry, Cipher cipher) {
  std::array<std::byte, 16> shape = {};
  put(shape.data(), geometry.page_bytes);
  put(shape.data() + 8, geometry.block_tokens);
  put(shape.data() + 12, cipher);
  seed_ = XXH3_64bits_withSeed(shape.data(), shape.size(), kVersion);
}

void RecordCodec::encode(SlotNumber slot, const SlotRecord& record, RecordBytes bytes) const {
  std::byte* const at = bytes.data();
  if (record.is_free()) {
    std::memset(at, 0, kRecordBytes);
    return;
  }
  put(at, record.key);
  put(at + 16, record.space);
  put(at + 32, record.owner);
  put(at + 40, record.sum);
  put(at + 48, record.used_us);
  put(at + kSummedBytes, XXH3_64bits_withSeed(at, kSummedBytes, seed_ + slot));
}

std::optional<SlotRecord> RecordCodec::decode(
    SlotNumber slot, std::span<const std::byte, kRecordBytes> bytes) const {
  const std::byte* const at = bytes.data();
  SlotRecord record;
  get(at, record.key);
  if (record.is_free() &&
      std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; })) {
    return SlotRecord{};
  }
  std::uint64_t sum = 0;
  get(at + kSummedBytes, sum);
  if (sum != XXH3_64bits_withSeed(at, kSummedBytes, seed_ + slot)) return std::nullopt;
  get(at + 16, record.space);
  get(at + 32, record.owner);
  get(at + 40, record.sum);
  get(at + 48, record.used_us);
  return record;
}

IndexHeaderBytes encode_header(const IndexHeader& header) {
  IndexHeaderBytes bytes = {};
  std::memcpy(bytes.data(), kIndexMagic.data(), kIndexMagic.size());
  put(bytes.data() + 16, kVersion);
  put(bytes.data() + 20, header.cipher);
  put(bytes.data() + 24, header.geometry.page_bytes);
  put(bytes.data() + 32, header.geometry.block_tokens);
  put(bytes.data() + 40, header.key_check);
  put(bytes.data() + kSummedBytes, XXH3_64bits(bytes.data(), kSummedBytes));
  return bytes;
}

ReadHeader decode_header(std::span<const std::byte, 64> bytes) {
  ReadHeader read;
  if (std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; })) {
    read.state = HeaderState::kBlank;
    return read;
  }
  std::uint64_t sum = 0;
  get(bytes.data() + kSummedBytes, sum);
  if (sum != XXH3_64bits(bytes.data(), kSummedBytes)) {
    // One flipped bit must not make our own file look like another program's.
    std::size_t same = 0;
    for (std::size_t i = 0; i < kIndexMagic.size(); ++i) {
      same += bytes[i] == static_cast<std::byte>(kIndexMagic[i]) ? 1 : 0;
    }
    read.state = same + 1 >= kIndexMagic.size() ? HeaderState::kDamaged : HeaderState::kForeign;
    return read;
  }
  read.state = HeaderState::kGood;
  get(bytes.data() + 20, read.header.cipher);
  get(bytes.data() + 24, read.header.geometry.page_bytes);
  get(bytes.data() + 32, read.header.geometry.block_tokens);
  get(bytes.data() + 40, read.header.key_check);
  return read;
}

}  // namespace pagoda::store
