#include "structured/json_nodes.h"

#include <algorithm>

#include "structured/character_form.h"
#include "structured/number_nodes.h"
#include "structured/text_cursor.h"
#include "structured/text_nodes.h"

namespace pagoda::structured {
namespace {

constexpr std::uint32_t kIndentMax = 20;

bool is_bare_key(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

constexpr std::size_t kKeyLengthMax = 64;  // of a bare key that no schema names

const CodePointSet& bare_letters() {
  static const CodePointSet kSet =
      CodePointSet::of({{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}});
  return kSet;
}

}  // namespace

bool ends_there(std::string_view text, std::string_view end) {
  return (std::string(text) + std::string(end)).find(end) == text.size();
}

bool JsonNodes::can_quote(std::string_view text) const {
  return style_.is_json() || ends_there(text, style_.quote_text());
}

bool JsonNodes::can_write(const nlohmann::ordered_json& value) const {
  if (value.is_string()) return can_quote(value.get_ref<const std::string&>());
  if (!value.is_structured()) return true;
  for (const auto& [name, element] : value.items()) {
    if (!can_quote(name) || !can_write(element)) return false;
  }
  return true;
}

std::string JsonNodes::quoted(std::string_view text) const {
  if (style_.is_json()) return "\"" + json_escaped(text) + "\"";
  return style_.quote.bytes + std::string(text) + style_.quote.bytes;
}

ObjectForm JsonNodes::form() const {
  if (style_.is_json()) return {};
  return {.key_begin = "", .key_end = ":", .is_json = false};
}

// Where characters are counted the quote's first one is left out.
GrammarNodeId JsonNodes::string(std::uint32_t least, std::uint32_t most) {
  if (style_.is_json()) return tree_.json_string(least, most);
  const GrammarNodeId quote = tree_.literal(style_.quote.bytes);
  if (least == 0 && most == kUnbounded) {
    return tree_.sequence({quote, text_until(tree_, style_.quote, tree_.empty(), false)});
  }
  CodePointSet inner = CodePointSet::all();
  if (style_.quote_text().front() != kControlByte) {
    const std::uint32_t first = TextCursor(style_.quote_text()).take_code_point();
    inner = inner.without(CodePointSet::of({{first, first}}));
  }
  return tree_.sequence(
      {quote, tree_.repeat(tree_.code_points(std::move(inner)), least, most), quote});
}

GrammarNodeId JsonNodes::space() {
  if (!style_.is_json()) return tree_.empty();
  if (!space_) {
    const GrammarNodeId indent = tree_.code_points(CodePointSet::of({{'\t', '\t'}, {' ', ' '}}));
    space_ = tree_.alternatives(
        {tree_.empty(), tree_.literal(" "),
         tree_.sequence({tree_.literal("\n"), tree_.repeat(indent, 0, kIndentMax)})});
  }
  return *space_;
}

GrammarNodeId JsonNodes::member(const JsonMember& member, const ObjectForm& form) {
  if (form.is_json) {
    return tree_.sequence({tree_.literal(form.key_begin + json_escaped(member.name) + form.key_end),
                           space(), member.value});
  }
  const bool needs_quotes = !style_.is_json() && !is_bare_key(member.name);
  const std::string key = needs_quotes ? quoted(member.name) : member.name;
  return tree_.sequence({tree_.literal(form.key_begin + key + form.key_end), member.value});
}

// The key of a member that has no name here, with what follows it.
GrammarNodeId JsonNodes::other_key(const JsonObject& object, const ObjectForm& form) {
  std::vector<std::string> names;
  if (!form.is_json) {
    for (const JsonMember& member : object.members) {
      if (is_bare_key(member.name)) names.push_back(member.name);
    }
    std::sort(names.begin(), names.end());
    return tree_.sequence(
        {tree_.literal(form.key_begin), other_bare_key(names, 0), tree_.literal(form.key_end)});
  }
  for (const JsonMember& member : object.members) names.push_back(json_escaped(member.name));
  return tree_.sequence({tree_.other_key(std::move(names)), tree_.literal(":"), space()});
}

// Names ascend; those of the span share their first `depth` letters, which were read.
GrammarNodeId JsonNodes::other_bare_key(std::span<const std::string> names, std::size_t depth) {
  const std::size_t left = kKeyLengthMax - depth;
  std::vector<GrammarNodeId> branches;
  std::size_t begin = 0;
  if (!names.empty() && names.front().size() == depth) {
    begin = 1;
  } else if (depth > 0) {
    branches.push_back(tree_.empty());
  }
  CodePointSet others = bare_letters();
  while (begin < names.size() && left > 0) {
    const char letter = names[begin][depth];
    std::size_t end = begin + 1;
    while (end < names.size() && names[end][depth] == letter) ++end;
    const auto code_point = static_cast<std::uint32_t>(letter);
    others = others.without(CodePointSet::of({{code_point, code_point}}));
    branches.push_back(
        tree_.sequence({tree_.literal(std::string_view(&letter, 1)),
                        other_bare_key(names.subspan(begin, end - begin), depth + 1)}));
    begin = end;
  }
  if (left > 0) {
    branches.push_back(tree_.sequence(
        {tree_.code_points(others), tree_.repeat(tree_.code_points(bare_letters()), 0,
                                                 static_cast<std::uint32_t>(left - 1))}));
  }
  return tree_.alternatives(branches);
}

// Rules for the members from number i on:
//   first[i]  none was written before; behind { and white space
//   more[i]   some were written before; behind a comma and white space
//   rest[i]   behind a member: a comma and more[i], or the end
GrammarNodeId JsonNodes::object(const JsonObject& object, const ObjectForm& form) {
  const GrammarNodeId gap = form.is_json ? space() : tree_.empty();
  const std::size_t count = object.members.size();
  std::vector<GrammarNodeId> rests(count + 1);
  std::vector<RuleId> rest_rules(count + 1);
  for (std::size_t i = 0; i <= count; ++i) {
    rest_rules[i] = tree_.declare_rule();
    rests[i] = tree_.rule(rest_rules[i]);
  }
  GrammarNodeId other = tree_.never();
  if (object.additional) {
    other = tree_.sequence({other_key(object, form), *object.additional, rests[count]});
  }
  const GrammarNodeId end = tree_.literal(form.close);
  GrammarNodeId first = tree_.alternatives({other, end});
  GrammarNodeId more = other;
  bool may_end = true;  // everything from i on is optional
  const auto define_rest = [&](std::size_t i) {
    const GrammarNodeId next = tree_.sequence({tree_.literal(form.comma), gap, more});
    tree_.define_rule(rest_rules[i], tree_.alternatives({next, may_end ? tree_.sequence({gap, end})
                                                                       : tree_.never()}));
  };
  define_rest(count);
  for (std::size_t i = count; i-- > 0;) {
    const JsonMember& at = object.members[i];
    const GrammarNodeId here = tree_.sequence({member(at, form), rests[i + 1]});
    may_end = may_end && !at.required;
    // Rules, so that the nodes of what follows are not nested in each other.
    const auto as_rule = [&](GrammarNodeId node) {
      const RuleId rule = tree_.declare_rule();
      tree_.define_rule(rule, node);
      return tree_.rule(rule);
    };
    first = as_rule(at.required ? here : tree_.alternatives({here, first}));
    more = as_rule(at.required ? here : tree_.alternatives({here, more}));
    define_rest(i);
  }
  return tree_.sequence({tree_.literal(form.open), gap, first});
}

GrammarNodeId JsonNodes::array(const JsonArray& array) {
  const auto comma = [&](GrammarNodeId element) {
    return tree_.sequence({tree_.literal(","), space(), element});
  };
  const GrammarNodeId close = tree_.sequence({space(), tree_.literal("]")});
  const std::uint32_t most =
      array.rest ? array.most
                 : std::min(array.most, static_cast<std::uint32_t>(array.prefix.size()));
  if (array.least > most) return tree_.never();
  const GrammarNodeId empty = array.least == 0 ? tree_.literal("]") : tree_.never();
  const GrammarNodeId open = tree_.sequence({tree_.literal("["), space()});
  if (most == 0) return tree_.sequence({open, empty});
  std::vector<GrammarNodeId> prefix = array.prefix;
  if (prefix.empty()) prefix.push_back(*array.rest);
  if (prefix.size() > most) prefix.resize(most);
  const auto written = static_cast<std::uint32_t>(prefix.size());
  // Behind `written` elements, then behind one less each time.
  GrammarNodeId tail = close;
  if (array.rest) {
    const std::uint32_t least = array.least > written ? array.least - written : 0;
    const std::uint32_t room = most == kUnbounded ? kUnbounded : most - written;
    tail = tree_.sequence({tree_.repeat(comma(*array.rest), least, room), close});
  } else if (written < array.least) {
    tail = tree_.never();
  }
  for (std::uint32_t i = written - 1; i > 0; --i) {
    const GrammarNodeId next = tree_.sequence({comma(prefix[i]), tail});
    tail = i >= array.least ? tree_.alternatives({next, close}) : next;
  }
  return tree_.sequence(
      {open, tree_.alternatives({empty, tree_.sequence({prefix.front(), tail})})});
}

GrammarNodeId JsonNodes::any_integer() {
  if (!any_integer_) {
    any_integer_ = tree_.declare_rule();
    tree_.define_rule(*any_integer_, integer_node(tree_, {}).value());
  }
  return tree_.rule(*any_integer_);
}

RuleId JsonNodes::any_rule() {
  if (any_) return *any_;
  any_ = tree_.declare_rule();
  const GrammarNodeId value = tree_.rule(*any_);
  any_object_ = object({.members = {}, .additional = value});
  const GrammarNodeId any_array = array({.prefix = {}, .rest = value});
  const Result<GrammarNodeId> number = number_node(tree_, {});
  tree_.define_rule(*any_, tree_.alternatives({any_object_, any_array, string(0, kUnbounded),
                                               number.value(), boolean(), null()}));
  return *any_;
}

GrammarNodeId JsonNodes::any() { return tree_.rule(any_rule()); }

GrammarNodeId JsonNodes::any_object() {
  any_rule();
  return any_object_;
}

GrammarNodeId JsonNodes::constant(const nlohmann::ordered_json& value) {
  if (value.is_object()) {
    JsonObject all;
    for (const auto& [name, element] : value.items()) {
      all.members.push_back({name, constant(element), true});
    }
    return object(all);
  }
  if (value.is_array()) {
    JsonArray all;
    for (const auto& element : value) all.prefix.push_back(constant(element));
    all.least = static_cast<std::uint32_t>(all.prefix.size());
    return array(all);
  }
  if (value.is_string()) return tree_.literal(quoted(value.get_ref<const std::string&>()));
  return tree_.literal(value.dump());
}

}  // namespace pagoda::structured
