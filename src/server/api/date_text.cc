#include "server/api/date_text.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/ascii.h"

namespace pagoda::server {
namespace {

constexpr std::size_t kWordsMax = 12;
constexpr std::size_t kDateBytesMax = 40;  // 2026-11-17T17:03:22.123456789+01:00 has 35

enum class DateWord {
  kNone,
  kWhole,   // 2026-11-17, 17:03, 17.11.2026, 1794900000
  kNumber,  // 17th, 2026: of a date where there is a month
  kMonth,
  kOther,  // a weekday, "pm" or a zone: beside a date
  kLink,   // "at", "of", "the": between two parts of a date
};

struct Word {
  DateWord kind = DateWord::kNone;
  std::size_t begin = 0;
  std::size_t end = 0;  // of its letters and digits
  bool ends_sentence = false;
};

template <std::size_t N>
bool is_one_of(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

DateWord kind_of_name(std::string_view given) {
  constexpr std::array<std::string_view, 24> kMonths = {
      "january",   "february", "march",    "april",    "may",  "june", "july", "august",
      "september", "october",  "november", "december", "jan",  "feb",  "mar",  "apr",
      "jun",       "jul",      "aug",      "sep",      "sept", "oct",  "nov",  "dec"};
  constexpr std::array<std::string_view, 26> kOthers = {
      "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "mon", "tue",
      "wed",    "thu",     "fri",       "sat",      "sun",    "am",       "pm",     "a.m", "p.m",
      "utc",    "gmt",     "z",         "cet",      "cest",   "est",      "pst",    "ist"};
  constexpr std::array<std::string_view, 3> kLinks = {"at", "of", "the"};
  std::string word;
  for (const char c : given) word += is_ascii_letter(c) ? static_cast<char>(c | 0x20) : c;
  if (is_one_of(word, kMonths)) return DateWord::kMonth;
  if (is_one_of(word, kOthers)) return DateWord::kOther;
  return is_one_of(word, kLinks) ? DateWord::kLink : DateWord::kNone;
}

DateWord kind_of_number(std::string_view word) {
  constexpr std::string_view kMarks = ":-/.+,";
  constexpr std::size_t kSecondsDigits = 9;
  const auto is_part = [&](char c) {
    return is_ascii_digit(c) || is_ascii_letter(c) || kMarks.find(c) != std::string_view::npos;
  };
  if (!std::all_of(word.begin(), word.end(), is_part)) return DateWord::kNone;
  const auto marks = [&](std::string_view among) {
    return std::count_if(word.begin(), word.end(),
                         [&](char c) { return among.find(c) != std::string_view::npos; });
  };
  if (marks(":-/") > 0 || marks(".") > 1) return DateWord::kWhole;
  const auto digits = std::count_if(word.begin(), word.end(), is_ascii_digit);
  if (static_cast<std::size_t>(digits) == word.size() && word.size() >= kSecondsDigits) {
    return DateWord::kWhole;
  }
  return marks(".,+") == 0 && word.size() <= 4 ? DateWord::kNumber : DateWord::kNone;
}

// Splits at spaces; stops at a word that can be of no date.
std::vector<Word> read_words(std::string_view text) {
  std::vector<Word> words;
  for (std::size_t at = 0; words.size() < kWordsMax;) {
    const std::size_t begin = std::min(text.find_first_not_of(' ', at), text.size());
    at = std::min(text.find(' ', begin), text.size());
    std::size_t end = at;
    while (end > begin && std::string_view(".,;").find(text[end - 1]) != std::string_view::npos) {
      --end;
    }
    if (end == begin || end - begin > kDateBytesMax) break;
    const std::string_view word = text.substr(begin, end - begin);
    const DateWord kind = is_ascii_digit(word.front()) ? kind_of_number(word) : kind_of_name(word);
    if (kind == DateWord::kNone) break;
    const std::string_view behind = text.substr(end, at - end);
    const bool is_short_month = kind == DateWord::kMonth && word.size() <= 4;
    words.push_back({kind, begin, end, !is_short_month && behind.find_first_of(".;") == 0});
    if (words.back().ends_sentence) break;
  }
  return words;
}

}  // namespace

std::size_t date_end(std::string_view text) {
  constexpr int kNumbersMax = 2;  // a day and a year
  const std::vector<Word> words = read_words(text);
  const bool has_month = std::any_of(
      words.begin(), words.end(), [](const Word& word) { return word.kind == DateWord::kMonth; });
  bool is_date = false;
  int numbers = 0;
  std::size_t end = 0;
  for (const Word& word : words) {
    if (word.kind == DateWord::kLink) continue;
    if (word.kind == DateWord::kNumber && (!has_month || ++numbers > kNumbersMax)) break;
    is_date = is_date || word.kind == DateWord::kWhole || word.kind == DateWord::kNumber;
    end = word.end;
  }
  return is_date ? end : 0;
}

}  // namespace pagoda::server
