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
  kCapitalised,  // the first character as in titles, the rest lower
  kTitle,        // str.title(): words begin behind anything without a case
  kTitleWords,   // the filter: words begin behind white space, dashes and brackets
};

// `characters`: which to take away; white space when it is not given.
Value strip(const OriginText& text, Side side, std::optional<std::string_view> characters,
            Heap& heap);
// A negative `most` is no limit.
Value replace(const OriginText& text, const OriginText& from, const OriginText& to,
              std::int64_t most, Heap& heap);
// At white space when there is no separator. With a limit, what is left stays whole.
std::vector<Value> split(const OriginText& text, std::optional<std::string_view> separator,
                         std::int64_t most, Heap& heap);
std::vector<Value> split_from_right(const OriginText& text,
                                    std::optional<std::string_view> separator, std::int64_t most,
                                    Heap& heap);
std::vector<Value> split_lines(const OriginText& text, bool keep_ends, Heap& heap);
Value change_case(const OriginText& text, Case to, Heap& heap);
Value indent(const OriginText& text, std::string_view margin, bool first, bool blank, Heap& heap);

}  // namespace pagoda::text::jinja
