// Rules about words: plain ones in names and comments, comments that name their noun, and flags in
// the command line alone.
#pragma once

#include "tidy/source_text.h"

namespace pagoda::tidy {

// Metaphors in the path, in identifiers and in comments of src/ and tests/: words that a reader of
// other inference servers would not search for. A word is a part of snake_case or CamelCase, also
// in the plural; string literals, #include lines and names after std:: pass.
Findings metaphors(const SourceText& source);

// String literals of src/ outside src/cli/ that name a flag: a word that begins with "--" and a
// letter, also in parentheses. Errors name fields between backticks, and src/cli/field_flags.h maps
// them to flags. Files that run other programs pass.
Findings flags_below_the_command_line(const SourceText& source);

// Lines of src/ that are // comments and open with "Of " or "What ", so that they hide their noun:
// "Of the last launch." for "Returns how many tokens the last launch has." Comments behind code
// pass, and so does a question: its first sentence, over several lines, ends with a question mark.
Findings nounless_comments(const SourceText& source);

}  // namespace pagoda::tidy
