// What is read of a model's tensors, by files of tests/data/models with one tensor changed.
#include "model/weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <span>
#include <string>

#include "gguf/file_builder.h"
#include "model/test_model.h"

namespace pagoda::model {
namespace {

// Adds one tensor of a model, or what stands for it, to the file that is being built.
using AddTensor = std::function<Status(const gguf::Tensor&, gguf::FileBuilder&)>;

Status add_as_it_is(const gguf::Tensor& tensor, gguf::FileBuilder& builder) {
  return builder.add_tensor(tensor.name, tensor.type, tensor.extents, tensor.bytes);
}

// The tensors of a model, without its keys: its configuration says what they are.
gguf::File changed(const TestModel& model, const AddTensor& add) {
  gguf::FileBuilder builder("changed.gguf");
  for (const gguf::Tensor& tensor : model.file().tensors()) {
    const Status added = add(tensor, builder);
    EXPECT_TRUE(added.ok()) << added.error().message;
  }
  return std::move(builder).build();
}

// The last two of six layers attend to the rows of earlier ones; a file may still hold keys and
// values for them, as part of one tensor.
TEST(Weights, ALayerThatSharesRowsHasNoKeysAndValuesOfItsOwn) {
  const TestModel model(test_model_path("arch_gemma4_shared.gguf"));
  const Config& config = model.config();
  ASSERT_EQ(config.kv_layer_of(4), 2u);
  const HeadShape heads = config.heads_of(4);
  const gguf::File file = changed(model, [&](const gguf::Tensor& tensor, gguf::FileBuilder& to) {
    if (tensor.name != "blk.4.attn_q.weight") return add_as_it_is(tensor, to);
    const std::uint64_t rows =
        tensor.rows() + std::uint64_t{heads.kv_heads} * (heads.key_dim + heads.value_dim);
    const std::uint64_t row_bytes = tensor.bytes.size() / tensor.rows();
    const std::span<std::byte> bytes = to.allocate(rows * row_bytes);
    std::fill(bytes.begin(), bytes.end(), std::byte{0x3C});
    std::copy(tensor.bytes.begin(), tensor.bytes.end(), bytes.begin());
    return to.add_tensor("blk.4.attn_qkv.weight", tensor.type, std::array{tensor.extents[0], rows},
                         bytes);
  });
  const auto loaded = load_weights(file, config, kernels::ref_set());
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  const LayerWeights& layer = loaded.value().layers[4];
  EXPECT_EQ(layer.key.weight.rows, 0u);
  EXPECT_EQ(layer.value.weight.rows, 0u);
  const kernels::WeightMatrix& query = model.weights().layers[4].query.weight;
  ASSERT_EQ(layer.query.weight.rows, query.rows);
  EXPECT_EQ(std::memcmp(layer.query.weight.data, query.data, query.rows * query.row_bytes), 0);
  for (std::uint32_t i = 0; i < config.layers; ++i) {
    const bool keeps_rows = i < 4;
    EXPECT_EQ(config.own_kv_heads(i), keeps_rows ? config.heads_of(i).kv_heads : 0u) << i;
    EXPECT_EQ(loaded.value().layers[i].key.weight.rows,
              std::size_t{config.own_kv_heads(i)} * config.heads_of(i).key_dim)
        << i;
  }
}

// The scale of a block is 2^(byte - 127); 255 stands for NaN (OCP Microscaling Formats).
TEST(Weights, AScaleThatIsNoNumberIsNamedWithItsBlock) {
  const TestModel model(test_model_path("arch_gpt_oss.gguf"));
  for (const std::size_t block : {std::size_t{0}, std::size_t{7}}) {
    for (const int scale : {254, 255}) {
      const gguf::File file =
          changed(model, [&](const gguf::Tensor& tensor, gguf::FileBuilder& to) {
            if (tensor.name != "blk.1.ffn_up_exps.weight") return add_as_it_is(tensor, to);
            const std::span<std::byte> bytes = to.allocate(tensor.bytes.size());
            std::copy(tensor.bytes.begin(), tensor.bytes.end(), bytes.begin());
            bytes[block * 17] = static_cast<std::byte>(scale);
            return to.add_tensor(tensor.name, tensor.type, tensor.extents, bytes);
          });
      const auto loaded = load_weights(file, model.config(), kernels::ref_set());
      EXPECT_EQ(loaded.ok() ? "" : loaded.error().message,
                scale == 254 ? ""
                             : "changed.gguf: tensor 'blk.1.ffn_up_exps.weight' has the scale NaN "
                               "(255) in its MXFP4 block " +
                                   std::to_string(block));
    }
  }
}

}  // namespace
}  // namespace pagoda::model
