// Text to token ids and back, as the model's file defines it.
//
// One class for all families: what differs (how text is cut, how pieces merge) is chosen at load.
// Thread rule: a loaded Tokenizer is immutable apart from caches it guards itself; any number of
// threads may encode and decode at once.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"
#include "gguf/metadata.h"
#include "text/special_tokens.h"
#include "text/token_type.h"

namespace pagoda::text {

struct EncodeOptions {
  // Recognise the text of control tokens ("<|im_start|>") as those tokens. User-defined tokens
  // are recognised always.
  bool special = false;
  // Add BOS and EOS where the model's file asks for them.
  bool add_bos_eos = false;
};

// Tokens and where each begins in the text they were made of.
struct TokensWithOffsets {
  std::vector<TokenId> ids;
  std::vector<std::size_t> begins;  // in bytes, ascending
};

class Tokenizer {
 public:
  // The strings of the vocabulary are copied: the file may be closed afterwards.
  static Result<std::unique_ptr<Tokenizer>> load(const gguf::Metadata& metadata);
  ~Tokenizer();

  // Any bytes are a text. Time is O(n log n) in its length, whatever it holds.
  std::vector<TokenId> encode(std::string_view text, EncodeOptions options) const;

  // As encode(); nothing when the text has more than `tokens_max` tokens. How much too long it is
  // costs little: a part that cannot fit by its bytes is not encoded, nor is what follows the last
  // token that fits.
  std::optional<std::vector<TokenId>> encode_within(std::string_view text, EncodeOptions options,
                                                    std::size_t tokens_max) const;

  // As encode_within(), with control tokens recognised within `special` alone (ascending ranges
  // that do not touch) and no BOS or EOS added. Text around a range's edge is tokenised as if there
  // were none.
  std::optional<TokensWithOffsets> encode_with_offsets_within(std::string_view text,
                                                              std::span<const ByteRange> special,
                                                              std::size_t tokens_max) const;

  // The bytes of the tokens one after another; control tokens show as their text when `special`,
  // else as nothing. Where encoding puts a space before a text, the text's first space is that
  // one and is left out. Ids outside the vocabulary are an error.
  Result<std::string> decode(std::span<const TokenId> ids, bool special) const;

  // What one token stands for, byte for byte, as decode() would give it in the middle of a text.
  // Empty for ids outside the vocabulary.
  std::string_view bytes_of(TokenId id) const;
  // What decode() adds for `id`. `at_start` says that nothing visible came before and is kept up
  // to date by the call.
  std::string_view visible_bytes(TokenId id, bool special, bool& at_start) const;
  // The text in the model's file: "Ġthe", "▁the", "<0x0A>". Empty outside the vocabulary.
  std::string_view text_of(TokenId id) const;

  // Of a text, the most bytes that one token stands for.
  std::size_t token_bytes_max() const;

  std::size_t size() const;
  bool contains(TokenId id) const { return id.value() < size(); }
  // The id must be in the vocabulary.
  TokenType type_of(TokenId id) const;
  bool is_control(TokenId id) const;
  // Tokens after which a model has said all it wants to.
  bool ends_generation(TokenId id) const;
  std::span<const TokenId> end_tokens() const;  // all of those, ascending
  std::optional<TokenId> bos() const;
  std::optional<TokenId> eos() const;
  bool add_bos() const;
  bool add_eos() const;
  // What the user should know about the file: an unknown pre-tokenizer, for instance.
  std::span<const std::string> warnings() const;

 private:
  struct State;
  // Fragments and special tokens of `text`, one after another, while they go on: false when one of
  // them said that it is enough.
  template <class OnFragment, class OnSpecial>
  bool encode_parts(std::string_view text, std::span<const ByteRange> special,
                    const OnFragment& on_fragment, const OnSpecial& on_special) const;
  bool may_fit(std::string_view fragment, std::size_t tokens, std::size_t tokens_max) const;
  explicit Tokenizer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace pagoda::text
