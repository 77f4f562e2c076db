// A parsed chat or text completion: the engine's request, and how its outputs are formatted.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/token_id.h"
#include "engine/request.h"
#include "server/api/answer_terms.h"
#include "server/api/cache_fields.h"
#include "server/api/field_names.h"
#include "server/api/own_paths.h"
#include "server/api/prompt_normalising.h"
#include "server/api/transfer_fields.h"
#include "server/api/truncation.h"
#include "server/api/upto.h"
#include "server/byte_budget.h"
#include "server/json.h"
#include "server/served_model.h"
#include "text/origin.h"
#include "text/origin_text.h"
#include "text/stop_strings.h"

namespace pagoda::server {

struct Prompt {
  std::vector<TokenId> tokens;
  std::vector<text::Source> sources;  // one per token
  std::string text;                   // the text that `echo` repeats; empty without it
  text::OriginText rendered;          // the rendered text of a chat
  std::vector<std::size_t> begins;    // the byte in it at which each token begins
  std::vector<NormalisedText> normalised = {};
  std::uint64_t normalised_upto = 0;    // the token behind the first line of `normalised`
  std::uint64_t first_turn_tokens = 0;  // of a chat: up to the message behind the first question
  std::optional<PromptTruncation> truncated = {};  // what was left out
  std::uint32_t messages_added = 0;                // by the server, in front of a chat's own
  OwnPaths paths = {};                             // of messages that were translated to a chat
};

// How outputs become text.
struct OutputOptions {
  text::StopStrings stops;  // each choice searches with its own copy
  bool show_special_tokens = false;
  bool return_token_ids = false;
  bool echo = false;
  bool prompt_only = false;                      // no output: max_tokens is 0
  bool estimate = false;                         // of a request that is explained alone
  std::optional<std::uint32_t> logprobs;         // number of alternatives beside the sampled token
  std::optional<std::uint32_t> prompt_logprobs;  // the same for prompt tokens, as vLLM reports them

  bool stream = false;
  bool include_usage = false;  // a stream ends with a chunk of token counts
};

// The "retain" field of a body: how much of each prompt stays in the cache.
struct RetainField {
  double seconds = 0;
  std::uint32_t priority = 0;
  Upto upto;
};

// The options of a request for embeddings, besides its texts.
struct EmbeddingOptions {
  bool as_base64 = false;
};

class ReplyWriter;  // reply_writer.h

struct CompletionRequest {
  bool is_chat = false;
  std::shared_ptr<const AnswerTerms> answer = {};  // of a chat; null: the answer is plain text
  std::shared_ptr<ReplyWriter> writer = {};        // of another API; null: OpenAI's completions
  std::optional<EmbeddingOptions> embedding = {};  // of /v1/embeddings
  std::vector<Prompt> prompts;                     // at least one
  engine::Request engine;  // the request for each prompt, without its prompt and seed
  std::optional<std::uint64_t> seed;
  OutputOptions output;
  std::optional<RetainField> retain;
  CacheFields cache;
  TransferFields transfer = {};
  std::vector<std::string> ignored = {};               // fields of the body that nobody knows
  std::vector<FieldName> names = {};                   // which errors about fields have to use
  std::optional<RequestFingerprint> fingerprint = {};  // of a chat
  std::optional<Upto> public_upto;       // "cache_public_upto": the part shared with everyone
  std::string_view policy_quality = {};  // of a KV policy that it names: judge_kv_policy()
  std::uint64_t memory_bytes = 0;        // an estimate (request_memory.h)
  std::uint64_t matcher_bytes = 0;       // the part of it that grammars take
  ByteBudget::Hold memory = {};          // holds memory_bytes once the request is admitted

  std::uint32_t choices_per_prompt() const { return engine.sampling.n; }
};

struct ReadingTerms;

// Both throw ApiError, and TakesLong (chat_prompt.h) where they may not take long.
CompletionRequest read_chat_request(Json body, const ServedModel& model, const ReadingTerms& terms);
CompletionRequest read_text_request(const Json& body, const ServedModel& model,
                                    const ReadingTerms& terms);
CompletionRequest read_embedding_request(const Json& body, const ServedModel& model,
                                         const ReadingTerms& terms);

}  // namespace pagoda::server
