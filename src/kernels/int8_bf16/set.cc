// The table of one set of the int8_bf16 numerics. What is no product is shared with the vectorised
// fp32 set.
#include "kernels/fp32/kernels.h"
#include "kernels/int8_bf16/kernels.h"
#include "kernels/int8_bf16/sets.h"

namespace pagoda::kernels::PAGODA_ISA {

namespace {

KernelSet make_set(std::string_view name, bool (*runs_here)()) {
  KernelSet made = fp32_set();
  made.name = name;
  made.version = 4;
  made.numerics = Numerics::kInt8Bf16;
  made.runs_here = runs_here;
  made.kv_element = kv::memory::Element::kBF16;
  made.key_order = kv::memory::KeyOrder::kColumns;
  made.value_order = kv::memory::ValueOrder::kTokenGroups;
  made.attention_split = kInt8Bf16SplitKeys;
  made.attention_queries = 192;
  made.matmul_scratch = matmul_scratch;
  made.attention_scratch = attention_scratch;
  made.packed_bytes = packed_bytes;
  made.pack = pack;
  made.pack_activations = pack_activations;
  made.matmul = matmul;
  made.rope = rope;
  made.swiglu = swiglu;
  made.geglu = geglu;
  made.clamped_swiglu = clamped_swiglu;
  made.soft_cap = soft_cap;
  made.store_kv = store_kv;
  made.attend_split = attend_split;
  made.score_split = score_split;
  made.merge_partials = merge_partials;
  made.normalise_partial = normalise_partial;
  return made;
}

}  // namespace

const KernelSet& set(std::string_view name, bool (*runs_here)()) {
  static const KernelSet kSet = make_set(name, runs_here);
  return kSet;
}

}  // namespace pagoda::kernels::PAGODA_ISA
