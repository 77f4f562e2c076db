// The table of one set of the arithmetic of pairs. What is no product is shared with the vectorised
// set of floats.
#include "kernels/cpu/kernels.h"
#include "kernels/tiles/kernels.h"
#include "kernels/tiles/sets.h"

namespace pagoda::kernels::PAGODA_TILE_SET {

namespace {

KernelSet make_set(std::string_view name, bool (*runs_here)()) {
  KernelSet made = cpu_set();
  made.name = name;
  made.version = 4;
  made.arithmetic = Arithmetic::kPairs;
  made.runs_here = runs_here;
  made.kv_element = kv::memory::Element::kBF16;
  made.key_order = kv::memory::KeyOrder::kColumns;
  made.value_order = kv::memory::ValueOrder::kTokenPairs;
  made.attention_split = kPairsSplit;
  made.attention_queries = 192;
  made.matmul_scratch = matmul_scratch;
  made.attention_scratch = attention_scratch;
  made.packed_bytes = packed_bytes;
  made.pack = pack;
  made.to_operand = to_operand;
  made.matmul = matmul;
  made.rope = rope;
  made.swiglu = swiglu;
  made.store_kv = store_kv;
  made.attend_split = attend_split;
  made.merge_partials = merge_partials;
  made.finish_partial = finish_partial;
  return made;
}

}  // namespace

const KernelSet& set(std::string_view name, bool (*runs_here)()) {
  static const KernelSet kSet = make_set(name, runs_here);
  return kSet;
}

}  // namespace pagoda::kernels::PAGODA_TILE_SET
