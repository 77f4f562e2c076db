// The hash of a block, known outside: events, disk, remote stores. It is what vLLM computes with
// --prefix-caching-hash-algo sha256_cbor, byte for byte, so that routers and stores made for vLLM
// know our blocks:
//
//   hash = SHA-256 of canonical CBOR of [ parent's hash, [token, ...], [adapter, salt] or null ]
//
// A hash stands for a block and all blocks before it. It says nothing of model, numerics or KV
// format, and an adapter and a salt of the same text give the same hash (vLLM issue 44701): whoever
// keeps bytes under a hash keeps the namespaces apart himself.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"

struct evp_md_st;
struct evp_md_ctx_st;

namespace pagoda::kv {

struct BlockHash {
  std::array<std::byte, 32> digest;

  auto operator<=>(const BlockHash&) const = default;

  // 64 lower-case digits.
  std::string hex() const;
  // The block's number in KV events: the low 64 bits of the digest read as a big-endian number.
  std::uint64_t event_hash() const;
};

// The parent of every first block, vLLM's NONE_HASH: SHA-256 of the CBOR text "vllm-none-hash".
BlockHash root_hash();

// A block's rows depend on these keys besides tokens: UTF-8, left out of the hash where empty. vLLM
// puts the adapter into every block of a chain and the salt into the first one only.
struct ExtraKeys {
  std::string_view adapter;
  std::string_view salt;
};

inline constexpr std::size_t kBlockTokensMax = 4096;
inline constexpr std::size_t kAdapterBytesMax = 512;
inline constexpr std::size_t kSaltBytesMax = 512;

// An error that names the limit when a key is too long, or when a salt begins with a line break: so
// begins what a KV policy puts in the place of an adapter (KvPolicy::hash_key).
Status check_keys(const ExtraKeys& extra);

// Hashes blocks one at a time, without allocating. One thread at a time; about 22 KB.
class BlockHasher {
 public:
  BlockHasher();
  ~BlockHasher();
  BlockHasher(const BlockHasher&) = delete;
  BlockHasher& operator=(const BlockHasher&) = delete;

  // An error for no tokens and for anything beyond the maxima above.
  Result<BlockHash> hash(const BlockHash& parent, std::span<const TokenId> tokens,
                         const ExtraKeys& extra);

 private:
  static constexpr std::size_t kHeadBytesMax = 5;  // of a CBOR item: type and a 32-bit argument
  static constexpr std::size_t kHeadStoreBytes = 8;
  // A head is stored as 8 bytes whatever its length, so the last one needs room behind it.
  static constexpr std::size_t kBufferBytes = 6 * kHeadBytesMax + sizeof(BlockHash) +
                                              kBlockTokensMax * kHeadBytesMax + kAdapterBytesMax +
                                              kSaltBytesMax + kHeadStoreBytes;

  struct FreeDigest {
    void operator()(evp_md_st* digest) const;
    void operator()(evp_md_ctx_st* context) const;
  };

  std::unique_ptr<evp_md_st, FreeDigest> sha256_;
  std::unique_ptr<evp_md_ctx_st, FreeDigest> context_;
  std::array<std::byte, kBufferBytes> buffer_;
};

// Appends the hashes of all whole blocks of `tokens`; the first has the parent `seed` and alone the
// salt. Who goes on from a block in the middle of a chain leaves the salt empty: `seed` has it.
// After an error `hashes` is as it was.
Status hash_chain(BlockHasher& hasher, const BlockHash& seed, std::span<const TokenId> tokens,
                  std::size_t block_tokens, const ExtraKeys& extra, std::vector<BlockHash>& hashes);

// Computes the hashes that the whole blocks of a prompt get in a scope, on the thread that submits
// the prompt. They replace what `hashes` held; after an error it is empty.
Status hash_prompt(BlockHasher& hasher, std::string_view adapter, std::string_view salt,
                   std::uint64_t public_tokens, std::span<const TokenId> prompt,
                   std::uint32_t block_tokens, std::vector<BlockHash>& hashes);

}  // namespace pagoda::kv
