#include "eval/document.h"

#include <fmt/format.h>

#include <filesystem>
#include <span>
#include <utility>

#include "base/file_bytes.h"
#include "eval/coriolanus.h"
#include "gguf/sha256.h"

namespace pagoda::eval {
namespace {

constexpr std::size_t kDocumentDigestDigits = 16;
constexpr std::size_t kDocumentBytesMax = std::size_t{256} << 20;

std::string digest_of(std::string_view text) {
  gguf::Sha256 hash;
  hash.add(std::as_bytes(std::span(text)));
  return hash.finish().substr(0, kDocumentDigestDigits);
}

}  // namespace

Result<Document> read_document(const std::string& file) {
  if (file.empty()) {
    std::string text(kCoriolanus);
    return Document{"coriolanus", text, digest_of(text)};
  }
  Result<FileBytes> read = read_file_bytes(file, kDocumentBytesMax);
  if (!read.ok()) {
    return Error{read.error().code, fmt::format("`file` {}", read.error().message)};
  }
  std::string& text = read.value().bytes;
  const std::string digest = digest_of(text);
  return Document{std::filesystem::path(file).filename().string(), std::move(text), digest};
}

}  // namespace pagoda::eval
