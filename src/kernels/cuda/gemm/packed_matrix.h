// The layout of a weight matrix in GPU memory: in the order in which a tensor core takes it.
//
//   matrix = [row tile: 16 rows][chunk: 64 columns] chunk
//   chunk  = codes, then scales fp16, then minima fp16, both [8: g][group][rows g and g + 8]
//
// Rows and columns are filled up with zeros. A chunk of bf16 is [2][8] blocks of 8 rows by 8
// columns, 128 bytes each, as activations are (ops.h): wgmma reads it from shared memory where it
// landed.
//
// Codes are dealt already. A chunk is four *steps* of 16 columns, and lane 4 * g + t of a warp
// holds of each step the eight values of rows g and g + 8 at columns 2t, 2t + 1, 2t + 8 and 2t + 9,
// in the order (g, 2t) (g, 2t + 1) (g + 8, 2t) (g + 8, 2t + 1) (g, 2t + 8) …: the left side of
// mma.m16n8k16 and of wgmma.
//
//   format           a weight is               codes of a chunk, 32 lanes each     groups  bytes
//   kBf16            a bf16                    -                                   -       2048
//   kInt4            scale * (q - 8)           16 bytes: byte quads s hold step s  2       576
//   kInt4Min         scale * q + minimum       the same                            2       640
//   kInt8            scale * q                 2 x 16 bytes, of steps 0-1 and 2-3  2       1088
//   kInt8Group16     scale * q                 the same                            4       1152
//   kFp4             scale * e2m1(q)           as kInt4; scales are bf16           2       576
//
// A step has eight four-bit codes: value 2i stands in bits 4i to 4i + 3 and value 2i + 1 in bits
// 16 + 4i to 16 + 4i + 3. Codes of eight bits are signed, a step's eight values in order.
//
// Which file types become which format: F32, F16 and BF16 are rounded to kBf16; Q4_0 is kInt4; Q4_1
// and Q4_K are kInt4Min; Q8_0 is kInt8; Q6_K is kInt8Group16; MXFP4 is kFp4. Scales and minima that
// a file keeps as a product of two numbers (Q4_K, Q6_K) are rounded to fp16. Everything else a file
// may hold is unpacked and rounded to kBf16.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gguf/tensor_type.h"
#include "kernels/ops.h"

namespace pagoda::kernels::cuda {

enum class WeightFormat : std::uint8_t { kBf16, kInt4, kInt4Min, kInt8, kInt8Group16, kFp4 };

// Whether a code has four bits.
constexpr bool has_nibbles(WeightFormat format) {
  return format == WeightFormat::kInt4 || format == WeightFormat::kInt4Min ||
         format == WeightFormat::kFp4;
}

inline constexpr std::uint32_t kTileRows = 16;
inline constexpr std::uint32_t kChunkColumns = 64;
inline constexpr std::uint32_t kMmaK = 16;

constexpr std::uint32_t chunk_bytes(WeightFormat format) {
  switch (format) {
    case WeightFormat::kBf16:
      return 2048;
    case WeightFormat::kInt4:
    case WeightFormat::kFp4:
      return 576;
    case WeightFormat::kInt4Min:
      return 640;
    case WeightFormat::kInt8:
      return 1088;
    case WeightFormat::kInt8Group16:
      return 1152;
  }
  return 0;
}

// The index of the scale of a row and group among the scales of a chunk.
constexpr std::uint32_t scale_index(WeightFormat format, std::uint32_t row, std::uint32_t group) {
  return (row % 8 * (format == WeightFormat::kInt8Group16 ? 4 : 2) + group) * 2 + row / 8;
}

constexpr std::uint32_t row_tiles(std::size_t rows) {
  return static_cast<std::uint32_t>((rows + kTileRows - 1) / kTileRows);
}
constexpr std::uint32_t chunks_of(std::size_t columns) {
  return static_cast<std::uint32_t>((columns + kChunkColumns - 1) / kChunkColumns);
}
constexpr std::size_t packed_bytes(WeightFormat format, std::size_t rows, std::size_t columns) {
  return std::size_t{row_tiles(rows)} * chunks_of(columns) * chunk_bytes(format);
}

WeightFormat weight_format_of(gguf::TensorType type);

// The source of one row of several matrices that are multiplied as one.
struct SourceRow {
  const WeightMatrix* matrix = nullptr;  // nullptr: zeros
  std::size_t row = 0;
};

// Packs one row tile, [chunks] x chunk_bytes(format). All matrices have the same type and columns,
// and `format` is kBf16 or weight_format_of(type).
void pack_row_tile(WeightFormat format, const SourceRow (&rows)[kTileRows], std::size_t columns,
                   std::byte* packed);

// Rounds a row of a matrix to bf16, [columns].
void round_row(const WeightMatrix& matrix, std::size_t row, std::uint16_t* out);

}  // namespace pagoda::kernels::cuda
