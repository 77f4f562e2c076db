#include "structured/character_form.h"

#include <fmt/format.h>

#include <vector>

namespace pagoda::structured {
namespace {

bool wants_escape(std::uint32_t code_point) {
  return code_point < 0x20 || code_point == '"' || code_point == '\\';
}

const CodePointSet& escaped_characters() {
  static const CodePointSet kSet = CodePointSet::of({{0, 0x1F}, {'"', '"'}, {'\\', '\\'}});
  return kSet;
}

}  // namespace

void append_utf8(std::uint32_t code_point, std::string& text) {
  const auto add = [&text](std::uint32_t byte) { text += static_cast<char>(byte); };
  if (code_point < 0x80) return add(code_point);
  if (code_point < 0x800) {
    add(0xC0 | (code_point >> 6));
  } else {
    if (code_point < 0x10000) {
      add(0xE0 | (code_point >> 12));
    } else {
      add(0xF0 | (code_point >> 18));
      add(0x80 | ((code_point >> 12) & 0x3F));
    }
    add(0x80 | ((code_point >> 6) & 0x3F));
  }
  add(0x80 | (code_point & 0x3F));
}

void append_character(std::uint32_t code_point, CharacterForm form, std::string& text) {
  if (form == CharacterForm::kPlain || !wants_escape(code_point)) {
    return append_utf8(code_point, text);
  }
  constexpr std::string_view kShort = "\"\"\\\\\bb\ff\nn\rr\tt";
  for (std::size_t i = 0; i < kShort.size(); i += 2) {
    if (static_cast<std::uint32_t>(kShort[i]) != code_point) continue;
    text += '\\';
    text += kShort[i + 1];
    return;
  }
  text += fmt::format("\\u{:04x}", code_point);
}

std::string json_escaped(std::string_view text) {
  std::string escaped;
  for (const char byte : text) {
    const auto value = static_cast<unsigned char>(byte);
    if (wants_escape(value)) {
      append_character(value, CharacterForm::kJson, escaped);
    } else {
      escaped += byte;
    }
  }
  return escaped;
}

GrammarNodeId character_node(GrammarTree& tree, const CodePointSet& set, CharacterForm form) {
  if (form == CharacterForm::kPlain) return tree.code_points(set);
  std::vector<std::string> escapes;
  const CodePointSet escaped = set.within(escaped_characters());
  for (const CodePointRange& range : escaped.ranges()) {
    for (std::uint32_t code = range.first; code <= range.last; ++code) {
      append_character(code, form, escapes.emplace_back());
    }
  }
  const GrammarNodeId plain = tree.code_points(set.without(escaped_characters()));
  return tree.alternatives({plain, tree.choice(std::move(escapes))});
}

}  // namespace pagoda::structured
