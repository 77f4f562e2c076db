#include "text/split_pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <array>
#include <string>
#include <utility>

#include "text/utf8.h"

namespace pagoda::text {
namespace {

// The White_Space property. PCRE2's own \s also has U+180E, which left the property in Unicode 6.3.
constexpr std::string_view kSpaces =
    "\\x09-\\x0D\\x20\\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}"
    "\\x{205F}\\x{3000}";

// Replaces \s and \S by explicit classes.
std::string with_spaces_spelled_out(std::string_view pattern) {
  std::string spelled;
  bool in_class = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      const char escaped = pattern[++i];
      if (escaped == 's') {
        spelled += in_class ? std::string(kSpaces) : fmt::format("[{}]", kSpaces);
      } else if (escaped == 'S') {
        ASSERT(!in_class, "\\S inside a class is not spelled out");
        spelled += fmt::format("[^{}]", kSpaces);
      } else {
        spelled += {c, escaped};
      }
      continue;
    }
    if (c == '[') in_class = true;
    if (c == ']') in_class = false;
    spelled += c;
  }
  return spelled;
}

template <auto kFree>
struct FreeWith {
  template <class T>
  void operator()(T* pointer) const {
    kFree(pointer);
  }
};

}  // namespace

struct MatchState::Data {
  std::unique_ptr<pcre2_match_data, FreeWith<pcre2_match_data_free>> match;
  std::unique_ptr<pcre2_match_context, FreeWith<pcre2_match_context_free>> context;
};

MatchState::MatchState() { reset(); }

void MatchState::reset() {
  data_ = std::make_unique<Data>();
  data_->match.reset(pcre2_match_data_create(1, nullptr));
  data_->context.reset(pcre2_match_context_create(nullptr));
  ASSERT(data_->match != nullptr && data_->context != nullptr, "out of memory");
  // The limits are lifted, because they are made for patterns that are not linear in the text.
  pcre2_set_match_limit(data_->context.get(), UINT32_MAX);
  pcre2_set_heap_limit(data_->context.get(), UINT32_MAX);
}

MatchState::~MatchState() = default;

struct SplitPattern::Code {
  std::unique_ptr<pcre2_code, FreeWith<pcre2_code_free>> code;
  bool compiled_to_machine_code = false;
};

SplitPattern::SplitPattern(std::unique_ptr<Code> code) : code_(std::move(code)) {}
SplitPattern::SplitPattern(SplitPattern&&) noexcept = default;
SplitPattern& SplitPattern::operator=(SplitPattern&&) noexcept = default;
SplitPattern::~SplitPattern() = default;

Result<SplitPattern> SplitPattern::compile(std::string_view pattern) {
  const std::string spelled = with_spaces_spelled_out(pattern);
  int error = 0;
  PCRE2_SIZE error_at = 0;
  auto code = std::make_unique<Code>();
  code->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(spelled.data()), spelled.size(),
                                 PCRE2_UTF | PCRE2_UCP, &error, &error_at, nullptr));
  if (code->code == nullptr) {
    std::array<PCRE2_UCHAR, 256> message{};
    pcre2_get_error_message(error, message.data(), message.size());
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("pattern '{}' does not compile: {} at {}", spelled,
                             reinterpret_cast<const char*>(message.data()), error_at)};
  }
  // Where the system forbids run-time code, the interpreter gives the same pieces more slowly.
  code->compiled_to_machine_code = pcre2_jit_compile(code->code.get(), PCRE2_JIT_COMPLETE) == 0;
  return SplitPattern(std::move(code));
}

void SplitPattern::split(std::string_view text, std::uint32_t base, MatchState& state,
                         std::vector<std::uint32_t>& ends) const {
  const auto* const subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  pcre2_match_data* const match = state.data_->match.get();
  const PCRE2_SIZE* const found = pcre2_get_ovector_pointer(match);
  const auto match_at = [&](std::size_t at) {
    int outcome = PCRE2_ERROR_JIT_STACKLIMIT;
    if (code_->compiled_to_machine_code) {
      outcome = pcre2_jit_match(code_->code.get(), subject, text.size(), at, PCRE2_NO_UTF_CHECK,
                                match, state.data_->context.get());
    }
    if (outcome == PCRE2_ERROR_JIT_STACKLIMIT) {
      outcome = pcre2_match(code_->code.get(), subject, text.size(), at,
                            PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, match, state.data_->context.get());
    }
    return outcome >= 0;
  };

  std::size_t piece_begin = 0;
  std::size_t at = 0;
  while (at < text.size() && match_at(at)) {
    const std::size_t begin = found[0];
    const std::size_t end = found[1];
    if (end == begin) {  // none of our patterns matches nothing, but such a match must not hang
      at = end + std::max<std::size_t>(1, utf8_char_bytes(text.substr(end)));
      continue;
    }
    if (begin > piece_begin) ends.push_back(base + static_cast<std::uint32_t>(begin));
    ends.push_back(base + static_cast<std::uint32_t>(end));
    piece_begin = at = end;
  }
  if (piece_begin < text.size()) ends.push_back(base + static_cast<std::uint32_t>(text.size()));
}

}  // namespace pagoda::text
