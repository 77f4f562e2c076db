// Grammars of JSON values.
//
// White space is bounded: none, one space, or a line end and up to 20 spaces or tabs, after { [ , :
// and before } ]; none before a colon or a comma, or around the whole.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "structured/grammar_tree.h"
#include "structured/text_nodes.h"

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

// How the members of an object are written: open key_begin K key_end V comma … close.
struct ObjectForm {
  std::string open = "{";
  std::string close = "}";
  std::string comma = ",";
  std::string key_begin = "\"";
  std::string key_end = "\":";
  bool is_json = true;  // keys are escaped, and white space may be around values
};

// How values are written: as JSON, or with strings between quotes of their own and bare keys.
struct JsonStyle {
  TextMarker quote = {};  // empty: JSON

  bool is_json() const { return quote.bytes.empty(); }
  // The quote as readers of the answer see it.
  const std::string& quote_text() const {
    return quote.spelling.empty() ? quote.bytes : quote.spelling;
  }
};

struct JsonArray {
  std::vector<GrammarNodeId> prefix;
  std::optional<GrammarNodeId> rest;  // nothing: no elements behind the prefix
  std::uint32_t least = 0;
  std::uint32_t most = kUnbounded;
};

// Whether a text of `end` behind `text` is where a reader finds it first.
bool ends_there(std::string_view text, std::string_view end);

class JsonNodes {
 public:
  explicit JsonNodes(GrammarTree& tree, JsonStyle style = {})
      : tree_(tree), style_(std::move(style)) {}

  GrammarNodeId space();
  GrammarNodeId object(const JsonObject& object) { return this->object(object, form()); }
  GrammarNodeId object(const JsonObject& object, const ObjectForm& form);
  GrammarNodeId array(const JsonArray& array);
  // Any value, and any object.
  GrammarNodeId any();
  GrammarNodeId any_object();
  // Any integer: a rule, because its digits take many instructions.
  GrammarNodeId any_integer();
  GrammarNodeId boolean() { return tree_.choice({"true", "false"}); }
  GrammarNodeId null() { return tree_.literal("null"); }
  // A string of `least` to `most` code points.
  GrammarNodeId string(std::uint32_t least, std::uint32_t most);
  // The text of a string with its quotes, which must not be within it: see can_write().
  std::string quoted(std::string_view text) const;
  // Whether no string of the value, nor a name in it, would end too early.
  bool can_write(const nlohmann::ordered_json& value) const;
  bool can_quote(std::string_view text) const;
  // One value, its members in their order.
  GrammarNodeId constant(const nlohmann::ordered_json& value);
  const JsonStyle& style() const { return style_; }

 private:
  ObjectForm form() const;
  GrammarNodeId member(const JsonMember& member, const ObjectForm& form);
  GrammarNodeId other_key(const JsonObject& object, const ObjectForm& form);
  GrammarNodeId other_bare_key(std::span<const std::string> names, std::size_t depth);
  RuleId any_rule();

  GrammarTree& tree_;
  JsonStyle style_;
  std::optional<GrammarNodeId> space_;
  std::optional<RuleId> any_;
  std::optional<RuleId> any_integer_;
  GrammarNodeId any_object_ = 0;
};

}  // namespace pagoda::structured
