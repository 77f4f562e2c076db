#include "sched/context_class.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

namespace pagoda::sched {
namespace {

template <class Number>
std::optional<Number> parse_whole(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

Result<ContextClasses> ContextClasses::parse(std::string_view text) {
  ContextClasses classes;
  classes.classes_.clear();
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view item = text.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t colon = std::min(item.find(':'), item.size());
    const std::string_view length = item.substr(0, colon);
    const auto tokens =
        length == "max" ? std::optional(UINT64_MAX) : parse_whole<std::uint64_t>(length);
    const auto share =
        colon == item.size() ? std::optional(1.0) : parse_whole<double>(item.substr(colon + 1));
    if (!tokens || *tokens == 0 || !share || !(*share > 0.0 && *share <= 1.0)) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("context class \"{}\": expected TOKENS:SHARE with TOKENS at least 1 "
                               "or max, and SHARE above 0, to 1",
                               item)};
    }
    if (!classes.classes_.empty() && *tokens <= classes.classes_.back().tokens_max) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("context class \"{}\": lengths must ascend", item)};
    }
    classes.classes_.push_back({*tokens, *share});
  }
  return classes;
}

std::size_t ContextClasses::class_of(std::uint64_t prompt_tokens) const {
  const auto found = std::find_if(classes_.begin(), classes_.end() - 1, [&](const auto& entry) {
    return prompt_tokens <= entry.tokens_max;
  });
  return static_cast<std::size_t>(found - classes_.begin());
}

std::uint64_t ContextClasses::part(const ContextClass& context_class, std::uint64_t all) {
  return std::max<std::uint64_t>(
      1, static_cast<std::uint64_t>(std::floor(context_class.share * static_cast<double>(all))));
}

}  // namespace pagoda::sched
