#include "kernels/cuda/gemm/packed_matrix.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/half.h"
#include "kernels/ref/dequantise.h"
#include "kernels/ref/dequantise_blocks.h"
#include "kernels/ref/quant_block.h"

namespace pagoda::kernels::cuda {
namespace {

using gguf::TensorType;

// The place of the value (row, column) of a 16 x 16 step: which lane has it, as which of eight.
struct FragmentIndex {
  std::uint32_t lane;
  std::uint32_t value;
};
constexpr FragmentIndex fragment_index(std::uint32_t row, std::uint32_t column) {
  return {4 * (row % 8) + column % 8 / 2, column / 8 * 4 + row / 8 * 2 + column % 2};
}

void put_half(std::byte* at, std::uint16_t bits) { std::memcpy(at, &bits, sizeof bits); }

void put_bf16(std::byte* chunk, std::uint32_t row, std::uint32_t column, float value) {
  const std::uint32_t block = row / 8 * 8 + column / 8;
  put_half(chunk + block * 128 + row % 8 * 16 + column % 8 * 2, bf16_from_float(value));
}

void put_code4(std::byte* chunk, std::uint32_t row, std::uint32_t column, unsigned code) {
  const auto [lane, index] = fragment_index(row, column % kMmaK);
  const std::uint32_t shift = 4 * (index / 2) + 16 * (index % 2);
  std::byte* const at = chunk + lane * 16 + column / kMmaK * 4;
  std::uint32_t word = 0;
  std::memcpy(&word, at, sizeof word);
  word |= code << shift;
  std::memcpy(at, &word, sizeof word);
}

void put_code8(std::byte* chunk, std::uint32_t row, std::uint32_t column, int code) {
  const auto [lane, index] = fragment_index(row, column % kMmaK);
  const std::uint32_t step = column / kMmaK;
  chunk[step / 2 * 512 + lane * 16 + step % 2 * 8 + index] =
      static_cast<std::byte>(static_cast<std::int8_t>(code));
}

const std::byte* row_of(const SourceRow& source) {
  return source.matrix->data + source.row * source.matrix->row_bytes;
}

void pack_floats(const SourceRow (&rows)[kTileRows], std::size_t columns, std::byte* packed) {
  std::vector<float> values(columns);
  for (std::uint32_t r = 0; r < kTileRows; ++r) {
    if (rows[r].matrix == nullptr) continue;
    ref::dequantise_row(rows[r].matrix->type, row_of(rows[r]), values.data(), columns);
    for (std::size_t c = 0; c < columns; ++c) {
      put_bf16(packed + c / kChunkColumns * chunk_bytes(WeightFormat::kBf16), r, c % kChunkColumns,
               values[c]);
    }
  }
}

// The e2m1 code of half of `doubled`.
unsigned fp4_code(int doubled) {
  const unsigned sign = doubled < 0 ? 8 : 0;
  for (unsigned code = 0; code < 8; ++code) {
    if (static_cast<int>(ref::kFp4Doubled[code]) == std::abs(doubled)) return sign | code;
  }
  return 0;
}

// Packs 32 columns of one row, from `column` on: half a chunk, one group or two.
void put_group(WeightFormat format, std::byte* chunk, std::uint32_t row, std::uint32_t column,
               const ref::QuantBlock& group, int lowest) {
  const bool nibbles = has_nibbles(format);
  const std::uint32_t first = column % kChunkColumns;
  for (std::uint32_t i = 0; i < 32; ++i) {
    if (format == WeightFormat::kFp4) {
      put_code4(chunk, row, first + i, fp4_code(group.codes[i] + lowest));
    } else if (nibbles) {
      put_code4(chunk, row, first + i, group.codes[i]);
    } else {
      put_code8(chunk, row, first + i, group.codes[i] + lowest);
    }
  }
  const std::uint32_t groups_each_32 = format == WeightFormat::kInt8Group16 ? 2 : 1;
  std::byte* const scales = chunk + (nibbles ? 512 : 1024);
  for (std::uint32_t i = 0; i < groups_each_32; ++i) {
    const std::uint32_t at = scale_index(format, row, first / 32 * groups_each_32 + i);
    // Twice: codes of MXFP4 are those of doubled values.
    put_half(scales + at * 2, format == WeightFormat::kFp4 ? bf16_from_float(2 * group.scales[i])
                                                           : fp16_from_float(group.scales[i]));
    if (format == WeightFormat::kInt4Min) {
      put_half(scales + (2 * kTileRows + at) * 2, fp16_from_float(group.minima[i]));
    }
  }
}

void pack_codes(WeightFormat format, const SourceRow (&rows)[kTileRows], std::size_t columns,
                std::byte* packed) {
  for (std::uint32_t r = 0; r < kTileRows; ++r) {
    if (rows[r].matrix == nullptr) continue;
    const TensorType type = rows[r].matrix->type;
    const int lowest = ref::quant_traits(type)->lowest;
    for (std::size_t c = 0; c < columns; c += 32) {
      put_group(format, packed + c / kChunkColumns * chunk_bytes(format), r,
                static_cast<std::uint32_t>(c), ref::read_quant_block(type, row_of(rows[r]), c),
                lowest);
    }
  }
}

}  // namespace

WeightFormat weight_format_of(TensorType type) {
  switch (type) {
    case TensorType::kQ4_0:
      return WeightFormat::kInt4;
    case TensorType::kQ4_1:
    case TensorType::kQ4_K:
      return WeightFormat::kInt4Min;
    case TensorType::kQ8_0:
      return WeightFormat::kInt8;
    case TensorType::kQ6_K:
      return WeightFormat::kInt8Group16;
    case TensorType::kMXFP4:
      return WeightFormat::kFp4;
    default:
      return WeightFormat::kBf16;
  }
}

void round_row(const WeightMatrix& matrix, std::size_t row, std::uint16_t* out) {
  std::vector<float> values(matrix.columns);
  ref::dequantise_row(matrix.type, row_of({&matrix, row}), values.data(), matrix.columns);
  std::transform(values.begin(), values.end(), out, bf16_from_float);
}

void pack_row_tile(WeightFormat format, const SourceRow (&rows)[kTileRows], std::size_t columns,
                   std::byte* packed) {
  std::memset(packed, 0, std::size_t{chunks_of(columns)} * chunk_bytes(format));
  if (format == WeightFormat::kBf16) {
    pack_floats(rows, columns, packed);
  } else {
    pack_codes(format, rows, columns, packed);
  }
}

}  // namespace pagoda::kernels::cuda
