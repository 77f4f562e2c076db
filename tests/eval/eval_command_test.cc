// pagoda eval over stories260K: its figures against a computation of their own, what it keeps, and
// what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/captured_command.h"
#include "eval/cache_home.h"
#include "eval/document.h"
#include "kernels/select.h"
#include "model/test_model.h"
#include "text/tokenizer.h"

namespace pagoda::eval {
namespace {

using testing::HasSubstr;

class EvalCommand : public testing::Test {
 protected:
  static cli::Captured run_eval(const std::vector<std::string>& more) {
    std::vector<std::string> words = {"eval", model::test_model_path("stories260K.gguf"),
                                      "--device", "cpu"};
    words.insert(words.end(), more.begin(), more.end());
    return cli::run_captured(words);
  }
  static nlohmann::json eval_json(std::vector<std::string> more) {
    more.emplace_back("--json");
    const cli::Captured captured = run_eval(more);
    EXPECT_EQ(captured.exit_status, 0) << captured.err;
    nlohmann::json json = nlohmann::json::parse(captured.out, nullptr, false);
    EXPECT_TRUE(json.is_object()) << captured.out;
    return json;
  }
  static std::vector<std::string> measured_before(const nlohmann::json& json) {
    return json["settings"].value("measured_before", std::vector<std::string>());
  }
  std::filesystem::path verdict_file() const {
    for (const auto& entry : std::filesystem::directory_iterator(home_.verdicts())) {
      if (entry.path().extension() == ".json") return entry.path();
    }
    return {};
  }

