#include "model/weights.h"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <set>
#include <string>

#include "gguf/printable.h"
#include "model/config_reader.h"

namespace pagoda::model {
namespace {

constexpr std::size_t kNameBytesShown = 60;

class TensorReader {
 public:
  TensorReader(const gguf::File& file, const kernels::KernelSet& kernels)
      : file_(file), kernels_(kernels) {}

  bool contains(std::string_view name) const { return file_.find_tensor(name) != nullptr; }

  // Takes a tensor, if it is there, for one that need not be read.
  void leave_out(std::string_view name) {
    if (const gguf::Tensor* const tensor = file_.find_tensor(name)) read_.insert(tensor);
  }
  // The same with all whose names begin so.
  void leave_out_all(std::string_view prefix) {
    for (const gguf::Tensor& tensor : file_.tensors()) {
      if (tensor.name.starts_with(prefix)) read_.insert(&tensor);
    }
  }

  // An error names a tensor that was not read: the model has a part that this version leaves out.
  Status check_all_read() const {
    for (const gguf::Tensor& tensor : file_.tensors()) {
      if (read_.contains(&tensor)) continue;
      return Error{ErrorCode::kUnsupported,
                   fmt::format("{}: tensor '{}' is of no use to this version: the model has a part "
                               "that is not supported",
                               file_.path(), gguf::printable(tensor.name, kNameBytesShown))};
    }
    return ok_status();
  }

  Result<kernels::WeightMatrix> matrix(std::string_view name, std::uint64_t rows,
                                       std::uint64_t columns) {
    const gguf::Tensor* const tensor = file_.find_tensor(name);
    if (tensor == nullptr) {
      return Error{ErrorCode::kNotFound,
                   fmt::format("{}: tensor '{}' is missing", file_.path(), name)};
    }
    read_.insert(tensor);
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
    RETURN_IF_ERROR(check_scales(*tensor));
    return kernels::WeightMatrix{.type = tensor->type,
                                 .data = tensor->bytes.data(),
                                 .rows = rows,
                                 .columns = columns,
                                 .row_bytes = columns / info.block_elements * info.block_bytes};
  }

  Result<std::vector<float>> vector(std::string_view name, std::uint64_t size) {
    ASSIGN_OR_RETURN(const kernels::WeightMatrix row, matrix(name, 1, size));
    std::vector<float> values(size);
    kernels_.unpack_row(row, 0, values.data());
    return values;
  }

  // All of a tensor's `size` values, whatever its rows.
  Result<std::vector<float>> values(std::string_view name, std::uint64_t size) {
    const gguf::Tensor* const tensor = file_.find_tensor(name);
    if (tensor == nullptr || tensor->elements() != size) return vector(name, size);  // its error
    ASSIGN_OR_RETURN(const kernels::WeightMatrix rows,
                     matrix(name, tensor->rows(), tensor->extents[0]));
    std::vector<float> made(size);
    for (std::size_t row = 0; row < rows.rows; ++row) {
      kernels_.unpack_row(rows, row, made.data() + row * rows.columns);
    }
    return made;
  }

  // [columns, rows] of a matrix of the file.
  std::shared_ptr<const std::vector<float>> transposed(const kernels::WeightMatrix& matrix) const {
    auto made = std::make_shared<std::vector<float>>(matrix.rows * matrix.columns);
    std::vector<float> row(matrix.columns);
    for (std::size_t r = 0; r < matrix.rows; ++r) {
      kernels_.unpack_row(matrix, r, row.data());
      for (std::size_t c = 0; c < matrix.columns; ++c) (*made)[c * matrix.rows + r] = row[c];
    }
    return made;
  }

  // Finds `name`.weight, and `name`.bias where the file has it.
  Result<Projection> projection(std::string_view name, std::uint64_t rows, std::uint64_t columns) {
    Projection projection;
    ASSIGN_OR_RETURN(projection.weight, matrix(fmt::format("{}.weight", name), rows, columns));
    const std::string bias = fmt::format("{}.bias", name);
    if (contains(bias)) {
      ASSIGN_OR_RETURN(projection.bias, values(bias, rows));
    }
    return projection;
  }

