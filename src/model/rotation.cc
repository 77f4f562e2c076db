#include "model/rotation.h"

#include "kernels/hadamard.h"
#include "kv/memory/rotation_blocks.h"

namespace pagoda::model {

void rotate_rows(const kv::memory::PageLayout& layout, std::uint32_t heads,
                 const AttentionInputs& inputs, MatmulRunner& runner) {
  const std::size_t key_block = rotation_blocks(layout).keys;
  const std::size_t value_block = layout.values_in_keys ? 0 : rotation_blocks(layout).values;
  if (key_block == 0 && value_block == 0) return;
  const std::size_t query_width = std::size_t{heads} * layout.key_dim;
  const std::size_t key_width = std::size_t{layout.kv_heads} * layout.key_dim;
  const std::size_t value_width = std::size_t{layout.kv_heads} * layout.value_dim;
  runner.for_rows(inputs.rows, [&](WorkRange range) {
    for (std::size_t row = range.begin; row < range.end; ++row) {
      if (key_block != 0) {
        rotate_queries(layout, inputs.queries + row * query_width, heads);
        kernels::hadamard(inputs.keys + row * key_width, key_width, key_block);
      }
      if (value_block != 0) {
        kernels::hadamard(inputs.values + row * value_width, value_width, value_block);
      }
    }
  });
}

void rotate_queries(const kv::memory::PageLayout& layout, float* queries, std::size_t heads) {
  const std::size_t block = rotation_blocks(layout).keys;
  if (block != 0) kernels::hadamard(queries, heads * layout.key_dim, block);
}

void rotate_back(const kv::memory::PageLayout& layout, float* values, std::size_t heads) {
  const std::size_t block = rotation_blocks(layout).values;
  if (block != 0) kernels::hadamard(values, heads * layout.value_dim, block);
}

}  // namespace pagoda::model
