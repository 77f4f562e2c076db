// POST /v1/embeddings: hidden states of the model, pooled to one vector for each text.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/completion_request.h"
#include "server/api/usage.h"

namespace pagoda::server {

// Returns the reply's body. Vectors, one for each prompt, are scaled to length 1 as OpenAI's are.
std::string embeddings_json(std::span<const std::span<const float>> vectors,
                            const CompletionRequest& request, std::string_view model,
                            const Usage& usage);

// Check vectors before embeddings_json(): JSON has no infinities and no NaN.
bool is_finite(std::span<const float> values);

// Numbers as their bytes, least significant first, in base64 (RFC 4648).
std::string base64_of(std::span<const float> values);

}  // namespace pagoda::server
