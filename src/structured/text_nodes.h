// Grammars of free text, which ends where a marker comes: a model's reasoning, the text before its
// tool calls, a value between tags.
//
// Control tokens are no text. A grammar names one by the bytes of control_bytes(), which no UTF-8
// has, so that a control token is allowed where a grammar names it and nowhere else.
#pragma once

#include <string>
#include <string_view>

#include "base/token_id.h"
#include "structured/grammar_tree.h"

namespace pagoda::structured {

// The first byte of control_bytes().
inline constexpr char kControlByte = '\xFF';
std::string control_bytes(TokenId token);

// Any text, the empty one included.
GrammarNodeId any_text(GrammarTree& tree);
// Any text without the marker, then the marker, then `behind`. With `may_end` the text may also end
// without the marker. The marker is UTF-8, or has control bytes; an empty one comes at
// once.
GrammarNodeId text_until(GrammarTree& tree, std::string_view marker, GrammarNodeId behind,
                         bool may_end);
// Any text that does not begin with `prefix`, which is UTF-8 and not empty.
GrammarNodeId text_not_beginning(GrammarTree& tree, std::string_view prefix);

}  // namespace pagoda::structured
