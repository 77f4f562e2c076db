// Reads GBNF, the grammars of llama.cpp (and, but for its look-ahead, of xgrammar):
//
//   root ::= "yes" | list          # a comment
//   list ::= "[" item ("," item){0,9} "]"
//   item ::= [a-z]+ | [^\n] | .
//
// Rules may refer to themselves, but not before they have read a byte. Tokens (<|name|>) are
// refused.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/result.h"
#include "structured/grammar_tree.h"

namespace pagoda::structured {

inline constexpr std::size_t kGbnfBytesMax = std::size_t{1} << 18;

// Returns the node of the rule `root`. Errors name the byte, or the rule.
Result<GrammarNodeId> read_gbnf(std::string_view text, GrammarTree& tree);

}  // namespace pagoda::structured
