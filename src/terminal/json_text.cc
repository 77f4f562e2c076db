#include "terminal/json_text.h"

#include <nlohmann/json.hpp>

namespace pagoda::terminal {

std::string json_text(const nlohmann::ordered_json& json, int indent) {
  return json.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace pagoda::terminal
