#include "store/peer/peer_frames.h"

#include <endian.h>
#include <fmt/format.h>

#include <cstring>
#include <utility>

namespace pagoda::store {
namespace {

constexpr std::string_view kPeerMagic = "PAGODAP1";

// Appends fields to a frame that begins with its length, which finish() fills in.
class FrameWriter {
 public:
  explicit FrameWriter(FrameType type) : bytes_(4, '\0') { bytes_ += static_cast<char>(type); }

  template <class Field>
  FrameWriter& bytes(const Field& field) {
    bytes_.append(reinterpret_cast<const char*>(field.data()), field.size());
    return *this;
  }
  FrameWriter& number(std::uint32_t value) {
    value = htole32(value);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  FrameWriter& number(std::uint64_t value) {
    value = htole64(value);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  // `more` bytes belong to the frame, beyond those that it has.
  std::string finish(std::size_t more = 0) {
    bytes_.resize(bytes_.size() + more);
    const std::uint32_t length = htole32(static_cast<std::uint32_t>(bytes_.size() - 4));
    std::memcpy(bytes_.data(), &length, sizeof length);
    return std::move(bytes_);
  }

 private:
  std::string bytes_;
};

// Reads fields one after another. Whoever asks for more than there is gets zeros, and is_whole() is
// false then, as it is while bytes are left.
class FrameFields {
 public:
  explicit FrameFields(std::string_view body) : rest_(body) {}

  template <class Field>
  void bytes(Field& field) {
    take(field.data(), field.size());
  }
  std::uint32_t number32() {
    std::uint32_t value = 0;
    take(&value, sizeof value);
    return le32toh(value);
  }
  std::uint64_t number64() {
    std::uint64_t value = 0;
    take(&value, sizeof value);
    return le64toh(value);
  }
  std::size_t left() const { return rest_.size(); }
  std::string_view rest() const { return rest_; }
  bool is_whole() const { return !is_short_ && rest_.empty(); }
  bool is_short() const { return is_short_; }

 private:
  void take(void* to, std::size_t count) {
    is_short_ = is_short_ || count > rest_.size();
    if (is_short_) return;
    std::memcpy(to, rest_.data(), count);
    rest_.remove_prefix(count);
  }

  std::string_view rest_;
  bool is_short_ = false;
};

template <class Frame>
std::optional<Frame> if_whole(const FrameFields& fields, Frame frame) {
  return fields.is_whole() ? std::optional(std::move(frame)) : std::nullopt;
}

}  // namespace

std::string challenge_frame(const PeerNonce& nonce) {
  return FrameWriter(FrameType::kChallenge).bytes(kPeerMagic).bytes(nonce).finish();
}

std::string proof_frame(const ProofFrame& frame) {
  return FrameWriter(FrameType::kProof)
      .bytes(frame.nonce)
      .bytes(frame.proof)
      .bytes(frame.deployment)
      .finish();
}

std::string welcome_frame(const WelcomeFrame& frame) {
  return FrameWriter(FrameType::kWelcome).bytes(frame.proof).bytes(frame.deployment).finish();
}

std::string find_frame(const FindFrame& frame) {
  FrameWriter out(FrameType::kFind);
  const kv::SpaceId space = frame.keys.empty() ? kv::SpaceId{} : frame.keys.front().space;
  out.number(frame.number).number(frame.wait_ms).bytes(space.digest);
  out.number(static_cast<std::uint32_t>(frame.keys.size()));
  for (const kv::PageKey& key : frame.keys) out.bytes(key.hash.digest).number(key.group);
  return out.finish();
}

std::string found_frame(const FoundFrame& frame) {
  return FrameWriter(FrameType::kFound).number(frame.number).number(frame.keys_found).finish();
}

std::string read_frame(const ReadFrame& frame) {
  return FrameWriter(FrameType::kRead)
      .number(frame.number)
      .bytes(frame.key.space.digest)
      .bytes(frame.key.hash.digest)
      .number(frame.key.group)
      .bytes(frame.owner.bytes)
      .finish();
}

std::string withdraw_frame(const WithdrawFrame& frame) {
  return FrameWriter(FrameType::kWithdraw).number(frame.number).finish();
}

std::string fault_frame(std::uint64_t number, kv::StoreFault fault) {
  const std::array<char, 1> code = {static_cast<char>(fault)};
  return FrameWriter(FrameType::kPage).number(number).bytes(code).finish();
}

std::string page_frame(std::uint64_t number, std::size_t record_bytes) {
  const std::array<char, 1> code = {static_cast<char>(kv::StoreFault::kNone)};
  return FrameWriter(FrameType::kPage).number(number).bytes(code).finish(record_bytes);
}

std::optional<PeerNonce> read_challenge(std::string_view body) {
  if (!body.starts_with(kPeerMagic)) return std::nullopt;
  FrameFields fields(body.substr(kPeerMagic.size()));
  PeerNonce nonce;
  fields.bytes(nonce);
  return if_whole(fields, nonce);
}

std::optional<ProofFrame> read_proof(std::string_view body) {
  FrameFields fields(body);
  ProofFrame frame;
  fields.bytes(frame.nonce);
  fields.bytes(frame.proof);
  fields.bytes(frame.deployment);
  return if_whole(fields, frame);
}

std::optional<WelcomeFrame> read_welcome(std::string_view body) {
  FrameFields fields(body);
  WelcomeFrame frame;
  fields.bytes(frame.proof);
  fields.bytes(frame.deployment);
  return if_whole(fields, frame);
}

std::optional<FindFrame> read_find(std::string_view body) {
  FrameFields fields(body);
  FindFrame frame;
  kv::PageKey key;
  frame.number = fields.number64();
  frame.wait_ms = fields.number32();
  fields.bytes(key.space.digest);
  const std::size_t count = fields.number32();
  if (fields.is_short() || count > kFindKeysMax || fields.left() != count * 36) return std::nullopt;
  frame.keys.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    fields.bytes(key.hash.digest);
    key.group = fields.number32();
    frame.keys.push_back(key);
  }
  return if_whole(fields, std::move(frame));
}

std::optional<FoundFrame> read_found(std::string_view body) {
  FrameFields fields(body);
  FoundFrame frame;
  frame.number = fields.number64();
  frame.keys_found = fields.number32();
  return if_whole(fields, frame);
}

std::optional<ReadFrame> read_read(std::string_view body) {
  FrameFields fields(body);
  ReadFrame frame;
  frame.number = fields.number64();
  fields.bytes(frame.key.space.digest);
  fields.bytes(frame.key.hash.digest);
  frame.key.group = fields.number32();
  fields.bytes(frame.owner.bytes);
  return if_whole(fields, frame);
}

std::optional<WithdrawFrame> read_withdraw(std::string_view body) {
  FrameFields fields(body);
  return if_whole(fields, WithdrawFrame{.number = fields.number64()});
}

std::optional<PageFrame> read_page(std::string_view body) {
  FrameFields fields(body);
  PageFrame frame;
  std::array<std::uint8_t, 1> code = {};
  frame.number = fields.number64();
  fields.bytes(code);
  if (fields.is_short() || code[0] >= kv::kStoreFaults) return std::nullopt;
  frame.fault = static_cast<kv::StoreFault>(code[0]);
  frame.record = fields.rest();
  const bool has_record = !frame.record.empty();
  if (has_record != (frame.fault == kv::StoreFault::kNone)) return std::nullopt;
  return frame;
}

Result<std::optional<PeerFrame>> FrameReader::next() {
  if (taken_ > 0) bytes_.erase(0, std::exchange(taken_, 0));
  if (bytes_.size() < kFrameHeadBytes) return std::optional<PeerFrame>();
  std::uint32_t length = 0;
  std::memcpy(&length, bytes_.data(), sizeof length);
  length = le32toh(length);
  if (length == 0 || length > frame_bytes_max_) {
    return Error{ErrorCode::kCorrupt, fmt::format("a frame of {} bytes, at most {} are taken",
                                                  length, frame_bytes_max_)};
  }
  if (bytes_.size() < std::size_t{4} + length) return std::optional<PeerFrame>();
  taken_ = std::size_t{4} + length;
  const auto type = static_cast<FrameType>(bytes_[4]);
  return std::optional(
      PeerFrame{type, std::string_view(bytes_).substr(kFrameHeadBytes, length - 1)});
}

}  // namespace pagoda::store
