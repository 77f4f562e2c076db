// Names of models: which are taken, and where they are looked for.
#include "app/model_finder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "app/loaded_model.h"
#include "app/model_folder.h"
#include "app/model_name.h"

namespace pagoda::app {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kCommit = "0123456789abcdef0123456789abcdef01234567";
constexpr const char* kOther = "0123ffffffffffffffffffffffffffffffffffff";

// A folder of its own for a test, removed at the end.
class ModelFinder : public testing::Test {
 protected:
  ModelFinder() {
    std::string pattern = testing::TempDir() + "/pagoda-names-XXXXXX";
    root_ = mkdtemp(pattern.data());
    environment_.home = root_ / "home";
    environment_.hf_home = root_ / "hf";
    environment_.pagoda_models = (root_ / "own").string();
  }
  ~ModelFinder() override { fs::remove_all(root_); }

  fs::path put(const std::string& name, const std::string& text = "x") const {
    const fs::path path = root_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path;
  }
  // A file of a snapshot as the hub lays it out: a link to a blob.
  fs::path put_in_hub(const std::string& repository, const std::string& commit,
                      const std::string& file, const std::string& text = "x") const {
    put("hf/hub/" + repository + "/blobs/blob-of-" + fs::path(file).filename().string(), text);
    const fs::path link = root_ / "hf/hub" / repository / "snapshots" / commit / file;
    fs::create_directories(link.parent_path());
    const fs::path blob =
        root_ / "hf/hub" / repository / "blobs" / ("blob-of-" + fs::path(file).filename().string());
    fs::create_symlink(fs::relative(blob, link.parent_path()), link);
    return link;
  }
  void put_ref(const std::string& repository, const std::string& ref,
               const std::string& commit) const {
    put("hf/hub/" + repository + "/refs/" + ref, commit);
  }

  Result<FoundModel> find(const std::string& word) const { return find_model(word, environment_); }
  std::string path_of(const std::string& word) const {
    const Result<FoundModel> found = find(word);
    return found.ok() ? found.value().path : "error: " + found.error().message;
  }
  std::string error_of(const std::string& word) const {
    const Result<FoundModel> found = find(word);
    return found.ok() ? "found " + found.value().path : found.error().message;
  }

