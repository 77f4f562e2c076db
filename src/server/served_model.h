// The model that the server serves, behind its engine.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chat/served_form.h"
#include "engine/engine.h"
#include "server/api/prompt_normalising.h"
#include "server/api/transfer_fields.h"
#include "server/json.h"
#include "server/policy_quality.h"
#include "server/reply_queue.h"
#include "structured/mask_vocabulary.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace pagoda::server {

// PeerCounts counts what is served to other servers from the cache.
struct PeerCounts {
  std::uint64_t connections = 0;  // now
  std::uint64_t refused = 0;
  std::uint64_t pages_leased = 0;  // now
  std::uint64_t leases_expired = 0;
  std::uint64_t pages_sent = 0;
  std::uint64_t bytes_sent = 0;
};

// Immutable. Tokenizer and engine outlive a ServedModel, and it outlives every connection.
struct ServedModel {
  std::vector<std::string> names;  // requests may use any of these names; replies carry the first
  const text::Tokenizer& tokenizer;
  std::optional<text::ChatTemplate> chat_template;
  engine::Engine& engine;
  StepNotifier& step_notifier;          // called after each step of the engine
  std::string fingerprint;              // identifies what outputs depend on besides the request
  std::int64_t created_s = 0;           // Unix time in seconds
  Json facts = Json::object();          // further members of /server_info
  std::uint64_t block_bytes = 0;        // bytes of a cache block
  bool shows_tree = false;              // /cache/tree is enabled
  std::vector<std::string> tiers = {};  // the tiers outside the pool, nearest first
  // The sampling parameters of requests that set none: OpenAI's defaults unless the model
  // recommends others.
  engine::SamplingParams sampling_defaults = {.temperature = 1.0f};
  // The vocabulary for structured output; nullptr: there is none.
  std::shared_ptr<const structured::MaskVocabulary> mask_vocabulary = nullptr;
  // How chats' answers are read: tool calls and reasoning. Absent: answers are plain text.
  std::optional<chat::ServedForm> form = {};
  TransferSource transfer = {};  // for those who go on with prompts of this server
  Disaggregation disaggregation = Disaggregation::kNone;
  // May a request name this host as where its pages are? Empty: no other server is asked.
  std::function<bool(const std::string& host)> allows_source = {};
  std::function<PeerCounts()> peers_served = {};  // empty: pages are served to nobody
  NormaliseRules normalise = {};                  // text that clients change with every request
  PolicyQuality* policy_quality = nullptr;        // outlives it; nullptr: policies are not judged

  const std::string& name() const { return names.front(); }
  // The template takes one call in a message, so that answers have no more.
  bool calls_once() const { return chat_template && !chat_template->traits().several_calls; }
  std::uint64_t context_tokens() const { return engine.limits().context_tokens; }
  // Returns the context of a request, whose KV policy may let it go on beyond the model's.
  std::uint64_t context_tokens(const engine::Request& request) const {
    return engine::context_under(policy_of(request, engine.limits()), engine.limits());
  }
};

// Throws ApiError (404) unless `name` is one of the model's names.
void check_model_name(std::string_view name, const ServedModel& model);

}  // namespace pagoda::server
