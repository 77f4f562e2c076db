// The fields that chat and text completions share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "server/api/completion_request.h"
#include "server/api/output_length.h"
#include "server/fields.h"
#include "server/option_name.h"

namespace pagoda::server {

inline constexpr std::int64_t kLogprobsMax = 20;

// Reads sampling, stop conditions, priority, salt and streaming. The caller reads what differs:
// prompts, lengths and log-probabilities. Sampling fields that are absent stay as they are in
// `request`, where the caller has put the model's defaults. `n` may be at most `sequences_max`;
// `option_name` names the option behind that limit, where it is not nullptr.
void read_shared_fields(const Fields& fields, std::uint32_t sequences_max,
                        CompletionRequest& request, const OptionName* option_name = nullptr);

// Reads "cache_salt"; empty where the body has none.
std::string read_salt(const Fields& fields);

// Checks the number of choices against the engine's limit, before anything is allocated for them.
void check_choices(const CompletionRequest& request, const ServedModel& model);

// Reads a text, token ids, or a batch of either from the field, and counts their memory. Of a
// prompt with more than `tokens_kept` tokens the last ones are kept, behind a BOS that was added;
// without it a prompt that exceeds the context is refused.
void read_prompts(const Fields& fields, const char* name, const ServedModel& model,
                  const ReadingTerms& terms, CompletionRequest& request,
                  std::optional<std::uint64_t> tokens_kept = {});

// The prompt is computed and left in the cache, and nothing is answered.
void answer_nothing(CompletionRequest& request);

// A text that is too long is counted for its refusal up to this many bytes.
inline constexpr std::size_t kRefusedBytesMax = 1 << 20;
// Prompts longer than the context are counted, or cut to it, up to this number of tokens.
std::uint64_t counted_tokens_max(const ServedModel& model);
// Refuses a prompt with more than `most` tokens, whether the context, that of the caller's tenant
// (0: it has none) or that number is the limit. `tokens` is its length, where that is known: texts
// are counted as far as kRefusedBytesMax and counted_tokens_max() let them.
[[noreturn]] void refuse_beyond(std::uint64_t most, const std::string& path,
                                const ServedModel& model, std::uint64_t tenant_tokens = 0,
                                std::optional<std::uint64_t> tokens = {});

// Checks every prompt and the requested length against the context; errors name `prompt_field`.
// `tenant_tokens`: what a sequence of the caller's tenant may have; 0: as much as the context.
void check_lengths(const CompletionRequest& request, const ServedModel& model,
                   const std::string& prompt_field, const OutputLength& length,
                   std::uint64_t tenant_tokens = 0);

// Throws ApiError for unsupported fields that would change the output. `choices` is the request's
// n.
void refuse_unsupported(const Fields& fields, std::uint32_t choices);

// A name that the log may show: others may be text of the client.
bool is_plain_name(std::string_view name);
inline constexpr std::size_t kIgnoredNamesMax = 8;

// The names of a body that no completion reads or refuses, for the log: a misspelt field would be
// silent. So would an empty grammar, which clients send for none: it is named, too. `own` are read
// by an API beside those. The first kIgnoredNamesMax of plain names.
std::vector<std::string> ignored_fields(const Json& body,
                                        std::span<const std::string_view> own = {});

}  // namespace pagoda::server
