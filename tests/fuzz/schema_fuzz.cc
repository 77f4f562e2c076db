// Any JSON is refused as a schema with its place, or is a grammar under which a text can be written
// to its end.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fuzz/written_text.h"
#include "text/strict_json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto schema = pagoda::text::parse_strict_json(text);
  if (!schema.ok()) return 0;
  const auto grammar = pagoda::structured::grammar_from_schema(schema.value());
  if (!grammar.ok()) {
    const std::string& message = grammar.error().message;
    ASSERT(message.starts_with('/') || message.starts_with('#'), "an error names its place");
    return 0;
  }
  for (const std::uint64_t seed : {1, 2, 3}) {
    pagoda::structured::check_grammar(*grammar.value(), seed + size);
  }
  return 0;
}
