// Compares with the texts and ids that llama.cpp publishes beside its vocabularies.
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "test_data.h"
#include "text/vocabularies.h"

namespace pagoda::text {
namespace {

std::vector<std::string> split(const std::string& text, const std::string& separator) {
  std::vector<std::string> parts;
  std::size_t at = 0;
  for (std::size_t end; (end = text.find(separator, at)) != std::string::npos;) {
    parts.push_back(text.substr(at, end - at));
    at = end + separator.size();
  }
  return parts;  // the files end with a separator
}

std::vector<std::uint32_t> parse_ids(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::uint32_t> ids;
  for (std::uint32_t id; stream >> id;) ids.push_back(id);
  return ids;
}

// Returns how many texts were compared.
std::size_t check_vectors(const std::string& vocabulary) {
  const auto tokenizer = load_tokenizer(vocabulary);
  if (tokenizer == nullptr) return 0;
  const auto inputs = split(read_file(vocabulary + ".inp"), "\n__ggml_vocab_test__\n");
  const auto outputs = split(read_file(vocabulary + ".out"), "\n");
  EXPECT_EQ(inputs.size(), outputs.size());
  for (std::size_t i = 0; i < std::min(inputs.size(), outputs.size()); ++i) {
    EXPECT_EQ(numbers(tokenizer->encode(inputs[i], {})), parse_ids(outputs[i]))
        << vocabulary << " text " << i << ": '" << inputs[i] << "'";
  }
  return inputs.size();
}

TEST(Vectors, AllPublishedIdsAreReproduced) {
  std::size_t vocabularies = 0;
  const auto check_folder = [&](const std::filesystem::path& folder) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      const std::string path = entry.path().string();
      if (!path.ends_with(".gguf") || !std::filesystem::exists(path + ".inp")) continue;
      EXPECT_GT(check_vectors(path), 40U) << path;
      ++vocabularies;
    }
  };
  check_folder(test_data() + "/vocab");
  EXPECT_EQ(vocabularies, 4U);
  // PAGODA_MORE_VOCABULARIES names a folder of further vocabularies, such as llama.cpp's models/.
  if (const char* const more = std::getenv("PAGODA_MORE_VOCABULARIES")) check_folder(more);
}

}  // namespace
}  // namespace pagoda::text
