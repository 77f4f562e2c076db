// y = x w^T by NEON: which kernel multiplies which weight with how many rows.
#include "kernels/tiles/grid_eights.h"
#include "kernels/tiles/kernels.h"
#include "kernels/tiles/pair_matmul.h"

namespace pagoda::kernels::PAGODA_TILE_SET {

std::size_t packed_bytes(const WeightMatrix& weight) { return tiles::packed_eights_bytes(weight); }
void pack(const WeightMatrix& weight, std::size_t begin, std::size_t end, std::byte* packed) {
  tiles::pack_eights(weight, begin, end, packed);
}

std::size_t matmul_scratch(std::size_t columns) {
  std::size_t most = 0;
  for (const std::size_t bytes :
       {pairs_scratch(columns), few_rows_scratch(columns), many_rows_scratch(columns)}) {
    most = bytes > most ? bytes : most;
  }
  return most;
}

void matmul(const Matmul& job, std::size_t begin, std::size_t end, std::byte* scratch) {
  if (job.rows == 0 || begin >= end) return;
  const PackedEights weight(job.weight);
  const std::size_t first = begin / kTileRows;
  const std::size_t last = (end + kTileRows - 1) / kTileRows;
  if (weight.format.codes == Codes::kBf16) {
    return multiply_pairs(job, tiles::PackedWeight(job.weight), first, last, scratch);
  }
  if (job.rows <= kFewRows) return multiply_few_rows(job, weight, first, last, scratch);
  multiply_many_rows(job, weight, first, last, scratch);
}

}  // namespace pagoda::kernels::PAGODA_TILE_SET
