// The bytes between two servers of which one fetches pages of the other's pool.
//
//   frame      4 bytes: how many follow; 1 byte: its type; what the type says
//
//   type       from    what it has                                  (numbers: low byte first)
//   challenge  server  "PAGODAP1", 32 bytes: a nonce
//   proof      client  32 bytes: a nonce, 32 bytes: its proof, 8 bytes: its deployment
//   welcome    server  32 bytes: its proof, 8 bytes: its deployment
//   find       client  8 bytes: a number; 4: milliseconds to wait for pages that are being
//                      computed; 16: space; 4: count of keys; 32 + 4 each: hash, group
//   found      server  8 bytes: the number; 4: how many of the first keys are there, and leased
//   read       client  8 bytes: a number; 16: space; 32: hash; 4: group; 8: owner
//   page       server  8 bytes: the number; 1: a StoreFault; without one, the page's record
//                      (store/page_record.h)
//   withdraw   client  8 bytes: the number of a find whose answer nobody waits for any more; there
//                      may be one on its way
//
// Until the proof was checked the server sends nothing but its challenge, and takes nothing but a
// proof. Pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kv/tiers/page_store.h"

namespace pagoda::store {

enum class FrameType : std::uint8_t {
  kChallenge = 1,
  kProof,
  kWelcome,
  kFind,
  kFound,
  kRead,
  kPage,
  kWithdraw,
};

inline constexpr std::size_t kFrameHeadBytes = 5;
inline constexpr std::size_t kFindKeysMax = 16'384;
// The longest frame before the other end has proven itself, and the longest that a client sends.
inline constexpr std::size_t kFirstFrameBytesMax = 128;
inline constexpr std::size_t kAskingFrameBytesMax = 1 + 8 + 4 + 16 + 4 + kFindKeysMax * 36;

using PeerNonce = std::array<std::byte, 32>;
using PeerProof = std::array<std::byte, 32>;
// Stands for a server's secret, which its tenants' salts are made of; all zero: it has no keys.
using DeploymentId = std::array<std::byte, 8>;

struct ProofFrame {
  PeerNonce nonce = {};
  PeerProof proof = {};
  DeploymentId deployment = {};
};
struct WelcomeFrame {
  PeerProof proof = {};
  DeploymentId deployment = {};
};
struct FindFrame {
  std::uint64_t number = 0;
  std::uint32_t wait_ms = 0;
  std::vector<kv::PageKey> keys = {};  // of one space
};
struct FoundFrame {
  std::uint64_t number = 0;
  std::uint32_t keys_found = 0;
};
struct ReadFrame {
  std::uint64_t number = 0;
  kv::PageKey key = {};
  kv::OwnerTag owner = {};
};
struct WithdrawFrame {
  std::uint64_t number = 0;
};
struct PageFrame {
  std::uint64_t number = 0;
  kv::StoreFault fault = kv::StoreFault::kNone;
  std::string_view record = {};
};

std::string challenge_frame(const PeerNonce& nonce);
std::string proof_frame(const ProofFrame& frame);
std::string welcome_frame(const WelcomeFrame& frame);
std::string find_frame(const FindFrame& frame);
std::string found_frame(const FoundFrame& frame);
std::string read_frame(const ReadFrame& frame);
std::string withdraw_frame(const WithdrawFrame& frame);
std::string fault_frame(std::uint64_t number, kv::StoreFault fault);
// Makes a page frame with room for a record of so many bytes at its end.
std::string page_frame(std::uint64_t number, std::size_t record_bytes);

// These read what follows a frame's type. Nothing: it is not such a frame.
std::optional<PeerNonce> read_challenge(std::string_view body);
std::optional<ProofFrame> read_proof(std::string_view body);
std::optional<WelcomeFrame> read_welcome(std::string_view body);
std::optional<FindFrame> read_find(std::string_view body);
std::optional<FoundFrame> read_found(std::string_view body);
std::optional<ReadFrame> read_read(std::string_view body);
std::optional<WithdrawFrame> read_withdraw(std::string_view body);
std::optional<PageFrame> read_page(std::string_view body);

struct PeerFrame {
  FrameType type = FrameType::kChallenge;
  std::string_view body = {};  // valid until the next call of the reader
};

// Cuts a stream of bytes into frames.
class FrameReader {
 public:
  explicit FrameReader(std::size_t frame_bytes_max) : frame_bytes_max_(frame_bytes_max) {}

  void set_frame_bytes_max(std::size_t bytes) { frame_bytes_max_ = bytes; }
  void feed(std::string_view bytes) { bytes_.append(bytes); }
  // Nothing: more bytes are needed. An error: what came is no frame, or is too long.
  Result<std::optional<PeerFrame>> next();

 private:
  std::size_t frame_bytes_max_;
  std::string bytes_;
  std::size_t taken_ = 0;
};

}  // namespace pagoda::store
