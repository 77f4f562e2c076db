// The reference sets: plain scalar code that runs anywhere and defines every bit.
#include "kernels/ref/attention.h"
#include "kernels/ref/int8_bf16.h"
#include "kernels/ref/rows.h"
#include "kernels/ref/sampling.h"
#include "kernels/select.h"

namespace pagoda::kernels {

namespace {

constexpr KernelSet kFp32 = {
    .name = "ref",
    .version = 2,
    .numerics = Numerics::kFp32,
    .runs_here = [] { return true; },
    .kv_element = kv::memory::Element::kF16,
    .key_order = kv::memory::KeyOrder::kRows,
    .value_order = kv::memory::ValueOrder::kRows,
    .attention_split = kFp32SplitKeys,
    .attention_queries = 1,
    .matmul_scratch = ref::matmul_scratch,
    .attention_scratch = ref::attention_scratch,
    .packed_bytes = ref::packed_bytes,
    .pack = ref::pack,
    .unpack_row = ref::unpack_row,
    .pack_activations = ref::pack_activations,
    .matmul = ref::matmul,
    .rms_norm = ref::rms_norm,
    .rope = ref::rope,
    .swiglu = ref::swiglu,
    .geglu = ref::geglu,
    .clamped_swiglu = ref::clamped_swiglu,
    .soft_cap = ref::soft_cap,
    .store_kv = ref::store_kv,
    .attend_split = ref::attend_split,
    .score_split = ref::score_split,
    .merge_partials = ref::merge_partials,
    .normalise_partial = ref::normalise_partial,
    .finite_max = ref::finite_max,
    .exp_sum = ref::exp_sum,
    .sampling_weights = ref::sampling_weights,
    .mass_from = ref::mass_from,
};

constexpr KernelSet int8_bf16_of(KernelSet set) {
  set.name = "ref-bf16";
  set.version = 4;
  set.numerics = Numerics::kInt8Bf16;
  set.kv_element = kv::memory::Element::kBF16;
  set.attention_split = kInt8Bf16SplitKeys;
  set.pack_activations = ref::pack_activations_int8_bf16;
  set.matmul = ref::matmul_int8_bf16;
  set.store_kv = ref::store_kv_int8_bf16;
  set.attend_split = ref::attend_split_int8_bf16;
  set.score_split = ref::score_split_int8_bf16;
  return set;
}
constexpr KernelSet kInt8Bf16 = int8_bf16_of(kFp32);

}  // namespace

const KernelSet& ref_set(Numerics numerics) {
  return numerics == Numerics::kFp32 ? kFp32 : kInt8Bf16;
}

}  // namespace pagoda::kernels
