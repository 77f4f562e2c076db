// The halves of a request whose prompt is computed by one server and answered by another, as vLLM
// names them: "kv_transfer_params" of a body and of a reply.
//
// Nothing in these fields decides what an answer is made of: pages are found by the hashes of the
// prompt's own tokens. A dictionary that is forged, replayed or another server's costs a search.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/reply.h"
#include "server/fields.h"
#include "server/json.h"

namespace pagoda::server {

// How this server is named to those who go on with its prompts.
struct TransferSource {
  std::string engine_id;  // begins with kEngineIdPrefix
  std::string host;       // where its pages are served; empty: a shared store alone has them
  std::uint16_t port = 0;
};

inline constexpr std::string_view kEngineIdPrefix = "pagoda-";

struct TransferFields {
  bool hands_over = false;         // "do_remote_decode": another server goes on with the prompt
  bool takes_over = false;         // "do_remote_prefill": another server has computed it
  bool is_ours = false;            // the other server is one of these
  std::string host = {};           // where it serves pages; empty: nowhere
  std::uint16_t port = 0;
  std::uint64_t tokens_promised = 0;
};

// Reads "kv_transfer_params". Throws ApiError for a member of another type or out of its range;
// members that it does not know are skipped.
TransferFields read_transfer(const Fields& fields);

// The member of a reply whose prompt was handed over: what the other half sends back unread.
Json transfer_params(const engine::HandoverOutcome& outcome, const TransferSource& source,
                     const std::string& request_id);

// Says how one half ended.
enum class TransferOutcome : std::uint8_t {
  kHandedOver,        // every whole block of the prompt is where others find it
  kHandedOverInPart,  // some are
  kNotHandedOver,     // none is
  kTakenOver,         // what was promised came, or was here
  kTakenOverInPart,   // some of it
  kComputed,          // nothing of it was found: the prompt was computed
  kForeign,           // promised by another kind of server: the prompt was computed
};
inline constexpr std::size_t kTransferOutcomes = 7;
std::string_view name_of(TransferOutcome outcome);

// `tokens_found`: of the prompts, in memory or a tier; `tokens_whole`: in their whole blocks, last
// tokens left out.
TransferOutcome outcome_of(const TransferFields& asked, std::uint64_t tokens_found,
                           std::uint64_t tokens_whole);
TransferOutcome outcome_of(const engine::HandoverOutcome& outcome);

}  // namespace pagoda::server
