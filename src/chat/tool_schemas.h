// The tools of a request as far as reading an answer needs them: which names there are, and which
// arguments are strings, because some formats write strings without quotes.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "chat/answer_form.h"

namespace pagoda::chat {

class ToolSchemas {
 public:
  ToolSchemas() = default;
  // Reads [{"type": "function", "function": {"name", "parameters"}}]; what has another form is
  // left out.
  explicit ToolSchemas(const nlohmann::ordered_json& tools);

  bool empty() const { return tools_.empty(); }
  bool contains(std::string_view name) const { return tools_.find(name) != tools_.end(); }
  // About what the names take in memory, for as long as the request is open.
  std::uint64_t bytes() const;
  // Returns kBySchema where the schema leaves it open.
  ArgumentType type_of(std::string_view tool, std::string_view argument) const;

 private:
  std::map<std::string, std::map<std::string, ArgumentType, std::less<>>, std::less<>> tools_;
};

}  // namespace pagoda::chat
