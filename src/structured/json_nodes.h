// Grammars of JSON values.
//
// White space is bounded: none, one space, or a line end and up to 20 spaces or tabs, after { [ , :
// and before } ]; none before a colon or a comma, or around the whole.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "structured/grammar_tree.h"

namespace pagoda::structured {

struct JsonMember {
  std::string name;  // UTF-8, not escaped
  GrammarNodeId value = 0;
  bool required = false;
};

struct JsonObject {
  std::vector<JsonMember> members;  // in the order in which they are written
  // The value of members with other names; nothing: there are none.
  std::optional<GrammarNodeId> additional;
};

struct JsonArray {
  std::vector<GrammarNodeId> prefix;
  std::optional<GrammarNodeId> rest;  // nothing: no elements behind the prefix
  std::uint32_t least = 0;
  std::uint32_t most = kUnbounded;
};

class JsonNodes {
 public:
  explicit JsonNodes(GrammarTree& tree) : tree_(tree) {}

  GrammarNodeId space();
  GrammarNodeId object(const JsonObject& object);
  GrammarNodeId array(const JsonArray& array);
  // Any value, and any object.
  GrammarNodeId any();
  GrammarNodeId any_object();
  GrammarNodeId boolean() { return tree_.choice({"true", "false"}); }
  GrammarNodeId null() { return tree_.literal("null"); }
  // One value, its members in their order.
  GrammarNodeId constant(const nlohmann::ordered_json& value);

 private:
  GrammarNodeId member(const std::string& name, GrammarNodeId value);
  RuleId any_rule();

  GrammarTree& tree_;
  std::optional<GrammarNodeId> space_;
  std::optional<RuleId> any_;
  GrammarNodeId any_object_ = 0;
};

}  // namespace pagoda::structured
