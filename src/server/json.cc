#include "server/json.h"

#include "server/api_error.h"
#include "server/reading_memory.h"

namespace pagoda::server {

Json parse_json(std::string_view text, ReadingMemory* memory) {
  std::string deep_path;
  auto parsed = text::parse_strict_json(text, memory, &deep_path);
  if (!parsed.ok()) {
    if (memory != nullptr && parsed.error().code == ErrorCode::kExhausted) throw memory->refusal();
    if (!deep_path.empty()) {
      throw ApiError(400, parsed.error().message, deep_path, "invalid_json");
    }
    throw ApiError(400, "the body is not acceptable JSON: " + parsed.error().message, {},
                   "invalid_json");
  }
  return std::move(parsed).value();
}

std::string dump_json(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace pagoda::server
