// A page record is a page as a value of a remote store: its label, its bytes, a checksum over both.
//
//   bytes  field (numbers: low byte first)
//   8      "PAGODA1\n": the magic, and the version of the layout
//   8      owner                                       } the head: readable without a key,
//   8      generation of the owner's pages, 0: none    } authenticated when the rest is sealed
//   4      flags: 1 sealed                             }
//   4      tokens                                      }
//   8      bytes of the page                           }
//   12+16  nonce and tag of AES-256-GCM; zero when not sealed
//   84     space, hash, parent, group                  } the rest: label and page,
//   4 each token ids                                   } sealed where there is a cipher
//          the page                                    }
//   8      XXH3-64 over everything before it
//
// Pure functions. A record is trusted in nothing until its checksum, its length and its label have
// been compared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "kv/tiers/page_store.h"

namespace pagoda::store {

class PageCipher;

inline constexpr std::size_t kRecordHeadBytes = 40;

struct RecordHead {
  kv::OwnerTag owner;
  std::uint64_t generation = 0;
  bool sealed = false;
  std::uint32_t tokens = 0;
  std::uint64_t page_bytes = 0;
};

// Returns the size of a page's record.
std::size_t record_bytes(std::size_t tokens, std::size_t page_bytes);

// Reads the first kRecordHeadBytes; nothing when they are no head. The fields are unchecked: they
// may lie.
std::optional<RecordHead> read_head(std::string_view record);

// Fills `record`, which has the size that record_bytes() says. The record is sealed where there is
// a cipher; an error only when the system gives no random bytes for a nonce.
Status write_record(const kv::PageLabel& label, std::uint64_t generation,
                    std::span<const std::byte> page, const PageCipher* cipher,
                    std::span<std::byte> record);
// The same, into a string that is made as long as it must be.
Status write_record(const kv::PageLabel& label, std::uint64_t generation,
                    std::span<const std::byte> page, const PageCipher* cipher, std::string& record);

// kNone: the record is whole, has the label that was asked for and filled `page`. kAbsent: the
// record is of another generation. kForeign: it has another label, is sealed where it should not be
// or the reverse, or is sealed with another key. After a fault the bytes of `page` say nothing.
kv::StoreFault read_record(std::string_view record, const kv::PageLabel& asked,
                           std::uint64_t generation, const PageCipher* cipher,
                           std::span<std::byte> page);

}  // namespace pagoda::store