  CacheHome home_;
};

// The distribution of one row, by the textbook.
std::vector<double> softmax(std::span<const float> logits) {
  double best = -1e300;
  for (const float logit : logits) best = std::max(best, static_cast<double>(logit));
  std::vector<double> p;
  double sum = 0;
  for (const float logit : logits) {
    p.push_back(std::exp(logit - best));
    sum += p.back();
  }
  for (double& each : p) each /= sum;
  return p;
}

// Logits of a sequence by the decoder alone, without engine, cache or batch.
model::Logits logits_of(const model::TestModel& model, kv::memory::Element element,
                        const model::Tokens& tokens) {
  return model::run_sequences(model, {.kernels = kernels::select_set().value(), .element = element},
                              {tokens})
      .front();
}

TEST_F(EvalCommand, FiguresAreThoseOfTheDecodersLogits) {
  const nlohmann::json json = eval_json({"--kv", "fp16", "--windows", "3"});
  const model::TestModel model(model::test_model_path("stories260K.gguf"));
  const auto tokenizer = text::Tokenizer::load(model.file().metadata()).value();
  const std::vector<TokenId> text =
      tokenizer->encode(read_document("").value().text, {.add_bos_eos = true});
  // The context holds 512 tokens, the last third of which is scored.
  const std::size_t end = 512;
  const std::size_t first = end - end / 3;
  EXPECT_EQ(json["settings"]["positions"], std::to_string(first) + "-511");
  const model::Tokens tokens(text.begin(), text.begin() + end);
  const model::Logits base = logits_of(model, kv::memory::Element::kBF16, tokens);
  const model::Logits other = logits_of(model, kv::memory::Element::kF16, tokens);
  const std::size_t vocabulary = model.config().vocabulary;
  double kl = 0;
  double kl_max = 0;
  double same = 0;
  double score_base = 0;
  double score_other = 0;
  for (std::size_t position = first; position < end; ++position) {
    const auto row = [&](const model::Logits& logits) {
      return std::span(logits).subspan((position - 1) * vocabulary, vocabulary);
    };
    const std::vector<double> p = softmax(row(base));
    const std::vector<double> q = softmax(row(other));
    double here = 0;
    for (std::size_t i = 0; i < vocabulary; ++i) here += p[i] * std::log(p[i] / q[i]);
    kl += here;
    kl_max = std::max(kl_max, here);
    same += std::max_element(p.begin(), p.end()) - p.begin() ==
                    std::max_element(q.begin(), q.end()) - q.begin()
                ? 1
                : 0;
    score_base += std::log(p[tokens[position].value()]);
    score_other += std::log(q[tokens[position].value()]);
  }
  const auto count = static_cast<double>(end - first);
  const nlohmann::json& baseline = json["rows"][0];
  const nlohmann::json& measured = json["rows"][1];
  EXPECT_EQ(baseline["configuration"], "bf16");
  EXPECT_EQ(measured["configuration"], "fp16");
  EXPECT_GT(kl, 0) << "bf16 and fp16 differ";
  EXPECT_NEAR(measured["kl_mean"], kl / count, 1e-6 * kl / count + 1e-9);
  EXPECT_NEAR(measured["kl_max"], kl_max, 1e-6 * kl_max + 1e-9);
  EXPECT_DOUBLE_EQ(measured["same_top_percent"], 100 * same / count);
  EXPECT_NEAR(baseline["perplexity_depth"], std::exp(-score_base / count), 1e-4);
  EXPECT_NEAR(measured["perplexity_depth"], std::exp(-score_other / count), 1e-4);
  EXPECT_TRUE(baseline["kl_mean"].is_null());
  // 5 layers of 4 KV heads of 8 + 8 values in 16 bits.
  EXPECT_EQ(baseline["bits_per_token"], 5 * 4 * (8 + 8) * 16);
}

TEST_F(EvalCommand, PerplexityOfWindowsIsThatOfTheirSecondHalves) {
  const nlohmann::json json = eval_json({"--kv", "fp16", "--windows", "2"});
  const model::TestModel model(model::test_model_path("stories260K.gguf"));
  const auto tokenizer = text::Tokenizer::load(model.file().metadata()).value();
  const std::vector<TokenId> text =
      tokenizer->encode(read_document("").value().text, {.add_bos_eos = true});
  const std::size_t vocabulary = model.config().vocabulary;
  double sum = 0;
  double count = 0;
  for (std::size_t window = 0; window < 2; ++window) {
    model::Tokens tokens(text.begin() + window * 512, text.begin() + (window + 1) * 512);
    tokens.front() = *tokenizer->bos();
    const model::Logits logits = logits_of(model, kv::memory::Element::kF16, tokens);
    for (std::size_t position = 257; position < 512; ++position) {
      const std::vector<double> p =
          softmax(std::span(logits).subspan((position - 1) * vocabulary, vocabulary));
      sum += std::log(p[tokens[position].value()]);
      count += 1;
    }
  }
  EXPECT_NEAR(json["rows"][1]["perplexity_windows"], std::exp(-sum / count), 1e-4);
}

TEST_F(EvalCommand, WhatWasMeasuredIsKeptAndTheRestGoesOn) {
  const nlohmann::json first = eval_json({"--kv", "fp16", "--quick"});
  EXPECT_TRUE(measured_before(first).empty());
  const nlohmann::json second = eval_json({"--kv", "fp16,fp32", "--quick"});
  EXPECT_THAT(measured_before(second), testing::ElementsAre("bf16", "fp16"));
  EXPECT_EQ(second["rows"][1], first["rows"][1]);
  EXPECT_EQ(second["rows"][2]["configuration"], "fp32");
  EXPECT_EQ(second["rows"][2]["bits_per_token"], 2 * 5 * 4 * (8 + 8) * 16);
  const nlohmann::json other = eval_json({"--kv", "fp16", "--quick", "--positions", "50"});
  EXPECT_TRUE(measured_before(other).empty()) << "other positions are another measurement";
  const nlohmann::json fresh = eval_json({"--kv", "fp16", "--quick", "--fresh"});
  EXPECT_TRUE(measured_before(fresh).empty());
  EXPECT_EQ(fresh["rows"], first["rows"]) << "to the last digit";
}

TEST_F(EvalCommand, WhatAPolicyThatSelectsPagesCostsIsKeptByBlockSize) {
  const std::vector<std::string> words = {"--policy", "h2o:64+16", "--quick"};
  EXPECT_TRUE(measured_before(eval_json(words)).empty());
  EXPECT_THAT(measured_before(eval_json(words)), testing::ElementsAre("bf16", "bf16@h2o:64+16"));
  const std::vector<std::string> others = {"--policy", "h2o:64+16", "--quick", "--block-size", "8"};
  EXPECT_THAT(measured_before(eval_json(others)), testing::ElementsAre("bf16"))
      << "other blocks are dropped";
}

TEST_F(EvalCommand, DamagedVerdictsAreMeasuredAgain) {
  const nlohmann::json first = eval_json({"--kv", "fp16", "--quick"});
  const std::filesystem::path path = verdict_file();
  std::ostringstream whole;
  whole << std::ifstream(path).rdbuf();
  const std::string text = whole.str();
  std::string other_type = text;
  other_type.replace(text.find("\"kl_mean\": "), 11, "\"kl_mean\": \"\", \"x\": ");
  for (const std::string& damaged :
       {std::string(), text.substr(0, text.size() / 2), std::string("null"), std::string("[1]"),
        std::string(R"({"format": 2, "verdicts": []})"), std::string("\xff\xfe\0", 3),
        other_type}) {
    std::ofstream(path, std::ios::trunc) << damaged;
    const nlohmann::json again = eval_json({"--kv", "fp16", "--quick"});
    EXPECT_LT(measured_before(again).size(), 2u) << damaged;
    EXPECT_EQ(again["rows"], first["rows"]) << damaged;
    EXPECT_EQ(measured_before(eval_json({"--kv", "fp16", "--quick"})).size(), 2u)
        << "it was rewritten after " << damaged;
  }
}

TEST_F(EvalCommand, TheListOfFormatsIsReadByTheirNames) {
  struct Case {
    const char* list;
    std::vector<std::string> rows;  // empty: refused
  };
  for (const Case& c :
       {Case{"fp16", {"bf16", "fp16"}}, Case{"f16,fp16,bf16", {"bf16", "fp16"}},
        Case{"bf16", {"bf16"}}, Case{"fp32,f16", {"bf16", "fp32", "fp16"}}, Case{"fp17", {}},
        Case{"fp16,", {"bf16", "fp16"}}, Case{"auto", {}}, Case{"", {}}}) {
    const cli::Captured captured =
        run_eval({"--kv", c.list, "--quick", "--json", "--positions", "16"});
    if (c.rows.empty()) {
      EXPECT_EQ(captured.exit_status, 2) << c.list;
      EXPECT_THAT(captured.err, HasSubstr("--kv")) << c.list;
      continue;
    }
    ASSERT_EQ(captured.exit_status, 0) << c.list << captured.err;
    std::vector<std::string> rows;
    const nlohmann::json json = nlohmann::json::parse(captured.out);
    for (const nlohmann::json& row : json["rows"]) rows.push_back(row["configuration"]);
    EXPECT_EQ(rows, c.rows) << c.list;
  }
}

TEST_F(EvalCommand, RefusalsNameWhatIsWrong) {
  // The model has heads of 8 dimensions.
  const cli::Captured small_heads = run_eval({"--kv", "int4", "--quick"});
  EXPECT_EQ(small_heads.exit_status, 1);
  EXPECT_THAT(small_heads.err, HasSubstr("int4 needs heads of a multiple of 32 dimensions"));
  const cli::Captured no_file = run_eval({"--file", "/nowhere/text"});
  EXPECT_EQ(no_file.exit_status, 1);
  EXPECT_THAT(no_file.err, HasSubstr("--file /nowhere/text"));
  EXPECT_EQ(run_eval({"--positions", "0"}).exit_status, 2);
  EXPECT_EQ(run_eval({"--time-limit", "-1"}).exit_status, 2);
}

// A format that all five layers leave out is the default of this CPU.
TEST_F(EvalCommand, LayersThatAreSkippedAreMeasuredAndKeptApart) {
  const std::vector<std::string> all = {"--kv", "fp16", "--quick", "--kv-cache-dtype-skip-layers",
                                        "4,3,2,1,0"};
  const nlohmann::json plain = eval_json({"--kv", "fp16", "--quick"});
  const nlohmann::json skipped = eval_json(all);
  EXPECT_THAT(measured_before(skipped), testing::ElementsAre("bf16"));
  EXPECT_EQ(skipped["rows"][1]["configuration"], "fp16 skip 0,1,2,3,4");
  const kv::memory::Element standard = kernels::select_set().value()->kv_element;
  EXPECT_GT(plain["rows"][1]["kl_mean"], 0);
  EXPECT_EQ(skipped["rows"][1]["kl_mean"] == 0, standard == kv::memory::Element::kBF16);
  const nlohmann::json one =
      eval_json({"--kv", "fp16", "--quick", "--kv-cache-dtype-skip-layers", "2"});
  EXPECT_EQ(one["rows"][1]["configuration"], "fp16 skip 2");
  EXPECT_GT(one["rows"][1]["kl_mean"], 0);
  EXPECT_NE(one["rows"][1]["kl_mean"], plain["rows"][1]["kl_mean"]);
  EXPECT_THAT(
      measured_before(eval_json({"--kv", "fp16", "--quick", "--kv-cache-dtype-skip-layers", "2"})),
      testing::ElementsAre("bf16", "fp16 skip 2"));
  EXPECT_THAT(measured_before(eval_json(all)), testing::ElementsAre("bf16", "fp16 skip 0,1,2,3,4"));
  const cli::Captured beyond =
      run_eval({"--kv", "fp16", "--quick", "--kv-cache-dtype-skip-layers", "5"});
  EXPECT_EQ(beyond.exit_status, 1);
  EXPECT_THAT(beyond.err, HasSubstr("--kv-cache-dtype-skip-layers: 5, but"));
}

TEST_F(EvalCommand, TasksThatTheModelCannotDoAreShownAndDoNotCount) {
  const cli::Captured captured = run_eval({"--kv", "fp16"});
  EXPECT_EQ(captured.exit_status, 0) << captured.err;
  EXPECT_THAT(captured.out, HasSubstr("needle"));
  EXPECT_THAT(captured.out, HasSubstr("the model cannot (0 of 3 right with bf16)"));
  EXPECT_THAT(captured.out, HasSubstr("passes"));
}

TEST_F(EvalCommand, ThePlotHasAPointForEveryFormatInEveryPanel) {
  const std::string path = home_.verdicts() + "-plot.svg";
  const cli::Captured captured = run_eval({"--kv", "fp16,fp32", "--quick", "--plot", path});
  EXPECT_EQ(captured.exit_status, 0) << captured.err;
  std::ostringstream svg;
  svg << std::ifstream(path).rdbuf();
  std::size_t points = 0;
  for (std::size_t at = 0; (at = svg.str().find("<circle ", at)) != std::string::npos; ++at) {
    ++points;
  }
  EXPECT_EQ(points, 6u) << "three formats in two panels";
  EXPECT_THAT(svg.str(), HasSubstr(">mean KL (nats)</text>"));
  EXPECT_THAT(svg.str(), HasSubstr(">same top token (%)</text>"));
  EXPECT_EQ(run_eval({"--kv", "fp16", "--quick", "--plot", "/nowhere/x.svg"}).exit_status, 1);
}

TEST_F(EvalCommand, ATimeLimitShortensThePartAtDepthOrIsRefused) {
  const cli::Captured none = run_eval({"--kv", "fp16", "--time-limit", "0.000001"});
  EXPECT_EQ(none.exit_status, 1);
  EXPECT_THAT(none.err, HasSubstr("--time-limit"));
  const nlohmann::json json = eval_json({"--kv", "fp16", "--time-limit", "60"});
  EXPECT_EQ(json["settings"]["windows"], 0) << "it is quick";
  EXPECT_EQ(json["rows"].size(), 2u);
}

TEST_F(EvalCommand, MeasuresPoliciesBesideTheFullContext) {
  const nlohmann::json json = eval_json(
      {"--policy", "window:40,streaming:4+400", "--kv", "int8@streaming:4+40", "--quick"});
  const nlohmann::json& measured = json["measurements"];
  ASSERT_EQ(measured.size(), 4u) << measured.dump();
  const auto mean_of = [&](const std::string& name) {
    return measured[name]["divergence"]["kl_mean"].get<double>();
  };
  EXPECT_GT(mean_of("bf16@window:40"), mean_of("bf16@streaming:4+400"));
  EXPECT_GT(mean_of("int8@streaming:4+40"), 0);
  // 43 tokens are kept of those that are read, in eight bits and a scale of them.
  EXPECT_LT(measured["int8@streaming:4+40"]["bits_per_token"],
            measured["bf16@window:40"]["bits_per_token"]);
  EXPECT_LT(measured["bf16@window:40"]["bits_per_token"],
            measured["bf16@streaming:4+400"]["bits_per_token"]);
}

// Rows that see everything are those of the full context, and so are their figures.
TEST_F(EvalCommand, APolicyThatDropsNothingCostsNothing) {
  const nlohmann::json json = eval_json({"--policy", "streaming:12+500", "--quick"});
  const nlohmann::json& divergence = json["measurements"]["bf16@streaming:12+500"]["divergence"];
  EXPECT_EQ(divergence["kl_max"], 0);
  EXPECT_EQ(divergence["same_top"], 1);
}

// What keeps nothing from most positions, or more than is read, has no price there: no verdict.
TEST_F(EvalCommand, APolicyThatIsHardlyReachedDoesNotPass) {
  const std::vector<std::string> depth = {"--quick", "--depth", "100", "--positions", "100"};
  struct Case {
    const char* policy;
    double share;  // of positions 100 to 199, from which something is kept
  };
  for (const Case& c : {Case{"window:400", 0}, Case{"window:201", 0}, Case{"window:180", 0.2},
                        Case{"streaming:4+91", 1}}) {
    std::vector<std::string> words = {"--policy", c.policy};
    words.insert(words.end(), depth.begin(), depth.end());
    const nlohmann::json json = eval_json(words);
    EXPECT_EQ(json["measurements"]["bf16@" + std::string(c.policy)]["bounded_share"], c.share)
        << c.policy;
    const std::string reason = json["measurements"]["bf16@" + std::string(c.policy)]["reason"];
    EXPECT_EQ(reason.find("measure deeper") != std::string::npos, c.share < 0.5) << reason;
    if (c.share < 0.5) {
      EXPECT_EQ(json["rows"][1]["passes"], "fails") << c.policy;
    }
  }
}

TEST_F(EvalCommand, FewPositionsGiveNoVerdict) {
  const nlohmann::json few = eval_json({"--kv", "fp16", "--quick", "--positions", "99"});
  EXPECT_EQ(few["rows"][1]["passes"], "none");
  EXPECT_EQ(few["measurements"]["fp16"]["passes"], false);
  EXPECT_EQ(few["measurements"]["fp16"]["reason"],
            "99 positions were measured, a verdict needs 100");
  EXPECT_EQ(eval_json({"--kv", "fp16", "--quick", "--positions", "100"})["rows"][1]["passes"],
            "passes");
}

TEST_F(EvalCommand, ReadsATextPastTheContextUnderPolicies) {
  std::filesystem::create_directories(home_.verdicts());
  const std::string path = home_.verdicts() + "/beyond.svg";
  const nlohmann::json json =
      eval_json({"--policy", "window:60,streaming:4+60", "--beyond", "4096", "--plot", path});
  ASSERT_EQ(json["rows"].size(), 4u) << json.dump();
  // The full context holds 512 tokens: less than half of a part is read by it.
  EXPECT_TRUE(json["rows"][0]["perplexity_bf16"].is_null());
  EXPECT_TRUE(json["rows"][3]["perplexity_bf16"].is_null());
  const auto last = json["rows"][3]["perplexity_bf16@streaming:4+60"].get<double>();
  const auto first = json["rows"][0]["perplexity_bf16@streaming:4+60"].get<double>();
  EXPECT_LT(last, 2 * first) << "flat beyond the trained length";
  // A point for each number of the table.
  std::ostringstream svg;
  svg << std::ifstream(path).rdbuf();
  std::size_t points = 0;
  for (std::size_t at = 0; (at = svg.str().find("<circle ", at)) != std::string::npos; ++at) {
    ++points;
  }
  EXPECT_EQ(points, 8u) << "two policies at four positions";
  for (const char* const word : {"Perplexity of a text past the context", "position (logarithmic)",
                                 ">bf16@window:60<", ">bf16@streaming:4+60<", ">4096<"}) {
    EXPECT_THAT(svg.str(), HasSubstr(word));
  }
  EXPECT_EQ(run_eval({"--policy", "window:60", "--beyond", "1024", "--plot", "/nowhere/x.svg"})
                .exit_status,
            1);
  const cli::Captured too_long = run_eval({"--policy", "window:60", "--beyond", "4000000"});
  EXPECT_EQ(too_long.exit_status, 1);
  EXPECT_THAT(too_long.err, HasSubstr("--beyond: 4000000 tokens"));
}

TEST_F(EvalCommand, RefusesWhatIsNoPolicy) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--policy", "h3o:64"}, {"--kv", "int8@sink"}}) {
    const cli::Captured refused = run_eval(words);
    EXPECT_NE(refused.exit_status, 0);
    EXPECT_THAT(refused.err, HasSubstr("expected full, window:W, streaming:S+W"));
  }
}

}  // namespace
}  // namespace pagoda::eval