 private:
  // The scale of an MXFP4 block is a power of two whose last code stands for NaN. Kernels do not
  // look for it: what they would compute differs from one to the other.
  Status check_scales(const gguf::Tensor& tensor) const {
    if (tensor.type != gguf::TensorType::kMXFP4) return ok_status();
    const std::size_t block_bytes = gguf::tensor_type_info(tensor.type).block_bytes;
    for (std::size_t at = 0; at < tensor.bytes.size(); at += block_bytes) {
      if (tensor.bytes[at] != std::byte{0xFF}) continue;
      return Error{
          ErrorCode::kCorrupt,
          fmt::format("{}: tensor '{}' has the scale NaN (255) in its MXFP4 block {}", file_.path(),
                      gguf::printable(tensor.name, kNameBytesShown), at / block_bytes)};
    }
    return ok_status();
  }

  const gguf::File& file_;
  const kernels::KernelSet& kernels_;
  std::set<const gguf::Tensor*> read_;
};

// Reads one layer's tensors.
class LayerReader {
 public:
  LayerReader(TensorReader& tensors, const Config& config, std::uint32_t layer)
      : tensors_(tensors), config_(config), layer_(layer) {}

  // `arranged` takes what is held in another order than the file's.
  Result<LayerWeights> read(
      std::vector<std::shared_ptr<const std::vector<float>>>& arranged) const {
    LayerWeights w;
    const bool inputs = config_.branch_norms != BranchNorms::kOutput;
    const bool outputs = config_.branch_norms != BranchNorms::kInput;
    ASSIGN_OR_RETURN(w.attention_norm, norm("attn_norm", inputs, config_.width));
    ASSIGN_OR_RETURN(w.attention_output_norm, norm("post_attention_norm", outputs, config_.width));
    // Some architectures name the norm before the feed-forward branch by where it stands.
    const bool is_after = !outputs && tensors_.contains(name("post_attention_norm.weight"));
    ASSIGN_OR_RETURN(w.feed_forward_norm,
                     norm(is_after ? "post_attention_norm" : "ffn_norm", inputs, config_.width));
    ASSIGN_OR_RETURN(w.feed_forward_output_norm, norm("post_ffw_norm", outputs, config_.width));
    RETURN_IF_ERROR(config_.latent.rank > 0 ? read_latent_attention(w, arranged)
                                            : read_attention(w));
    RETURN_IF_ERROR(read_feed_forward(w));
    if (config_.has_output_scales && tensors_.contains(name("layer_output_scale.weight"))) {
      ASSIGN_OR_RETURN(const std::vector<float> scale,
                       tensors_.vector(name("layer_output_scale.weight"), 1));
      w.output_scale = scale.front();
    }
    return w;
  }

 private:
  std::string name(std::string_view part) const { return fmt::format("blk.{}.{}", layer_, part); }

  Result<std::vector<float>> norm(std::string_view part, bool exists, std::uint64_t size) const {
    if (!exists) return std::vector<float>();
    return tensors_.vector(name(fmt::format("{}.weight", part)), size);
  }

  Status read_attention(LayerWeights& w) const {
    const std::uint64_t width = config_.width;
    const HeadShape heads = config_.heads_of(layer_);
    const bool keeps_rows = config_.kv_layer_of(layer_) == layer_;
    const std::uint64_t queries = std::uint64_t{config_.heads} * heads.key_dim;
    const std::uint64_t keys = std::uint64_t{heads.kv_heads} * heads.key_dim;
    const std::uint64_t values = std::uint64_t{heads.kv_heads} * heads.value_dim;
    if (tensors_.contains(name("attn_qkv.weight"))) {
      ASSIGN_OR_RETURN(const Projection all,
                       tensors_.projection(name("attn_qkv"), queries + keys + values, width));
      w.query = rows_of(all, 0, queries);
      if (keeps_rows) {  // else nobody reads the file's keys and values
        w.key = rows_of(all, queries, keys);
        w.value = rows_of(all, queries + keys, values);
      }
    } else {
      ASSIGN_OR_RETURN(w.query, tensors_.projection(name("attn_q"), queries, width));
      if (keeps_rows) {
        ASSIGN_OR_RETURN(w.key, tensors_.projection(name("attn_k"), keys, width));
      }
      if (keeps_rows && !values_are_keys()) {
        ASSIGN_OR_RETURN(w.value, tensors_.projection(name("attn_v"), values, width));
      }
    }
    const bool normed = config_.qk_norm != QkNormSpan::kNone;
    const bool each = config_.qk_norm == QkNormSpan::kHead;
    ASSIGN_OR_RETURN(w.query_norm, norm("attn_q_norm", normed, each ? heads.key_dim : queries));
    ASSIGN_OR_RETURN(w.key_norm,
                     norm("attn_k_norm", normed && keeps_rows, each ? heads.key_dim : keys));
    ASSIGN_OR_RETURN(w.attention_output,
                     tensors_.projection(name("attn_output"), width, config_.mixed_width(layer_)));
    if (config_.has_sinks) {
      ASSIGN_OR_RETURN(w.sinks, tensors_.vector(name("attn_sinks.weight"), config_.heads));
    }
    return ok_status();
  }

