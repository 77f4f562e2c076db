// Models quantised at load: near the unquantised ones, written once, under a fingerprint of their
// own.
#include "app/quantised_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <utility>

#include "app/loaded_model.h"
#include "app/served_source.h"
#include "gguf/quantised_file.h"
#include "gguf/same_model.h"
#include "hf/test_folder.h"
#include "kernels/select.h"
#include "model/test_model.h"
#include "test_data.h"

namespace pagoda::app {
namespace {

using gguf::TensorType;
using model::test_model_path;
using testing::HasSubstr;

Status accept(const gguf::File&) { return ok_status(); }

class QuantisedModel : public testing::Test {
 protected:
  QuantizationOptions options(TensorType type) const {
    return {.type = type, .cache_bytes = std::uint64_t{1} << 30, .cache_folder = folder_.path()};
  }
  gguf::File quantised(const std::string& path, TensorType type,
                       const hf::ConfigOverrides& overrides = {}) const {
    auto file = open_model_file(path, overrides);
    EXPECT_TRUE(file.ok()) << file.error().message;
    auto made = quantised_model(std::move(file).value(), options(type), accept);
    EXPECT_TRUE(made.ok()) << made.error().message;
    return std::move(made).value();
  }
  std::size_t models() const {
    std::size_t count = 0;
    for (const std::string& name : hf::list_names(folder_.path() + "/quantized")) {
      count += name.ends_with(".gguf") ? 1 : 0;
    }
    return count;
  }

