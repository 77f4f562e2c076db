// Writes answers as Ollama does: one JSON object, or one a line in a stream.
#pragma once

#include <memory>

#include "server/api/reply_writer.h"
#include "server/http_reply.h"
#include "server/served_model.h"

namespace pagoda::server::ollama {

// `is_chat`: of /api/chat, else of /api/generate.
std::shared_ptr<ReplyWriter> make_ollama_writer(bool is_chat);

// The answer to a request that asks for nothing: clients load a model so, or unload it. The model
// is loaded already, and stays.
Json loaded_reply(const ServedModel& model, bool is_chat, bool is_unload);

// Returns the served name that a client of Ollama's means: names without a tag have ":latest".
std::string_view without_latest(std::string_view name, const ServedModel& model);

// The least version of Ollama that clients ask for is below this one.
inline constexpr std::string_view kVersion = "0.12.0";

// GET /api/tags and POST /api/show.
Json list_tags(const ServedModel& model);
Json show_model(const ServedModel& model);

}  // namespace pagoda::server::ollama
