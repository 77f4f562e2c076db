// The vectorised set of this architecture. RoPE has no order to keep and is left to the compiler.
#include "kernels/cpu_features.h"
#include "kernels/fp32/kernels.h"
#include "kernels/ref/rows.h"

namespace pagoda::kernels {
namespace {

#if defined(__AVX2__)
constexpr const char* kName = "avx2-fp32";
bool runs_here() { return has_avx2(); }
#else
constexpr const char* kName = "neon-fp32";
bool runs_here() { return true; }  // every aarch64 CPU has it
#endif

}  // namespace

const KernelSet& fp32_set() {
  static constexpr KernelSet kSet = {
      .name = kName,
      .version = 2,
      .numerics = Numerics::kFp32,
      .runs_here = runs_here,
      .kv_element = kv::memory::Element::kF16,
      .key_order = kv::memory::KeyOrder::kRows,
      .value_order = kv::memory::ValueOrder::kRows,
      .attention_split = kFp32SplitKeys,
      .attention_queries = 1,
      .matmul_scratch = fp32::matmul_scratch,
      .attention_scratch = fp32::attention_scratch,
      .packed_bytes = ref::packed_bytes,
      .pack = ref::pack,
      .unpack_row = fp32::unpack_row,
      .pack_activations = ref::pack_activations,
      .matmul = fp32::matmul,
      .rms_norm = fp32::rms_norm,
      .rope = ref::rope,
      .swiglu = fp32::swiglu,
      .geglu = fp32::geglu,
      .clamped_swiglu = fp32::clamped_swiglu,
      .soft_cap = fp32::soft_cap,
      .store_kv = fp32::store_kv,
      .attend_split = fp32::attend_split,
      .score_split = fp32::score_split,
      .merge_partials = fp32::merge_partials,
      .normalise_partial = fp32::normalise_partial,
      .finite_max = fp32::finite_max,
      .exp_sum = fp32::exp_sum,
      .sampling_weights = fp32::sampling_weights,
      .mass_from = fp32::mass_from,
  };
  return kSet;
}

}  // namespace pagoda::kernels
