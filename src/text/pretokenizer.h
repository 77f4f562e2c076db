// How a family of models cuts text into the pieces within which tokens may merge.
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
  std::span<const std::string_view> names;  // as tokenizer.ggml.pre gives them
  std::span<const std::string_view> patterns;
  bool whole_words_first = false;  // a piece that is a token becomes it, whatever the merges say
  bool add_bos = false;            // where the file does not say
};

// Null when no family has that name.
const PretokenizerFamily* find_pretokenizer_family(std::string_view name);
std::span<const PretokenizerFamily> pretokenizer_families();

// What splitting needs while it runs; one thread at a time.
struct SplitWorkspace {
  MatchState match;
  std::vector<std::uint32_t> ends_before;
  std::size_t bytes_longest = 0;  // of the texts that were split
};

class Pretokenizer {
 public:
  static Result<Pretokenizer> compile(const PretokenizerFamily& family);

  // Sets `ends` to where each piece of `text` ends: ascending, the last is the text's size.
  // `text` has less than 4 GiB.
  void split(std::string_view text, SplitWorkspace& workspace,
             std::vector<std::uint32_t>& ends) const;

 private:
  void split_well_formed(std::string_view text, std::uint32_t base, SplitWorkspace& workspace,
                         std::vector<std::uint32_t>& ends) const;

  std::vector<SplitPattern> patterns_;
};

}  // namespace pagoda::text
