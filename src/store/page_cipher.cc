#include "store/page_cipher.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>

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

// OpenSSL counts in int.
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

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool from_hex(const std::string& text, std::array<unsigned char, 32>& key) {
  if (text.size() != 2 * key.size()) return false;
  for (std::size_t i = 0; i < key.size(); ++i) {
    const int high = hex_digit(text[2 * i]);
    const int low = hex_digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    key[i] = static_cast<unsigned char>(high << 4 | low);
  }
  return true;
}

}  // namespace

Result<PageCipher> PageCipher::from_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return Error{ErrorCode::kIo, fmt::format("{}: cannot be read: {}", path, std::strerror(errno))};
  }
  std::string text(std::istreambuf_iterator<char>(file), {});
  std::array<unsigned char, 32> key;
  if (text.size() == key.size()) {
    std::copy(text.begin(), text.end(), key.begin());
    return PageCipher(key);
  }
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  if (from_hex(text, key)) return PageCipher(key);
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{}: a key has 32 bytes or 64 hexadecimal digits; this has {} bytes",
                           path, text.size())};
}

Status PageCipher::seal(std::span<const std::byte> open_text, std::span<std::byte> text,
                        std::span<std::byte, kNonceBytes> nonce,
                        std::span<std::byte, kTagBytes> tag) const {
  if (RAND_bytes(chars(nonce.data()), kNonceBytes) != 1) {
    return Error{ErrorCode::kIo, "the system gives no random bytes"};
  }
  const Context context(EVP_CIPHER_CTX_new());
  EVP_CIPHER_CTX* const c = context.get();
  const auto update = [c](auto... arguments) { return EVP_EncryptUpdate(c, arguments...); };
  int none = 0;
  const bool sealed =
      EVP_EncryptInit_ex(c, EVP_aes_256_gcm(), nullptr, key_.data(), chars(nonce.data())) == 1 &&
      in_steps(open_text, nullptr, update) && in_steps(text, text.data(), update) &&
      EVP_EncryptFinal_ex(c, chars(tag.data()), &none) == 1 &&
      EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_GET_TAG, kTagBytes, tag.data()) == 1;
  ASSERT(sealed, "AES-256-GCM is part of every OpenSSL 3");
  return ok_status();
}

bool PageCipher::open(std::span<const std::byte> open_text, std::span<const std::byte> sealed,
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
  return EVP_DecryptInit_ex(c, EVP_aes_256_gcm(), nullptr, key_.data(), chars(nonce.data())) == 1 &&
         in_steps(open_text, nullptr, update) &&
         in_steps(sealed.first(first.size()), first.data(), update) &&
         in_steps(sealed.subspan(first.size()), second.data(), update) &&
         EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_SET_TAG, kTagBytes, expected.data()) == 1 &&
         EVP_DecryptFinal_ex(c, rest.data(), &none) == 1;
}

}  // namespace pagoda::store
