// A chat or text completion, understood: what the engine is asked, and how its outputs are put.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/token_id.h"
#include "engine/request.h"
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
  std::string text;                   // what `echo` repeats; empty without it
  text::OriginText rendered;          // of a chat: its text,
  std::vector<std::size_t> begins;    // and where in it each token begins, in bytes
};

// How outputs are put into words.
struct OutputOptions {
  text::StopStrings stops;  // each choice looks for them with a copy of its own
  bool show_special_tokens = false;
  bool return_token_ids = false;
  bool echo = false;
  bool prompt_only = false;                      // echo without an output: max_tokens is 0
  std::optional<std::uint32_t> logprobs;         // this many beside the chosen token
  std::optional<std::uint32_t> prompt_logprobs;  // the same, as vLLM reports them

  bool stream = false;
  bool include_usage = false;  // a last chunk with it
};

// "retain" of a body: how much of each prompt is to stay in the cache.
struct RetainField {
  double seconds = 0;
  std::uint32_t priority = 0;
  Upto upto;
};

struct CompletionRequest {
  bool is_chat = false;
  std::vector<Prompt> prompts;  // at least one
  engine::Request engine;       // what is asked for each, but its prompt and seed
  std::optional<std::uint64_t> seed;
  OutputOptions output;
  std::optional<RetainField> retain;
  std::optional<Upto> public_upto;  // "cache_public_upto": shared with everyone
  std::uint64_t memory_bytes = 0;   // that it takes, about (request_memory.h)
  ByteBudget::Hold memory = {};     // of them, once it was admitted

  std::uint32_t choices_per_prompt() const { return engine.sampling.n; }
};

struct ReadingTerms;

// Both throw ApiError, that of a chat TakesLong too (chat_prompt.h).
CompletionRequest read_chat_request(Json body, const ServedModel& model, const ReadingTerms& terms);
CompletionRequest read_text_request(const Json& body, const ServedModel& model);

}  // namespace pagoda::server
