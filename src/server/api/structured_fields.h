// The fields that ask for structured output: OpenAI's response_format, vLLM's structured_outputs
// and guided_*, llama.cpp's json_schema and grammar.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "server/api/chat_prompt.h"
#include "server/fields.h"
#include "structured/grammar.h"

namespace pagoda::server {

// The fields of a body that may ask for structure.
inline constexpr auto kStructuredFields = std::to_array<std::string_view>(
    {"response_format", "structured_outputs", "guided_json", "guided_regex", "guided_choice",
     "guided_grammar", "json_schema", "grammar"});
// Clients send empty values of these for what they do not use.
bool asks_for_no_structure(const Json& value);

// The grammar that a request's text must match.
struct AskedGrammar {
  structured::GrammarNodeId node = 0;
  std::string path;  // of the field
};

// Call this once before a request's grammar is compiled: counts the memory of that. Throws
// TakesLong (chat_prompt.h) where it may not take long, and ApiError where there is not enough
// memory.
void begin_compiling(const ReadingTerms& terms);

// Compiles what the fields ask for into `builder`; nothing where they ask for nothing. At most one
// of them may ask. Throws as begin_compiling() does, and ApiError whose message names the
// place in the schema, pattern or grammar.
std::optional<AskedGrammar> read_structured_fields(const Fields& fields, const ReadingTerms& terms,
                                                   structured::GrammarBuilder& builder);

}  // namespace pagoda::server
