// Short functions for tests that render templates.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "text/jinja/import.h"
#include "text/jinja/template.h"

namespace pagoda::text::jinja {

inline constexpr Origin kClient{Source::kUser, 0};

// The names in `values` are bound with the origin kClient.
inline Result<OriginText> render(std::string_view source,
                                 const JsonInput& values = JsonInput::object(),
                                 const RenderLimits& limits = {}) {
  const auto parsed = Template::parse("test", source);
  if (!parsed.ok()) return parsed.error();
  return parsed.value().render(
      [&](Heap& heap, Scope& scope) {
        for (const auto& [name, value] : values.items()) {
          scope.set(name, import_json(value, kClient, heap));
        }
      },
      0, limits);
}

// Returns the output, or "error: …".
inline std::string shown_or_error(std::string_view source,
                                  const JsonInput& values = JsonInput::object(),
                                  const RenderLimits& limits = {}) {
  const auto text = render(source, values, limits);
  return text.ok() ? std::string(text.value().bytes()) : "error: " + text.error().message;
}

}  // namespace pagoda::text::jinja
