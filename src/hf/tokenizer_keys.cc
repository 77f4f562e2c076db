#include "hf/tokenizer_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include "gguf/printable.h"
#include "hf/split_rules.h"
#include "hf/token_table.h"

namespace pagoda::hf {
namespace {

constexpr std::string_view kTemplateKey = "tokenizer.chat_template";
constexpr std::size_t kTemplateNameBytesMax = 100;
constexpr std::size_t kTemplatesMax = 32;
constexpr const char* kMoreTemplates = "additional_chat_templates";
constexpr const char* kTemplateEnd = ".jinja";

// The tokens that the post_processor puts around a text.
struct Frame {
  std::vector<std::string> before;
  std::vector<std::string> after;
};

std::string_view view_of(const gguf::MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

// The key of a template by its name; that of "default" has none.
std::string template_key(std::string_view name) {
  const bool is_default = name.empty() || name == "default";
  return is_default ? std::string(kTemplateKey) : fmt::format("{}.{}", kTemplateKey, name);
}

// Reads one step of a post_processor into `frame`.
Status read_frame_step(const JsonFields& step, Frame& frame) {
  ASSIGN_OR_RETURN(const std::string type, step.text_or("type", ""));
  if (type == "ByteLevel") return ok_status();
  const JsonValue* const single = step.find("single");
  if (type != "TemplateProcessing" || single == nullptr || !single->is_array()) {
    return step.refused("type", "this version reads TemplateProcessing and ByteLevel");
  }
  bool is_after = false;
  for (const JsonValue& item : *single) {
    if (item.contains("Sequence")) {
      is_after = true;
      continue;
    }
    const auto token = item.find("SpecialToken");
    if (token == item.end() || !token->is_object() || !token->contains("id") ||
        !token->at("id").is_string()) {
      return step.refused("single", "expected tokens around one sequence");
    }
    (is_after ? frame.after : frame.before).push_back(token->at("id").get<std::string>());
  }
  return ok_status();
}

Result<Frame> read_frame(const JsonFields& tokenizer) {
  Frame frame;
  ASSIGN_OR_RETURN(const std::optional<JsonFields> root, tokenizer.object("post_processor"));
  if (!root) return frame;
  ASSIGN_OR_RETURN(const std::string type, root->text_or("type", ""));
  if (type != "Sequence") {
    RETURN_IF_ERROR(read_frame_step(*root, frame));
    return frame;
  }
  const JsonValue* const steps = root->find("processors");
  if (steps == nullptr || !steps->is_array()) return root->missing("processors");
  for (const JsonValue& step : *steps) {
    ASSIGN_OR_RETURN(const JsonFields fields, JsonFields::of(step, root->place() + "processors."));
    RETURN_IF_ERROR(read_frame_step(fields, frame));
  }
  return frame;
}

class TokenizerKeys {
 public:
  TokenizerKeys(const FolderFiles& folder, gguf::FileBuilder& builder)
      : folder_(folder), builder_(builder) {}

  Status write() {
    RETURN_IF_ERROR(read_files());
    RETURN_IF_ERROR(write_chat_templates());
    RETURN_IF_ERROR(write_sampling());
    if (!folder_.contains("tokenizer.json")) return ok_status();
    const std::string path = folder_.file("tokenizer.json");
    ASSIGN_OR_RETURN(const JsonValue root, read_json(builder_, path));
    ASSIGN_OR_RETURN(const JsonFields tokenizer, JsonFields::of(root, path + ": "));
    RETURN_IF_ERROR(
        read_token_table(tokenizer, folder_.embedding_rows.value_or(UINT64_MAX), table_));
    RETURN_IF_ERROR(write_model(tokenizer));
    write_tokens();
    ASSIGN_OR_RETURN(const Frame frame, read_frame(tokenizer));
    return write_specials(frame);
  }

 private:
  using Document = std::optional<JsonValue>;

  Result<Document> read_if_there(const char* name) {
    if (!folder_.contains(name)) return Document();
    ASSIGN_OR_RETURN(JsonValue json, read_json(builder_, folder_.file(name)));
    if (!json.is_object()) {
      return Error{ErrorCode::kCorrupt, fmt::format("{}: is no JSON object", folder_.file(name))};
    }
    return Document(std::move(json));
  }

  Status read_files() {
    ASSIGN_OR_RETURN(tokenizer_config_, read_if_there("tokenizer_config.json"));
    ASSIGN_OR_RETURN(special_tokens_, read_if_there("special_tokens_map.json"));
    ASSIGN_OR_RETURN(generation_, read_if_there("generation_config.json"));
    return ok_status();
  }

  // The fields of a file, none when it is not there.
  JsonFields fields_of(const Document& document, const char* name) const {
    static const JsonValue kNothing = JsonValue::object();
    return {document ? *document : kNothing, folder_.file(name) + ": "};
  }
  JsonFields tokenizer_config() const {
    return fields_of(tokenizer_config_, "tokenizer_config.json");
  }

  Status set_template(const std::string& key, std::string_view text) {
    if (!builder_.has_key(key)) builder_.set_text(key, text);
    return ok_status();
  }

  Status set_template_file(const std::string& key, const std::string& name) {
    ASSIGN_OR_RETURN(const gguf::MappedFile* const file, builder_.open(folder_.file(name)));
    return set_template(key, view_of(*file));
  }

  // Templates beside the model's main one: additional_chat_templates/NAME.jinja.
  Status write_additional_templates() {
    if (!folder_.contains(kMoreTemplates)) return ok_status();
    std::set<std::string> names;
    std::error_code error;
    for (std::filesystem::directory_iterator at(folder_.file(kMoreTemplates), error), end;
         !error && at != end; at.increment(error)) {
      if (at->path().extension() == kTemplateEnd) names.insert(at->path().stem().string());
    }
    if (error || names.size() > kTemplatesMax) {
      return Error{ErrorCode::kIo,
                   fmt::format("{}: {}", folder_.file(kMoreTemplates),
                               error ? fmt::format("cannot list: {}", error.message())
                                     : fmt::format("holds {} templates, the limit is {}",
                                                   names.size(), kTemplatesMax))};
    }
    for (const std::string& name : names) {
      RETURN_IF_ERROR(set_template_file(
          template_key(name), fmt::format("{}/{}{}", kMoreTemplates, name, kTemplateEnd)));
    }
    return ok_status();
  }

  // Files of their own come before those of older versions: a JSON file for models that see images,
  // then a field. Templates of one place are taken together.
  Status write_chat_templates() {
    if (folder_.contains("chat_template.jinja")) {
      RETURN_IF_ERROR(set_template_file(std::string(kTemplateKey), "chat_template.jinja"));
    }
    RETURN_IF_ERROR(write_additional_templates());
    if (builder_.has_key(kTemplateKey)) return ok_status();
    constexpr const char* kOldName = "chat_template.json";
    ASSIGN_OR_RETURN(const Document old, read_if_there(kOldName));
    RETURN_IF_ERROR(write_template_field(fields_of(old, kOldName)));
    if (builder_.has_key(kTemplateKey)) return ok_status();
    return write_template_field(tokenizer_config());
  }

  Status write_template_field(const JsonFields& config) {
    const JsonValue* const given = config.find("chat_template");
    if (given == nullptr) return ok_status();
    if (given->is_string()) return set_template(template_key(""), given->get<std::string>());
    if (!given->is_array() || given->size() > kTemplatesMax) {
      return config.wrong_type("chat_template",
                               fmt::format("a text or a list of at most {} texts", kTemplatesMax));
    }
    for (const JsonValue& named : *given) {
      ASSIGN_OR_RETURN(const JsonFields fields,
                       JsonFields::of(named, config.place() + "chat_template: "));
      ASSIGN_OR_RETURN(const std::string name, fields.text_or("name", "default"));
      ASSIGN_OR_RETURN(const std::string text, fields.text_or("template", ""));
      if (name.size() > kTemplateNameBytesMax) return fields.refused("name", "which is too long");
      RETURN_IF_ERROR(set_template(template_key(name), text));
    }
    return ok_status();
  }

  Status write_sampling() {
    constexpr std::array<std::pair<const char*, const char*>, 5> kNumbers = {{
        {"temperature", "temp"},
        {"top_k", "top_k"},
        {"top_p", "top_p"},
        {"min_p", "min_p"},
        {"repetition_penalty", "penalty_repeat"},
    }};
    const JsonFields fields = fields_of(generation_, "generation_config.json");
    for (const auto& [field, key] : kNumbers) {
      if (!fields.has(field)) continue;
      ASSIGN_OR_RETURN(const double value, fields.number(field));
      builder_.set_number(fmt::format("general.sampling.{}", key), value);
    }
    // A model that says it is not sampled is greedy, whatever temperature stands beside that. Where
    // nothing is said, vLLM samples and transformers does not.
    ASSIGN_OR_RETURN(const bool is_sampled, fields.flag_or("do_sample", true));
    if (!is_sampled) {
      constexpr const char* kTemperature = "general.sampling.temp";
      builder_.remove(kTemperature);
      builder_.set_number(kTemperature, 0);
    }
    return ok_status();
  }

  Status write_model(const JsonFields& tokenizer) {
    ASSIGN_OR_RETURN(const SplitRules rules, read_split_rules(tokenizer, table_.ignore_merges));
    const bool pairs = table_.model == TokenModel::kBytePair;
    if (pairs && !rules.byte_level && !table_.byte_fallback) {
      return Error{ErrorCode::kUnsupported,
                   fmt::format("{}model is BPE with neither ByteLevel nor byte_fallback, which is "
                               "not supported",
                               tokenizer.place())};
    }
    if (!rules.byte_level && !rules.marks_spaces) {
      return Error{ErrorCode::kUnsupported,
                   fmt::format("{}spaces do not become U+2581, which is not supported without "
                               "ByteLevel",
                               tokenizer.place())};
    }
    if ((!pairs && rules.byte_level) || (!rules.byte_level && table_.ignore_merges)) {
      return Error{ErrorCode::kUnsupported,
                   fmt::format("{}{} is not supported", tokenizer.place(),
                               pairs ? "ignore_merges without ByteLevel" : "Unigram over bytes")};
    }
    builder_.set_text("tokenizer.ggml.model",
                      !pairs ? "unigram" : (rules.byte_level ? "gpt2" : "bpe"));
    builder_.set_text("tokenizer.ggml.pre", rules.pretokenizer);
    builder_.set_flag("pagoda.tokenizer.nfc", rules.nfc);
    if (rules.byte_level) {
      builder_.set_flag("pagoda.tokenizer.whole_words_first", table_.ignore_merges);
      return ok_status();
    }
    builder_.set_flag("tokenizer.ggml.add_space_prefix", rules.prefix != SpacePrefix::kNever);
    builder_.set_flag("pagoda.tokenizer.space_prefix_at_start_only",
                      rules.prefix == SpacePrefix::kStartUnlessSpace);
    builder_.set_flag("pagoda.tokenizer.space_prefix_unless_space",
                      rules.prefix == SpacePrefix::kUnlessSpace ||
                          rules.prefix == SpacePrefix::kStartUnlessSpace);
    return ok_status();
  }

  void write_tokens() {
    builder_.set_texts("tokenizer.ggml.tokens",
                       std::vector<std::string_view>(table_.texts.begin(), table_.texts.end()));
    std::vector<std::int32_t> types;
    for (const text::TokenType type : table_.types) types.push_back(static_cast<int>(type));
    builder_.set_integers("tokenizer.ggml.token_type", types);
    builder_.set_integers("pagoda.tokenizer.strips_before", table_.strips_before);
    builder_.set_integers("pagoda.tokenizer.strips_after", table_.strips_after);
    if (!table_.left_out.empty()) {
      builder_.set_texts(
          "pagoda.tokenizer.left_out",
          std::vector<std::string_view>(table_.left_out.begin(), table_.left_out.end()));
    }
    if (table_.unknown) builder_.set_unsigned("tokenizer.ggml.unknown_token_id", *table_.unknown);
    if (table_.model == TokenModel::kUnigram) {
      builder_.set_numbers("tokenizer.ggml.scores", table_.scores);
    } else {
      builder_.set_texts("tokenizer.ggml.merges",
                         std::vector<std::string_view>(table_.merges.begin(), table_.merges.end()));
    }
  }

  // The text of "bos_token" is a string, or an object with the string.
  Result<std::string> special_text(const char* name) const {
    for (const JsonFields& fields :
         {tokenizer_config(), fields_of(special_tokens_, "special_tokens_map.json")}) {
      const JsonValue* const given = fields.find(name);
      if (given == nullptr) continue;
      if (!given->is_object()) return fields.text_or(name, "");
      return JsonFields(*given, fields.place() + name + ".").text_or("content", "");
    }
    return std::string();
  }

  // The id of a special token: by its text, else the first of the config's.
  Result<std::optional<std::uint32_t>> special_id(const char* text_field,
                                                  const std::vector<std::uint64_t>& ids) const {
    ASSIGN_OR_RETURN(const std::string text, special_text(text_field));
    if (!text.empty()) {
      const std::optional<std::uint32_t> id = table_.id_of(text);
      if (id) return id;
    }
    if (ids.empty() || ids.front() >= table_.texts.size()) return std::optional<std::uint32_t>();
    return std::optional(static_cast<std::uint32_t>(ids.front()));
  }

  Status write_specials(const Frame& frame) {
    const JsonFields generation = fields_of(generation_, "generation_config.json");
    const JsonFields config(folder_.config, folder_.file("config.json") + ": ");
    ASSIGN_OR_RETURN(std::vector<std::uint64_t> ends, generation.ids("eos_token_id"));
    ASSIGN_OR_RETURN(const std::vector<std::uint64_t> more, config.ids("eos_token_id"));
    // The generation config decides which tokens end generation; config.json only where it is
    // silent.
    if (ends.empty()) ends = more;
    ASSIGN_OR_RETURN(const std::vector<std::uint64_t> starts, config.ids("bos_token_id"));
    ASSIGN_OR_RETURN(std::optional<std::uint32_t> bos, special_id("bos_token", starts));
    ASSIGN_OR_RETURN(std::optional<std::uint32_t> eos, special_id("eos_token", ends));
    // A frame of several tokens is left to chat templates, which have it too.
    if (frame.before.size() == 1) bos = table_.id_of(frame.before.front());
    if (frame.after.size() == 1) eos = table_.id_of(frame.after.front());
    ASSIGN_OR_RETURN(const bool add_bos, adds("add_bos_token", frame.before.size() == 1));
    ASSIGN_OR_RETURN(const bool add_eos, adds("add_eos_token", frame.after.size() == 1));
    if (bos) builder_.set_unsigned("tokenizer.ggml.bos_token_id", *bos);
    if (eos) builder_.set_unsigned("tokenizer.ggml.eos_token_id", *eos);
    builder_.set_flag("tokenizer.ggml.add_bos_token", add_bos && bos);
    builder_.set_flag("tokenizer.ggml.add_eos_token", add_eos && eos);
    std::vector<std::int32_t> end_ids;
    for (const std::uint64_t id : ends) {
      if (id < table_.texts.size()) end_ids.push_back(static_cast<std::int32_t>(id));
    }
    builder_.set_integers("pagoda.tokenizer.end_token_ids", end_ids);
    return ok_status();
  }

  // The classes of Llama and Gemma make the frame anew from a flag; others take it as it is.
  Result<bool> adds(const char* flag, bool framed) const {
    const JsonFields config = tokenizer_config();
    ASSIGN_OR_RETURN(const std::string name, config.text_or("tokenizer_class", ""));
    const bool is_flagged =
        name.starts_with("Llama") || name.starts_with("Gemma") || name.starts_with("CodeLlama");
    if (!is_flagged) return framed;
    return config.flag_or(flag, framed);
  }

  const FolderFiles& folder_;
  gguf::FileBuilder& builder_;
  Document tokenizer_config_;
  Document special_tokens_;
  Document generation_;
  TokenTable table_;
};

}  // namespace

Status write_tokenizer_keys(const FolderFiles& folder, gguf::FileBuilder& builder) {
  return TokenizerKeys(folder, builder).write();
}

}  // namespace pagoda::hf
