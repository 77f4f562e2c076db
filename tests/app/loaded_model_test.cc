#include "app/loaded_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "app/served_source.h"
#include "hf/test_folder.h"
#include "kernels/select.h"
#include "test_data.h"

namespace pagoda::app {
namespace {

using testing::HasSubstr;

TEST(LoadedModel, IsReadyFromAHuggingFaceFolder) {
  const hf::TestFolder folder("hf_qwen2_words");
  const std::string tokenizer = test_data() + "/hf_tokenizers/qwen2";
  for (const char* const name : {"tokenizer.json", "tokenizer_config.json"}) {
    folder.write(name, hf::read_file(tokenizer + "/" + name));
  }
  const auto loaded = LoadedModel::load(folder.path(), kernels::ref_set());
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  const LoadedModel& model = *loaded.value();
  EXPECT_EQ(model.config().vocabulary, 425U);
  EXPECT_EQ(model.tokenizer().size(), 425U);
  EXPECT_EQ(model.weights().layers.size(), 1U);
  EXPECT_EQ(model.file().opened_parts().size(), 4U);
}

TEST(ServedSource, IsNamedAfterItsFolderWithTheDotsInItsName) {
  const hf::TestFolder root;
  const std::string path = root.path() + "/Qwen2.5-0.1B";
  std::filesystem::copy(test_data() + "/models/hf_qwen2_words", path);
  const std::string name = "/tokenizer.json";
  std::filesystem::copy(test_data() + "/hf_tokenizers/qwen2" + name, path + name);
  for (const std::string& given : {path, path + "/"}) {
    const auto source = ServedSource::open(given, {}, {}, kernels::ref_set());
    ASSERT_TRUE(source.ok()) << source.error().message;
    EXPECT_EQ(source.value()->names().front(), "Qwen2.5-0.1B");
  }
}

TEST(LoadedModel, AFolderWithoutATokenizerSaysWhatItLacks) {
  const hf::TestFolder folder("hf_qwen2_words");
  EXPECT_TRUE(open_model_file(folder.path()).ok());
  const auto loaded = LoadedModel::load(folder.path(), kernels::ref_set());
  ASSERT_FALSE(loaded.ok());
  EXPECT_THAT(loaded.error().message, HasSubstr("tokenizer.json"));
}

TEST(LoadedModel, AFolderThatIsNoModelSaysWhatAModelIs) {
  const hf::TestFolder folder;
  const auto file = open_model_file(folder.path());
  ASSERT_FALSE(file.ok());
  EXPECT_THAT(file.error().message, HasSubstr("no *.gguf and no config.json with *.safetensors"));
}

}  // namespace
}  // namespace pagoda::app
