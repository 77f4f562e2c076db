// A block's name outside: events, disk, remote stores. It is what vLLM computes with
// --prefix-caching-hash-algo sha256_cbor, byte for byte, so that routers and stores made for vLLM
// know our blocks:
//
//   name = SHA-256 of canonical CBOR of [ parent's name, [token, ...], [adapter, salt] or null ]
//
// A name stands for a block and all blocks before it. It says nothing of model, numerics or KV
// format, and an adapter and a salt of the same text give the same name (vLLM issue 44701): whoever
// keeps bytes under a name keeps the namespaces apart himself.
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

struct BlockName {
  std::array<std::byte, 32> digest;

  auto operator<=>(const BlockName&) const = default;

  // 64 lower-case digits.
  std::string hex() const;
  // The block's number in KV events: the low 64 bits of the digest read as a big-endian number.
  std::uint64_t event_hash() const;
};

// The parent of every first block, vLLM's NONE_HASH: SHA-256 of the CBOR text "vllm-none-hash".
BlockName root_name();

// What else a block's rows depend on; UTF-8, left out of the name where empty. vLLM puts the
// adapter into every block of a chain and the salt into the first one only.
struct ExtraKeys {
  std::string_view adapter;
  std::string_view salt;
};

inline constexpr std::size_t kBlockTokensMax = 4096;
inline constexpr std::size_t kAdapterBytesMax = 512;
inline constexpr std::size_t kSaltBytesMax = 512;

// An error that names the limit when a key is too long.
Status check_keys(const ExtraKeys& extra);

// Names blocks one at a time, without allocating. One thread at a time; about 22 KB.
class BlockNamer {
 public:
  BlockNamer();
  ~BlockNamer();
  BlockNamer(const BlockNamer&) = delete;
  BlockNamer& operator=(const BlockNamer&) = delete;

  // An error for no tokens and for anything beyond the maxima above.
  Result<BlockName> name(const BlockName& parent, std::span<const TokenId> tokens,
                         const ExtraKeys& extra);

 private:
  static constexpr std::size_t kHeadBytesMax = 5;  // of a CBOR item: type and a 32-bit argument
  static constexpr std::size_t kHeadStoreBytes = 8;
  // A head is stored as 8 bytes whatever its length, so the last one needs room behind it.
  static constexpr std::size_t kBufferBytes = 6 * kHeadBytesMax + sizeof(BlockName) +
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

// Appends the names of all whole blocks of `tokens`; the first has the parent `seed` and alone the
// salt. Who goes on from a block in the middle of a chain leaves the salt empty: `seed` has it.
// After an error `names` is as it was.
Status name_chain(BlockNamer& namer, const BlockName& seed, std::span<const TokenId> tokens,
                  std::size_t block_tokens, const ExtraKeys& extra, std::vector<BlockName>& names);

}  // namespace pagoda::kv
