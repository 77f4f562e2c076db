// What the server serves: one model behind one engine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "server/json.h"
#include "server/reply_queue.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace pagoda::server {

// Immutable; tokenizer and engine outlive it, and it outlives every connection.
struct ServedModel {
  std::vector<std::string> names;  // all are answered to; replies carry the first
  const text::Tokenizer& tokenizer;
  std::optional<text::ChatTemplate> chat_template;
  engine::Engine& engine;
  StepNotifier& step_notifier;          // called after each step of the engine
  std::string fingerprint;              // what outputs depend on besides the request
  std::int64_t created_s = 0;           // since 1970
  Json facts = Json::object();          // more of what /server_info tells
  std::uint64_t block_bytes = 0;        // of the cache
  bool shows_tree = false;              // /cache/tree answers
  std::vector<std::string> tiers = {};  // outside memory, nearest first

  const std::string& name() const { return names.front(); }
  std::uint64_t context_tokens() const { return engine.limits().context_tokens; }
};

// Throws ApiError (404) unless it is one of the model's names.
void check_model_name(std::string_view name, const ServedModel& model);

}  // namespace pagoda::server
