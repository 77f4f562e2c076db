// Compares a qwen3 model with its definition, computed in double and without a cache: QK norm of
// every head before RoPE, halves of a head as pairs.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "base/random.h"
#include "gguf/gguf_writer.h"
#include "model/test_model.h"

namespace pagoda::model {
namespace {

using Row = std::vector<double>;

constexpr std::size_t kLayers = 2;
constexpr std::size_t kQwenWidth = 24;
constexpr std::size_t kQwenHidden = 40;
constexpr std::size_t kHeads = 4;
constexpr std::size_t kKvHeads = 2;
constexpr std::size_t kHeadDim = 16;  // more than width / heads
constexpr std::size_t kQwenVocabulary = 50;
constexpr double kEpsilon = 1e-6;
constexpr double kRopeBase = 1000.0;

class Qwen3 : public testing::Test {
 protected:
  Qwen3() {
    matrix("token_embd.weight", kQwenVocabulary, kQwenWidth);
    norm("output_norm.weight", kQwenWidth);
    for (std::size_t layer = 0; layer < kLayers; ++layer) {
      const std::string at = "blk." + std::to_string(layer) + ".";
      norm(at + "attn_norm.weight", kQwenWidth);
      matrix(at + "attn_q.weight", kHeads * kHeadDim, kQwenWidth);
      matrix(at + "attn_k.weight", kKvHeads * kHeadDim, kQwenWidth);
      matrix(at + "attn_v.weight", kKvHeads * kHeadDim, kQwenWidth);
      norm(at + "attn_q_norm.weight", kHeadDim);
      norm(at + "attn_k_norm.weight", kHeadDim);
      matrix(at + "attn_output.weight", kQwenWidth, kHeads * kHeadDim);
      norm(at + "ffn_norm.weight", kQwenWidth);
      matrix(at + "ffn_gate.weight", kQwenHidden, kQwenWidth);
      matrix(at + "ffn_up.weight", kQwenHidden, kQwenWidth);
      matrix(at + "ffn_down.weight", kQwenWidth, kQwenHidden);
    }
    writer_.add("general.architecture", "qwen3");
    writer_.add("qwen3.block_count", static_cast<std::uint32_t>(kLayers));
    writer_.add("qwen3.context_length", 128u);
    writer_.add("qwen3.embedding_length", static_cast<std::uint32_t>(kQwenWidth));
    writer_.add("qwen3.feed_forward_length", static_cast<std::uint32_t>(kQwenHidden));
    writer_.add("qwen3.attention.head_count", static_cast<std::uint32_t>(kHeads));
    writer_.add("qwen3.attention.head_count_kv", static_cast<std::uint32_t>(kKvHeads));
    writer_.add("qwen3.attention.key_length", static_cast<std::uint32_t>(kHeadDim));
    writer_.add("qwen3.attention.value_length", static_cast<std::uint32_t>(kHeadDim));
    writer_.add("qwen3.attention.layer_norm_rms_epsilon", static_cast<float>(kEpsilon));
    writer_.add("qwen3.rope.freq_base", static_cast<float>(kRopeBase));
  }

  void add(const std::string& name, std::size_t rows, std::size_t columns, float middle,
           float spread) {
    std::vector<float> values(rows * columns);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = middle + spread * static_cast<float>(2 * random_unit(seed_, 1, i) - 1);
    }
    ++seed_;
    writer_.add_tensor<float>(name, gguf::TensorType::kF32,
                              {static_cast<std::int64_t>(columns), static_cast<std::int64_t>(rows)},
                              values);
    tensors_[name] = values;
  }
  void matrix(const std::string& name, std::size_t rows, std::size_t columns) {
    add(name, rows, columns, 0, std::sqrt(3.0f / static_cast<float>(columns)));
  }
  void norm(const std::string& name, std::size_t width) { add(name, 1, width, 1, 0.5f); }

