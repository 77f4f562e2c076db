#include "store/page_record.h"

#include <endian.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/assert.h"
#include "store/page_cipher.h"

namespace pagoda::store {
namespace {

constexpr std::string_view kRecordMagic = "PAGODA1\n";
constexpr std::uint32_t kSealed = 1;
constexpr std::size_t kRecordNonceAt = kRecordHeadBytes;
constexpr std::size_t kRecordTagAt = kRecordNonceAt + kNonceBytes;
constexpr std::size_t kLabelAt = kRecordTagAt + kTagBytes;
constexpr std::size_t kLabelBytes = 16 + 32 + 32 + 4;  // without token ids
constexpr std::size_t kChecksumBytes = 8;

std::size_t label_bytes(std::size_t tokens) { return kLabelBytes + 4 * tokens; }

std::span<std::byte> as_bytes(std::string& text) {
  return std::as_writable_bytes(std::span(text.data(), text.size()));
}
std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// Writes fields one after another into memory that is large enough.
class FieldWriter {
 public:
  explicit FieldWriter(std::span<std::byte> room) : at_(room.data()) {}

  void bytes(const void* data, std::size_t count) {
    if (count > 0) std::memcpy(at_, data, count);
    at_ += count;
  }
  void number(std::uint32_t value) {
    value = htole32(value);
    bytes(&value, sizeof value);
  }
  void number(std::uint64_t value) {
    value = htole64(value);
    bytes(&value, sizeof value);
  }

 private:
  std::byte* at_;
};

std::uint64_t number_at(std::string_view bytes, std::size_t at) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return le64toh(value);
}

std::uint32_t number32_at(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return le32toh(value);
}

void write_head(const RecordHead& head, std::span<std::byte> room) {
  FieldWriter out(room);
  out.bytes(kRecordMagic.data(), kRecordMagic.size());
  out.bytes(head.owner.bytes.data(), head.owner.bytes.size());
  out.number(head.generation);
  out.number(head.sealed ? kSealed : std::uint32_t{0});
  out.number(head.tokens);
  out.number(head.page_bytes);
}

void write_label(const kv::PageLabel& label, std::span<std::byte> room) {
  FieldWriter out(room);
  out.bytes(label.key.space.digest.data(), label.key.space.digest.size());
  out.bytes(label.key.hash.digest.data(), label.key.hash.digest.size());
  out.bytes(label.parent.digest.data(), label.parent.digest.size());
  out.number(label.key.group);
  for (const TokenId token : label.tokens) out.number(token.value());
}

std::uint64_t checksum_of(std::string_view record) {
  return XXH3_64bits(record.data(), record.size() - kChecksumBytes);
}

}  // namespace

std::size_t record_bytes(std::size_t tokens, std::size_t page_bytes) {
  return kLabelAt + label_bytes(tokens) + page_bytes + kChecksumBytes;
}

std::optional<RecordHead> read_head(std::string_view record) {
  if (record.size() < kRecordHeadBytes || !record.starts_with(kRecordMagic)) return std::nullopt;
  RecordHead head;
  std::memcpy(head.owner.bytes.data(), record.data() + 8, head.owner.bytes.size());
  head.generation = number_at(record, 16);
  const std::uint32_t flags = number32_at(record, 24);
  if (flags > kSealed) return std::nullopt;
  head.sealed = flags == kSealed;
  head.tokens = number32_at(record, 28);
  head.page_bytes = number_at(record, 32);
  return head;
}

Status write_record(const kv::PageLabel& label, std::uint64_t generation,
                    std::span<const std::byte> page, const PageCipher* cipher,
                    std::span<std::byte> all) {
  const std::size_t tokens = label.tokens.size();
  ASSERT(all.size() == record_bytes(tokens, page.size()), "room for a record");
  write_head({.owner = label.owner,
              .generation = generation,
              .sealed = cipher != nullptr,
              .tokens = static_cast<std::uint32_t>(tokens),
              .page_bytes = page.size()},
             all);
  std::fill_n(all.begin() + kRecordNonceAt, kNonceBytes + kTagBytes, std::byte{0});
  write_label(label, all.subspan(kLabelAt));
  if (!page.empty()) {
    std::memcpy(all.data() + kLabelAt + label_bytes(tokens), page.data(), page.size());
  }
  if (cipher != nullptr) {
    RETURN_IF_ERROR(cipher->seal(label.key, all.first(kRecordHeadBytes),
                                 all.subspan(kLabelAt, label_bytes(tokens) + page.size()),
                                 all.subspan<kRecordNonceAt, kNonceBytes>(),
                                 all.subspan<kRecordTagAt, kTagBytes>()));
  }
  const std::string_view record(reinterpret_cast<const char*>(all.data()), all.size());
  FieldWriter(all.last(kChecksumBytes)).number(std::uint64_t{checksum_of(record)});
  return ok_status();
}

Status write_record(const kv::PageLabel& label, std::uint64_t generation,
                    std::span<const std::byte> page, const PageCipher* cipher,
                    std::string& record) {
  record.resize(record_bytes(label.tokens.size(), page.size()));
  return write_record(label, generation, page, cipher, as_bytes(record));
}

kv::StoreFault read_record(std::string_view record, const kv::PageLabel& asked,
                           std::uint64_t generation, const PageCipher* cipher,
                           std::span<std::byte> page) {
  using kv::StoreFault;
  if (record.size() < record_bytes(0, 0)) return StoreFault::kDamaged;
  if (number_at(record, record.size() - kChecksumBytes) != checksum_of(record)) {
    return StoreFault::kDamaged;
  }
  const std::optional<RecordHead> head = read_head(record);
  if (!head) return StoreFault::kDamaged;
  if (head->owner != asked.owner || head->sealed != (cipher != nullptr) ||
      head->tokens != asked.tokens.size() || head->page_bytes != page.size()) {
    return StoreFault::kForeign;
  }
  if (record.size() != record_bytes(asked.tokens.size(), page.size())) return StoreFault::kDamaged;
  if (head->generation != generation) return StoreFault::kAbsent;

  const std::span<const std::byte> all = as_bytes(record);
  const std::size_t labelled = label_bytes(asked.tokens.size());
  std::string wanted(labelled, '\0');
  write_label(asked, as_bytes(wanted));
  if (cipher == nullptr) {
    if (record.substr(kLabelAt, labelled) != wanted) return StoreFault::kForeign;
    if (!page.empty()) std::memcpy(page.data(), all.data() + kLabelAt + labelled, page.size());
    return StoreFault::kNone;
  }
  std::string found(labelled, '\0');
  if (!cipher->open(asked.key, all.first(kRecordHeadBytes),
                    all.subspan(kLabelAt, labelled + page.size()),
                    all.subspan<kRecordNonceAt, kNonceBytes>(),
                    all.subspan<kRecordTagAt, kTagBytes>(), as_bytes(found), page)) {
    return StoreFault::kForeign;
  }
  return found == wanted ? StoreFault::kNone : StoreFault::kForeign;
}

}  // namespace pagoda::store
