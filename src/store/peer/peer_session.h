// PeerSession is the server's side of what one client says: it checks who it is, and then takes its
// requests. It knows no socket: bytes go in, bytes and requests come out. One thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "store/key_file.h"
#include "store/peer/peer_auth.h"
#include "store/peer/peer_frames.h"

namespace pagoda::store {

using PeerRequest = std::variant<FindFrame, ReadFrame, WithdrawFrame>;

class PeerSession {
 public:
  struct Terms {
    SecretKey key;
    DeploymentId deployment = {};
    PeerNonce nonce = {};      // fresh for every session
    std::string binding = {};  // of the TLS session
  };

  explicit PeerSession(Terms terms) : terms_(std::move(terms)), frames_(kFirstFrameBytesMax) {}

  // The first bytes for the client.
  std::string greeting() const { return challenge_frame(terms_.nonce); }
  // An error: the connection is over, and why. `reply` gets bytes for the client, `requests` what
  // it asks for.
  Status feed(std::string_view bytes, std::string& reply, std::vector<PeerRequest>& requests);

  bool is_proven() const { return is_proven_; }
  // Has the client the same secret, or neither has one?
  bool is_of_this_deployment() const { return is_of_this_deployment_; }

 private:
  Status take(const PeerFrame& frame, std::string& reply, std::vector<PeerRequest>& requests);
  Status take_proof(const PeerFrame& frame, std::string& reply);

  Terms terms_;
  FrameReader frames_;
  bool is_proven_ = false;
  bool is_of_this_deployment_ = false;
};

}  // namespace pagoda::store
