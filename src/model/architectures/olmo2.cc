// OLMo 2 and 3: norms of what branches add, and of all query heads together and all key heads
// together. OLMo 3 has windows in three of four layers; those turn without its scaling.
#include "model/architectures/architecture.h"

namespace pagoda::model {

Status describe_olmo2(const ConfigReader& reader, Config& config) {
  rotate_halves(config);
  config.branch_norms = BranchNorms::kOutput;
  config.qk_norm = QkNormSpan::kAllHeads;
  // Early files of OLMo 3 state the whole factor of cosines and sines under the name of one beside
  // it.
  if (config.ropes.front().scaling == RopeScaling::kYarn) {
    ASSIGN_OR_RETURN(
        config.ropes.front().attention_factor,
        reader.positive_or("rope.scaling.attn_factor", config.ropes.front().attention_factor));
  }
  if (!has_window(reader)) return ok_status();
  RETURN_IF_ERROR(read_windows(reader, 4, config));
  const RopeConfig& rope = config.ropes.front();
  const RopeConfig plain = {.dims = rope.dims, .base = rope.base, .pairing = rope.pairing};
  config.ropes.push_back(plain);
  choose_ropes({.full = 0, .windowed = 1}, config);
  return ok_status();
}

}  // namespace pagoda::model
