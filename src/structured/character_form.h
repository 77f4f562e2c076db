// How a character is written: as itself, or as it stands in a JSON string.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "structured/grammar_tree.h"

namespace pagoda::structured {

enum class CharacterForm : std::uint8_t {
  kPlain,  // UTF-8
  kJson,   // UTF-8, with the one escape JSON has for quotes, backslashes and control characters
};

void append_utf8(std::uint32_t code_point, std::string& text);
// Appends one character in the form.
void append_character(std::uint32_t code_point, CharacterForm form, std::string& text);
// Returns the text between the quotes of a JSON string; `text` is UTF-8.
std::string json_escaped(std::string_view text);

// Returns a node for one character of the set, which is normalised.
GrammarNodeId character_node(GrammarTree& tree, const CodePointSet& set, CharacterForm form);

}  // namespace pagoda::structured