  fs::path root_;
  ModelEnvironment environment_;
};

TEST(ModelName, HasARepositoryARevisionAndAFile) {
  const Result<ModelName> whole = parse_model_name("Org/Na.me-1_x@refs/pr/1:sub/a-Q4_K_M.gguf");
  ASSERT_TRUE(whole.ok()) << whole.error().message;
  EXPECT_EQ(whole.value().repository, "Org/Na.me-1_x");
  EXPECT_EQ(whole.value().revision, "refs/pr/1");
  EXPECT_EQ(whole.value().file, "sub/a-Q4_K_M.gguf");
  const Result<ModelName> other = parse_model_name("gpt2:Q8_0@main");
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(other.value().repository, "gpt2");
  EXPECT_EQ(other.value().revision, "main");
  EXPECT_EQ(other.value().file, "Q8_0");
}

TEST(ModelName, NeverLeadsOutOfAFolder) {
  for (const char* const word : {"",
                                 "/",
                                 "a/",
                                 "/a",
                                 "a//b",
                                 "a/b/c",
                                 "..",
                                 "../a",
                                 "a/..",
                                 "a/.",
                                 "./a",
                                 "a..b",
                                 "a--b/c",
                                 "-a/b",
                                 "a/b-",
                                 "a/.b",
                                 "a b/c",
                                 "a\\b",
                                 "a/b\n",
                                 "a/ü",
                                 "a/b@",
                                 "a/b:",
                                 "a/b@..",
                                 "a/b@../x",
                                 "a/b@x/../y",
                                 "a/b@/x",
                                 "a/b@x//y",
                                 "a/b@x/",
                                 "a/b:../x.gguf",
                                 "a/b:/x.gguf",
                                 "a/b:x/../../y.gguf",
                                 "a/b@x@y",
                                 "a/b:x:y",
                                 "a/b@-x",
                                 "a/b:*.gguf",
                                 "a/b@x\\y"}) {
    EXPECT_FALSE(parse_model_name(word).ok()) << word;
  }
  EXPECT_FALSE(parse_model_name("a/" + std::string(kRepositoryBytesMax, 'b')).ok());
  EXPECT_FALSE(parse_model_name("a/b@" + std::string(kNamePartBytesMax + 1, 'r')).ok());
  EXPECT_TRUE(parse_model_name("a/" + std::string(kRepositoryBytesMax - 2, 'b')).ok());
}

TEST(ModelName, ARevisionOfAFlagStandsBehindTheName) {
  EXPECT_EQ(with_revision("Org/Name", "v1").value(), "Org/Name@v1");
  EXPECT_EQ(with_revision("Org/Name:Q4_0", "v1").value(), "Org/Name:Q4_0@v1");
  EXPECT_EQ(with_revision("Org/Name@v1", "v1").value(), "Org/Name@v1");
  EXPECT_EQ(with_revision("/a/b.gguf", "").value(), "/a/b.gguf");
  EXPECT_FALSE(with_revision("Org/Name@v2", "v1").ok());
  EXPECT_FALSE(with_revision("/a/b.gguf", "v1").ok());
}

TEST(ModelEnvironment, TheHubsFolderIsWhereHuggingfaceHubHasIt) {
  ModelEnvironment environment;
  environment.home = "/h";
  EXPECT_EQ(environment.hub_folder(), "/h/.cache/huggingface/hub");
  environment.xdg_cache_home = "/x";
  EXPECT_EQ(environment.hub_folder(), "/x/huggingface/hub");
  environment.hf_home = "~/hf";
  EXPECT_EQ(environment.hub_folder(), "/h/hf/hub");
  environment.huggingface_hub_cache = "/old";
  EXPECT_EQ(environment.hub_folder(), "/old");
  environment.hf_hub_cache = "/new";
  EXPECT_EQ(environment.hub_folder(), "/new");
}

TEST_F(ModelFinder, APathThatExistsWinsOverAName) {
  const fs::path file = put("here/Org/Name.gguf");
  put_in_hub("models--Org--Name", kCommit, "model.gguf");
  put_ref("models--Org--Name", "main", kCommit);
  EXPECT_EQ(path_of(file.string()), file.string());
  EXPECT_EQ(find(file.string()).value().name, "");
  const fs::path before = fs::current_path();
  put("here/Org/Name");  // a file of the name itself
  fs::current_path(root_ / "here");
  EXPECT_EQ(path_of("Org/Name"), "Org/Name");
  fs::current_path(before);
  EXPECT_THAT(path_of("Org/Name"), HasSubstr("snapshots"));
}

TEST_F(ModelFinder, WordsThatCanOnlyBePathsAreLeftToWhoeverOpensThem) {
  for (const char* const word : {"/no/such.gguf", "./x/y", "~/x", "such.gguf", "a/b/c"}) {
    EXPECT_EQ(path_of(word), word);
  }
}

TEST_F(ModelFinder, AFolderIsItsOneGgufFileOrItself) {
  const fs::path file = put("one/model.gguf");
  EXPECT_EQ(path_of((root_ / "one").string()), file.string());
  put("weights/config.json");
  put("weights/model.safetensors");
  EXPECT_EQ(path_of((root_ / "weights").string()), (root_ / "weights").string());
  EXPECT_EQ(path_of((root_ / "weights").string() + "/"), (root_ / "weights").string());
  put("one/other.gguf");
  EXPECT_THAT(error_of((root_ / "one").string()),
              AllOf(HasSubstr("model.gguf"), HasSubstr("other.gguf"), HasSubstr("give one of")));
  fs::create_directories(root_ / "empty");
  EXPECT_THAT(error_of((root_ / "empty").string()), HasSubstr("has no weights"));
}

TEST_F(ModelFinder, OwnFoldersHoldAFolderOrAFileOfTheName) {
  environment_.pagoda_models = (root_ / "none").string() + ":" + (root_ / "own").string();
  const fs::path short_name = put("own/Name.gguf");
  EXPECT_EQ(path_of("Org/Name"), short_name.string());
  EXPECT_EQ(path_of("Name"), short_name.string());
  const fs::path long_name = put("own/Org/Name.gguf");
  EXPECT_EQ(path_of("Org/Name"), long_name.string());
  const fs::path in_folder = put("own/Org/Name/file-Q8_0.gguf");
  EXPECT_EQ(path_of("Org/Name"), in_folder.string());
  EXPECT_EQ(find("Org/Name").value().name, "Org/Name");
  EXPECT_THAT(error_of("Org/Name@v1"), HasSubstr("folders have no revisions"));
}

TEST_F(ModelFinder, AFolderThatIsNotWholeHidesNoWholeModelElsewhere) {
  environment_.pagoda_models = (root_ / "own").string() + ":" + (root_ / "other").string();
  put("own/Org/Name/config.json", "{}");
  put("own/Org/Name/model.safetensors.index.json", R"({"weight_map": {"a": "gone.safetensors"}})");
  EXPECT_THAT(error_of("Org/Name"), AllOf(HasSubstr("gone.safetensors is not there")));
  put_ref("models--Org--Name", "main", kCommit);
  EXPECT_THAT(error_of("Org/Name"), HasSubstr("gone.safetensors is not there"))
      << "neither is whole: the first is named";
  const fs::path in_hub = put_in_hub("models--Org--Name", kCommit, "model.gguf");
  EXPECT_EQ(path_of("Org/Name"), in_hub.string());
  const fs::path in_other = put("other/Org/Name/model.gguf");
  EXPECT_EQ(path_of("Org/Name"), in_other.string()) << "PAGODA_MODELS comes first";
  put("own/Org/Name/a.gguf");
  fs::remove(root_ / "own/Org/Name/model.safetensors.index.json");
  put("own/Org/Name/b.gguf");
  EXPECT_THAT(error_of("Org/Name"), HasSubstr("has 2 GGUF files")) << "a choice is asked for";
}

TEST_F(ModelFinder, AStandInAnswersForTheDefaultModelAlone) {
  environment_.stand_in = "/bundled/stories.gguf";
  const char* const folder = std::getenv("XDG_CACHE_HOME");
  const std::string before = folder == nullptr ? "" : folder;
  setenv("XDG_CACHE_HOME", (root_ / "no-cache").c_str(), 1);
  const Result<FoundModel> found = find(default_model_path());
  const Result<FoundModel> other = find("/no/other.gguf");
  before.empty() ? unsetenv("XDG_CACHE_HOME") : setenv("XDG_CACHE_HOME", before.c_str(), 1);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found.value().path, "/bundled/stories.gguf");
  EXPECT_TRUE(found.value().is_stand_in);
  EXPECT_EQ(other.value().path, "/no/other.gguf");
  EXPECT_THAT(error_of("Org/Name"), HasSubstr("no model of that name"));
}

