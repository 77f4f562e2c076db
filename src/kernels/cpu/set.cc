// The vectorised set of this architecture. RoPE has no order to keep and is left to the compiler.
#include "kernels/cpu/kernels.h"
#include "kernels/ref/rows.h"

namespace pagoda::kernels {
namespace {

#if defined(__AVX2__)
constexpr const char* kName = "avx2-fp32";
bool runs_here() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("f16c");
}
#else
constexpr const char* kName = "neon-fp32";
bool runs_here() { return true; }  // every aarch64 CPU has it
#endif

}  // namespace

const KernelSet& cpu_set() {
  static constexpr KernelSet kSet = {
      .name = kName,
      .version = 2,
      .arithmetic = Arithmetic::kFloats,
      .runs_here = runs_here,
      .kv_element = kv::memory::Element::kF16,
      .key_order = kv::memory::KeyOrder::kRows,
      .value_order = kv::memory::ValueOrder::kRows,
      .attention_split = kFloatsSplit,
      .attention_queries = 1,
      .matmul_scratch = cpu::matmul_scratch,
      .attention_scratch = cpu::attention_scratch,
      .packed_bytes = ref::packed_bytes,
      .pack = ref::pack,
      .unpack_row = cpu::unpack_row,
      .to_operand = ref::to_operand,
      .matmul = cpu::matmul,
      .rms_norm = cpu::rms_norm,
      .rope = ref::rope,
      .swiglu = cpu::swiglu,
      .store_kv = cpu::store_kv,
      .attend_split = cpu::attend_split,
      .merge_partials = cpu::merge_partials,
      .finish_partial = cpu::finish_partial,
      .finite_max = cpu::finite_max,
      .exp_sum = cpu::exp_sum,
      .weigh = cpu::weigh,
      .mass_from = cpu::mass_from,
  };
  return kSet;
}

}  // namespace pagoda::kernels
