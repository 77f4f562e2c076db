// Launches the kernels of a step, layer by layer.
#include "kv/memory/rotation_blocks.h"
#include "model/gpu_decoder.h"

namespace pagoda::model {

namespace cuda = kernels::cuda;

Status GpuDecoder::launch_step(const GpuStepShape& shape) {
  cuda::launch_embed({.table = weights_.embedding(),
                      .batch_tokens = step_.batch_tokens(),
                      .sampled_tokens = sampled_tokens(),
                      .rows = shape.rows,
                      .width = config_.width,
                      .scale = config_.embedding_scale,
                      .residual = residual_.as<float>()},
                     stream_.handle());
  for (std::uint32_t layer = 0; layer < config_.layers; ++layer) launch_layer(layer, shape);
  if (shape.logit_rows > 0) launch_logits(shape.logit_rows, shape.samples);
  return device::last_launch_error();
}

void GpuDecoder::multiply(const GpuProjection& by, const cuda::Bf16* activations,
                          std::uint32_t rows, cuda::Epilogue epilogue, float* out,
                          std::size_t stride) {
  cuda::launch_gemm({.weight = by.weight,
                     .x = activations,
                     .rows = rows,
                     .epilogue = epilogue,
                     .out = out + by.column,
                     .out_stride = stride,
                     .bias = by.bias},
                    stream_.handle());
}

void GpuDecoder::normalise(const float* weight, std::uint32_t rows, const device::Buffer& to) {
  cuda::launch_rms_norm({.residual = residual_.as<float>(),
                         .weight = weight,
                         .rows = rows,
                         .width = config_.width,
                         .epsilon = config_.norm_epsilon,
                         .activations = to.as<cuda::Bf16>()},
                        stream_.handle());
}

void GpuDecoder::add_branch(const GpuProjection& projection, const cuda::Bf16* x,
                            std::uint32_t rows, const float* output_norm, float output_scale) {
  if (output_norm == nullptr && config_.residual_scale == 1 && output_scale == 1) {
    return multiply(projection, x, rows, cuda::Epilogue::kAdd, residual_.as<float>(),
                    config_.width);
  }
  multiply(projection, x, rows, cuda::Epilogue::kStore, branch_.as<float>(), config_.width);
  add_branch_rows(rows, output_norm, output_scale);
}

void GpuDecoder::add_branch_rows(std::uint32_t rows, const float* output_norm, float output_scale) {
  cuda::launch_add_branch({.branch = branch_.as<float>(),
                           .weight = output_norm,
                           .rows = rows,
                           .width = config_.width,
                           .epsilon = config_.norm_epsilon,
                           .scale = config_.residual_scale,
                           .output_scale = output_scale,
                           .residual = residual_.as<float>()},
                          stream_.handle());
}

void GpuDecoder::launch_layer(std::uint32_t layer, const GpuStepShape& shape) {
  const GpuLayer& weights = weights_.layers()[layer];
  normalise(weights.attention_norm, shape.rows, normed_);
  const cuda::RopeAndStoreKv stored = stored_rows(layer, shape.rows);
  clear_unused(stored);
  if (latent_attention_) {
    latent_attention_->launch_project(weights, normed_.as<cuda::Bf16>(), stored, stream_.handle());
  } else {
    launch_projections(layer, shape.rows);
    cuda::launch_rope_and_store_kv(stored, stream_.handle());
  }
  launch_attention(layer, shape);
  if (latent_attention_) {
    latent_attention_->launch_mix(weights.latent, shape.rows, mixed_.as<cuda::Bf16>(),
                                  stream_.handle());
  }
  const bool has_feed_forward = config_.has_experts(layer) || config_.hidden_width > 0;
  add_branch(weights.attention_output, mixed_.as<cuda::Bf16>(), shape.rows,
             weights.attention_output_norm, has_feed_forward ? 1.0f : weights.output_scale);
  if (has_feed_forward) launch_feed_forward(layer, shape.rows);
}

// Queries, keys and values, normed where the model does that.
void GpuDecoder::launch_projections(std::uint32_t layer, std::uint32_t rows) {
  const GpuLayer& weights = weights_.layers()[layer];
  const HeadShape heads = config_.heads_of(layer);
  const std::uint32_t kv_heads = config_.own_kv_heads(layer);
  const std::size_t columns = std::size_t{config_.heads + 2 * kv_heads} * heads.key_dim;
  for (const GpuProjection& part : weights.qkv) {
    multiply(part, normed_.as<cuda::Bf16>(), rows, cuda::Epilogue::kStore, qkv_.as<float>(),
             columns);
  }
  if (config_.qk_norm == QkNormSpan::kAllHeads) {
    const auto normalise_heads = [&](const float* weight, std::uint32_t first,
                                     std::uint32_t count) {
      if (weight == nullptr) return;
      cuda::launch_row_norm({.values = qkv_.as<float>() + std::size_t{first} * heads.key_dim,
                             .stride = columns,
                             .weight = weight,
                             .rows = rows,
                             .width = count * heads.key_dim,
                             .epsilon = config_.norm_epsilon},
                            stream_.handle());
    };
    normalise_heads(weights.query_norm, 0, config_.heads);
    normalise_heads(weights.key_norm, config_.heads, kv_heads);
  }
  const bool norms_heads = config_.qk_norm == QkNormSpan::kHead;
  if (!norms_heads && !config_.normalises_values) return;
  cuda::launch_qk_norm({.qkv = qkv_.as<float>(),
                        .query_weight = norms_heads ? weights.query_norm : nullptr,
                        .key_weight = norms_heads ? weights.key_norm : nullptr,
                        .normalises_values = config_.normalises_values,
                        .rows = rows,
                        .heads = config_.heads,
                        .kv_heads = kv_heads,
                        .head_dim = heads.key_dim,
                        .epsilon = config_.norm_epsilon},
                       stream_.handle());
}

cuda::PagedKv GpuDecoder::pages_of(std::uint32_t layer) const {
  const kv::memory::LayerLocation place = location_of(layer);
  return {.data = pages_,
          .layout = group_plan_.layouts[place.group],
          .layer = place.layer,
          .tables = step_.tables(place.group)};
}

// Zeros a page's unused bytes when its first token is stored in its first layer.
void GpuDecoder::clear_unused(const cuda::RopeAndStoreKv& stored) {
  if (!stored.stores || stored.pages.layer > 0 || stored.pages.layout.unused_bytes == 0) return;
  cuda::launch_clear_unused({.batch_tokens = stored.batch_tokens,
                             .sequences = stored.sequences,
                             .pages = stored.pages,
                             .rows = stored.rows},
                            stream_.handle());
}

// How a layer's queries, keys and values are rotated and where they go.
cuda::RopeAndStoreKv GpuDecoder::stored_rows(std::uint32_t layer, std::uint32_t rows) const {
  cuda::RopeAndStoreKv job = {
      .qkv = qkv_.as<float>(),
      .stores = config_.kv_layer_of(layer) == layer,
      .batch_tokens = step_.batch_tokens(),
      .sequences = step_.sequences(),
      .pages = pages_of(layer),
      .rows = rows,
      .heads = config_.heads,
      .window = config_.attention[layer].window,
      .table_positions = static_cast<std::uint32_t>(options_.context_tokens),
      .query_factors = query_factors_.as<float>(),
      .query = query_.as<std::uint16_t>(),
      .sink_query = sink_query_.as<std::uint16_t>(),
      .nonfinite = step_.nonfinite()};
  if (config_.rope_of(layer) == kNoRope) return job;
  const RopeConfig& rope = config_.ropes[config_.rope_of(layer)];
  job.cosines = ropes_[config_.rope_of(layer)].cosines.as<float>();
  job.sines = ropes_[config_.rope_of(layer)].sines.as<float>();
  job.pairs = rope.dims / 2;
  job.adjacent = rope.pairing == kernels::RopePairing::kAdjacent;
  return job;
}

void GpuDecoder::launch_attention(std::uint32_t layer, const GpuStepShape& shape) {
  const std::uint32_t group = location_of(layer).group;
  cuda::PagedAttention job = {
      .query = query_.as<std::uint16_t>(),
      .sink_query = sink_query_.as<std::uint16_t>(),
      .sequences = step_.sequences(),
      .pages = pages_of(layer),
      .heads = config_.heads,
      .window = config_.attention[layer].window,
      .scale = config_.score_scale(),
      .cap = config_.score_cap,
      .sinks = weights_.layers()[layer].sinks,
      .items = step_.items(group),
      .item_count = step_.item_counts(group),
      .items_max = shape.items[group],
      .rows = shape.rows,
      .partials = partials_.as<float>(),
      .activations = latent_attention_ ? latent_attention_->attended() : mixed_.as<cuda::Bf16>()};
  // Queries, keys and values are read by now.
  if (rotation_blocks(job.pages.layout).values != 0) {
    job.rotated = latent_attention_ ? latent_attention_->rotated() : qkv_.as<float>();
  }
  // Never in a graph, because the item count before them is the launched one.
  if (shape.wide[group] > 0) {
    cuda::PagedAttention wide = job;
    wide.items += shape.items[group];
    wide.item_count = step_.item_counts(group) + 2;
    wide.items_max = shape.wide[group];
    cuda::launch_paged_attention_wide(wide, stream_.handle());
  }
  if (shape.items[group] > 0) cuda::launch_paged_attention(job, stream_.handle());
  if (shape.merges[group] > 0) {
    job.items = step_.merges(group);
    job.item_count = step_.item_counts(group) + 1;
    job.items_max = shape.merges[group];
    cuda::launch_merge_splits(job, stream_.handle());
  }
  if (job.rotated != nullptr) rotate_back(job);
}

void GpuDecoder::rotate_back(const cuda::PagedAttention& job) {
  const kv::memory::PageLayout& layout = job.pages.layout;
  cuda::launch_rotate_back({.rotated = job.rotated,
                            .rows = job.rows,
                            .heads = job.heads,
                            .value_dim = layout.value_dim,
                            .columns = cuda::attention_columns(layout),
                            .block = rotation_blocks(layout).values,
                            .activations = job.activations},
                           stream_.handle());
}

void GpuDecoder::launch_feed_forward(std::uint32_t layer, std::uint32_t rows) {
  const GpuLayer& weights = weights_.layers()[layer];
  const auto* const normed = normed_.as<cuda::Bf16>();
  if (config_.has_experts(layer)) {
    normalise(weights.feed_forward_norm, rows, normed_);
    GpuFeedForward::Inputs inputs = {normed, normed, normed};
    if (config_.experts.has_own_norms) {
      normalise(weights.experts.router_norm, rows, router_normed_);
      normalise(weights.experts.input_norm, rows, expert_normed_);
      inputs.router = router_normed_.as<cuda::Bf16>();
      inputs.experts = expert_normed_.as<cuda::Bf16>();
    }
    const bool adds = weights.feed_forward_output_norm == nullptr && weights.output_scale == 1 &&
                      !config_.experts.has_own_norms;
    feed_forward_.launch_experts(weights, inputs, step_.batch_tokens(), rows,
                                 {adds ? residual_.as<float>() : branch_.as<float>(), adds},
                                 stream_.handle());
    if (!adds) add_branch_rows(rows, weights.feed_forward_output_norm, weights.output_scale);
    return;
  }
  normalise(weights.feed_forward_norm, rows, normed_);
  const cuda::Bf16* const hidden =
      feed_forward_.launch_hidden(weights.feed_forward, normed, rows, stream_.handle());
  add_branch(weights.feed_forward.down, hidden, rows, weights.feed_forward_output_norm,
             weights.output_scale);
}

void GpuDecoder::launch_logits(std::uint32_t rows, std::uint32_t samples) {
  cuda::launch_rms_norm({.residual = residual_.as<float>(),
                         .weight = weights_.output_norm(),
                         .source = step_.logit_rows(),
                         .rows = rows,
                         .width = config_.width,
                         .epsilon = config_.norm_epsilon,
                         .activations = normed_.as<cuda::Bf16>()},
                        stream_.handle());
  multiply(weights_.output(), normed_.as<cuda::Bf16>(), rows, cuda::Epilogue::kStore,
           logits_.as<float>(), config_.vocabulary);
  if (config_.logit_scale != 1 || config_.logit_cap != 0) {
    cuda::launch_finish_logits({.logits = logits_.as<float>(),
                                .count = std::uint64_t{rows} * config_.vocabulary,
                                .scale = config_.logit_scale,
                                .cap = config_.logit_cap},
                               stream_.handle());
  }
  cuda::launch_sample({.logits = logits_.as<float>(),
                       .samples = step_.samples(),
                       .count = samples,
                       .vocabulary = config_.vocabulary,
                       .sampled_tokens = sampled_tokens_.as<std::uint32_t>()},
                      stream_.handle());
}

}  // namespace pagoda::model
