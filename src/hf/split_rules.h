// How tokenizer.json cuts text before it merges: its normalizer and pre_tokenizer, as the names
// that src/text knows them by. What src/text does not do is refused by its name.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "hf/json_file.h"

namespace pagoda::hf {

// Which texts get a space before them.
enum class SpacePrefix : std::uint8_t {
  kNever,
  kAlways,           // the beginning, and what follows special tokens
  kUnlessSpace,      // the same, but for text that begins with a space
  kStartUnlessSpace  // the beginning alone, but for text that begins with a space
};

struct SplitRules {
  bool byte_level = false;    // pieces are bytes in the printable alphabet of GPT-2
  bool marks_spaces = false;  // spaces become U+2581
  bool nfc = false;           // texts are brought into NFC
  SpacePrefix prefix = SpacePrefix::kNever;
  std::string pretokenizer;  // the value of tokenizer.ggml.pre
};

// `tokenizer` is the root of tokenizer.json. `whole_words_first` is the model's ignore_merges.
Result<SplitRules> read_split_rules(const JsonFields& tokenizer, bool whole_words_first);

}  // namespace pagoda::hf
