// The bytes are those that peer_frames.h draws, and nothing else is read as a frame.
#include "store/peer/peer_frames.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "store/page_samples.h"

namespace pagoda::store {
namespace {

// Appends numbers low byte first, as the drawing says.
struct Bytes {
  std::string text;
  Bytes& number(std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xff);
    return *this;
  }
  template <class Field>
  Bytes& add(const Field& field) {
    for (const auto byte : field) text += static_cast<char>(byte);
    return *this;
  }
};

std::string framed(std::uint64_t type, const std::string& body) {
  return Bytes{}.number(body.size() + 1, 4).number(type, 1).add(body).text;
}

PeerNonce nonce_of(int seed) {
  PeerNonce nonce;
  for (std::size_t i = 0; i < nonce.size(); ++i) nonce[i] = static_cast<std::byte>(seed + 3 * i);
  return nonce;
}

ReadFrame sample_read() {
  return {.number = 0x0102030405060708, .key = sample_label(5).key, .owner = sample_owner(9)};
}

FindFrame sample_find() {
  return {.number = 77, .wait_ms = 1500, .keys = {sample_label(1).key, sample_label(2).key}};
}

std::string body_of(const std::string& frame) { return frame.substr(kFrameHeadBytes); }

TEST(PeerFrames, HaveTheBytesThatTheDrawingSays) {
  const PeerNonce nonce = nonce_of(1);
  const PeerProof proof = nonce_of(100);
  const DeploymentId deployment = {std::byte{1}, std::byte{2}};
  EXPECT_EQ(challenge_frame(nonce), framed(1, Bytes{"PAGODAP1"}.add(nonce).text));
  EXPECT_EQ(proof_frame({nonce, proof, deployment}),
            framed(2, Bytes{}.add(nonce).add(proof).add(deployment).text));
  EXPECT_EQ(welcome_frame({proof, deployment}), framed(3, Bytes{}.add(proof).add(deployment).text));
  const FindFrame find = sample_find();
  Bytes keys;
  for (const kv::PageKey& key : find.keys) keys.add(key.hash.digest).number(key.group, 4);
  EXPECT_EQ(find_frame(find), framed(4, Bytes{}
                                            .number(77, 8)
                                            .number(1500, 4)
                                            .add(find.keys[0].space.digest)
                                            .number(2, 4)
                                            .add(keys.text)
                                            .text));
  EXPECT_EQ(found_frame({.number = 77, .keys_found = 2}),
            framed(5, Bytes{}.number(77, 8).number(2, 4).text));
  const ReadFrame read = sample_read();
  EXPECT_EQ(read_frame(read), framed(6, Bytes{}
                                            .number(read.number, 8)
                                            .add(read.key.space.digest)
                                            .add(read.key.hash.digest)
                                            .number(read.key.group, 4)
                                            .add(read.owner.bytes)
                                            .text));
  EXPECT_EQ(fault_frame(3, kv::StoreFault::kAbsent),
            framed(7, Bytes{}.number(3, 8).number(1, 1).text));
  EXPECT_EQ(withdraw_frame({.number = 77}), framed(8, Bytes{}.number(77, 8).text));
}

TEST(PeerFrames, AreReadAsTheyWereWritten) {
  const FindFrame find = sample_find();
  const auto found = read_find(body_of(find_frame(find)));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->number, find.number);
  EXPECT_EQ(found->wait_ms, find.wait_ms);
  EXPECT_EQ(found->keys, find.keys);
  const auto read = read_read(body_of(read_frame(sample_read())));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->key, sample_read().key);
  EXPECT_EQ(read->owner, sample_read().owner);
  std::string page = page_frame(11, 3);
  page.replace(page.size() - 3, 3, "abc");
  const std::string body = body_of(page);
  ASSERT_TRUE(read_page(body));
  EXPECT_EQ(read_page(body)->record, "abc");
  EXPECT_EQ(read_page(body)->number, 11u);
}