  // Only in layers that see all keys. Where the config does not say, the first of them does.
  bool values_are_keys() const {
    if (config_.attention[layer_].window != 0) return false;
    if (config_.keys_are_values) return *config_.keys_are_values;
    std::uint32_t first = 0;
    while (config_.attention[first].window != 0) ++first;
    return !tensors_.contains(fmt::format("blk.{}.attn_v.weight", first));
  }

  Status read_latent_attention(
      LayerWeights& w, std::vector<std::shared_ptr<const std::vector<float>>>& arranged) const {
    const LatentConfig& latent = config_.latent;
    const std::uint64_t width = config_.width;
    const std::uint64_t queries =
        std::uint64_t{config_.heads} * latent.query_dim(config_.ropes.front().dims);
    if (latent.query_rank > 0) {
      ASSIGN_OR_RETURN(w.latent.query_down,
                       tensors_.projection(name("attn_q_a"), latent.query_rank, width));
      ASSIGN_OR_RETURN(w.latent.query_norm, norm("attn_q_a_norm", true, latent.query_rank));
      ASSIGN_OR_RETURN(w.query, tensors_.projection(name("attn_q_b"), queries, latent.query_rank));
    } else {
      ASSIGN_OR_RETURN(w.query, tensors_.projection(name("attn_q"), queries, width));
    }
    ASSIGN_OR_RETURN(w.latent.down,
                     tensors_.projection(name("attn_kv_a_mqa"), config_.key_dim, width));
    ASSIGN_OR_RETURN(w.latent.norm, norm("attn_kv_a_norm", true, latent.rank));
    RETURN_IF_ERROR(read_latent_heads(w.latent, arranged));
    ASSIGN_OR_RETURN(w.attention_output,
                     tensors_.projection(name("attn_output"), width, config_.mixed_width(layer_)));
    return ok_status();
  }

  // Apart, keys as queries need them; or, in older files and in folders, keys and values of every
  // head together, keys the other way round.
  Status read_latent_heads(LatentWeights& w,
                           std::vector<std::shared_ptr<const std::vector<float>>>& arranged) const {
    const std::uint64_t heads = config_.heads;
    const std::uint64_t rank = config_.latent.rank;
    const std::uint64_t plain = config_.latent.plain_dim;
    const std::uint64_t value = config_.latent.value_dim;
    if (tensors_.contains(name("attn_k_b.weight"))) {
      ASSIGN_OR_RETURN(const Projection keys,
                       tensors_.projection(name("attn_k_b"), heads * rank, plain));
      ASSIGN_OR_RETURN(const Projection values,
                       tensors_.projection(name("attn_v_b"), heads * value, rank));
      for (std::uint64_t head = 0; head < heads; ++head) {
        w.key_up.push_back(rows_of(keys, head * rank, rank));
        w.value_up.push_back(rows_of(values, head * value, value));
      }
      tensors_.leave_out(name("attn_kv_b.weight"));  // some files hold both
      return ok_status();
    }
    ASSIGN_OR_RETURN(const Projection both,
                     tensors_.projection(name("attn_kv_b"), heads * (plain + value), rank));
    for (std::uint64_t head = 0; head < heads; ++head) {
      const std::uint64_t first = head * (plain + value);
      arranged.push_back(tensors_.transposed(rows_of(both, first, plain).weight));
      w.key_up.push_back(
          {.weight = {.type = gguf::TensorType::kF32,
                      .data = reinterpret_cast<const std::byte*>(arranged.back()->data()),
                      .rows = rank,
                      .columns = plain,
                      .row_bytes = plain * sizeof(float)},
           .bias = {}});
      w.value_up.push_back(rows_of(both, first + plain, value));
    }
    return ok_status();
  }

