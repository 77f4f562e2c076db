#include "cli/prompt_text.h"

#include <cstddef>
#include <iostream>
#include <iterator>
#include <utility>

#include "base/file_bytes.h"

namespace pagoda::cli {
namespace {

constexpr std::size_t kPromptBytesMax = std::size_t{1} << 30;

std::string without_last_break(std::string text) {
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  return text;
}

}  // namespace

std::string prompt_text(const std::string& word) {
  if (word != "-") return word;
  return without_last_break(std::string(std::istreambuf_iterator<char>(std::cin), {}));
}

Result<std::string> prompt_of_file(const std::string& path) {
  if (path == "-") return prompt_text(path);
  ASSIGN_OR_RETURN(FileBytes read, read_file_bytes(path, kPromptBytesMax));
  return without_last_break(std::move(read.bytes));
}

}  // namespace pagoda::cli