TEST_F(ModelFinder, TheCacheOfHuggingFaceIsReadByRefsAndCommits) {
  const fs::path main = put_in_hub("models--Org--Name", kCommit, "model.gguf");
  const fs::path other = put_in_hub("models--Org--Name", kOther, "model.gguf.later.gguf");
  put_ref("models--Org--Name", "main", std::string(kCommit) + "\n");
  put_ref("models--Org--Name", "refs/pr/1", kOther);
  EXPECT_EQ(path_of("Org/Name"), main.string());
  EXPECT_EQ(path_of("Org/Name@main"), main.string());
  EXPECT_EQ(path_of("Org/Name@refs/pr/1"), other.string());
  EXPECT_EQ(path_of(std::string("Org/Name@") + kOther), other.string());
  EXPECT_EQ(path_of("Org/Name@0123f"), other.string());
  EXPECT_THAT(error_of("Org/Name@0123"), AllOf(HasSubstr(kCommit), HasSubstr(kOther)));
  EXPECT_THAT(error_of("Org/Name@v9"),
              AllOf(HasSubstr("v9 is not in"), HasSubstr(kCommit), HasSubstr("pagoda pull")));
  EXPECT_EQ(find("Org/Name@main").value().name, "Org/Name");
  const fs::path plain = put_in_hub("models--gpt2", kCommit, "gpt2.gguf");
  put_ref("models--gpt2", "main", kCommit);
  EXPECT_EQ(path_of("gpt2"), plain.string());
}

TEST_F(ModelFinder, ARefThatHoldsNoCommitIsNotFollowed) {
  put_in_hub("models--Org--Name", kCommit, "model.gguf");
  put_ref("models--Org--Name", "main", "../../../../own");
  put("own/config.json");
  EXPECT_THAT(error_of("Org/Name"), HasSubstr("holds no commit id"));
  put_ref("models--Org--Name", "main", "");
  EXPECT_THAT(error_of("Org/Name"), HasSubstr("holds no commit id"));
}

TEST_F(ModelFinder, OfSeveralGgufFilesOneIsChosenByFileOrQuantisation) {
  const std::string repository = "models--Org--Name";
  const fs::path small = put_in_hub(repository, kCommit, "Name-Q4_K_M.gguf");
  put_in_hub(repository, kCommit, "Name-Q4_K_M_L.gguf");
  const fs::path large = put_in_hub(repository, kCommit, "f16/Name.F16.gguf");
  put_in_hub(repository, kCommit, "mmproj-Name-f16.gguf");
  put_ref(repository, "main", kCommit);
  EXPECT_THAT(error_of("Org/Name"),
              AllOf(HasSubstr("has 3 GGUF files"), HasSubstr("Name-Q4_K_M.gguf"),
                    HasSubstr("f16/Name.F16.gguf"), HasSubstr("Org/Name:Q4_K_M"),
                    Not(HasSubstr("mmproj"))));
  EXPECT_EQ(path_of("Org/Name:Name-Q4_K_M.gguf"), small.string());
  EXPECT_EQ(path_of("Org/Name:Q4_K_M"), small.string());
  EXPECT_EQ(path_of("Org/Name:q4_k_m"), small.string());
  EXPECT_EQ(path_of("Org/Name:f16/Name.F16.gguf"), large.string());
  EXPECT_EQ(path_of("Org/Name:Name.F16.gguf@main"), large.string());
  EXPECT_EQ(path_of("Org/Name:f16"), large.string());
  EXPECT_THAT(error_of("Org/Name:Q2_K"),
              AllOf(HasSubstr("no GGUF file of it is \"Q2_K\""), HasSubstr("Name-Q4_K_M.gguf")));
}

