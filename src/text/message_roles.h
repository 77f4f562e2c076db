// Rewrites messages of roles that a template refuses or leaves out, so that every text reaches the
// prompt: system messages, tools' results, and words beside thinking and calls.
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

// Messages are dicts with a role. Throws jinja::Fault.
std::vector<jinja::Value> fit_roles(std::vector<jinja::Value> messages,
                                    const TemplateTraits& traits, jinja::Heap& heap);

// Joins the texts of typed parts, one line each; a string is returned as it is. A fault names
// messages[index].
jinja::Value joined_parts(const jinja::Value& content, std::size_t index, jinja::Heap& heap);

void set_field(jinja::Dict& fields, std::string_view key, const jinja::Value& value,
               jinja::Heap& heap);

}  // namespace pagoda::text
