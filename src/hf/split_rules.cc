#include "hf/split_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "gguf/printable.h"
#include "text/pretokenizer.h"
#include "text/utf8.h"
#include "text/vocabulary.h"

namespace pagoda::hf {
namespace {

constexpr std::size_t kStepsMax = 16;
constexpr std::string_view kGpt2Regex =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// A normalizer, pre_tokenizer or one of the steps that it consists of.
struct Step {
  std::string type;
  JsonFields fields;
};

// Lists the steps of a field, which is absent, one step, or a sequence of steps.
Result<std::vector<Step>> list_steps(const JsonFields& tokenizer, const char* field,
                                     const char* list_field) {
  std::vector<Step> steps;
  ASSIGN_OR_RETURN(const std::optional<JsonFields> root, tokenizer.object(field));
  if (!root) return steps;
  ASSIGN_OR_RETURN(const std::string type, root->text_or("type", ""));
  if (type != "Sequence") {
    steps.push_back({type, *root});
    return steps;
  }
  const JsonValue* const list = root->find(list_field);
  if (list == nullptr || !list->is_array() || list->size() > kStepsMax) {
    return root->refused(list_field, fmt::format("expected a list of at most {}", kStepsMax));
  }
  for (const JsonValue& step : *list) {
    ASSIGN_OR_RETURN(const JsonFields fields,
                     JsonFields::of(step, fmt::format("{}{}.", root->place(), list_field)));
    ASSIGN_OR_RETURN(const std::string step_type, fields.text_or("type", ""));
    steps.push_back({step_type, fields});
  }
  return steps;
}

Error refused_step(const Step& step, std::string_view why) {
  return {ErrorCode::kUnsupported, fmt::format("{}type is '{}', {}", step.fields.place(),
                                               gguf::printable(step.type, 40), why)};
}

// Returns the text or the regex of a `pattern` field.
Result<std::string> pattern_of(const Step& step, bool& is_regex) {
  ASSIGN_OR_RETURN(const std::optional<JsonFields> pattern, step.fields.object("pattern"));
  if (!pattern) return step.fields.missing("pattern");
  is_regex = pattern->has("Regex");
  return pattern->text_or(is_regex ? "Regex" : "String", "");
}

// The end of a piece, as DeepSeek's files write it. Oniguruma finds the whole run of white space;
// src/text has the same without a search that begins at every one of its characters.
constexpr std::string_view kSpacesAtEnd = R"(\s+$)";
constexpr std::string_view kSpacesAtEndOnce = R"((?<!\s)\s++\z)";

// Characters outside ASCII and the ends of lines as PCRE2 writes them, so that patterns can be
// compared: files have them as they are, or escaped.
std::string with_escapes(std::string_view pattern) {
  std::string escaped;
  for (std::size_t at = 0; at < pattern.size();) {
    const std::size_t bytes = std::max<std::size_t>(1, text::utf8_char_bytes(pattern.substr(at)));
    if (bytes == 1) {
      const char byte = pattern[at];
      if (byte == '\r' || byte == '\n') {
        escaped += byte == '\r' ? "\\r" : "\\n";
      } else {
        escaped += byte;
      }
    } else {
      std::uint32_t code = static_cast<unsigned char>(pattern[at]) & (0xFFU >> (bytes + 1));
      for (std::size_t i = 1; i < bytes; ++i) {
        code = code << 6 | (static_cast<unsigned char>(pattern[at + i]) & 0x3FU);
      }
      escaped += fmt::format("\\x{{{:X}}}", code);
    }
    at += bytes;
  }
  return escaped;
}

class RulesReader {
 public:
  RulesReader(const JsonFields& tokenizer, bool whole_words_first)
      : tokenizer_(tokenizer), whole_words_first_(whole_words_first) {}

  Result<SplitRules> read() {
    ASSIGN_OR_RETURN(const std::vector<Step> normalizers,
                     list_steps(tokenizer_, "normalizer", "normalizers"));
    for (const Step& step : normalizers) RETURN_IF_ERROR(read_normalizer(step));
    ASSIGN_OR_RETURN(const std::vector<Step> steps,
                     list_steps(tokenizer_, "pre_tokenizer", "pretokenizers"));
    for (const Step& step : steps) RETURN_IF_ERROR(read_pretokenizer(step));
    if (rules_.byte_level) {
      if (rules_.marks_spaces || rules_.prefix != SpacePrefix::kNever) {
        return unsupported("marks for spaces together with bytes are not supported");
      }
      ASSIGN_OR_RETURN(rules_.pretokenizer, find_family());
      return rules_;
    }
    if (!patterns_.empty()) {
      return unsupported(fmt::format("the regex is not supported without bytes: {}",
                                     gguf::printable(patterns_.front(), 400)));
    }
    rules_.pretokenizer = marked_words_ ? "marked-words" : "whole-text";
    return rules_;
  }

 private:
  Error unsupported(std::string_view what) const {
    return {ErrorCode::kUnsupported, fmt::format("{}pre_tokenizer: {}", tokenizer_.place(), what)};
  }

