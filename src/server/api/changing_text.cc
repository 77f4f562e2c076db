#include "server/api/changing_text.h"

#include <algorithm>
#include <array>

#include "base/ascii.h"

namespace pagoda::server {
namespace {

constexpr std::size_t kWordBytesMax = 40;

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

std::string lower(std::string_view text) {
  std::string lowered(text);
  std::transform(lowered.begin(), lowered.end(), lowered.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return lowered;
}

// Returns the word around byte `at`, delimited by spaces.
std::string_view word_at(std::string_view text, std::size_t at) {
  std::size_t begin = std::min(at, text.size());
  while (begin > 0 && !is_space(text[begin - 1]) && at - begin < kWordBytesMax) --begin;
  std::size_t end = std::min(at, text.size());
  while (end < text.size() && !is_space(text[end]) && end - at < kWordBytesMax) ++end;
  return text.substr(begin, end - begin);
}

// Returns the word, which is a view into the text, with its neighbours on both sides.
std::string_view with_neighbours(std::string_view text, std::string_view word) {
  auto begin = static_cast<std::size_t>(word.data() - text.data());
  std::size_t end = begin + word.size();
  const auto widen = [&](auto&& stop) {
    while (begin > 0 && stop(text[begin - 1])) --begin;
    while (end < text.size() && stop(text[end])) ++end;
  };
  widen(is_space);
  widen([](char c) { return !is_space(c); });
  return text.substr(begin, end - begin);
}

// Returns the word with digits as 9 and letters as a.
std::string shape_of(std::string_view word) {
  std::string shape;
  for (const char c : word) shape += is_ascii_digit(c) ? '9' : is_ascii_letter(c) ? 'a' : c;
  return shape;
}

bool contains_any(std::string_view text, auto&& words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    return text.find(word) != std::string_view::npos;
  });
}

bool names_a_day(std::string_view words) {
  constexpr std::array<std::string_view, 19> kNames = {
      "january",   "february",  "march",   "april",    "may ",     "june",   "july",
      "august",    "september", "october", "november", "december", "monday", "tuesday",
      "wednesday", "thursday",  "friday",  "saturday", "sunday"};
  return contains_any(lower(words) + " ", kNames);
}

bool is_number(std::string_view word) {
  return std::any_of(word.begin(), word.end(), is_ascii_digit) &&
         std::none_of(word.begin(), word.end(), is_ascii_letter);
}

// An id is long and has digits among its letters.
bool is_id(std::string_view word) {
  return word.size() >= 8 && std::any_of(word.begin(), word.end(), is_ascii_digit) &&
         std::any_of(word.begin(), word.end(), is_ascii_letter);
}

std::string_view kind_of(std::string_view text, std::string_view word) {
  constexpr std::array<std::string_view, 4> kDates = {"9999-99-99", "9999/99/99", "99/99/9999",
                                                      "99.99.9999"};
  const std::string shape = shape_of(word);
  if (contains_any(shape, kDates)) return "a date";
  if (shape.find("9:99") != std::string::npos) return "a time";
  if (names_a_day(word)) return "a date";
  if (is_number(word)) return names_a_day(with_neighbours(text, word)) ? "a date" : "a number";
  return is_id(word) ? "an id" : "";
}

}  // namespace

ChangingText changing_text(std::string_view asked, std::string_view stored, std::size_t at) {
  const ChangingText texts = {word_at(asked, at), word_at(stored, at), {}};
  const std::string_view kind = kind_of(asked, texts.asked);
  const bool same_kind = kind == kind_of(stored, texts.stored);
  return {texts.asked, texts.stored, same_kind ? kind : std::string_view()};
}

}  // namespace pagoda::server
