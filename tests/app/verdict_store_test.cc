// Verdicts are kept by their keys, bounded, and survive damage and writers at once.
#include "app/verdict_store.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

namespace pagoda::app {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

class Verdicts : public testing::Test {
 protected:
  Verdicts() { fs::remove_all(folder_); }
  ~Verdicts() override { fs::remove_all(folder_); }

  static StoredVerdict verdict(const std::string& choice, int settings, int result) {
    return {.key = {"kv", choice, "neon.5"},
            .measured_s = 7,
            .settings = Json(settings),
            .result = Json(result)};
  }
  std::string path(const std::string& model) const { return folder_ + "/" + model + ".json"; }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  const std::string folder_ = testing::TempDir() + "verdicts-" + std::to_string(::getpid());
  const VerdictStore store_{folder_};
};

TEST_F(Verdicts, AreFoundByModelKeyAndSettings) {
  EXPECT_TRUE(store_.read("a").empty());
  ASSERT_TRUE(store_.write("a", verdict("int8", 1, 10)).ok());
  ASSERT_TRUE(store_.write("a", verdict("int8", 2, 20)).ok());
  ASSERT_TRUE(store_.write("a", verdict("int4", 1, 30)).ok());
  ASSERT_TRUE(store_.write("b", verdict("int8", 1, 40)).ok());
  const auto found = [&](const std::string& model, const VerdictKey& key, int settings) {
    const auto kept = store_.find(model, key, Json(settings));
    return kept ? kept->result.get<int>() : -1;
  };
  EXPECT_EQ(found("a", {"kv", "int8", "neon.5"}, 1), 10);
  EXPECT_EQ(found("a", {"kv", "int8", "neon.5"}, 2), 20);
  EXPECT_EQ(found("a", {"kv", "int4", "neon.5"}, 1), 30);
  EXPECT_EQ(found("b", {"kv", "int8", "neon.5"}, 1), 40);
  EXPECT_EQ(found("a", {"kv", "int8", "neon.6"}, 1), -1);
  EXPECT_EQ(found("a", {"compute", "int8", "neon.5"}, 1), -1);
  EXPECT_EQ(found("a", {"kv", "int8", "neon.5"}, 3), -1);
  ASSERT_TRUE(store_.write("a", verdict("int8", 1, 50)).ok());
  EXPECT_EQ(found("a", {"kv", "int8", "neon.5"}, 1), 50) << "the newer takes the older's place";
  EXPECT_EQ(store_.read("a").size(), 3u);
  EXPECT_EQ(store_.read("a").front().result, Json(50)) << "newest first";
  EXPECT_EQ(store_.read("a").front().measured_s, 7);
}

TEST_F(Verdicts, DamagedFilesCountAsNoneAndAreReplaced) {
  const std::string whole = R"({"format": 1, "verdicts": [{"subject": "kv", "choice": "int8",
      "numerics": "neon.5", "measured_s": 7, "settings": 1, "result": 10}]})";
  fs::create_directories(folder_);
  std::ofstream(path("a")) << whole;
  ASSERT_EQ(store_.read("a").size(), 1u) << "what is damaged below is whole here";
  struct Case {
    const char* from;
    const char* to;
  };
  for (const Case& c : {Case{"\"format\": 1", "\"format\": 2"}, Case{"\"format\": 1, ", ""},
                        Case{"]}", ""}, Case{"\"choice\": \"int8\",", ""}, Case{"\"kv\"", "3"},
                        Case{"\"measured_s\": 7", "\"measured_s\": []"}, Case{"[{", "{\"x\": {"},
                        Case{"\"verdicts\"", "\"verdict\""}, Case{", \"result\": 10", ""}}) {
    std::string damaged = whole;
    const std::size_t at = damaged.find(c.from);
    ASSERT_NE(at, std::string::npos) << c.from;
    damaged.replace(at, std::string(c.from).size(), c.to);
    std::ofstream(path("a"), std::ios::trunc) << damaged;
    EXPECT_TRUE(store_.read("a").empty()) << damaged;
    ASSERT_TRUE(store_.write("a", verdict("int4", 1, 1)).ok());
    EXPECT_EQ(store_.read("a").size(), 1u) << damaged;
  }
  fs::remove(path("a"));
  fs::create_directories(path("a"));  // a folder stands in its place
  EXPECT_TRUE(store_.read("a").empty());
  EXPECT_FALSE(store_.write("a", verdict("int4", 1, 1)).ok());
  EXPECT_EQ(files(), 2u) << "the lock and the folder: nothing half written is left";
}