  Status read_feed_forward(LayerWeights& w) const {
    const bool mixed = config_.has_experts(layer_);
    const std::uint64_t hidden = config_.hidden_width_of(layer_);
    if (hidden > 0) {
      ASSIGN_OR_RETURN(w.feed_forward,
                       network(mixed && !config_.experts.has_own_norms ? "_shexp" : "", hidden));
    }
    return mixed ? read_experts(w) : ok_status();
  }

  // ffn_gate, ffn_up and ffn_down with a suffix. Where there is no gate, its rows come first in
  // ffn_up.
  Result<FeedForwardWeights> network(std::string_view suffix, std::uint64_t hidden) const {
    const auto part = [&](std::string_view which) {
      return name(fmt::format("ffn_{}{}", which, suffix));
    };
    const std::uint64_t width = config_.width;
    FeedForwardWeights made;
    if (tensors_.contains(part("gate") + ".weight")) {
      ASSIGN_OR_RETURN(made.gate, tensors_.projection(part("gate"), hidden, width));
      ASSIGN_OR_RETURN(made.up, tensors_.projection(part("up"), hidden, width));
    } else {
      ASSIGN_OR_RETURN(const Projection all, tensors_.projection(part("up"), 2 * hidden, width));
      made.gate = rows_of(all, 0, hidden);
      made.up = rows_of(all, hidden, hidden);
    }
    ASSIGN_OR_RETURN(made.down, tensors_.projection(part("down"), width, hidden));
    return made;
  }

  Status read_experts(LayerWeights& w) const {
    const std::uint64_t count = config_.experts.router.experts;
    const std::uint64_t hidden = config_.experts.hidden_width;
    const std::uint64_t width = config_.width;
    ASSIGN_OR_RETURN(w.experts.router, tensors_.projection(name("ffn_gate_inp"), count, width));
    const std::string bias = name("exp_probs_b.bias");
    if (tensors_.contains(bias)) {
      ASSIGN_OR_RETURN(w.experts.selection_bias, tensors_.vector(bias, count));
    }
    if (tensors_.contains(name("ffn_gate_inp_shexp.weight"))) {
      ASSIGN_OR_RETURN(w.experts.shared_gate,
                       tensors_.projection(name("ffn_gate_inp_shexp"), 1, width));
    }
    if (config_.experts.has_own_norms) RETURN_IF_ERROR(read_own_norms(w.experts));
    w.experts.experts.resize(count);
    if (tensors_.contains(name("ffn_gate.0.weight"))) return read_experts_apart(w.experts.experts);
    const auto set = [&](auto part, const Projection& all, std::uint64_t stride,
                         std::uint64_t first, std::uint64_t rows) {
      for (std::uint64_t i = 0; i < count; ++i) {
        w.experts.experts[i].*part = rows_of(all, i * stride + first, rows);
      }
    };
    if (tensors_.contains(name("ffn_gate_up_exps.weight"))) {
      ASSIGN_OR_RETURN(const Projection all,
                       tensors_.projection(name("ffn_gate_up_exps"), 2 * hidden * count, width));
      set(&FeedForwardWeights::gate, all, 2 * hidden, 0, hidden);
      set(&FeedForwardWeights::up, all, 2 * hidden, hidden, hidden);
    } else {
      ASSIGN_OR_RETURN(const Projection gates,
                       tensors_.projection(name("ffn_gate_exps"), hidden * count, width));
      ASSIGN_OR_RETURN(const Projection ups,
                       tensors_.projection(name("ffn_up_exps"), hidden * count, width));
      set(&FeedForwardWeights::gate, gates, hidden, 0, hidden);
      set(&FeedForwardWeights::up, ups, hidden, 0, hidden);
    }
    ASSIGN_OR_RETURN(const Projection downs,
                     tensors_.projection(name("ffn_down_exps"), width * count, hidden));
    set(&FeedForwardWeights::down, downs, width, 0, width);
    return ok_status();
  }

