#include "store/page_cipher.h"

#include <endian.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string_view>

#include "base/assert.h"

namespace pagoda::store {
namespace {

struct FreeContext {
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};
using Context = std::unique_ptr<EVP_CIPHER_CTX, FreeContext>;

const unsigned char* chars(const std::byte* bytes) {
  return reinterpret_cast<const unsigned char*>(bytes);
}
unsigned char* chars(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }

// OpenSSL counts bytes in int.
constexpr std::size_t kStepBytes = std::size_t{1} << 30;

template <class Update>
bool in_steps(std::span<const std::byte> in, std::byte* out, const Update& update) {
  for (std::size_t at = 0; at < in.size(); at += kStepBytes) {
    const std::size_t bytes = std::min(kStepBytes, in.size() - at);
    int written = 0;
    unsigned char* const target = out == nullptr ? nullptr : chars(out + at);
    if (update(target, &written, chars(in.data() + at), static_cast<int>(bytes)) != 1) return false;
  }
  return true;
}

}  // namespace

SecretKey PageCipher::key_of(const kv::PageKey& page) const {
  constexpr std::string_view kPurpose = "pagoda page key 1";
  std::array<std::byte, kPurpose.size() + 16 + 32 + 4> text;
  std::byte* at = text.data();
  const auto add = [&at](const void* bytes, std::size_t count) {
    std::memcpy(at, bytes, count);
    at += count;
  };
  const std::uint32_t group = htole32(page.group);
  add(kPurpose.data(), kPurpose.size());
  add(page.space.digest.data(), page.space.digest.size());
  add(page.hash.digest.data(), page.hash.digest.size());
  add(&group, sizeof(group));
  ASSERT(at == text.data() + text.size(), "every part has its length");
  SecretKey made;
  unsigned int bytes = 0;
  const unsigned char* const done =
      HMAC(EVP_sha256(), key_.data(), static_cast<int>(key_.size()), chars(text.data()),
           text.size(), chars(made.data()), &bytes);
  ASSERT(done != nullptr && bytes == made.size(), "SHA-256 is part of every OpenSSL 3");
  return made;
}

Status PageCipher::seal(const kv::PageKey& page, std::span<const std::byte> open_text,
                        std::span<std::byte> text, std::span<std::byte, kNonceBytes> nonce,
                        std::span<std::byte, kTagBytes> tag) const {
  if (RAND_bytes(chars(nonce.data()), kNonceBytes) != 1) {
    return Error{ErrorCode::kIo, "the system gives no random bytes"};
  }
  const Context context(EVP_CIPHER_CTX_new());
  EVP_CIPHER_CTX* const c = context.get();
  const auto update = [c](auto... arguments) { return EVP_EncryptUpdate(c, arguments...); };
  int none = 0;
  const SecretKey key = key_of(page);
  const bool sealed = EVP_EncryptInit_ex(c, EVP_aes_256_gcm(), nullptr, chars(key.data()),
                                         chars(nonce.data())) == 1 &&
                      in_steps(open_text, nullptr, update) && in_steps(text, text.data(), update) &&
                      EVP_EncryptFinal_ex(c, chars(tag.data()), &none) == 1 &&
                      EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_GET_TAG, kTagBytes, tag.data()) == 1;
  ASSERT(sealed, "AES-256-GCM is part of every OpenSSL 3");
  return ok_status();
}

bool PageCipher::open(const kv::PageKey& page, std::span<const std::byte> open_text,
                      std::span<const std::byte> sealed,
                      std::span<const std::byte, kNonceBytes> nonce,
                      std::span<const std::byte, kTagBytes> tag, std::span<std::byte> first,
                      std::span<std::byte> second) const {
  ASSERT(sealed.size() == first.size() + second.size(), "there is room for every byte");
  const Context context(EVP_CIPHER_CTX_new());
  EVP_CIPHER_CTX* const c = context.get();
  const auto update = [c](auto... arguments) { return EVP_DecryptUpdate(c, arguments...); };
  std::array<std::byte, kTagBytes> expected;
  std::copy(tag.begin(), tag.end(), expected.begin());
  std::array<unsigned char, kTagBytes> rest;
  int none = 0;
  const SecretKey key = key_of(page);
  return EVP_DecryptInit_ex(c, EVP_aes_256_gcm(), nullptr, chars(key.data()),
                            chars(nonce.data())) == 1 &&
         in_steps(open_text, nullptr, update) &&
         in_steps(sealed.first(first.size()), first.data(), update) &&
         in_steps(sealed.subspan(first.size()), second.data(), update) &&
         EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_SET_TAG, kTagBytes, expected.data()) == 1 &&
         EVP_DecryptFinal_ex(c, rest.data(), &none) == 1;
}

}  // namespace pagoda::store