  hf::TestFolder folder_;
};

// The mean Kullback-Leibler divergence of distributions, in nats.
double mean_kl(const model::Logits& a, const model::Logits& b, std::size_t vocabulary) {
  const auto log_sum = [&](const model::Logits& logits, std::size_t at) {
    double sum = 0;
    for (std::size_t i = 0; i < vocabulary; ++i) sum += std::exp(double{logits[at + i]});
    return std::log(sum);
  };
  double kl = 0;
  for (std::size_t at = 0; at < a.size(); at += vocabulary) {
    const double sum_a = log_sum(a, at);
    const double sum_b = log_sum(b, at);
    for (std::size_t i = 0; i < vocabulary; ++i) {
      const double p = a[at + i] - sum_a;
      kl += std::exp(p) * (p - (b[at + i] - sum_b));
    }
  }
  return kl / (static_cast<double>(a.size()) / static_cast<double>(vocabulary));
}

struct KlBound {
  const char* model;
  TensorType type;
  double kl_max;
};

// Measured: 0.0003 to 0.0025, and 0.008 where experts are chosen; a matrix that is taken for
// another has more than 1.
TEST_F(QuantisedModel, GivesNearlyTheLogitsOfTheModel) {
  for (const KlBound& bound : {
           KlBound{"hf_llama", TensorType::kQ8_0, 5e-3},
           {"hf_qwen2", TensorType::kQ8_0, 5e-3},
           {"hf_gemma3", TensorType::kQ8_0, 5e-3},
           {"hf_deepseek2", TensorType::kQ8_0, 5e-3},
           {"hf_llama_fp8", TensorType::kQ8_0, 5e-3},
           {"hf_gpt_oss", TensorType::kQ8_0, 0.02},
           {"hf_mixtral", TensorType::kQ8_0, 0.02},
           {"stories260K.gguf", TensorType::kQ8_0, 5e-3},
           {"stories260K.gguf", TensorType::kQ4_0, 0.2},
           {"hf_llama", TensorType::kQ4_0, 0.2},
       }) {
    const model::TestModel plain(test_model_path(bound.model));
    const gguf::File made = quantised(test_model_path(bound.model), bound.type);
    const model::TestModel other(made.path());
    const auto tokens = model::random_tokens(plain.config(), 60, 1);
    const model::Conditions conditions = {.element = kv::memory::Element::kF32};
    const auto expected = model::run_sequences(plain, conditions, {tokens}).front();
    const auto logits = model::run_sequences(other, conditions, {tokens}).front();
    ASSERT_EQ(logits.size(), expected.size());
    EXPECT_NE(logits, expected) << bound.model;
    EXPECT_LT(mean_kl(expected, logits, plain.config().vocabulary), bound.kl_max)
        << bound.model << " in " << gguf::tensor_type_info(bound.type).name;
  }
}

TEST_F(QuantisedModel, HoldsTheKeysOfAFolderWithItsTokenizer) {
  const hf::TestFolder source("hf_qwen2_words");
  const std::string tokenizer = test_data() + "/hf_tokenizers/qwen2";
  for (const char* const name : {"tokenizer.json", "tokenizer_config.json"}) {
    source.write(name, hf::read_file(tokenizer + "/" + name));
  }
  const auto folder = open_model_file(source.path());
  ASSERT_TRUE(folder.ok());
  const gguf::File made = quantised(source.path(), TensorType::kQ8_0);
  EXPECT_EQ(made.version(), 3U);
  gguf::expect_keys_of(made, folder.value().metadata());
  ASSERT_EQ(made.tensors().size(), folder.value().tensors().size());
  for (std::size_t i = 0; i < made.tensors().size(); ++i) {
    EXPECT_TRUE(gguf::is_same_shape(made.tensors()[i], folder.value().tensors()[i]));
  }

  const auto loaded = LoadedModel::load(source.path(), kernels::ref_set(),
                                        {.quantization = options(TensorType::kQ8_0)});
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_EQ(loaded.value()->tokenizer().size(), 425U);
  EXPECT_EQ(loaded.value()->weights().layers[0].query.weight.type, TensorType::kQ8_0);
  EXPECT_EQ(models(), 1U);
}

// A served model has the name of the file or folder that was given, not of the one in the cache.
TEST_F(QuantisedModel, IsServedUnderItsOwnName) {
  const auto source =
      ServedSource::open(test_model_path("stories260K.gguf"),
                         {.quantization = options(TensorType::kQ8_0)}, {}, kernels::ref_set());
  ASSERT_TRUE(source.ok()) << source.error().message;
  EXPECT_EQ(source.value()->names().front(), "stories260K");
}

TEST_F(QuantisedModel, IsKeptForEachWayToReadTheModel) {
  const hf::ConfigOverrides rope = {.fields = {}, .rope_scaling = R"({"rope_type": "linear",
                                    "factor": 2.0})"};
  const hf::TestFolder same_bytes("hf_llama");
  for (int round = 0; round < 2; ++round) {
    quantised(test_model_path("hf_llama"), TensorType::kQ8_0);
    quantised(test_model_path("hf_llama"), TensorType::kQ4_0);
    const gguf::File scaled = quantised(test_model_path("hf_llama"), TensorType::kQ8_0, rope);
    EXPECT_EQ(model::read_config(scaled).value().ropes.front().factor, 2.0);
    const gguf::File named = quantised(same_bytes.path(), TensorType::kQ8_0);
    const std::string name = std::filesystem::path(same_bytes.path()).filename();
    EXPECT_EQ(named.metadata().text("general.name").value(), name);
    EXPECT_EQ(models(), 4U);
  }
}

// Stores keep pages under the fingerprint of the file that is read.
TEST_F(QuantisedModel, HasAFingerprintOfItsOwn) {
  const std::atomic<bool> stop = false;
  const auto digest = [&](const gguf::File& file) {
    return gguf::fingerprint(file.opened_parts(), {}, stop).value().digest;
  };
  const auto plain = open_model_file(test_model_path("hf_llama"));
  const std::set<std::string> digests = {
      digest(plain.value()), digest(quantised(test_model_path("hf_llama"), TensorType::kQ8_0)),
      digest(quantised(test_model_path("hf_llama"), TensorType::kQ4_0))};
  EXPECT_EQ(digests.size(), 3U);
}

TEST_F(QuantisedModel, IsMadeAnewOnceTheModelHasChanged) {
  const hf::TestFolder source("hf_llama");
  quantised(source.path(), TensorType::kQ8_0);
  std::string weights = hf::read_file(source.file("model.safetensors"));
  weights[weights.size() - 2] = static_cast<char>(weights[weights.size() - 2] ^ 1);
  source.write("model.safetensors", weights);
  quantised(source.path(), TensorType::kQ8_0);
  EXPECT_EQ(models(), 2U);
}

TEST_F(QuantisedModel, IsRefusedBeforeAnythingIsWritten) {
  const hf::TestFolder source("hf_qwen2_words");  // without a tokenizer
  const auto loaded = LoadedModel::load(source.path(), kernels::ref_set(),
                                        {.quantization = options(TensorType::kQ8_0)});
  ASSERT_FALSE(loaded.ok());
  EXPECT_THAT(loaded.error().message, HasSubstr("tokenizer.json"));
  EXPECT_EQ(models(), 0U);
}

TEST_F(QuantisedModel, OfAModelThatIsQuantisedIsRefusedByName) {
  gguf::File once = quantised(test_model_path("hf_gemma2"), TensorType::kQ8_0);
  const std::string path = once.path();
  const auto twice = quantised_model(std::move(once), options(TensorType::kQ4_0), accept);
  ASSERT_FALSE(twice.ok());
  EXPECT_THAT(twice.error().message, HasSubstr("`quantization`: " + path));
  EXPECT_THAT(twice.error().message, HasSubstr("is quantised already (Q8_0)"));
}

class RoundedModel : public QuantisedModel {
 protected:
  // The model as --dtype has it; empty `said`: without a note.
  gguf::File rounded(gguf::File file, TensorType type, std::string* said = nullptr) const {
    QuantizationOptions rounding = options(type);
    rounding.dtype = std::exchange(rounding.type, std::nullopt);
    testing::internal::CaptureStderr();
    auto made = rounded_model(std::move(file), rounding, accept);
    const std::string notes = testing::internal::GetCapturedStderr();
    if (said != nullptr) *said = notes;
    EXPECT_TRUE(made.ok()) << made.error().message;
    return std::move(made).value();
  }
  gguf::File rounded(const std::string& name, TensorType type, std::string* said = nullptr) const {
    return rounded(open_model_file(test_model_path(name)).value(), type, said);
  }
};

// Folders and files alike. Within a type of 8 bits of precision logits are near those of the model.
TEST_F(RoundedModel, HasItsMatricesInTheTypeAndNearlyTheLogitsOfTheModel) {
  for (const char* const name : {"hf_llama", "hf_mixtral", "stories260K.gguf", "arch_qwen3.gguf"}) {
    const model::TestModel plain(test_model_path(name));
    for (const TensorType type : {TensorType::kF32, TensorType::kF16, TensorType::kBF16}) {
      const gguf::File made = rounded(name, type);
      EXPECT_EQ(gguf::matrix_types(made), std::set{type}) << name;
      const auto file = open_model_file(test_model_path(name));
      const bool is_same = gguf::matrix_types(file.value()) == std::set{type};
      EXPECT_EQ(made.path() == file.value().path(), is_same) << name << " is not written in vain";
      if (is_same) continue;
      const model::TestModel other(made.path());
      const auto tokens = model::random_tokens(plain.config(), 40, 1);
      const model::Conditions conditions = {.element = kv::memory::Element::kF32};
      const auto expected = model::run_sequences(plain, conditions, {tokens}).front();
      const auto logits = model::run_sequences(other, conditions, {tokens}).front();
      EXPECT_LT(mean_kl(expected, logits, plain.config().vocabulary), 5e-3) << name;
      // Every float is a float32.
      EXPECT_TRUE(type != TensorType::kF32 || logits == expected) << name;
    }
  }
}

// KV has the fingerprint of the file that is read as its address.
TEST_F(RoundedModel, HasAFingerprintOfItsOwn) {
  const std::atomic<bool> stop = false;
  std::set<std::string> digests;
  const auto add = [&](const gguf::File& file) {
    digests.insert(gguf::fingerprint(file.opened_parts(), {}, stop).value().digest);
  };
  add(open_model_file(test_model_path("hf_llama")).value());
  for (int round = 0; round < 2; ++round) {
    add(rounded("hf_llama", TensorType::kF16));
    add(rounded("hf_llama", TensorType::kF32));
    add(quantised(test_model_path("hf_llama"), TensorType::kQ8_0));
  }
  EXPECT_EQ(digests.size(), 4U);
  EXPECT_EQ(models(), 3U);
}

TEST_F(RoundedModel, LeavesWhatIsQuantisedAndSaysSo) {
  const auto stays = [&](gguf::File file, const std::string& types) {
    const std::string path = file.path();
    std::string said;
    EXPECT_EQ(rounded(std::move(file), TensorType::kBF16, &said).path(), path);
    EXPECT_THAT(said, HasSubstr("the weights are quantised (" + types + ") and stay so"));
  };
  stays(open_model_file(test_model_path("arch_gpt_oss.gguf")).value(), "MXFP4");
  stays(quantised(test_model_path("stories260K.gguf"), TensorType::kQ8_0), "Q8_0");
}

TEST_F(RoundedModel, IsWhatIsLoaded) {
  QuantizationOptions rounding = options(TensorType::kF16);
  rounding.dtype = std::exchange(rounding.type, std::nullopt);
  const auto loaded = LoadedModel::load(test_model_path("stories260K.gguf"), kernels::ref_set(),
                                        {.quantization = rounding});
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_EQ(loaded.value()->weights().layers[0].query.weight.type, TensorType::kF16);
}

TEST(ParseDtype, KnowsTheNamesOfOthersAndRefusesTheRest) {
  EXPECT_EQ(parse_dtype("auto").value(), std::nullopt);
  EXPECT_EQ(parse_dtype("bfloat16").value(), TensorType::kBF16);
  EXPECT_EQ(parse_dtype("half").value(), TensorType::kF16);
  EXPECT_EQ(parse_dtype("float16").value(), TensorType::kF16);
  EXPECT_EQ(parse_dtype("float").value(), TensorType::kF32);
  EXPECT_EQ(dtype_name(TensorType::kF16), "float16");
  EXPECT_THAT(parse_dtype("int8").error().message, HasSubstr("int8 is none of auto, bfloat16"));
}

TEST(ParseQuantization, KnowsItsTypesInAnyCase) {
  EXPECT_EQ(parse_quantization("q8_0").value(), TensorType::kQ8_0);
  EXPECT_EQ(parse_quantization("Q4_0").value(), TensorType::kQ4_0);
  EXPECT_EQ(parse_quantization("Q4_k").value(), TensorType::kQ4_K);
}

TEST(ParseQuantization, RefusesOthersByNameWithWhatWorks) {
  struct Refused {
    const char* word;
    const char* instead;
  };
  for (const Refused& refused :
       {Refused{"fp8", "use q8_0"}, Refused{"awq", "q4_k"}, Refused{"awq_marlin", "q4_k"},
        Refused{"gptq", "q4_k"}, Refused{"bitsandbytes", "q4_k or q8_0"},
        Refused{"compressed-tensors", "q4_k or q8_0"}, Refused{"gguf", "without this option"},
        Refused{"mxfp4", "read as they are"}, Refused{"Q4_K_M", "q4_k"},
        Refused{"q6_k", "q8_0, q4_0 and q4_k"}, Refused{"", "q8_0"}}) {
    const auto type = parse_quantization(refused.word);
    ASSERT_FALSE(type.ok()) << refused.word;
    EXPECT_THAT(type.error().message, HasSubstr(refused.word));
    EXPECT_THAT(type.error().message, HasSubstr(refused.instead));
  }
}

TEST(ServedSource, RandomWeightsHaveATypeOfTheirOwn) {
  QuantizationOptions quantization;
  quantization.type = TensorType::kQ8_0;
  QuantizationOptions rounding;
  rounding.dtype = TensorType::kBF16;
  for (const auto& [asked, field] :
       {std::pair(quantization, "`quantization`"), std::pair(rounding, "`dtype`")}) {
    const auto source = ServedSource::open("", {.quantization = asked}, {.shape = "llama-3.2-1b"},
                                           kernels::ref_set());
    ASSERT_FALSE(source.ok());
    EXPECT_THAT(source.error().message, HasSubstr(field));
  }
}

}  // namespace
}  // namespace pagoda::app
