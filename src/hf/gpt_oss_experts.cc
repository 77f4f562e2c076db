#include "hf/gpt_oss_experts.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

namespace pagoda::hf {
namespace {

constexpr std::uint64_t kNibbleBytes = 16;               // of a block of 32 values
constexpr std::uint64_t kBlockBytes = kNibbleBytes + 1;  // with its scale
constexpr std::uint64_t kBlockValues = 32;

Error wrong_shape(const char* expected) {
  return {ErrorCode::kCorrupt, std::string("has another shape than ") + expected};
}

// The name of the ups beside that of the gates.
std::string up_name(const std::string& gate) {
  std::string name = gate;
  return name.replace(name.find("ffn_gate"), 8, "ffn_up");
}

// In the folder byte j holds values 2j and 2j + 1, in GGUF files j and j + 16.
void write_block(const std::byte* nibbles, std::byte scale, std::byte* out) {
  out[0] = scale;
  const auto value = [&](std::uint64_t i) {
    const auto both = std::to_integer<unsigned>(nibbles[i / 2]);
    return i % 2 == 0 ? both & 15U : both >> 4;
  };
  for (std::uint64_t j = 0; j < kNibbleBytes; ++j) {
    out[1 + j] = static_cast<std::byte>(value(j) | value(j + kNibbleBytes) << 4);
  }
}

// Copies row `row` of expert `expert` to `out`.
template <class CopyRow>
Status add_rows(const std::array<std::uint64_t, 3>& shape, std::uint64_t row_bytes,
                const std::string& name, std::uint64_t first_row, std::uint64_t step,
                gguf::TensorType type, gguf::FileBuilder& builder, const CopyRow& copy_row) {
  const auto [experts, rows, columns] = shape;
  const std::span<std::byte> bytes = builder.allocate(experts * (rows / step) * row_bytes);
  std::byte* out = bytes.data();
  for (std::uint64_t expert = 0; expert < experts; ++expert) {
    for (std::uint64_t row = first_row; row < rows; row += step, out += row_bytes) {
      copy_row(expert, row, out);
    }
  }
  return builder.add_tensor(name, type, std::array{columns, rows / step, experts}, bytes);
}

// Adds one tensor, or the gates and the ups of one whose rows take turns.
template <class CopyRow>
Status add_matrices(const std::array<std::uint64_t, 3>& shape, std::uint64_t row_bytes,
                    const TensorPlace& place, bool takes_turns, gguf::TensorType type,
                    gguf::FileBuilder& builder, const CopyRow& copy_row) {
  if (!takes_turns) return add_rows(shape, row_bytes, place.name, 0, 1, type, builder, copy_row);
  if (shape[1] % 2 != 0) return wrong_shape("rows of gates and ups");
  RETURN_IF_ERROR(add_rows(shape, row_bytes, place.name, 0, 2, type, builder, copy_row));
  return add_rows(shape, row_bytes, up_name(place.name), 1, 2, type, builder, copy_row);
}

Status add_mxfp4(const SafeTensor& tensor, const SafeTensor* scales, const TensorPlace& place,
                 gguf::FileBuilder& builder) {
  const bool fits = tensor.shape.size() == 4 && tensor.shape[3] == kNibbleBytes &&
                    tensor.dtype == Dtype::kU8 && scales != nullptr &&
                    scales->dtype == Dtype::kU8 && scales->shape.size() == 3 &&
                    std::equal(scales->shape.begin(), scales->shape.end(), tensor.shape.begin());
  if (!fits) return wrong_shape("blocks of 16 bytes with a scale each");
  const std::uint64_t rows = tensor.shape[1];
  const std::uint64_t blocks = tensor.shape[2];
  const auto copy_row = [&](std::uint64_t expert, std::uint64_t row, std::byte* out) {
    const std::uint64_t first = (expert * rows + row) * blocks;
    for (std::uint64_t i = 0; i < blocks; ++i) {
      write_block(tensor.bytes.data() + (first + i) * kNibbleBytes, scales->bytes[first + i],
                  out + i * kBlockBytes);
    }
  };
  return add_matrices({tensor.shape[0], rows, blocks * kBlockValues}, blocks * kBlockBytes, place,
                      place.change == TensorChange::kMxfp4GateUp, gguf::TensorType::kMXFP4, builder,
                      copy_row);
}

Status add_transposed(const SafeTensor& tensor, const TensorPlace& place, gguf::TensorType type,
                      std::uint64_t size, gguf::FileBuilder& builder) {
  if (tensor.shape.size() != 3) return wrong_shape("one matrix for every expert");
  const std::uint64_t columns = tensor.shape[1];
  const std::uint64_t rows = tensor.shape[2];
  const auto copy_row = [&](std::uint64_t expert, std::uint64_t row, std::byte* out) {
    const std::byte* from = tensor.bytes.data() + (expert * columns * rows + row) * size;
    for (std::uint64_t i = 0; i < columns; ++i) {
      std::memcpy(out + i * size, from + i * rows * size, size);
    }
  };
  return add_matrices({tensor.shape[0], rows, columns}, columns * size, place,
                      place.change == TensorChange::kTransposedGateUp, type, builder, copy_row);
}

Status add_bias(const SafeTensor& tensor, const TensorPlace& place, gguf::TensorType type,
                std::uint64_t size, gguf::FileBuilder& builder) {
  if (tensor.shape.size() != 2 || tensor.shape[1] % 2 != 0) {
    return wrong_shape("a bias for gates and ups of every expert");
  }
  const std::uint64_t experts = tensor.shape[0];
  const std::uint64_t hidden = tensor.shape[1] / 2;
  for (std::uint64_t part = 0; part < 2; ++part) {
    const std::span<std::byte> bytes = builder.allocate(experts * hidden * size);
    for (std::uint64_t i = 0; i < experts * hidden; ++i) {
      std::memcpy(bytes.data() + i * size, tensor.bytes.data() + (2 * i + part) * size, size);
    }
    RETURN_IF_ERROR(builder.add_tensor(part == 0 ? place.name : up_name(place.name), type,
                                       std::array{hidden, experts}, bytes));
  }
  return ok_status();
}

}  // namespace

bool is_gpt_oss(TensorChange change) {
  switch (change) {
    case TensorChange::kMxfp4GateUp:
    case TensorChange::kMxfp4Down:
    case TensorChange::kTransposedGateUp:
    case TensorChange::kTransposedDown:
    case TensorChange::kGateUpBias:
      return true;
    case TensorChange::kNone:
    case TensorChange::kSplitGateUp:
    case TensorChange::kSplitExperts:
    case TensorChange::kScales:
      break;
  }
  return false;
}

Status add_gpt_oss_experts(const SafeTensor& tensor, const SafeTensor* scales,
                           const TensorPlace& place, gguf::FileBuilder& builder) {
  if (place.change == TensorChange::kMxfp4GateUp || place.change == TensorChange::kMxfp4Down) {
    return add_mxfp4(tensor, scales, place, builder);
  }
  const bool is_float = tensor.dtype == Dtype::kF32;
  if (!is_float && tensor.dtype != Dtype::kBf16 && tensor.dtype != Dtype::kF16) {
    return Error{ErrorCode::kUnsupported,
                 "has dtype " + tensor.dtype_name + ", expected F32, F16 or BF16"};
  }
  const gguf::TensorType type = is_float                      ? gguf::TensorType::kF32
                                : tensor.dtype == Dtype::kF16 ? gguf::TensorType::kF16
                                                              : gguf::TensorType::kBF16;
  const std::uint64_t size = is_float ? 4 : 2;
  if (place.change == TensorChange::kGateUpBias) {
    return add_bias(tensor, place, type, size, builder);
  }
  return add_transposed(tensor, place, type, size, builder);
}

}  // namespace pagoda::hf
