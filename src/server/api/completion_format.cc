#include "server/api/completion_format.h"

namespace pagoda::server {

Json tokens_json(std::span<const TokenId> tokens) {
  Json list = Json::array();
  for (const TokenId token : tokens) list.push_back(token.value());
  return list;
}

void add_ending(Json& choice, const ChoiceState& state, const Piece& piece) {
  const bool ended = !piece.finish_reason.empty();
  choice["finish_reason"] = ended ? Json(piece.finish_reason) : Json(nullptr);
  choice["stop_reason"] = piece.stop_reason;
  if (ended) choice["seed"] = state.seed;
}

}  // namespace pagoda::server
