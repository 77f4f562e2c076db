// DraftMethod names a way to find draft tokens.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace pagoda::speculate {

enum class DraftMethod : std::uint8_t {
  kPrediction,  // the client's predicted output
  kTree,        // what the prefix tree holds behind the present tokens
  kSuffix,  // what followed the last tokens before, in this text or in past outputs of the scope
  kNgram,   // what followed the last n tokens first in this text (vLLM's rule)
  kConstraint,  // tokens that the grammar of the request leaves no choice about
  kDraftModel,  // tokens of a smaller model
};

inline constexpr std::size_t kMethodCount = 6;
inline constexpr std::array<std::string_view, kMethodCount> kMethodNames = {
    "prediction", "tree", "suffix", "ngram", "constraint", "draft_model"};

constexpr std::string_view method_name(DraftMethod method) {
  return kMethodNames[static_cast<std::size_t>(method)];
}

constexpr std::optional<DraftMethod> find_method(std::string_view name) {
  for (std::size_t i = 0; i < kMethodCount; ++i) {
    if (kMethodNames[i] == name) return static_cast<DraftMethod>(i);
  }
  return std::nullopt;
}

class MethodSet {
 public:
  constexpr MethodSet() = default;
  template <class... Methods>
  constexpr explicit MethodSet(DraftMethod first, Methods... others) {
    insert(first);
    (insert(others), ...);
  }

  constexpr void insert(DraftMethod method) { bits_ |= bit(method); }
  constexpr bool contains(DraftMethod method) const { return (bits_ & bit(method)) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr bool operator==(const MethodSet&) const = default;

 private:
  static constexpr std::uint32_t bit(DraftMethod method) {
    return 1u << static_cast<std::uint32_t>(method);
  }

  std::uint32_t bits_ = 0;
};

}  // namespace pagoda::speculate
