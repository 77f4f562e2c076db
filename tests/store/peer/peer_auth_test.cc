#include "store/peer/peer_auth.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace pagoda::store {
namespace {

SecretKey sample_key() {
  SecretKey key;
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<std::byte>(i);
  return key;
}

ProofInputs sample_inputs() {
  ProofInputs inputs;
  for (std::size_t i = 0; i < 32; ++i) {
    inputs.server_nonce[i] = static_cast<std::byte>(0xa0 + i % 16);
    inputs.client_nonce[i] = static_cast<std::byte>(i * 3 % 256);
  }
  for (std::size_t i = 0; i < 8; ++i) inputs.deployment[i] = static_cast<std::byte>(i);
  return inputs;
}

template <class Bytes>
std::string hex(const Bytes& bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", std::to_integer<unsigned>(byte));
    text += digits;
  }
  return text;
}

// By Python's hmac and hashlib.
TEST(PeerAuth, AProofIsTheHmacOfWhatTheHeaderSays) {
  ProofInputs inputs = sample_inputs();
  inputs.binding = "session";
  EXPECT_EQ(hex(make_proof(sample_key(), inputs)),
            "bd461b601c939577a4f9853d093005e8c9bcc9cf273a304abbad1c02ac9ab821");
  inputs.binding = {};
  inputs.role = PeerRole::kServer;
  EXPECT_EQ(hex(make_proof(sample_key(), inputs)),
            "5013a37a55e517777745fe0e984746b608ab9576e79e878a121e0267411ae080");
  EXPECT_EQ(hex(deployment_id("secret")), "facd8f9841f94981");
  EXPECT_EQ(deployment_id(""), DeploymentId{});
}

TEST(PeerAuth, AProofIsGoodForItsInputsAlone) {
  const ProofInputs inputs = sample_inputs();
  const PeerProof proof = make_proof(sample_key(), inputs);
  EXPECT_TRUE(is_proof(sample_key(), inputs, proof));
  SecretKey key = sample_key();
  key.back() ^= std::byte{1};
  EXPECT_FALSE(is_proof(key, inputs, proof));
  const auto refuses = [&](auto&& change) {
    ProofInputs other = inputs;
    change(other);
    return !is_proof(sample_key(), other, proof);
  };
  // A server's proof is none of a client: nobody is sent back its own.
  EXPECT_TRUE(refuses([](ProofInputs& other) { other.role = PeerRole::kServer; }));
  EXPECT_TRUE(refuses([](ProofInputs& other) { other.server_nonce[0] ^= std::byte{1}; }));
  EXPECT_TRUE(refuses([](ProofInputs& other) { other.client_nonce[31] ^= std::byte{1}; }));
  EXPECT_TRUE(refuses([](ProofInputs& other) { other.deployment[0] ^= std::byte{1}; }));
  EXPECT_TRUE(refuses([](ProofInputs& other) { other.binding = "another session"; }));
  for (std::size_t i = 0; i < proof.size(); ++i) {
    PeerProof forged = proof;
    forged[i] ^= std::byte{0x80};
    EXPECT_FALSE(is_proof(sample_key(), inputs, forged)) << i;
  }
}

TEST(PeerAuth, NoncesAreNotRepeated) { EXPECT_NE(fresh_nonce().value(), fresh_nonce().value()); }

}  // namespace
}  // namespace pagoda::store
