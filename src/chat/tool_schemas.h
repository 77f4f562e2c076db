// The tools of a request as far as reading an answer needs them: which names there are, and which
// arguments are strings, because some formats write strings without quotes.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "chat/answer_form.h"

namespace pagoda::chat {

// The facts of a value's schema that are needed to read the value from text.
struct ArgumentShape {
  ArgumentType type = ArgumentType::kBySchema;
  bool is_object = false;  // both: it may be either
  bool is_array = false;
  std::map<std::string, ArgumentShape, std::less<>> members = {};
  std::vector<ArgumentShape> items = {};  // one, or none where nothing is said
};

class ToolSchemas {
 public:
  ToolSchemas() = default;
  // Reads [{"type": "function", "function": {"name", "parameters"}}]; what has another form is
  // left out. `with_members`: values are tags within tags, which are read by what schemas say of
  // members and elements.
  explicit ToolSchemas(const nlohmann::ordered_json& tools, bool with_members = false);

  bool empty() const { return tools_.empty(); }
  bool contains(std::string_view name) const { return tools_.find(name) != tools_.end(); }
  std::vector<std::string> names() const;
  // Keeps the tools that may be called, by a list of their names.
  void keep(const std::vector<std::string>& names);
  // A grammar makes this tool's arguments match its schema: their JSON is whole.
  void enforce(std::string_view name);
  bool is_enforced(std::string_view name) const;
  // About what the names take in memory, for as long as the request is open.
  std::uint64_t bytes() const;
  // Returns kBySchema where the schema leaves it open.
  ArgumentType type_of(std::string_view tool, std::string_view argument) const;
  // Nothing is said of arguments that the schema does not name.
  const ArgumentShape& shape_of(std::string_view tool, std::string_view argument) const;

 private:
  struct Tool {
    std::map<std::string, ArgumentShape, std::less<>> arguments = {};
    bool is_enforced = false;
  };

  std::map<std::string, Tool, std::less<>> tools_;
};

}  // namespace pagoda::chat
