#include "text/stop_strings.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "text/utf8.h"

namespace pagoda::text {

Result<StopStrings> StopStrings::make(std::vector<std::string> strings, StopStringOptions options) {
  if (strings.size() > kStringsMax) {
    return Error{ErrorCode::kOutOfRange,
                 fmt::format("{} stop strings, at most {}", strings.size(), kStringsMax)};
  }
  std::vector<Pattern> patterns;
  for (std::size_t i = 0; i < strings.size(); ++i) {
    if (strings[i].empty()) {
      return Error{ErrorCode::kInvalidArgument, fmt::format("stop string {} is empty", i)};
    }
    if (strings[i].size() > kStringBytesMax) {
      return Error{ErrorCode::kOutOfRange, fmt::format("stop string {} has {} bytes, at most {}", i,
                                                       strings[i].size(), kStringBytesMax)};
    }
    patterns.push_back(compile(std::move(strings[i])));
  }
  return StopStrings(std::move(patterns), options);
}

StopStrings::Pattern StopStrings::compile(std::string text) {
  Pattern pattern = {std::move(text), {}};
  pattern.fallback.assign(pattern.text.size() + 1, 0);
  std::uint32_t matched = 0;
  for (std::size_t at = 1; at < pattern.text.size(); ++at) {
    matched = pattern.advance(matched, pattern.text[at]);
    pattern.fallback[at + 1] = matched;
  }
  return pattern;
}

std::uint32_t StopStrings::Pattern::advance(std::uint32_t matched, char byte) const {
  if (matched == text.size()) matched = fallback[matched];
  while (matched > 0 && text[matched] != byte) matched = fallback[matched];
  return text[matched] == byte ? matched + 1 : matched;
}

void StopStrings::follow(char byte, std::size_t end) {
  for (std::size_t i = 0; i < patterns_.size(); ++i) {
    matched_[i] = patterns_[i].advance(matched_[i], byte);
    if (matched_[i] < patterns_[i].text.size()) continue;
    const std::size_t begin = end - patterns_[i].text.size();
    if (!match_ || begin < match_->begin) match_ = Match{i, begin, end};
  }
}

std::string StopStrings::push(std::string_view piece) {
  if (match_) return {};
  for (const char byte : piece) {
    held_ += byte;
    follow(byte, sent_bytes_ + held_.size());
    if (match_) {
      const std::size_t stop = options_.include_stop_str_in_output ? match_->end : match_->begin;
      std::string text = held_.substr(0, stop - sent_bytes_);
      held_.clear();
      return text;
    }
  }
  std::uint32_t longest = 0;
  for (const std::uint32_t matched : matched_) longest = std::max(longest, matched);
  std::size_t safe = held_.size() - longest;
  safe -= utf8_incomplete_tail(std::string_view(held_).substr(0, safe));
  std::string text = held_.substr(0, safe);
  held_.erase(0, safe);
  sent_bytes_ += safe;
  return text;
}

bool StopStrings::search(std::string_view piece) {
  for (std::size_t i = 0; i < piece.size() && !match_; ++i) follow(piece[i], ++sent_bytes_);
  return match_.has_value();
}

std::string StopStrings::finish() {
  std::fill(matched_.begin(), matched_.end(), 0);
  sent_bytes_ = 0;
  match_.reset();
  return std::exchange(held_, {});
}

}  // namespace pagoda::text
