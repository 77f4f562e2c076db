// Encodes text to token ids and decodes them, as the model's file defines it.
//
// One class serves all families: how text is cut and how pieces merge is chosen at load. Thread
// rule: a loaded Tokenizer is immutable apart from caches it guards itself; any number of threads
// may encode and decode at once.
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

struct EncodeWorkspace;

struct EncodeOptions {
  // Recognises the text of control tokens ("<|im_start|>") as those tokens. User-defined tokens are
  // always recognised.
  bool special = false;
  // Adds BOS and EOS where the model's file asks for them.
  bool add_bos_eos = false;
};

// Tokens, with the offset in the text at which each begins.
struct TokensWithOffsets {
  std::vector<TokenId> ids;
  std::vector<std::size_t> begins;  // in bytes, ascending
};

class Tokenizer {
 public:
  // The vocabulary's strings are copied, so that the file may be closed afterwards.
  static Result<std::unique_ptr<Tokenizer>> load(const gguf::Metadata& metadata);
  ~Tokenizer();

  // Any bytes are a valid text. Takes O(n log n) in its length, whatever it holds.
  std::vector<TokenId> encode(std::string_view text, EncodeOptions options) const;

  // Encodes like encode(), but returns nothing when the text has more than `tokens_max` tokens. A
  // much longer text costs little: a part that cannot fit by its bytes is not encoded, nor is the
  // text after the last token that fits.
  std::optional<std::vector<TokenId>> encode_within(std::string_view text, EncodeOptions options,
                                                    std::size_t tokens_max) const;

  // Encodes like encode_within(), but recognises control tokens within `special` alone (ascending
  // ranges that do not touch) and adds no BOS or EOS. Text around a range's edge is tokenised as if
  // there were no edge.
  std::optional<TokensWithOffsets> encode_with_offsets_within(std::string_view text,
                                                              std::span<const TextRange> special,
                                                              std::size_t tokens_max) const;

  // Returns the tokens' bytes one after another; control tokens appear as their text when
  // `special`, else not at all. Where encoding puts a space before a text, the text's first space
  // is that one and is left out. Ids outside the vocabulary are an error.
  Result<std::string> decode(std::span<const TokenId> ids, bool special) const;

  // Returns one token's bytes as decode() would give them in the middle of a text; empty for ids
  // outside the vocabulary.
  std::string_view bytes_of(TokenId id) const;
  // Returns the bytes that decode() adds for `id`. `at_start` says that nothing visible came
  // before; the call updates it.
  std::string_view visible_bytes(TokenId id, bool special, bool& at_start) const;
  // Returns the token's text in the model's file: "Ġthe", "▁the", "<0x0A>"; empty outside the
  // vocabulary.
  std::string_view text_of(TokenId id) const;

  // The largest number of bytes of a text that one token covers.
  std::size_t token_bytes_max() const;

  std::size_t size() const;
  bool contains(TokenId id) const { return id.value() < size(); }
  // The id must be in the vocabulary.
  TokenType type_of(TokenId id) const;
  bool is_control(TokenId id) const;
  // Returns whether the token ends a generation (EOG).
  bool ends_generation(TokenId id) const;
  std::span<const TokenId> end_tokens() const;  // all of these tokens, ascending
  std::optional<TokenId> bos() const;
  std::optional<TokenId> eos() const;
  bool add_bos() const;
  bool add_eos() const;
  // Warnings about the file, such as an unknown pre-tokenizer.
  std::span<const std::string> warnings() const;

 private:
  struct State;
  // A text without special tokens, or a part of one.
  struct Fragment {
    std::string_view bytes;
    std::size_t begin;  // in the whole text
    bool after_break;   // nothing but a special token comes before
  };
  // Visits fragments and special tokens of `text` in order while the visitors return true. Returns
  // false when one of them stopped the walk.
  template <class OnFragment, class OnSpecial>
  bool encode_parts(std::string_view text, std::span<const TextRange> special,
                    const OnFragment& on_fragment, const OnSpecial& on_special) const;
  bool encode_fragment(const Fragment& fragment, EncodeWorkspace& workspace, std::size_t tokens_max,
                       std::vector<TokenId>& ids, std::vector<std::size_t>* begins) const;
  bool may_fit(std::string_view fragment, std::size_t tokens, std::size_t tokens_max) const;
  explicit Tokenizer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace pagoda::text
