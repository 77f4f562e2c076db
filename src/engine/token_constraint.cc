#include "engine/token_constraint.h"

#include <algorithm>
#include <bit>

namespace pagoda::engine {
namespace {

// Returns the token whose bit is the only one; nothing where there are more or none.
std::optional<TokenId> only_token(std::span<const structured::MaskWord> mask) {
  std::optional<TokenId> only;
  for (std::size_t word = 0; word < mask.size(); ++word) {
    if (mask[word] == 0) continue;
    if (only || !std::has_single_bit(mask[word])) return std::nullopt;
    only = TokenId(static_cast<std::uint32_t>(word * 64) +
                   static_cast<std::uint32_t>(std::countr_zero(mask[word])));
  }
  return only;
}

}  // namespace

Status TokenConstraint::prepare() {
  if (error_) return *error_;
  if (is_ready_) return ok_status();
  const Status filled = matcher_.fill_mask(mask_);
  if (!filled.ok()) {
    error_ = filled.error();
    return *error_;
  }
  is_ready_ = true;
  return ok_status();
}

void TokenConstraint::accept(TokenId token) {
  const Status accepted = matcher_.accept(token);
  if (!accepted.ok() && !error_) error_ = accepted.error();
  is_ready_ = false;
}

std::size_t TokenConstraint::list_forced(std::span<TokenId> room) {
  if (!prepare().ok()) return 0;
  std::optional<TokenId> only = only_token(mask_);
  if (!only) return 0;
  structured::Matcher ahead = matcher_;
  std::vector<structured::MaskWord> mask(mask_.size());
  std::size_t count = 0;
  while (only && count < room.size()) {
    room[count++] = *only;
    const bool goes_on =
        ahead.accept(*only).ok() && !ahead.has_ended() && ahead.fill_mask(mask).ok();
    only = goes_on ? only_token(mask) : std::nullopt;
  }
  return count;
}

void TokenConstraint::drop_others(std::span<float> logits, float dropped) const {
  constexpr std::size_t kBits = 64;
  for (std::size_t word = 0; word < mask_.size(); ++word) {
    const std::size_t begin = word * kBits;
    if (begin >= logits.size()) return;
    const std::span<float> part = logits.subspan(begin, std::min(kBits, logits.size() - begin));
    const structured::MaskWord bits = mask_[word];
    if (bits == 0) {
      std::fill(part.begin(), part.end(), dropped);
    } else if (bits != ~structured::MaskWord{0}) {
      for (std::size_t i = 0; i < part.size(); ++i) {
        part[i] = (bits >> i & 1) != 0 ? part[i] : dropped;
      }
    }
  }
}

}  // namespace pagoda::engine
