// Rewrites messages that a template refuses or leaves out where they stand, so that every text
// reaches the prompt: system messages, tools' results, words beside thinking and calls, several
// calls, and messages of one role in a row.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/chat_template.h"
#include "text/jinja/heap.h"
#include "text/jinja/value.h"

namespace pagoda::text {

// A tool's result that becomes a user's message begins with this text.
inline constexpr std::string_view kResultHead = "Result of the tool:\n";

// Messages are dicts with a role; where generation `continues` the last, it stays. Throws
// jinja::Fault.
std::vector<jinja::Value> fit_roles(std::vector<jinja::Value> messages,
                                    const TemplateTraits& traits, bool continues,
                                    jinja::Heap& heap);

// Joins the texts of typed parts, one line each; a string is returned as it is. A fault names
// messages[index].
jinja::Value joined_parts(const jinja::Value& content, std::size_t index, jinja::Heap& heap);

void set_field(jinja::Dict& fields, std::string_view key, const jinja::Value& value,
               jinja::Heap& heap);

}  // namespace pagoda::text
