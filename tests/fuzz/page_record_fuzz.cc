// Any bytes are a page that was asked for or a fault; only what write_record() makes is a page.
//
// Input: a byte of flags (1: the checksum is made right, 2: there is a key), then a record.
#include <endian.h>
#include <xxhash.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/assert.h"
#include "store/page_cipher.h"
#include "store/page_record.h"

namespace pagoda::store {
namespace {

constexpr std::uint64_t kGeneration = 6;

kv::PageLabel asked() {
  kv::PageLabel label;
  label.owner.bytes.fill(std::byte{'o'});
  label.key.space.digest.fill(std::byte{'s'});
  label.key.hash.digest.fill(std::byte{'n'});
  label.parent.digest.fill(std::byte{'p'});
  label.tokens.assign(2, TokenId(7));
  return label;
}

void mend_checksum(std::string& record) {
  if (record.size() < 8) return;
  const std::uint64_t sum = htole64(XXH3_64bits(record.data(), record.size() - 8));
  std::memcpy(record.data() + record.size() - 8, &sum, sizeof sum);
}

void check(unsigned flags, std::string record) {
  static const PageCipher kCipher(SecretKey{std::byte{1}});
  const PageCipher* const cipher = (flags & 2) != 0 ? &kCipher : nullptr;
  if ((flags & 1) != 0) mend_checksum(record);
  std::vector<std::byte> page(10);
  const kv::StoreFault fault = read_record(record, asked(), kGeneration, cipher, page);
  const auto head = read_head(record);
  if (fault != kv::StoreFault::kNone) return;
  ASSERT(head.has_value() && head->owner == asked().owner, "a page is its owner's");
  ASSERT(record.size() == record_bytes(2, page.size()), "a page has its size");
  if (cipher != nullptr) return;
  std::string again;
  ASSERT(write_record(asked(), kGeneration, page, nullptr, again).ok(),
         "without a key it cannot fail");
  // Nonce and tag mean nothing in an open record.
  again.replace(kRecordHeadBytes, kNonceBytes + kTagBytes, record, kRecordHeadBytes,
                kNonceBytes + kTagBytes);
  mend_checksum(again);
  ASSERT(again == record, "what was read is what would be written");
}

}  // namespace
}  // namespace pagoda::store

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  pagoda::store::check(data[0], {reinterpret_cast<const char*>(data + 1), size - 1});
  return 0;
}
