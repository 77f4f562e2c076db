// Rows of floats to the cache's element type and back, one value at a time. These define the
// bits a cached value has; faster versions in kernels/ must equal them.
#pragma once

#include <cstddef>

#include "kv/memory/page_layout.h"

namespace pagoda::kv::memory {

void encode_row(Element element, const float* values, std::size_t count, Row row);
void decode_row(Element element, Row row, std::size_t count, float* values);

}  // namespace pagoda::kv::memory
