// Gives tools what a template reads of every tool, where clients leave it out: a description, a
// schema of the arguments, its properties.
#pragma once

#include <optional>

#include "text/chat_template.h"

namespace pagoda::text {

// Returns nothing where the template takes the tools, an array or null, as they are.
std::optional<ChatJson> fitted_tools(const ChatJson& tools, const TemplateTraits& traits);

}  // namespace pagoda::text
