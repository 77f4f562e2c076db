#include "store/peer/peer_session.h"

#include <optional>
#include <utility>

namespace pagoda::store {

Status PeerSession::feed(std::string_view bytes, std::string& reply,
                         std::vector<PeerRequest>& requests) {
  frames_.feed(bytes);
  for (;;) {
    ASSIGN_OR_RETURN(const std::optional<PeerFrame> frame, frames_.next());
    if (!frame) return ok_status();
    RETURN_IF_ERROR(take(*frame, reply, requests));
  }
}

Status PeerSession::take(const PeerFrame& frame, std::string& reply,
                         std::vector<PeerRequest>& requests) {
  if (!is_proven_) return take_proof(frame, reply);
  if (frame.type == FrameType::kFind) {
    if (std::optional<FindFrame> find = read_find(frame.body)) {
      requests.emplace_back(*std::move(find));
      return ok_status();
    }
  } else if (frame.type == FrameType::kRead) {
    if (std::optional<ReadFrame> read = read_read(frame.body)) {
      requests.emplace_back(*std::move(read));
      return ok_status();
    }
  } else if (frame.type == FrameType::kWithdraw) {
    if (const std::optional<WithdrawFrame> withdrawn = read_withdraw(frame.body)) {
      requests.emplace_back(*withdrawn);
      return ok_status();
    }
  }
  return Error{ErrorCode::kCorrupt, "it sent no request"};
}

Status PeerSession::take_proof(const PeerFrame& frame, std::string& reply) {
  const std::optional<ProofFrame> proof =
      frame.type == FrameType::kProof ? read_proof(frame.body) : std::nullopt;
  if (!proof) return Error{ErrorCode::kCorrupt, "it did not begin with a proof"};
  ProofInputs inputs = {.role = PeerRole::kClient,
                        .server_nonce = terms_.nonce,
                        .client_nonce = proof->nonce,
                        .deployment = proof->deployment,
                        .binding = terms_.binding};
  if (!is_proof(terms_.key, inputs, proof->proof)) {
    return Error{ErrorCode::kInvalidArgument, "it has another `kv_store_key`"};
  }
  is_proven_ = true;
  is_of_this_deployment_ = proof->deployment == terms_.deployment;
  frames_.set_frame_bytes_max(kAskingFrameBytesMax);
  inputs.role = PeerRole::kServer;
  inputs.deployment = terms_.deployment;
  reply += welcome_frame({make_proof(terms_.key, inputs), terms_.deployment});
  return ok_status();
}

}  // namespace pagoda::store
