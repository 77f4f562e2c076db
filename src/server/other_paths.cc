#include "server/other_paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "server/router.h"

namespace pagoda::server {
namespace {

struct OtherPath {
  std::string_view path;
  std::string_view hint;  // a path of ours, or a sentence
};

// Paths of llama.cpp, Ollama, SGLang, TensorRT-LLM, TGI and vLLM.
constexpr auto kOtherPaths = std::to_array<OtherPath>({
    {"/api/embed", "/v1/embeddings"},
    {"/api/embeddings", "/v1/embeddings"},
    {"/api/ps", "/v1/models"},
    {"/api/pull", "models are not downloaded by requests: pagoda pull NAME does"},
    {"/api/create", "models are chosen when the server starts: pagoda serve NAME"},
    {"/apply-template", "/v1/chat/completions/render"},
    {"/completion", "/v1/completions"},
    {"/embedding", "/v1/embeddings"},
    {"/encode", "/v1/embeddings"},
    {"/generate", "/v1/completions"},
    {"/generate_stream", "/v1/completions"},
    {"/info", "/server_info"},
    {"/invocations", "/v1/chat/completions"},
    {"/load", "/v1/loads"},
    {"/health_generate", "/health"},
    {"/pooling", "/v1/embeddings"},
    {"/props", "/server_info"},
    {"/slots", "/v1/loads"},
    {"/get_load", "/v1/loads"},
    {"/v1/health", "/health"},
    {"/v1/tokenize", "/tokenize"},
    {"/v1/detokenize", "/detokenize"},
});

bool is_here(std::string_view path) { return endpoint_of(path) < endpoint_count(); }

// Finds the path that is meant where a base URL has /v1 once too often or not at all, or a slash
// follows.
std::string respelt(std::string path) {
  constexpr std::string_view kVersion = "/v1";
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  if (is_here(path)) return path;
  if (is_here(std::string(kVersion) + path)) return std::string(kVersion) + path;
  const bool has_version = path.starts_with("/v1/");
  const std::string rest = has_version ? path.substr(kVersion.size()) : std::string();
  return !rest.empty() && is_here(rest) ? rest : std::string();
}

}  // namespace

std::string path_hint(std::string_view path) {
  constexpr std::size_t kPathBytesMax = 64;  // no path of ours is as long
  if (path.size() > kPathBytesMax) return {};
  const auto other = std::find_if(kOtherPaths.begin(), kOtherPaths.end(),
                                  [&](const OtherPath& one) { return one.path == path; });
  const std::string meant =
      other != kOtherPaths.end() ? std::string(other->hint) : respelt(std::string(path));
  if (meant.empty()) return {};
  return meant.starts_with('/') ? fmt::format("; it is {} here", meant) : "; " + meant;
}

}  // namespace pagoda::server