TEST_F(ModelFinder, ASplitSetIsOneModelAndMustBeWhole) {
  const std::string repository = "models--Org--Name";
  put_ref(repository, "main", kCommit);
  const fs::path first = put_in_hub(repository, kCommit, "big-Q8_0-00001-of-00003.gguf");
  put_in_hub(repository, kCommit, "big-Q8_0-00003-of-00003.gguf");
  EXPECT_THAT(error_of("Org/Name"), AllOf(HasSubstr("is not complete"),
                                          HasSubstr("big-Q8_0-00002-of-00003.gguf is not there")));
  put_in_hub(repository, kCommit, "big-Q8_0-00002-of-00003.gguf");
  EXPECT_EQ(path_of("Org/Name"), first.string());
  EXPECT_EQ(path_of("Org/Name:Q8_0"), first.string());
  EXPECT_EQ(path_of("Org/Name:big-Q8_0-00003-of-00003.gguf"), first.string());
  EXPECT_EQ(gguf_set_pattern("big-Q8_0-00003-of-00003.gguf"), "big-Q8_0-*-of-00003.gguf");
}

TEST_F(ModelFinder, AFolderOfSafetensorsMustHaveWhatItsIndexNames) {
  const std::string repository = "models--Org--Name";
  put_ref(repository, "main", kCommit);
  put_in_hub(repository, kCommit, "config.json", "{}");
  EXPECT_THAT(error_of("Org/Name"), AllOf(HasSubstr("has no weights"), HasSubstr("pagoda pull")));
  put_in_hub(repository, kCommit, "model.safetensors.index.json",
             R"({"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}})");
  put_in_hub(repository, kCommit, "model-1.safetensors");
  put("hf/hub/models--Org--Name/blobs/abcd.incomplete");
  EXPECT_THAT(error_of("Org/Name"),
              AllOf(HasSubstr("model-2.safetensors is not there"), HasSubstr("abcd.incomplete"),
                    Not(HasSubstr("model-1.safetensors"))));
  const fs::path last = put_in_hub(repository, kCommit, "model-2.safetensors");
  EXPECT_EQ(path_of("Org/Name"), last.parent_path().string());
  fs::remove(root_ / "hf/hub/models--Org--Name/blobs/blob-of-model-2.safetensors");
  EXPECT_THAT(error_of("Org/Name"), HasSubstr("model-2.safetensors is not there"))
      << "a link to a blob that is gone";
}

TEST_F(ModelFinder, GgufFilesBesideAConfigAreTheModelWhereNoOtherWeightsAre) {
  put_ref("models--Org--Name", "main", kCommit);
  put_in_hub("models--Org--Name", kCommit, "config.json", "{}");
  const fs::path file = put_in_hub("models--Org--Name", kCommit, "model.gguf");
  EXPECT_EQ(path_of("Org/Name"), file.string());
  put_in_hub("models--Org--Name", kCommit, "model.safetensors");
  EXPECT_EQ(path_of("Org/Name"), file.parent_path().string());
  EXPECT_EQ(path_of("Org/Name:model.gguf"), file.string());
}

TEST_F(ModelFinder, WhatIsNotFoundIsAnsweredWithEveryPlaceAndWhatToDo) {
  environment_.pagoda_models = "/first:/second";
  EXPECT_THAT(error_of("Org/Name"),
              AllOf(HasSubstr("/first/Org/Name"), HasSubstr("/second/Org/Name"),
                    HasSubstr((root_ / "hf/hub/models--Org--Name").string()),
                    HasSubstr("\"pagoda pull Org/Name\""), HasSubstr("HF_HOME"),
                    HasSubstr("PAGODA_MODELS")));
  environment_.pagoda_models = "";
  EXPECT_THAT(error_of("Org/Name"), HasSubstr("PAGODA_MODELS is not set"));
  EXPECT_THAT(error_of("-hf"), AllOf(HasSubstr("cannot open"), HasSubstr("Org/Name")));
  // Hugging Face has no such name.
  EXPECT_THAT(error_of("qwen3:0.6b"),
              AllOf(HasSubstr("called Org/Name"), Not(HasSubstr("pull qwen3"))));
}

}  // namespace
}  // namespace pagoda::app
