#include "hf/tensor_names.h"

#include <gtest/gtest.h>

#include <string>

namespace pagoda::hf {
namespace {

FolderShape shape_of(std::string_view model_type, bool has_text_config = false) {
  for (const Family& family : families()) {
    if (family.model_type != model_type) continue;
    return {.family = &family, .layers = 4, .has_text_config = has_text_config};
  }
  ADD_FAILURE() << model_type;
  return {};
}

std::string name_of(std::string_view tensor, const FolderShape& shape) {
  const auto place = find_place(tensor, shape);
  if (!place.ok()) return "error";
  return place.value() ? place.value()->name : "left out";
}

TEST(TensorNames, OfExpertsAreThoseOfFilesWithATensorForEachExpert) {
  const FolderShape qwen = shape_of("qwen2_moe");
  const std::string layer = "model.layers.3.";
  EXPECT_EQ(name_of(layer + "mlp.gate.weight", qwen), "blk.3.ffn_gate_inp.weight");
  EXPECT_EQ(name_of(layer + "mlp.experts.17.gate_proj.weight", qwen), "blk.3.ffn_gate.17.weight");
  EXPECT_EQ(name_of(layer + "mlp.experts.0.up_proj.weight", qwen), "blk.3.ffn_up.0.weight");
  EXPECT_EQ(name_of(layer + "mlp.experts.5.down_proj.weight", qwen), "blk.3.ffn_down.5.weight");
  EXPECT_EQ(name_of(layer + "mlp.experts.x.down_proj.weight", qwen), "error");
  EXPECT_EQ(name_of(layer + "mlp.experts..down_proj.weight", qwen), "error");
  EXPECT_EQ(name_of(layer + "mlp.shared_expert.up_proj.weight", qwen), "blk.3.ffn_up_shexp.weight");
  EXPECT_EQ(name_of(layer + "mlp.shared_expert_gate.weight", qwen),
            "blk.3.ffn_gate_inp_shexp.weight");
  const FolderShape mixtral = shape_of("mixtral");
  EXPECT_EQ(name_of(layer + "block_sparse_moe.experts.7.w1.weight", mixtral),
            "blk.3.ffn_gate.7.weight");
  EXPECT_EQ(name_of(layer + "block_sparse_moe.experts.7.w2.weight", mixtral),
            "blk.3.ffn_down.7.weight");
  EXPECT_EQ(name_of(layer + "block_sparse_moe.experts.7.w3.weight", mixtral),
            "blk.3.ffn_up.7.weight");
}

TEST(TensorNames, OfDeepseekLeaveOutLayersThatPredictMoreTokens) {
  const FolderShape shape = shape_of("deepseek_v3");
  EXPECT_EQ(name_of("model.layers.1.self_attn.kv_b_proj.weight", shape), "blk.1.attn_kv_b.weight");
  EXPECT_EQ(name_of("model.layers.1.self_attn.kv_a_proj_with_mqa.weight", shape),
            "blk.1.attn_kv_a_mqa.weight");
  EXPECT_EQ(name_of("model.layers.1.mlp.gate.e_score_correction_bias", shape),
            "blk.1.exp_probs_b.bias");
  EXPECT_EQ(name_of("model.layers.4.eh_proj.weight", shape), "left out");
  EXPECT_EQ(name_of("model.layers.4.eh_proj.weight", shape_of("llama")), "error");
}

TEST(TensorNames, OfTheTextPartOfAModelThatSeesImagesHaveEitherPrefix) {
  const FolderShape shape = shape_of("gemma3_text", true);
  EXPECT_EQ(name_of("language_model.model.norm.weight", shape), "output_norm.weight");
  EXPECT_EQ(name_of("model.language_model.norm.weight", shape), "output_norm.weight");
  EXPECT_EQ(name_of("model.language_model.layers.2.self_attn.q_norm.weight", shape),
            "blk.2.attn_q_norm.weight");
  EXPECT_EQ(name_of("language_model.lm_head.weight", shape), "output.weight");
  EXPECT_EQ(name_of("lm_head.weight", shape), "output.weight");
  EXPECT_EQ(name_of("model.vision_tower.x.weight", shape), "left out");
  EXPECT_EQ(name_of("multi_modal_projector.x.weight", shape), "left out");
  EXPECT_EQ(name_of("audio_tower.x.weight", shape), "left out");
  EXPECT_EQ(name_of("sound_tower.x.weight", shape), "error");
  EXPECT_EQ(name_of("model.vision_tower.x.weight", shape_of("gemma3_text")), "error");
}

TEST(TensorNames, AHeadThatIsThereIsUsedAlsoWhereItCouldBeTied) {
  FolderShape shape = shape_of("llama");
  EXPECT_EQ(name_of("lm_head.weight", shape), "output.weight");
  shape.tied = true;
  EXPECT_EQ(name_of("lm_head.weight", shape), "output.weight");
}

}  // namespace
}  // namespace pagoda::hf
