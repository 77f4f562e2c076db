// y = x w^T: which kernel multiplies which weight with how many rows.
#include "kernels/int8_bf16/amx_tile.h"
#include "kernels/int8_bf16/bf16_matmul.h"
#include "kernels/int8_bf16/int8_matmul.h"
#include "kernels/int8_bf16/kernels.h"

namespace pagoda::kernels::PAGODA_ISA {
namespace {

using int8_bf16::kTileRows;
using int8_bf16::PackedWeight;
using int8_bf16::QuantType;

// Up to so many rows cost less one by one than by the matrix unit, whose time hardly depends on
// their number. Without one there is no other way.
[[maybe_unused]] constexpr std::size_t kFewRows = 4;

void multiply_int8(const Matmul& job, const PackedWeight& weight, std::size_t begin,
                   std::size_t end, std::byte* scratch) {
  std::size_t by_tiles = 0;
  if constexpr (kMultipliesTiles) {
    const std::size_t rest = job.rows % kTileRows;
    const std::size_t by_rows = job.rows <= kFewRows ? job.rows : rest <= kFewRows ? rest : 0;
    by_tiles = job.rows - by_rows;
    if (by_tiles > 0) multiply_by_tiles(job, weight, by_tiles, begin, end, scratch);
  }
  if (by_tiles < job.rows) multiply_by_rows(job, weight, by_tiles, begin, end);
}

}  // namespace

std::size_t packed_bytes(const WeightMatrix& weight) { return int8_bf16::packed_bytes(weight); }
void pack(const WeightMatrix& weight, std::size_t begin, std::size_t end, std::byte* packed) {
  int8_bf16::pack(weight, begin, end, packed);
}

std::size_t matmul_scratch(std::size_t columns) {
  const std::size_t pairs = bf16_scratch(columns);
  std::size_t grid = 0;
  if constexpr (kMultipliesTiles) grid = by_tiles_scratch(columns);
  return pairs > grid ? pairs : grid;
}

void matmul(const Matmul& job, std::size_t begin, std::size_t end, std::byte* scratch) {
  if (job.rows == 0 || begin >= end) return;
  const PackedWeight weight(job.weight);
  const std::size_t first = begin / kTileRows;
  const std::size_t last = (end + kTileRows - 1) / kTileRows;
  if (weight.format.type == QuantType::kBf16) {
    return multiply_bf16(job, weight, first, last, scratch);
  }
  multiply_int8(job, weight, first, last, scratch);
}

}  // namespace pagoda::kernels::PAGODA_ISA
