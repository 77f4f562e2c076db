// y = x w^T by NEON: which kernel multiplies which weight with how many rows.
#include "kernels/int8_bf16/bf16_matmul.h"
#include "kernels/int8_bf16/kernels.h"
#include "kernels/int8_bf16/usmmla.h"

namespace pagoda::kernels::PAGODA_ISA {

std::size_t packed_bytes(const WeightMatrix& weight) {
  return int8_bf16::usmmla_panels_bytes(weight);
}
void pack(const WeightMatrix& weight, std::size_t begin, std::size_t end, std::byte* packed) {
  int8_bf16::pack_usmmla_panels(weight, begin, end, packed);
}

std::size_t matmul_scratch(std::size_t columns) {
  std::size_t most = 0;
  for (const std::size_t bytes :
       {bf16_scratch(columns), few_rows_scratch(columns), many_rows_scratch(columns)}) {
    most = bytes > most ? bytes : most;
  }
  return most;
}

void matmul(const Matmul& job, std::size_t begin, std::size_t end, std::byte* scratch) {
  if (job.rows == 0 || begin >= end) return;
  const UsmmlaPanels weight(job.weight);
  const std::size_t first = begin / kTileRows;
  const std::size_t last = (end + kTileRows - 1) / kTileRows;
  if (weight.format.type == QuantType::kBf16) {
    return multiply_bf16(job, int8_bf16::PackedWeight(job.weight), first, last, scratch);
  }
  if (job.rows <= kFewRows) return multiply_few_rows(job, weight, first, last, scratch);
  multiply_many_rows(job, weight, first, last, scratch);
}

}  // namespace pagoda::kernels::PAGODA_ISA
