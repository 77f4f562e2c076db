// The fields that chat and text completions share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "server/api/completion_request.h"
#include "server/fields.h"

namespace pagoda::server {

inline constexpr std::int64_t kLogprobsMax = 20;

// Sampling, ends, priority, salt, streaming. What differs (prompts, lengths, log-probabilities) is
// read by the caller. `sequences_max` is what `n` is held against.
void read_shared_fields(const Fields& fields, std::uint32_t sequences_max,
                        CompletionRequest& request);

// Where the output's length stands in the body, for errors: "max_tokens".
struct OutputLength {
  std::optional<std::uint32_t> tokens;
  std::string field;
};

// The choices asked for against what the engine computes at once: before anything is made for each.
void check_choices(const CompletionRequest& request, const ServedModel& model);

// A prompt that the context does not hold; its exact length is nobody's business to find out.
[[noreturn]] void refuse_long_prompt(const std::string& path, std::uint64_t context);

// Holds every prompt and the length asked for against the context; `prompt_field` is for errors.
void check_lengths(const CompletionRequest& request, const ServedModel& model,
                   const std::string& prompt_field, const OutputLength& length);

// Throws for fields that would change the output and are not supported. `choices` is the request's
// n.
void refuse_unsupported(const Fields& fields, std::uint32_t choices);

}  // namespace pagoda::server
