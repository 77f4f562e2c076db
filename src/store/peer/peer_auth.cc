#include "store/peer/peer_auth.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <cstring>
#include <string>

#include "base/assert.h"

namespace pagoda::store {
namespace {

PeerProof hmac(std::string_view key, const std::string& text) {
  PeerProof digest;
  unsigned bytes = 0;
  const unsigned char* const made =
      HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(),
           reinterpret_cast<unsigned char*>(digest.data()), &bytes);
  ASSERT(made != nullptr && bytes == digest.size(), "HMAC-SHA256 is always there");
  return digest;
}

template <class Bytes>
void append(const Bytes& bytes, std::string& text) {
  text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace

Result<PeerNonce> fresh_nonce() {
  PeerNonce nonce;
  auto* const bytes = reinterpret_cast<unsigned char*>(nonce.data());
  if (RAND_bytes(bytes, static_cast<int>(nonce.size())) != 1) {
    return Error{ErrorCode::kIo, "the system gives no random bytes"};
  }
  return nonce;
}

PeerProof make_proof(const SecretKey& key, const ProofInputs& inputs) {
  std::string text =
      inputs.role == PeerRole::kClient ? "pagoda peer client 1" : "pagoda peer server 1";
  append(inputs.server_nonce, text);
  append(inputs.client_nonce, text);
  append(inputs.deployment, text);
  append(inputs.binding, text);
  return hmac({reinterpret_cast<const char*>(key.data()), key.size()}, text);
}

bool is_proof(const SecretKey& key, const ProofInputs& inputs, const PeerProof& proof) {
  const PeerProof expected = make_proof(key, inputs);
  return CRYPTO_memcmp(expected.data(), proof.data(), proof.size()) == 0;
}

DeploymentId deployment_id(std::string_view secret) {
  DeploymentId id = {};
  if (secret.empty()) return id;
  const PeerProof digest = hmac(secret, "pagoda peer deployment 1");
  std::memcpy(id.data(), digest.data(), id.size());
  return id;
}

}  // namespace pagoda::store