  Status read_own_norms(ExpertWeights& w) const {
    const std::uint64_t width = config_.width;
    ASSIGN_OR_RETURN(w.router_norm, tensors_.vector(name("ffn_gate_inp.scale"), width));
    // The router sees normed values, scaled, over the root of their number.
    for (float& weight : w.router_norm) weight /= std::sqrt(static_cast<float>(width));
    ASSIGN_OR_RETURN(w.input_norm, norm("pre_ffw_norm_2", true, width));
    ASSIGN_OR_RETURN(w.output_norm, norm("post_ffw_norm_2", true, width));
    ASSIGN_OR_RETURN(w.shared_output_norm, norm("post_ffw_norm_1", true, width));
    if (!tensors_.contains(name("ffn_down_exps.scale"))) return ok_status();
    ASSIGN_OR_RETURN(w.weight_scales,
                     tensors_.vector(name("ffn_down_exps.scale"), config_.experts.router.experts));
    return ok_status();
  }

  // The layout of old files, and of Hugging Face folders: a tensor for each expert.
  Status read_experts_apart(std::vector<FeedForwardWeights>& experts) const {
    for (std::size_t i = 0; i < experts.size(); ++i) {
      ASSIGN_OR_RETURN(experts[i], network(fmt::format(".{}", i), config_.experts.hidden_width));
    }
    return ok_status();
  }

  TensorReader& tensors_;
  const Config& config_;
  std::uint32_t layer_;
};

}  // namespace

Projection rows_of(const Projection& all, std::uint64_t first, std::uint64_t count) {
  Projection part = all;
  part.weight.data += first * all.weight.row_bytes;
  part.weight.rows = count;
  if (!all.bias.empty()) {
    const auto begin = all.bias.begin() + static_cast<std::ptrdiff_t>(first);
    part.bias.assign(begin, begin + static_cast<std::ptrdiff_t>(count));
  }
  return part;
}

std::uint64_t bytes_in_file(const Weights& weights) {
  std::uint64_t bytes = 0;
  const auto add = [&](const kernels::WeightMatrix& matrix) {
    bytes += matrix.rows * matrix.row_bytes;
  };
  add(weights.embedding);
  add(weights.output);
  for (const LayerWeights& layer : weights.layers) for_each_matrix(layer, add);
  return bytes;
}

Result<Weights> load_weights(const gguf::File& file, const Config& config,
                             const kernels::KernelSet& kernels) {
  TensorReader reader(file, kernels);
  Weights weights;
  ASSIGN_OR_RETURN(weights.embedding,
                   reader.matrix("token_embd.weight", config.vocabulary, config.width));
  weights.layers.reserve(config.layers);
  for (std::uint32_t layer = 0; layer < config.layers; ++layer) {
    ASSIGN_OR_RETURN(LayerWeights loaded,
                     LayerReader(reader, config, layer).read(weights.arranged));
    weights.layers.push_back(std::move(loaded));
  }
  ASSIGN_OR_RETURN(weights.output_norm, reader.vector("output_norm.weight", config.width));
  const bool tied = !reader.contains("output.weight");
  ASSIGN_OR_RETURN(weights.output, reader.matrix(tied ? "token_embd.weight" : "output.weight",
                                                 config.vocabulary, config.width));
  const RopeConfig& rope = config.ropes.front();
  if (rope.scaling == RopeScaling::kLongRope) {
    ASSIGN_OR_RETURN(std::vector<float> long_factors, reader.vector(kLongFactors, rope.dims / 2));
    ASSIGN_OR_RETURN(weights.rope_frequencies, reader.vector(kShortFactors, rope.dims / 2));
    if (rope.has_long_factors) weights.rope_frequencies = std::move(long_factors);
  } else if (replaces_scaling(file.metadata()) && !rope.needs_divisors) {
    for (const std::string_view of_file : {kDivisors, kShortFactors, kLongFactors}) {
      reader.leave_out(of_file);
    }
  } else if (rope.needs_divisors || reader.contains(kDivisors)) {
    ASSIGN_OR_RETURN(weights.rope_frequencies, reader.vector(kDivisors, rope.dims / 2));
  }
  // Layers that predict more tokens come last.
  for (std::uint32_t i = 0; i < config.left_out_layers; ++i) {
    reader.leave_out_all(fmt::format("blk.{}.", config.layers + i));
  }
  RETURN_IF_ERROR(reader.check_all_read());
  return weights;
}

}  // namespace pagoda::model
