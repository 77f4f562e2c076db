// The halves of a request whose prompt is computed by one server and answered by another, as vLLM
// names them: "kv_transfer_params" of a body and of a reply.
//
// Nothing in these fields decides what an answer is made of: pages are found by the hashes of the
// prompt's own tokens. A dictionary that is forged, replayed or another server's costs a search.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/reply.h"
#include "engine/request.h"
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

// Disaggregation says what is done with requests that SGLang's routers send to two servers at once.
enum class Disaggregation : std::uint8_t {
  kNone,
  kPrefill,  // computes prompts that another server answers
  kDecode,   // answers prompts that another server computes
};
std::string_view name_of(Disaggregation mode);

struct TransferFields {
  bool hands_over = false;  // "do_remote_decode": another server goes on with the prompt
  bool takes_over = false;  // "do_remote_prefill": another server has computed it
  bool is_ours = false;     // the other server is one of these
  std::string host = {};    // where it serves pages; empty: nowhere
  std::uint16_t port = 0;
  std::uint64_t tokens_promised = 0;
  // Where the other half of a request finds this one's (SGLang): of each prompt, or of all.
  std::vector<kv::PageOrigin> bootstrap = {};
  // From where pages are fetched, of each prompt, or of all.
  std::vector<kv::PageOrigin> origins = {};
  bool is_refused = false;  // a server was named that is not asked
};

// Reads "kv_transfer_params". Throws ApiError for a member of another type or out of its range;
// members that it does not know are skipped.
TransferFields read_transfer(const Fields& fields);

// Reads the field of a header, HOST:PORT. Throws ApiError for another text.
kv::PageOrigin read_cache_source(std::string_view header);

// Makes of what a request says what this server does: by its mode, and by whom it may ask.
// `allows`: may a request name this host? Empty: no other server is asked.
void settle_transfer(TransferFields& transfer, Disaggregation mode,
                     const std::function<bool(const std::string&)>& allows);

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
  kRefused,           // a server was named that requests may not name
};
inline constexpr std::size_t kTransferOutcomes = 8;
std::string_view name_of(TransferOutcome outcome);

// `tokens_found`: of the prompts, in memory or a tier; `tokens_whole`: in their whole blocks, last
// tokens left out.
TransferOutcome outcome_of(const TransferFields& asked, std::uint64_t tokens_found,
                           std::uint64_t tokens_whole);
TransferOutcome outcome_of(const engine::HandoverOutcome& outcome);

}  // namespace pagoda::server