  Status read_normalizer(const Step& step) {
    if (step.type == "NFC") {
      // Marks for spaces compose with nothing, so that the order of these steps does not matter.
      rules_.nfc = true;
      return ok_status();
    }
    if (step.type == "Prepend") {
      ASSIGN_OR_RETURN(const std::string mark, step.fields.text_or("prepend", ""));
      if (mark != text::kSpaceMark) return refused_step(step, "expected U+2581");
      rules_.prefix = SpacePrefix::kAlways;
      return ok_status();
    }
    if (step.type == "Replace") {
      bool is_regex = false;
      ASSIGN_OR_RETURN(const std::string pattern, pattern_of(step, is_regex));
      ASSIGN_OR_RETURN(const std::string content, step.fields.text_or("content", ""));
      if (is_regex || pattern != " " || content != text::kSpaceMark) {
        return refused_step(step, "expected spaces to become U+2581");
      }
      rules_.marks_spaces = true;
      return ok_status();
    }
    return refused_step(step, "this version normalises by NFC, Prepend and Replace alone");
  }

  Status read_pretokenizer(const Step& step) {
    if (rules_.byte_level) return refused_step(step, "expected nothing after ByteLevel");
    if (step.type == "ByteLevel") return read_byte_level(step);
    if (step.type == "Split") return read_split(step);
    if (step.type == "Metaspace") return read_metaspace(step);
    if (step.type == "Digits") {
      ASSIGN_OR_RETURN(const bool single, step.fields.flag_or("individual_digits", false));
      patterns_.emplace_back(single ? R"(\p{N})" : R"(\p{N}+)");
      return ok_status();
    }
    return refused_step(step, "this version cuts by ByteLevel, Split, Digits and Metaspace alone");
  }

  Status read_byte_level(const Step& step) {
    ASSIGN_OR_RETURN(const bool prefix, step.fields.flag_or("add_prefix_space", true));
    if (prefix) return step.fields.refused("add_prefix_space", "which is not supported");
    ASSIGN_OR_RETURN(const bool cuts, step.fields.flag_or("use_regex", true));
    if (cuts) patterns_.emplace_back(kGpt2Regex);
    rules_.byte_level = true;
    return ok_status();
  }

  Status read_split(const Step& step) {
    bool is_regex = false;
    ASSIGN_OR_RETURN(const std::string pattern, pattern_of(step, is_regex));
    ASSIGN_OR_RETURN(const std::string behavior, step.fields.text_or("behavior", ""));
    ASSIGN_OR_RETURN(const bool inverted, step.fields.flag_or("invert", false));
    // Where spaces became marks, no space is left to cut at.
    if (!is_regex && pattern == " " && rules_.marks_spaces) return ok_status();
    // All that the patterns leave over is empty, so that what is removed is nothing.
    const bool isolates =
        (behavior == "Isolated" && !inverted) || (behavior == "Removed" && inverted);
    if (!is_regex || !isolates) {
      return refused_step(step, fmt::format("with behavior {} and pattern {}, which is not "
                                            "supported",
                                            behavior, gguf::printable(pattern, 200)));
    }
    patterns_.push_back(pattern == kSpacesAtEnd ? std::string(kSpacesAtEndOnce)
                                                : with_escapes(pattern));
    return ok_status();
  }

  Status read_metaspace(const Step& step) {
    ASSIGN_OR_RETURN(const std::string mark, step.fields.text_or("replacement", text::kSpaceMark));
    if (mark != text::kSpaceMark) return refused_step(step, "expected U+2581 as the replacement");
    // Older files have a flag for the scheme.
    ASSIGN_OR_RETURN(const bool prefix, step.fields.flag_or("add_prefix_space", true));
    ASSIGN_OR_RETURN(const std::string scheme,
                     step.fields.text_or("prepend_scheme", prefix ? "always" : "never"));
    if (scheme == "always") {
      rules_.prefix = SpacePrefix::kUnlessSpace;
    } else if (scheme == "first") {
      rules_.prefix = SpacePrefix::kStartUnlessSpace;
    } else if (scheme != "never") {
      return step.fields.refused("prepend_scheme", "expected always, first or never");
    }
    ASSIGN_OR_RETURN(marked_words_, step.fields.flag_or("split", true));
    rules_.marks_spaces = true;
    return ok_status();
  }

  // Finds the family of src/text that cuts by the same patterns. Where several do, their names say
  // whether whole words come first.
  Result<std::string> find_family() const {
    std::vector<std::string_view> patterns(patterns_.begin(), patterns_.end());
    // src/text has the two steps of StarCoder in one.
    if (patterns.size() == 2 && patterns[0] == R"(\p{N})" && patterns[1] == kGpt2Regex) {
      return std::string("starcoder");
    }
    const text::PretokenizerFamily* found = nullptr;
    for (const text::PretokenizerFamily& family : text::pretokenizer_families()) {
      if (!std::equal(patterns.begin(), patterns.end(), family.patterns.begin(),
                      family.patterns.end())) {
        continue;
      }
      const bool is_better = found == nullptr || (found->whole_words_first != whole_words_first_ &&
                                                  family.whole_words_first == whole_words_first_);
      if (is_better) found = &family;
    }
    if (found != nullptr) return std::string(found->names.front());
    std::string listed;
    for (const std::string_view pattern : patterns) {
      listed += fmt::format("{}{}", listed.empty() ? "" : "  then  ", pattern);
    }
    return unsupported(
        fmt::format("the regex is not known to this version: {}", gguf::printable(listed, 1000)));
  }

  const JsonFields& tokenizer_;
  bool whole_words_first_;
  SplitRules rules_;
  bool marked_words_ = false;
  std::vector<std::string> patterns_;
};

}  // namespace

Result<SplitRules> read_split_rules(const JsonFields& tokenizer, bool whole_words_first) {
  return RulesReader(tokenizer, whole_words_first).read();
}

}  // namespace pagoda::hf
