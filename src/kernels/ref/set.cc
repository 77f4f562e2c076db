// The reference set: plain scalar code that runs anywhere and defines every bit.
#include "kernels/ref/attention.h"
#include "kernels/ref/rows.h"
#include "kernels/ref/sampling.h"
#include "kernels/select.h"

namespace pagoda::kernels {

const KernelSet& ref_set() {
  static constexpr KernelSet kSet = {
      .name = "ref",
      .version = 1,
      .runs_here = [] { return true; },
      .value_order = kv::memory::ValueOrder::kRows,
      .unpack_row = ref::unpack_row,
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
  return kSet;
}

}  // namespace pagoda::kernels
