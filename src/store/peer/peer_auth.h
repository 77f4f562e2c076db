// Two servers prove to each other that they have the same key, without showing it: each answers the
// other's nonce.
//
//   proof = HMAC-SHA256(key, "pagoda peer client 1" or "pagoda peer server 1" | server's nonce |
//                            client's nonce | deployment | binding of the TLS session, if any)
//
// The key is that of the stores (--kv-store-key). The binding keeps somebody who stands between two
// TLS sessions from passing proofs on.
#pragma once

#include <string_view>

#include "store/key_file.h"
#include "store/peer/peer_frames.h"

namespace pagoda::store {

enum class PeerRole : std::uint8_t { kClient, kServer };

struct ProofInputs {
  PeerRole role = PeerRole::kClient;  // of who proves
  PeerNonce server_nonce = {};
  PeerNonce client_nonce = {};
  DeploymentId deployment = {};  // of who proves
  std::string_view binding = {};
};

// An error only when the system gives no random bytes.
Result<PeerNonce> fresh_nonce();
PeerProof make_proof(const SecretKey& key, const ProofInputs& inputs);
// The time does not depend on where the proofs differ.
bool is_proof(const SecretKey& key, const ProofInputs& inputs, const PeerProof& proof);

// Returns what stands for a server's secret: equal where the secrets are.
DeploymentId deployment_id(std::string_view secret);

}  // namespace pagoda::store
