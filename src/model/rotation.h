// Rows that are stored as integers are rotated (kv/memory/rotation_blocks.h): keys, and queries
// with them, so that their products stay what they are; values, and what attention makes of them is
// turned back.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kv/memory/page_layout.h"
#include "model/matmul_runner.h"

namespace pagoda::model {

struct AttentionInputs {
  float* queries;  // [rows, heads, key_dim]
  float* keys;     // [rows, kv_heads, key_dim]
  float* values;   // [rows, kv_heads, value_dim]; not read where values stand in keys
  std::size_t rows;
};

// Rotates what a layer of that layout needs rotated.
void rotate_rows(const kv::memory::PageLayout& layout, std::uint32_t heads,
                 const AttentionInputs& inputs, MatmulRunner& runner);

// Rotates queries [heads, key_dim] of a token as rotate_rows() does.
void rotate_queries(const kv::memory::PageLayout& layout, float* queries, std::size_t heads);

// Turns the weighted values of `heads` heads back.
void rotate_back(const kv::memory::PageLayout& layout, float* values, std::size_t heads);

}  // namespace pagoda::model
