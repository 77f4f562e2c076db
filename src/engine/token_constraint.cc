#include "engine/token_constraint.h"

#include <algorithm>

namespace pagoda::engine {

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