  Row normalised(const Row& x, const std::string& name) const {
    double squares = 0;
    for (const double value : x) squares += value * value;
    const double factor = 1 / std::sqrt(squares / static_cast<double>(x.size()) + kEpsilon);
    Row y(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[i] * factor * tensors_.at(name)[i];
    return y;
  }
  Row product(const Row& x, const std::string& name) const {
    const std::vector<float>& weight = tensors_.at(name);
    Row y(weight.size() / x.size());
    for (std::size_t r = 0; r < y.size(); ++r) {
      for (std::size_t c = 0; c < x.size(); ++c) y[r] += weight[r * x.size() + c] * x[c];
    }
    return y;
  }
  // Normalises every head, then rotates it by the position.
  Row heads(const Row& x, const std::string& norm_name, std::size_t position) const {
    Row y;
    for (std::size_t begin = 0; begin < x.size(); begin += kHeadDim) {
      Row head = normalised(Row(x.begin() + static_cast<std::ptrdiff_t>(begin),
                                x.begin() + static_cast<std::ptrdiff_t>(begin + kHeadDim)),
                            norm_name);
      for (std::size_t i = 0; i < kHeadDim / 2; ++i) {
        const double angle =
            static_cast<double>(position) *
            std::pow(kRopeBase, -2.0 * static_cast<double>(i) / static_cast<double>(kHeadDim));
        const double a = head[i];
        const double b = head[i + kHeadDim / 2];
        head[i] = a * std::cos(angle) - b * std::sin(angle);
        head[i + kHeadDim / 2] = a * std::sin(angle) + b * std::cos(angle);
      }
      y.insert(y.end(), head.begin(), head.end());
    }
    return y;
  }
  static Row attended(const Row& query, const std::vector<Row>& keys,
                      const std::vector<Row>& values) {
    Row mixed(kHeads * kHeadDim);
    for (std::size_t h = 0; h < kHeads; ++h) {
      const std::size_t kv = h / (kHeads / kKvHeads) * kHeadDim;
      Row weights;
      double sum = 0;
      for (const Row& key : keys) {
        double score = 0;
        for (std::size_t d = 0; d < kHeadDim; ++d) score += query[h * kHeadDim + d] * key[kv + d];
        weights.push_back(std::exp(score / std::sqrt(static_cast<double>(kHeadDim))));
        sum += weights.back();
      }
      for (std::size_t j = 0; j < keys.size(); ++j) {
        for (std::size_t d = 0; d < kHeadDim; ++d) {
          mixed[h * kHeadDim + d] += weights[j] / sum * values[j][kv + d];
        }
      }
    }
    return mixed;
  }
  // Returns the logits of every position.
  std::vector<Row> reference(const Tokens& tokens) const {
    std::vector<std::vector<Row>> keys(kLayers);
    std::vector<std::vector<Row>> values(kLayers);
    std::vector<Row> logits;
    for (std::size_t position = 0; position < tokens.size(); ++position) {
      const auto* const from =
          tensors_.at("token_embd.weight").data() + tokens[position].value() * kQwenWidth;
      Row x(from, from + kQwenWidth);
      for (std::size_t layer = 0; layer < kLayers; ++layer) {
        const std::string at = "blk." + std::to_string(layer) + ".";
        const Row in = normalised(x, at + "attn_norm.weight");
        const Row query =
            heads(product(in, at + "attn_q.weight"), at + "attn_q_norm.weight", position);
        keys[layer].push_back(
            heads(product(in, at + "attn_k.weight"), at + "attn_k_norm.weight", position));
        values[layer].push_back(product(in, at + "attn_v.weight"));
        const Row mixed =
            product(attended(query, keys[layer], values[layer]), at + "attn_output.weight");
        for (std::size_t i = 0; i < kQwenWidth; ++i) x[i] += mixed[i];
        const Row then = normalised(x, at + "ffn_norm.weight");
        Row gate = product(then, at + "ffn_gate.weight");
        const Row up = product(then, at + "ffn_up.weight");
        for (std::size_t i = 0; i < kQwenHidden; ++i)
          gate[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
        const Row down = product(gate, at + "ffn_down.weight");
        for (std::size_t i = 0; i < kQwenWidth; ++i) x[i] += down[i];
      }
      logits.push_back(product(normalised(x, "output_norm.weight"), "token_embd.weight"));
    }
    return logits;
  }

  gguf::GgufWriter writer_;
  std::map<std::string, std::vector<float>> tensors_;
  std::uint64_t seed_ = 1;
};

TEST_F(Qwen3, LogitsAreThoseOfItsDefinition) {
  const std::string path = testing::TempDir() + "pagoda_qwen3_test.gguf";
  writer_.save(path);
  const TestModel model(path);
  ASSERT_EQ(model.config().qk_norm, QkNormSpan::kHead);
  const Tokens tokens = random_tokens(model.config(), 40, 3);
  const std::vector<Row> expected = reference(tokens);
  for (const kernels::KernelSet* const set : kernels::available_sets()) {
    if (set->numerics != kernels::Numerics::kFp32) continue;
    const Logits got =
        run_sequences(model, {.kernels = set, .element = kv::memory::Element::kF32}, {tokens})[0];
    for (std::size_t p = 0; p < tokens.size(); ++p) {
      for (std::size_t v = 0; v < kQwenVocabulary; ++v) {
        ASSERT_NEAR(got[p * kQwenVocabulary + v], expected[p][v], 1e-4) << set->name << " " << p;
      }
    }
  }
  std::remove(path.c_str());
}

}  // namespace
}  // namespace pagoda::model
