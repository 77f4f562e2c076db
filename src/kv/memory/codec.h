// Rows of floats to the cache's element type and back, one value at a time. These define the
// bits a cached value has; faster versions in kernels/ must equal them.
//
// kE4M3: a value is a code (base/e4m3.h) times its row's 2^e, where e, from -15 to 7, is the
// smallest for which the row's largest magnitude is at most 448 * 2^e. So every value is an fp16.
// Rows of larger magnitudes than kE4M3RowMax are cut off (element_range.h).
#pragma once

#include <cstddef>

#include "kv/memory/page_layout.h"

namespace pagoda::kv::memory {

void encode_row(Element element, const float* values, std::size_t count, Row row);
void decode_row(Element element, Row row, std::size_t count, float* values);

}  // namespace pagoda::kv::memory
