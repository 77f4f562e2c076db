// A model's name as on Hugging Face: Org/Name, with @REVISION and, of GGUF files, :FILE.gguf or
// :QUANTISATION (llama.cpp's form) where they are said. Every part is checked, so that a path made
// of a name stays below the folder that it was appended to.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace pagoda::app {

struct ModelName {
  std::string repository;  // "Org/Name", or "Name" alone
  std::string revision;    // a branch, a tag, a commit id or its beginning; empty: not said
  std::string file;        // "sub/FILE.gguf", or a quantisation such as "Q4_K_M"; empty: not said
};

inline constexpr std::size_t kRepositoryBytesMax = 96;  // the hub's own limit
inline constexpr std::size_t kNamePartBytesMax = 255;   // of a revision and of a file

// Errors say which part is wrong and what it may be.
Result<ModelName> parse_model_name(std::string_view word);

// The revision of a flag beside a name. Fails where the name has another one.
Result<std::string> with_revision(const std::string& word, const std::string& revision);

// Whether a word means a file or folder and no name: "/a/b", "./a", "~/a", "a.gguf", "a/b/c".
bool is_path_like(std::string_view word);

// A commit id, or the beginning of one: lower-case hexadecimal digits.
bool is_commit_like(std::string_view text);

}  // namespace pagoda::app
