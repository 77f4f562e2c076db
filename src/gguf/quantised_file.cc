#include "gguf/quantised_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <set>
#include <string_view>

#include "base/half.h"
#include "gguf/printable.h"
#include "gguf/quantise.h"

namespace pagoda::gguf {
namespace {

constexpr std::size_t kNameBytesShown = 60;
constexpr std::uint64_t kPieceBytes = std::uint64_t{16} << 20;  // quantised, then written
constexpr const char* kTypeKey = "pagoda.quantization";
constexpr const char* kVersionKey = "pagoda.quantization_version";
constexpr const char* kFloatKey = "pagoda.dtype";

// A weight that is multiplied by activations. Routers choose experts by small differences.
bool is_matrix(const Tensor& tensor) {
  const std::string_view name = tensor.name;
  return tensor.dimensions > 1 && tensor.rows() > 1 && name.ends_with(".weight") &&
         !name.ends_with("norm.weight") && name.find("ffn_gate_inp") == std::string_view::npos &&
         name.find("attn_sinks") == std::string_view::npos && !name.starts_with("rope_");
}

// The type that a tensor becomes; its own where it stays.
TensorType type_for(const Tensor& tensor, TensorType wanted, bool gives_logits) {
  if (!is_float(tensor.type) || !is_matrix(tensor)) return tensor.type;
  if (is_float(wanted)) return wanted;
  if (wanted == TensorType::kQ4_0 && !gives_logits) {
    return tensor.extents[0] % 32 == 0 ? TensorType::kQ4_0 : tensor.type;
  }
  if (wanted == TensorType::kQ4_K && !gives_logits && tensor.extents[0] % 256 == 0) return wanted;
  return tensor.extents[0] % 32 == 0 ? TensorType::kQ8_0 : tensor.type;
}

Error nothing_to_quantise(const File& file) {
  std::set<std::string_view> types;
  bool has_floats = false;
  for (const TensorType type : matrix_types(file)) {
    types.insert(tensor_type_info(type).name);
    has_floats = has_floats || is_float(type);
  }
  if (has_floats) {
    return {ErrorCode::kUnsupported,
            fmt::format("{}: has no F32, F16 or BF16 matrix whose rows are a multiple of 32 long",
                        file.path())};
  }
  return {ErrorCode::kInvalidArgument,
          fmt::format("{}: is quantised already ({})", file.path(), fmt::join(types, ", "))};
}

void read_floats(TensorType type, const std::byte* from, std::span<float> to) {
  if (type == TensorType::kF32) {
    std::memcpy(to.data(), from, to.size_bytes());
    return;
  }
  for (float& value : to) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, from, sizeof(bits));
    value = type == TensorType::kF16 ? float_from_fp16(bits) : float_from_bf16(bits);
    from += sizeof(bits);
  }
}

// Quantises rows of one tensor in pieces, on all threads of a pool.
class TensorQuantiser {
 public:
  TensorQuantiser(const Tensor& source, TensorType type, ThreadPool& pool)
      : source_(source),
        type_(type),
        pool_(pool),
        columns_(source.extents[0]),
        source_row_bytes_(columns_ / tensor_type_info(source.type).block_elements *
                          tensor_type_info(source.type).block_bytes),
        row_bytes_(columns_ / tensor_type_info(type).block_elements *
                   tensor_type_info(type).block_bytes),
        scratch_(pool.threads(), std::vector<float>(columns_)) {}

  std::uint64_t rows_per_piece() const {
    return std::max<std::uint64_t>(1, kPieceBytes / row_bytes_);
  }

  // Returns the rows quantised, valid until the next call; empty when a value cannot be.
  std::span<const std::byte> quantise(std::uint64_t first, std::uint64_t rows) {
    made_.resize(rows * row_bytes_);
    std::atomic<bool> fits = true;
    pool_.run(rows, [&](WorkRange range) {
      std::vector<float>& values = scratch_[range.thread];
      for (std::size_t row = range.begin; row < range.end; ++row) {
        read_floats(source_.type, source_.bytes.data() + (first + row) * source_row_bytes_, values);
        if (!quantise_row(type_, values, made_.data() + row * row_bytes_)) fits = false;
      }
    });
    return fits ? std::span<const std::byte>(made_) : std::span<const std::byte>();
  }

