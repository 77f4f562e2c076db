// The reference sets: plain scalar code that runs anywhere and defines every bit.
#include "kernels/ref/attention.h"
#include "kernels/ref/pairs.h"
#include "kernels/ref/rows.h"
#include "kernels/ref/sampling.h"
#include "kernels/select.h"

namespace pagoda::kernels {

namespace {

constexpr KernelSet kFloats = {
    .name = "ref",
    .version = 2,
    .arithmetic = Arithmetic::kFloats,
    .runs_here = [] { return true; },
    .kv_element = kv::memory::Element::kF16,
    .key_order = kv::memory::KeyOrder::kRows,
    .value_order = kv::memory::ValueOrder::kRows,
    .attention_split = kFloatsSplit,
    .attention_queries = 1,
    .matmul_scratch = ref::matmul_scratch,
    .attention_scratch = ref::attention_scratch,
    .packed_bytes = ref::packed_bytes,
    .pack = ref::pack,
    .unpack_row = ref::unpack_row,
    .to_operand = ref::to_operand,
    .matmul = ref::matmul,
    .rms_norm = ref::rms_norm,
    .rope = ref::rope,
    .swiglu = ref::swiglu,
    .store_kv = ref::store_kv,
    .attend_split = ref::attend_split,
    .merge_partials = ref::merge_partials,
    .finish_partial = ref::finish_partial,
    .finite_max = ref::finite_max,
    .exp_sum = ref::exp_sum,
    .weigh = ref::weigh,
    .mass_from = ref::mass_from,
};

constexpr KernelSet pairs_of(KernelSet set) {
  set.name = "ref-bf16";
  set.version = 4;
  set.arithmetic = Arithmetic::kPairs;
  set.kv_element = kv::memory::Element::kBF16;
  set.attention_split = kPairsSplit;
  set.to_operand = ref::to_operand_pairs;
  set.matmul = ref::matmul_pairs;
  set.store_kv = ref::store_kv_pairs;
  set.attend_split = ref::attend_split_pairs;
  return set;
}
constexpr KernelSet kPairs = pairs_of(kFloats);

}  // namespace

const KernelSet& ref_set(Arithmetic arithmetic) {
  return arithmetic == Arithmetic::kFloats ? kFloats : kPairs;
}

}  // namespace pagoda::kernels