TEST_F(Verdicts, OneThatIsDamagedLeavesTheOthers) {
  ASSERT_TRUE(store_.write("a", verdict("int8", 1, 10)).ok());
  Json json = Json::parse(std::ifstream(path("a")));
  json["verdicts"].push_back("none");
  std::ofstream(path("a"), std::ios::trunc) << json.dump();
  EXPECT_EQ(store_.read("a").size(), 1u);
}

TEST_F(Verdicts, OfAModelAndModelsAreBounded) {
  for (int i = 0; i < 70; ++i) ASSERT_TRUE(store_.write("a", verdict("int8", i, i)).ok());
  const std::vector<StoredVerdict> kept = store_.read("a");
  ASSERT_EQ(kept.size(), VerdictStore::kVerdictsMax);
  EXPECT_EQ(kept.front().settings, Json(69));
  EXPECT_EQ(kept.back().settings, Json(70 - 64)) << "the oldest went";

  fs::last_write_time(path("a"), fs::file_time_type::clock::now() - std::chrono::hours(2));
  std::ofstream(path("b") + ".99.tmp") << "left by a process that was killed";
  for (std::size_t i = 0; i < VerdictStore::kModelsMax; ++i) {
    ASSERT_TRUE(store_.write("model" + std::to_string(i), verdict("int8", 1, 1)).ok());
  }
  EXPECT_EQ(files(), VerdictStore::kModelsMax + 1) << "and the lock";
  EXPECT_TRUE(store_.read("a").empty()) << "the one that was longest unused";
  EXPECT_EQ(store_.read("model0").size(), 1u);
}

TEST_F(Verdicts, ThoseOfLessWeightGoFirst) {
  StoredVerdict heavy = verdict("int8", -1, 7);
  heavy.weight = 1;
  ASSERT_TRUE(store_.write("a", heavy).ok());
  for (int i = 0; i < 70; ++i) ASSERT_TRUE(store_.write("a", verdict("int8", i, i)).ok());
  const std::vector<StoredVerdict> kept = store_.read("a");
  ASSERT_EQ(kept.size(), VerdictStore::kVerdictsMax);
  EXPECT_EQ(kept.front().settings, Json(69));
  EXPECT_EQ(kept.back().settings, Json(-1)) << "it is the oldest";
  EXPECT_EQ(kept.back().weight, 1);
  EXPECT_EQ(kept[kept.size() - 2].settings, Json(70 - 63));
  // One that is light is kept where all others are heavy: what was just measured is found.
  for (int i = 0; i < 70; ++i) {
    heavy.settings = Json(100 + i);
    ASSERT_TRUE(store_.write("a", heavy).ok());
  }
  ASSERT_TRUE(store_.write("a", verdict("int8", 5, 5)).ok());
  EXPECT_TRUE(store_.find("a", {"kv", "int8", "neon.5"}, Json(5)));
}

TEST_F(Verdicts, OfWritersAtOnceAllAreKept) {
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 4; ++writer) {
    writers.emplace_back([this, writer] {
      for (int i = 0; i < 10; ++i) {
        EXPECT_TRUE(VerdictStore(folder_).write("a", verdict("int8", 10 * writer + i, i)).ok());
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(store_.read("a").size(), 40u);
}

}  // namespace
}  // namespace pagoda::app
