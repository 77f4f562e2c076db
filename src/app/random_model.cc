#include "app/random_model.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "app/random_shapes.h"
#include "gguf/metadata.h"

namespace pagoda::app {
namespace {

using gguf::ValueType;

// Elements of an array as they stand in a file.
class Elements {
 public:
  explicit Elements(ValueType type) : type_(type) {}

  template <class T>
  void add(T number) {
    const auto* const from = reinterpret_cast<const std::byte*>(&number);
    bytes_.insert(bytes_.end(), from, from + sizeof(T));
    ++count_;
  }
  void add_text(const std::string& text) {
    add(std::uint64_t{text.size()});  // counts as the element
    const auto* const from = reinterpret_cast<const std::byte*>(text.data());
    bytes_.insert(bytes_.end(), from, from + text.size());
  }
  std::uint64_t count() const { return count_; }
  gguf::MetadataValue value() const {
    return {ValueType::kArray, gguf::Array{type_, count_, bytes_}};
  }

 private:
  ValueType type_;
  std::uint64_t count_ = 0;
  std::vector<std::byte> bytes_;
};

// Three special tokens, the 256 bytes, a space, and words.
Result<std::unique_ptr<text::Tokenizer>> make_tokenizer(std::uint32_t vocabulary) {
  enum Kind : std::int32_t { kWord = 1, kUnknown = 2, kControl = 3, kByte = 6 };
  Elements texts(ValueType::kString);
  Elements scores(ValueType::kF32);
  Elements kinds(ValueType::kI32);
  const auto add = [&](const std::string& text, Kind kind) {
    scores.add(-static_cast<float>(kinds.count()));
    texts.add_text(text);
    kinds.add(static_cast<std::int32_t>(kind));
  };
  add("<unk>", kUnknown);
  add("<s>", kControl);
  add("</s>", kControl);
  for (int byte = 0; byte < 256; ++byte) add(fmt::format("<0x{:02X}>", byte), kByte);
  add("\u2581", kWord);
  for (std::uint32_t i = 260; i < vocabulary; ++i) add(fmt::format("\u2581w{}", i - 260), kWord);
  gguf::Metadata metadata("random weights");
  const auto insert = [&](std::string_view key, const gguf::MetadataValue& value) {
    metadata.insert(key, value);
  };
  insert("tokenizer.ggml.model", {ValueType::kString, std::string_view("llama")});
  insert("tokenizer.ggml.tokens", texts.value());
  insert("tokenizer.ggml.scores", scores.value());
  insert("tokenizer.ggml.token_type", kinds.value());
  insert("tokenizer.ggml.add_space_prefix", {ValueType::kBool, false});
  insert("tokenizer.ggml.unknown_token_id", {ValueType::kU32, std::uint64_t{0}});
  insert("tokenizer.ggml.bos_token_id", {ValueType::kU32, std::uint64_t{1}});
  insert("tokenizer.ggml.eos_token_id", {ValueType::kU32, std::uint64_t{2}});
  return text::Tokenizer::load(metadata);
}

}  // namespace

Result<std::unique_ptr<RandomModel>> RandomModel::make(const RandomModelOptions& options) {
  std::unique_ptr<RandomModel> made(new RandomModel());
  ASSIGN_OR_RETURN(made->config_, random_shape(options.shape));
  ASSIGN_OR_RETURN(made->weights_.type, random_weight_type(options.type));
  ASSIGN_OR_RETURN(made->tokenizer_, make_tokenizer(made->config_.vocabulary));
  return made;
}

}  // namespace pagoda::app
