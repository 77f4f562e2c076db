#include "kv/kv_policy.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

namespace pagoda::kv {
namespace {

constexpr std::string_view kWindow = "window:";
constexpr std::string_view kStreaming = "streaming:";
constexpr std::string_view kH2o = "h2o:";
constexpr std::string_view kSnapKv = "snapkv:";
constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();

std::optional<std::uint32_t> to_number(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Cuts the text at the mark. Nothing stands behind it where there is no mark.
struct Halves {
  std::string_view before;
  std::optional<std::string_view> behind;
};
Halves cut(std::string_view text, char mark) {
  const std::size_t at = text.find(mark);
  if (at == std::string_view::npos) return {text, std::nullopt};
  return {text.substr(0, at), text.substr(at + 1)};
}

std::optional<KvPolicy> parse_mask(std::string_view text) {
  if (text.starts_with(kWindow)) {
    const auto window = to_number(text.substr(kWindow.size()));
    return window.value_or(0) > 0 ? std::optional(KvPolicy{.window = *window}) : std::nullopt;
  }
  if (!text.starts_with(kStreaming)) return std::nullopt;
  const Halves sizes = cut(text.substr(kStreaming.size()), '+');
  const auto sinks = to_number(sizes.before);
  const auto window = to_number(sizes.behind.value_or(""));
  if (!sinks || window.value_or(0) == 0) return std::nullopt;
  return KvPolicy{.window = *window, .sinks = *sinks};
}

std::optional<KvPolicy> parse_selection(std::string_view text) {
  const bool is_h2o = text.starts_with(kH2o);
  if (!is_h2o && !text.starts_with(kSnapKv)) return std::nullopt;
  const Halves sizes = cut(text.substr(is_h2o ? kH2o.size() : kSnapKv.size()), '+');
  const auto budget = to_number(sizes.before);
  if (!budget) return std::nullopt;
  KvPolicy policy = is_h2o ? KvPolicy::h2o(*budget) : KvPolicy::snapkv(*budget);
  if (sizes.behind) {
    const Halves behind = is_h2o ? Halves{*sizes.behind, {}} : cut(*sizes.behind, '/');
    const auto observed = to_number(behind.before);
    const auto kernel = behind.behind ? to_number(*behind.behind) : policy.kernel;
    if (!observed || !kernel) return std::nullopt;
    policy.observed = *observed;
    policy.kernel = *kernel;
  }
  return policy;
}

constexpr std::uint64_t above(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; }

}  // namespace

KvPolicy KvPolicy::h2o(std::uint32_t budget) {
  const std::uint32_t recent = std::min(kRecentDefault, std::max(1u, budget / 2));
  return {.choice = PageChoice::kH2o, .budget = budget, .observed = recent};
}

KvPolicy KvPolicy::snapkv(std::uint32_t budget) {
  return {.choice = PageChoice::kSnapKv,
          .budget = budget,
          .observed = std::min(kWindowDefault, std::max(1u, budget / 2)),
          .kernel = kKernelDefault};
}

KvPolicy KvPolicy::of_rows() const {
  return selects_pages() ? KvPolicy{.choice = PageChoice::kH2o} : *this;
}

std::vector<memory::AttentionSpec> KvPolicy::of(
    std::span<const memory::AttentionSpec> groups) const {
  std::vector<memory::AttentionSpec> bounded;
  for (const memory::AttentionSpec& group : groups) bounded.push_back(of(group));
  return bounded;
}

std::uint64_t KvPolicy::tokens_dropped(SequenceLengths lengths, std::uint32_t block_tokens) const {
  if (selects_pages()) return blocks_dropped(lengths, block_tokens) * block_tokens;
  if (is_full() || lengths.tokens < tokens_kept_max()) return 0;
  return lengths.tokens + 1 - tokens_kept_max();
}

std::uint64_t KvPolicy::first_kept(SequenceLengths lengths) const {
  const bool is_once = choice == PageChoice::kSnapKv;
  return above(is_once ? std::min(lengths.prompt, lengths.tokens) : lengths.tokens, observed);
}

// Both bounds grow with the tokens, and a block is dropped at the first length at which both allow
// it: so the smaller one is how many have been dropped, whenever that was looked at.
std::uint64_t KvPolicy::blocks_dropped(SequenceLengths lengths, std::uint32_t block_tokens) const {
  if (!selects_pages() || lengths.tokens < lengths.prompt) return 0;
  const bool is_once = choice == PageChoice::kSnapKv;
  const std::uint64_t tokens = is_once ? lengths.prompt : lengths.tokens;
  const std::uint64_t wanted = (above(tokens, budget) + block_tokens - 1) / block_tokens;
  return std::min(wanted, first_kept(lengths) / block_tokens);
}

std::uint64_t KvPolicy::tokens_until_drop(SequenceLengths lengths,
                                          std::uint32_t block_tokens) const {
  if (!selects_pages()) return kAny;
  if (lengths.tokens < lengths.prompt) return lengths.prompt - lengths.tokens;
  if (choice == PageChoice::kSnapKv) return kAny;
  const std::uint64_t dropped = blocks_dropped(lengths, block_tokens);
  const std::uint64_t over = budget + dropped * block_tokens + 1;
  const std::uint64_t old = observed + (dropped + 1) * block_tokens;
  return std::max(over, old) - lengths.tokens;
}

std::uint64_t KvPolicy::tokens_held_max(SequenceLengths lengths, std::uint32_t block_tokens) const {
  if (!selects_pages() || lengths.tokens <= lengths.prompt) return lengths.tokens;
  if (choice == PageChoice::kSnapKv) {
    return std::max(lengths.prompt, lengths.tokens - tokens_dropped(lengths, block_tokens));
  }
  // The token that makes it one too many has its row before a block is dropped for it.
  const std::uint64_t kept =
      std::max<std::uint64_t>(budget, std::uint64_t{observed} + block_tokens);
  return std::min(lengths.tokens, std::max(lengths.prompt, kept + 1));
}

std::string KvPolicy::name() const {
  const auto pair = [](std::string_view type, std::uint32_t first, std::uint32_t second) {
    return std::string(type) + std::to_string(first) + '+' + std::to_string(second);
  };
  if (choice == PageChoice::kH2o) return pair(kH2o, budget, observed);
  if (choice == PageChoice::kSnapKv) {
    const std::string name = pair(kSnapKv, budget, observed);
    return kernel == kKernelDefault ? name : name + '/' + std::to_string(kernel);
  }
  if (is_full()) return "full";
  if (sinks == 0) return std::string(kWindow) + std::to_string(window);
  return pair(kStreaming, sinks, window);
}

Result<KvPolicy> KvPolicy::parse(std::string_view text) {
  if (text == "full") return KvPolicy{};
  if (const std::optional<KvPolicy> mask = parse_mask(text)) return *mask;
  if (const std::optional<KvPolicy> selection = parse_selection(text)) {
    RETURN_IF_ERROR(check_selection(*selection));
    return *selection;
  }
  return Error{ErrorCode::kInvalidArgument,
               "KV policy '" + std::string(text) +
                   "': expected full, window:W, streaming:S+W (sinks + window, in tokens), "
                   "h2o:BUDGET[+RECENT] or snapkv:BUDGET[+WINDOW], as in streaming:4+1024"};
}

Status check_selection(const KvPolicy& policy) {
  const bool is_snapkv = policy.choice == PageChoice::kSnapKv;
  const auto refuse = [&](const std::string& why) {
    return Error{ErrorCode::kInvalidArgument, "KV policy '" + policy.name() + "': " + why};
  };
  if (policy.observed == 0 || policy.observed >= policy.budget) {
    return refuse(std::string(is_snapkv ? "the window" : "recent tokens") +
                  " must be at least 1 and fewer than the budget");
  }
  const bool is_even = policy.kernel % 2 == 0;
  if (is_snapkv && (is_even || policy.kernel > KvPolicy::kKernelMax)) {
    return refuse("the kernel must be an odd number, at most " +
                  std::to_string(KvPolicy::kKernelMax));
  }
  return ok_status();
}

std::string KvPolicy::hash_key(std::string_view adapter) const {
  if (is_full()) return std::string(adapter);
  const std::string rows = selects_pages() ? "selected pages" : name();
  return std::string(adapter) + "\nkv_policy=" + rows;
}

}  // namespace pagoda::kv
