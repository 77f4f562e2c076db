// Pre-tokenizers: how a family of models cuts text into the pieces within which tokens may merge.
//
// A family is one or more patterns; the second works on the pieces of the first, and so on. Bytes
// that are not UTF-8 are pieces of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/split_pattern.h"

namespace pagoda::text {

struct PretokenizerFamily {
  std::span<const std::string_view> names;  // the values of tokenizer.ggml.pre
  std::span<const std::string_view> patterns;
  // A piece that is a token becomes that token, whatever the merges say. A file that has
  // pagoda.tokenizer.whole_words_first decides it itself.
  bool whole_words_first = false;
  bool add_bos = false;  // the default where the file does not say
  // A run of newlines that is a token becomes that token, whatever the merges say.
  bool whole_newlines_first = false;
};

// Returns nullptr when no family has this name.
const PretokenizerFamily* find_pretokenizer_family(std::string_view name);
std::span<const PretokenizerFamily> pretokenizer_families();

// Buffers for splitting; one thread at a time may use them.
struct SplitWorkspace {
  MatchState match;
  std::vector<std::uint32_t> ends_before;
  std::size_t bytes_longest = 0;  // the longest text that was split
};

class Pretokenizer {
 public:
  static Result<Pretokenizer> compile(const PretokenizerFamily& family);

  // Sets `ends` to the end of each piece of `text`: ascending, the last is the text's size. `text`
  // has less than 4 GiB.
  void split(std::string_view text, SplitWorkspace& workspace,
             std::vector<std::uint32_t>& ends) const;

 private:
  void split_well_formed(std::string_view text, std::uint32_t base, SplitWorkspace& workspace,
                         std::vector<std::uint32_t>& ends) const;

  std::vector<SplitPattern> patterns_;
};

}  // namespace pagoda::text
