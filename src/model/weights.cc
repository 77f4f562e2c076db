#include "model/weights.h"

#include <fmt/format.h>

#include <string>

namespace pagoda::model {
namespace {

class TensorReader {
 public:
  TensorReader(const gguf::File& file, const kernels::KernelSet& kernels)
      : file_(file), kernels_(kernels) {}

  bool contains(std::string_view name) const { return file_.find_tensor(name) != nullptr; }

  Result<kernels::WeightMatrix> matrix(std::string_view name, std::uint64_t rows,
                                       std::uint64_t columns) const {
    const gguf::Tensor* const tensor = file_.find_tensor(name);
    if (tensor == nullptr) {
      return Error{ErrorCode::kNotFound,
                   fmt::format("{}: tensor '{}' is missing", file_.path(), name)};
    }
    const gguf::TensorTypeInfo& info = gguf::tensor_type_info(tensor->type);
    if (!info.readable) {
      return Error{ErrorCode::kUnsupported,
                   fmt::format("{}: tensor '{}' has type {}, which this version cannot read",
                               file_.path(), name, info.name)};
    }
    if (tensor->extents[0] != columns || tensor->rows() != rows) {
      return Error{
          ErrorCode::kCorrupt,
          fmt::format("{}: tensor '{}' is {} x {}, expected {} x {} (rows x columns)", file_.path(),
                      name, tensor->rows(), tensor->extents[0], rows, columns)};
    }
    return kernels::WeightMatrix{.type = tensor->type,
                                 .data = tensor->bytes.data(),
                                 .rows = rows,
                                 .columns = columns,
                                 .row_bytes = columns / info.block_elements * info.block_bytes};
  }

  Result<std::vector<float>> vector(std::string_view name, std::uint64_t size) const {
    ASSIGN_OR_RETURN(const kernels::WeightMatrix row, matrix(name, 1, size));
    std::vector<float> values(size);
    kernels_.unpack_row(row, 0, values.data());
    return values;
  }

  // Finds `name`.weight, and `name`.bias where the file has it.
  Result<Projection> projection(std::string_view name, std::uint64_t rows,
                                std::uint64_t columns) const {
    Projection projection;
    ASSIGN_OR_RETURN(projection.weight, matrix(fmt::format("{}.weight", name), rows, columns));
    const std::string bias = fmt::format("{}.bias", name);
    if (contains(bias)) {
      ASSIGN_OR_RETURN(projection.bias, vector(bias, rows));
    }
    return projection;
  }

 private:
  const gguf::File& file_;
  const kernels::KernelSet& kernels_;
};

Result<LayerWeights> load_layer(const TensorReader& reader, const Config& config,
                                std::uint32_t layer) {
  const auto name = [layer](std::string_view part) {
    return fmt::format("blk.{}.{}", layer, part);
  };
  const std::uint64_t width = config.width;
  const std::uint64_t hidden = config.hidden_width;
  const std::uint64_t query_rows = std::uint64_t{config.heads} * config.key_dim;
  const std::uint64_t key_rows = std::uint64_t{config.kv_heads} * config.key_dim;
  const std::uint64_t value_rows = std::uint64_t{config.kv_heads} * config.value_dim;
  const std::uint64_t mixed = std::uint64_t{config.heads} * config.value_dim;
  LayerWeights w;
  ASSIGN_OR_RETURN(w.attention_norm, reader.vector(name("attn_norm.weight"), width));
  ASSIGN_OR_RETURN(w.query, reader.projection(name("attn_q"), query_rows, width));
  ASSIGN_OR_RETURN(w.key, reader.projection(name("attn_k"), key_rows, width));
  ASSIGN_OR_RETURN(w.value, reader.projection(name("attn_v"), value_rows, width));
  if (config.qk_norm) {
    ASSIGN_OR_RETURN(w.query_norm, reader.vector(name("attn_q_norm.weight"), config.key_dim));
    ASSIGN_OR_RETURN(w.key_norm, reader.vector(name("attn_k_norm.weight"), config.key_dim));
  }
  ASSIGN_OR_RETURN(w.attention_output, reader.projection(name("attn_output"), width, mixed));
  ASSIGN_OR_RETURN(w.feed_forward_norm, reader.vector(name("ffn_norm.weight"), width));
  ASSIGN_OR_RETURN(w.gate, reader.projection(name("ffn_gate"), hidden, width));
  ASSIGN_OR_RETURN(w.up, reader.projection(name("ffn_up"), hidden, width));
  ASSIGN_OR_RETURN(w.down, reader.projection(name("ffn_down"), width, hidden));
  return w;
}

}  // namespace

Result<Weights> load_weights(const gguf::File& file, const Config& config,
                             const kernels::KernelSet& kernels) {
  const TensorReader reader(file, kernels);
  Weights weights;
  ASSIGN_OR_RETURN(weights.embedding,
                   reader.matrix("token_embd.weight", config.vocabulary, config.width));
  weights.layers.reserve(config.layers);
  for (std::uint32_t layer = 0; layer < config.layers; ++layer) {
    ASSIGN_OR_RETURN(LayerWeights loaded, load_layer(reader, config, layer));
    weights.layers.push_back(std::move(loaded));
  }
  ASSIGN_OR_RETURN(weights.output_norm, reader.vector("output_norm.weight", config.width));
  const bool tied = !reader.contains("output.weight");
  ASSIGN_OR_RETURN(weights.output, reader.matrix(tied ? "token_embd.weight" : "output.weight",
                                                 config.vocabulary, config.width));
  if (reader.contains("rope_freqs.weight")) {
    ASSIGN_OR_RETURN(weights.rope_frequencies,
                     reader.vector("rope_freqs.weight", config.rope.dims / 2));
  }
  return weights;
}

}  // namespace pagoda::model