 private:
  const Tensor& source_;
  TensorType type_;
  ThreadPool& pool_;
  std::uint64_t columns_;
  std::uint64_t source_row_bytes_;
  std::uint64_t row_bytes_;
  std::vector<std::vector<float>> scratch_;  // [threads][columns]
  std::vector<std::byte> made_;
};

}  // namespace

bool is_float(TensorType type) {
  return type == TensorType::kF32 || type == TensorType::kF16 || type == TensorType::kBF16;
}

std::set<TensorType> matrix_types(const File& file) {
  std::set<TensorType> types;
  for (const Tensor& tensor : file.tensors()) {
    if (is_matrix(tensor)) types.insert(tensor.type);
  }
  return types;
}

Result<QuantisationPlan> plan_quantisation(const File& file, TensorType type) {
  const bool tied = file.find_tensor("output.weight") == nullptr;
  const std::string_view logits = tied ? "token_embd.weight" : "output.weight";
  QuantisationPlan plan;
  plan.file = &file;
  bool changes = false;
  for (const Tensor& source : file.tensors()) {
    Tensor tensor = source;
    tensor.type = type_for(source, type, source.name == logits);
    changes = changes || tensor.type != source.type;
    plan.tensors.push_back(tensor);
  }
  if (!changes) return nothing_to_quantise(file);
  Metadata keys = file.metadata();
  const char* const type_key = is_float(type) ? kFloatKey : kTypeKey;
  for (const char* const key : {kVersionKey, type_key, "general.file_type"}) keys.remove(key);
  keys.insert(type_key, {ValueType::kString, tensor_type_info(type).name});
  keys.insert(kVersionKey, {ValueType::kU32, std::uint64_t{kQuantiserVersion}});
  plan.head = file_head(keys, plan.tensors);
  plan.bytes = file_bytes(plan.head, plan.tensors);
  return plan;
}

Status write_quantised(
    const QuantisationPlan& plan, ThreadPool& pool,
    const std::function<void(std::uint64_t done, std::uint64_t all)>& on_progress,
    FileWriter& writer) {
  std::uint64_t done = 0;
  const auto append = [&](std::span<const std::byte> bytes) -> Status {
    RETURN_IF_ERROR(writer.append(bytes));
    done += bytes.size();
    on_progress(done, plan.bytes);
    return ok_status();
  };
  RETURN_IF_ERROR(append(std::as_bytes(std::span(plan.head))));
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    const Tensor& source = plan.file->tensors()[i];
    if (plan.tensors[i].type == source.type) {
      for (std::uint64_t at = 0; at < source.bytes.size(); at += kPieceBytes) {
        RETURN_IF_ERROR(append(source.bytes.subspan(
            at, std::min<std::uint64_t>(kPieceBytes, source.bytes.size() - at))));
      }
      RETURN_IF_ERROR(writer.pad());
      continue;
    }
    TensorQuantiser quantiser(source, plan.tensors[i].type, pool);
    const std::uint64_t piece = quantiser.rows_per_piece();
    for (std::uint64_t row = 0; row < source.rows(); row += piece) {
      const auto made = quantiser.quantise(row, std::min(piece, source.rows() - row));
      if (made.empty()) {
        return Error{ErrorCode::kUnsupported,
                     fmt::format("{}: tensor '{}' cannot be {} {}: it holds values that are not "
                                 "finite or too large",
                                 plan.file->path(), printable(source.name, kNameBytesShown),
                                 is_float(plan.tensors[i].type) ? "rounded to" : "quantised to",
                                 tensor_type_info(plan.tensors[i].type).name)};
      }
      RETURN_IF_ERROR(append(made));
    }
    RETURN_IF_ERROR(writer.pad());
  }
  return ok_status();
}

}  // namespace pagoda::gguf
