// Operations on texts that filters and methods share. Every byte keeps its origin.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "text/jinja/heap.h"
#include "text/jinja/value.h"

namespace pagoda::text::jinja {

enum class Side : std::uint8_t { kBoth, kLeft, kRight };
enum class Case : std::uint8_t {
  kUpper,
  kLower,
  kCapitalised,  // the first character in title case, the rest in lower case
  kTitle,        // str.title(): words begin after any uncased character
  kTitleWords,   // the filter: words begin after white space, dashes and brackets
};

// Strips `characters`; white space when they are not given.
Value strip(const OriginText& text, Side side, std::optional<std::string_view> characters,
            Heap& heap);
// A negative `most` means no limit.
Value replace(const OriginText& text, const OriginText& from, const OriginText& to,
              std::int64_t most, Heap& heap);
// Splits at white space when there is no separator. With a limit, the rest stays whole.
std::vector<Value> split(const OriginText& text, std::optional<std::string_view> separator,
                         std::int64_t most, Heap& heap);
std::vector<Value> split_from_right(const OriginText& text,
                                    std::optional<std::string_view> separator, std::int64_t most,
                                    Heap& heap);
std::vector<Value> split_lines(const OriginText& text, bool keep_ends, Heap& heap);
Value change_case(const OriginText& text, Case to, Heap& heap);
Value indent(const OriginText& text, std::string_view margin, bool first, bool blank, Heap& heap);

}  // namespace pagoda::text::jinja
