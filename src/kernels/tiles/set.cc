// One set of the arithmetic of pairs, for what this file is compiled for. What is no product is
// shared with the vectorised set of floats.
#include "kernels/cpu/kernels.h"
#include "kernels/ref/rows.h"
#include "kernels/tiles/kernels.h"
#include "kernels/tiles/packed_weight.h"
#include "kernels/tiles/sets.h"

namespace pagoda::kernels::PAGODA_TILE_SET {

const KernelSet& set(std::string_view name, bool (*runs_here)()) {
  static const KernelSet kSet = {
      .name = name,
      .version = 1,
      .arithmetic = Arithmetic::kPairs,
      .runs_here = runs_here,
      .kv_element = kv::memory::Element::kBF16,
      .key_order = kv::memory::KeyOrder::kColumns,
      .value_order = kv::memory::ValueOrder::kTokenPairs,
      .attention_split = kPairsSplit,
      .attention_queries = 16,
      .matmul_scratch = matmul_scratch,
      .attention_scratch = attention_scratch,
      .packed_bytes = tiles::packed_bytes,
      .pack = tiles::pack,
      .unpack_row = cpu::unpack_row,
      .to_operand = to_operand,
      .matmul = matmul,
      .rms_norm = cpu::rms_norm,
      .rope = ref::rope,
      .swiglu = cpu::swiglu,
      .store_kv = store_kv,
      .attend_split = attend_split,
      .merge_partials = cpu::merge_partials,
      .finish_partial = cpu::finish_partial,
      .finite_max = cpu::finite_max,
      .exp_sum = cpu::exp_sum,
      .weigh = cpu::weigh,
      .mass_from = cpu::mass_from,
  };
  return kSet;
}

}  // namespace pagoda::kernels::PAGODA_TILE_SET
