// Grammars of free text, which ends where a marker comes: a model's reasoning, the text before its
// tool calls, a value between tags.
//
// Control tokens are no text. A grammar names one by the bytes of control_bytes(), which no UTF-8
// has, so that a control token is allowed where a grammar names it and nowhere else.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/token_id.h"
#include "structured/grammar_tree.h"

namespace pagoda::structured {

// The first byte of control_bytes().
inline constexpr char kControlByte = '\xFF';
std::string control_bytes(TokenId token);

// Any text, the empty one included.
GrammarNodeId any_text(GrammarTree& tree);

// A marker as a grammar names it and as readers of the answer's text see it. Where it has control
// bytes, ordinary tokens can spell the same text: then `spelling` is in no text either.
struct TextMarker {
  std::string bytes;          // UTF-8, or with control bytes
  std::string spelling = {};  // UTF-8; empty: the marker's own bytes, or nothing to avoid
};

// Any text without the marker, then the marker, then `behind`. With `may_end` the text may also end
// without the marker. An empty marker comes at once. The text has none of `avoided`, which are
// UTF-8 and not empty.
GrammarNodeId text_until(GrammarTree& tree, const TextMarker& marker, GrammarNodeId behind,
                         bool may_end, const std::vector<std::string>& avoided = {});
// Any text that does not begin with one of `prefixes` behind any white space. They are UTF-8, not
// empty, and begin with no white space.
GrammarNodeId text_not_beginning(GrammarTree& tree, const std::vector<std::string>& prefixes);

}  // namespace pagoda::structured
