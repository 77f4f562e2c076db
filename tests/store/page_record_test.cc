#include "store/page_record.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <set>

#include "store/page_cipher.h"
#include "store/page_samples.h"

namespace pagoda::store {
namespace {

using kv::StoreFault;

PageCipher cipher_of(unsigned char byte) {
  SecretKey key;
  key.fill(std::byte{byte});
  return PageCipher(key);
}

std::string record_of(const kv::PageLabel& label, const std::vector<std::byte>& page,
                      const PageCipher* cipher = nullptr, std::uint64_t generation = 3) {
  std::string record;
  EXPECT_TRUE(write_record(label, generation, page, cipher, record).ok());
  return record;
}

StoreFault read_back(std::string_view record, const kv::PageLabel& label, std::size_t bytes,
                     const PageCipher* cipher = nullptr, std::uint64_t generation = 3) {
  std::vector<std::byte> page(bytes);
  return read_record(record, label, generation, cipher, page);
}

class EveryRecord : public ::testing::TestWithParam<bool> {
 protected:
  const PageCipher* cipher() const { return GetParam() ? &cipher_ : nullptr; }
  PageCipher cipher_ = cipher_of(1);
};
INSTANTIATE_TEST_SUITE_P(Ciphers, EveryRecord, ::testing::Bool(),
                         [](const auto& sealed) { return sealed.param ? "sealed" : "open"; });

TEST_P(EveryRecord, GivesBackWhatWasPutIn) {
  for (std::uint64_t number = 0; number < 200; ++number) {
    const std::size_t tokens = random_bits(number, 10, 0) % 300;
    const std::size_t bytes = random_bits(number, 10, 1) % 5000;
    const kv::PageLabel label = sample_label(number, sample_owner(number % 5), tokens);
    const std::vector<std::byte> page = sample_page(number, bytes);
    const std::string record = record_of(label, page, cipher());
    ASSERT_EQ(record.size(), record_bytes(tokens, bytes));
    std::vector<std::byte> back(bytes);
    ASSERT_EQ(read_record(record, label, 3, cipher(), back), StoreFault::kNone);
    ASSERT_EQ(back, page);
  }
}

TEST_P(EveryRecord, AnyFlippedBitIsSeen) {
  const kv::PageLabel label = sample_label(1, sample_owner(1));
  std::string record = record_of(label, sample_page(1, 300), cipher());
  for (std::size_t bit = 0; bit < 8 * record.size(); ++bit) {
    const char flip = static_cast<char>(1 << (bit % 8));
    record[bit / 8] = static_cast<char>(record[bit / 8] ^ flip);
    ASSERT_EQ(read_back(record, label, 300, cipher()), StoreFault::kDamaged) << "bit " << bit;
    record[bit / 8] = static_cast<char>(record[bit / 8] ^ flip);
  }
  EXPECT_EQ(read_back(record, label, 300, cipher()), StoreFault::kNone);
}

TEST_P(EveryRecord, CutOrLengthenedAnywhereIsDamaged) {
  const kv::PageLabel label = sample_label(1);
  const std::string record = record_of(label, sample_page(1, 100), cipher());
  for (std::size_t bytes = 0; bytes < record.size(); ++bytes) {
    ASSERT_EQ(read_back(record.substr(0, bytes), label, 100, cipher()), StoreFault::kDamaged);
  }
  EXPECT_EQ(read_back(record + '\0', label, 100, cipher()), StoreFault::kDamaged);
  EXPECT_EQ(read_back(record + record, label, 100, cipher()), StoreFault::kDamaged);
}

TEST_P(EveryRecord, OfAnythingElseThanWhatWasAskedForIsForeign) {
  const kv::PageLabel label = sample_label(1, sample_owner(1));
  const std::string record = record_of(label, sample_page(1, 100), cipher());
  const auto differs = [&](const auto& change) {
    kv::PageLabel asked = label;
    change(asked);
    return read_back(record, asked, 100, cipher());
  };
  EXPECT_EQ(differs([](auto& l) { l.key.space.digest[15] ^= std::byte{1}; }), StoreFault::kForeign);
  EXPECT_EQ(differs([](auto& l) { l.key.hash.digest[0] ^= std::byte{1}; }), StoreFault::kForeign);
  EXPECT_EQ(differs([](auto& l) { l.key.group ^= 1; }), StoreFault::kForeign);
  EXPECT_EQ(differs([](auto& l) { l.owner = sample_owner(2); }), StoreFault::kForeign);
  EXPECT_EQ(differs([](auto& l) { l.parent.digest[31] ^= std::byte{1}; }), StoreFault::kForeign);
  EXPECT_EQ(differs([](auto& l) { l.tokens[0] = TokenId(l.tokens[0].value() + 1); }),
            StoreFault::kForeign);
  EXPECT_EQ(differs([](auto& l) { l.tokens.pop_back(); }), StoreFault::kForeign);
  EXPECT_EQ(read_back(record, label, 99, cipher()), StoreFault::kForeign);
  EXPECT_EQ(differs([](auto&) {}), StoreFault::kNone);
}

TEST_P(EveryRecord, OfAnotherGenerationIsAbsent) {
  const kv::PageLabel label = sample_label(1);
  const std::string record = record_of(label, sample_page(1, 100), cipher(), 3);
  EXPECT_EQ(read_back(record, label, 100, cipher(), 4), StoreFault::kAbsent);
  EXPECT_EQ(read_back(record, label, 100, cipher(), 3), StoreFault::kNone);
}

TEST_P(EveryRecord, SaysInItsHeadWhoseItIsAndHowLarge) {
  const std::string record =
      record_of(sample_label(1, sample_owner(9), 20), sample_page(1, 100), cipher());
  const auto head = read_head(std::string_view(record).substr(0, kRecordHeadBytes));
  ASSERT_TRUE(head.has_value());
  EXPECT_EQ(head->owner, sample_owner(9));
  EXPECT_EQ(head->sealed, GetParam());
  EXPECT_EQ(record_bytes(head->tokens, head->page_bytes), record.size());
  EXPECT_FALSE(read_head(std::string_view(record).substr(0, kRecordHeadBytes - 1)).has_value());
  EXPECT_FALSE(read_head(std::string(kRecordHeadBytes, 'x')).has_value());
}

// Other servers read this layout: these bytes were put together by hand from its drawing.
TEST(OpenRecord, LiesAsDrawn) {
  kv::PageLabel label;
  label.owner.bytes.fill(std::byte{0xAA});
  label.key.space.digest.fill(std::byte{0xBB});
  label.key.hash.digest.fill(std::byte{0xCC});
  label.parent.digest.fill(std::byte{0xDD});
  label.key.group = 0x01020304;
  label.tokens = {TokenId(5), TokenId(0x0A0B0C0D)};
  const std::string record = record_of(label, {std::byte{'p'}, std::byte{'q'}}, nullptr, 6);
  using namespace std::string_literals;
  const std::string expected = "PAGODA1\n"s + std::string(8, '\xAA') + "\6\0\0\0\0\0\0\0"s +
                               "\0\0\0\0"s + "\2\0\0\0"s + "\2\0\0\0\0\0\0\0"s +
                               std::string(28, '\0') + std::string(16, '\xBB') +
                               std::string(32, '\xCC') + std::string(32, '\xDD') +
                               "\x04\x03\x02\x01"s + "\x05\0\0\0"s + "\x0D\x0C\x0B\x0A"s + "pq"s;
  EXPECT_EQ(record.substr(0, record.size() - 8), expected);
}

TEST(SealedRecord, ShowsNothingOfLabelAndPageAndIsNeverTheSameTwice) {
  const PageCipher cipher = cipher_of(1);
  const kv::PageLabel label = sample_label(1);
  const std::vector<std::byte> page(1000, std::byte{'x'});
  std::set<std::string> seen;
  for (int i = 0; i < 50; ++i) {
    const std::string record = record_of(label, page, &cipher);
    EXPECT_EQ(record.find("xxxx"), std::string::npos);
    const auto* const name = reinterpret_cast<const char*>(label.key.hash.digest.data());
    EXPECT_EQ(record.find(std::string(name, 8)), std::string::npos);
    seen.insert(record.substr(kRecordHeadBytes));
  }
  EXPECT_EQ(seen.size(), 50u);
}

TEST(SealedRecord, IsForeignToEveryoneWithoutItsKeyAndAnOpenOneToWhoeverHasAKey) {
  const PageCipher cipher = cipher_of(1);
  const PageCipher other = cipher_of(2);
  const kv::PageLabel label = sample_label(1);
  const std::vector<std::byte> page = sample_page(1, 100);
  const std::string sealed = record_of(label, page, &cipher);
  EXPECT_EQ(read_back(sealed, label, 100, &other), StoreFault::kForeign);
  EXPECT_EQ(read_back(sealed, label, 100, nullptr), StoreFault::kForeign);
  EXPECT_EQ(read_back(record_of(label, page), label, 100, &cipher), StoreFault::kForeign);
}

// Opens a record as its drawing and that of a page's key say, without our own code.
bool opens(const std::string& record, const SecretKey& file_key, const kv::PageKey& page,
           std::size_t sealed_bytes) {
  std::string text = "pagoda page key 1";
  text.append(reinterpret_cast<const char*>(page.space.digest.data()), 16);
  text.append(reinterpret_cast<const char*>(page.hash.digest.data()), 32);
  for (int i = 0; i < 4; ++i) text += static_cast<char>(page.group >> (8 * i));
  std::array<unsigned char, 32> key;
  HMAC(EVP_sha256(), file_key.data(), 32, reinterpret_cast<const unsigned char*>(text.data()),
       text.size(), key.data(), nullptr);
  const auto* const bytes = reinterpret_cast<const unsigned char*>(record.data());
  std::string plain(sealed_bytes, '\0');
  std::array<unsigned char, 16> tag;
  std::copy_n(bytes + 52, tag.size(), tag.begin());
  int count = 0;
  EVP_CIPHER_CTX* const context = EVP_CIPHER_CTX_new();
  EVP_DecryptInit_ex(context, EVP_aes_256_gcm(), nullptr, key.data(), bytes + 40);
  EVP_DecryptUpdate(context, nullptr, &count, bytes, 40);
  EVP_DecryptUpdate(context, reinterpret_cast<unsigned char*>(plain.data()), &count, bytes + 68,
                    static_cast<int>(sealed_bytes));
  EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_SET_TAG, 16, tag.data());
  std::array<unsigned char, 16> rest;
  const bool is_whole = EVP_DecryptFinal_ex(context, rest.data(), &count) == 1;
  EVP_CIPHER_CTX_free(context);
  return is_whole;
}

// A key of its own bounds the nonces of a key, at most 2^32, by the writes of a single page.
TEST(SealedRecord, HasAKeyOfItsPagesOwn) {
  SecretKey file_key;
  file_key.fill(std::byte{7});
  const PageCipher cipher(file_key);
  for (std::uint64_t number = 0; number < 20; ++number) {
    const kv::PageLabel label = sample_label(number);
    const std::size_t sealed_bytes = 84 + 4 * label.tokens.size() + 500;
    const std::string record = record_of(label, sample_page(number, 500), &cipher);
    EXPECT_TRUE(opens(record, file_key, label.key, sealed_bytes));
    for (const auto change : {0, 1, 2}) {
      kv::PageKey other = label.key;
      if (change == 0) other.space.digest[3] ^= std::byte{1};
      if (change == 1) other.hash.digest[30] ^= std::byte{1};
      if (change == 2) other.group += 1;
      EXPECT_FALSE(opens(record, file_key, other, sealed_bytes)) << change;
    }
  }
}

TEST(KeyFile, HasThirtyTwoBytesOrSixtyFourDigitsForItsOwnerAlone) {
  const std::string path = ::testing::TempDir() + "page_cipher_key";
  const auto with = [&](const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
    std::filesystem::permissions(path, std::filesystem::perms(0600));
    return read_key_file(path);
  };
  EXPECT_TRUE(with(std::string(32, '\n')).ok());
  EXPECT_TRUE(with(std::string(64, 'f') + "\r\n").ok());
  for (const std::string& wrong :
       {std::string(), std::string(31, 'f'), std::string(64, 'g'), std::string(65, 'f')}) {
    const auto cipher = with(wrong);
    ASSERT_FALSE(cipher.ok());
    EXPECT_NE(cipher.error().message.find(path), std::string::npos);
    EXPECT_NE(cipher.error().message.find(std::to_string(wrong.size())), std::string::npos);
  }
  EXPECT_FALSE(read_key_file(path + ".not").ok());
  EXPECT_EQ(with(std::string(62, '0') + "a5").value().back(), std::byte{0xa5});
  std::filesystem::permissions(path, std::filesystem::perms(0640));
  ASSERT_FALSE(read_key_file(path).ok());
  EXPECT_NE(read_key_file(path).error().message.find("640"), std::string::npos);
}

}  // namespace
}  // namespace pagoda::store