// No other length is a frame of its type.
TEST(PeerFrames, AreRefusedWhenCutOrLengthened) {
  const auto refuses = [](const std::string& frame, auto&& reads) {
    const std::string whole = body_of(frame);
    EXPECT_TRUE(reads(whole));
    for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
      EXPECT_FALSE(reads(whole.substr(0, bytes))) << bytes;
    }
    EXPECT_FALSE(reads(whole + '\0'));
  };
  refuses(challenge_frame(nonce_of(1)),
          [](std::string_view body) { return read_challenge(body).has_value(); });
  refuses(proof_frame({}), [](std::string_view body) { return read_proof(body).has_value(); });
  refuses(welcome_frame({}), [](std::string_view body) { return read_welcome(body).has_value(); });
  refuses(find_frame(sample_find()),
          [](std::string_view body) { return read_find(body).has_value(); });
  refuses(found_frame({}), [](std::string_view body) { return read_found(body).has_value(); });
  refuses(read_frame(sample_read()),
          [](std::string_view body) { return read_read(body).has_value(); });
  refuses(withdraw_frame({.number = 1}),
          [](std::string_view body) { return read_withdraw(body).has_value(); });
  refuses(fault_frame(1, kv::StoreFault::kOff),
          [](std::string_view body) { return read_page(body).has_value(); });
}

TEST(PeerFrames, ACountThatLiesIsNoFind) {
  std::string body = body_of(find_frame(sample_find()));
  for (const int count : {0, 1, 3, 255}) {
    body[28] = static_cast<char>(count);
    EXPECT_FALSE(read_find(body)) << count;
  }
  body[28] = 2;
  EXPECT_TRUE(read_find(body));
  body[31] = '\xff';  // four billion keys
  EXPECT_FALSE(read_find(body));
}

TEST(PeerFrames, AFaultWithARecordAndAPageWithoutAreNoAnswers) {
  EXPECT_FALSE(read_page(body_of(fault_frame(1, kv::StoreFault::kNone))));
  EXPECT_FALSE(read_page(body_of(fault_frame(1, kv::StoreFault::kAbsent)) + "x"));
  std::string unknown = body_of(fault_frame(1, kv::StoreFault::kAbsent));
  unknown[8] = static_cast<char>(kv::kStoreFaults);
  EXPECT_FALSE(read_page(unknown));
}

TEST(FrameReader, CutsAStreamTheSameWayHoweverItCame) {
  const std::string stream = challenge_frame(nonce_of(7)) + find_frame(sample_find()) +
                             found_frame({.number = 1}) + read_frame(sample_read());
  for (const std::size_t piece : {std::size_t{1}, std::size_t{2}, std::size_t{13}, stream.size()}) {
    FrameReader reader(kAskingFrameBytesMax);
    std::string seen;
    for (std::size_t at = 0; at < stream.size(); at += piece) {
      reader.feed(std::string_view(stream).substr(at, piece));
      for (;;) {
        const auto frame = reader.next();
        ASSERT_TRUE(frame.ok());
        if (!frame.value()) break;
        seen += framed(static_cast<std::uint64_t>(frame.value()->type),
                       std::string(frame.value()->body));
      }
    }
    EXPECT_EQ(seen, stream) << piece;
  }
}

TEST(FrameReader, RefusesAFrameByItsLengthAlone) {
  for (const std::uint64_t length :
       {std::uint64_t{0}, std::uint64_t{129}, std::uint64_t{0xffffffff}}) {
    FrameReader reader(128);
    reader.feed(Bytes{}.number(length, 4).number(1, 1).text);
    EXPECT_FALSE(reader.next().ok()) << length;
  }
  FrameReader reader(128);
  reader.feed(Bytes{}.number(128, 4).number(1, 1).text);
  const auto frame = reader.next();
  ASSERT_TRUE(frame.ok());
  EXPECT_FALSE(frame.value());
}

}  // namespace
}  // namespace pagoda::store
