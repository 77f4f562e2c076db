#include "cli/speculation_flags.h"

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "app/speculation.h"
#include "cli/options.h"

namespace pagoda::cli {
namespace {

// The text is a number within the flag's range.
std::string choose_draft_tokens(const std::string& text, speculate::SpeculationOptions& options) {
  const auto tokens = static_cast<std::uint32_t>(std::stoul(text));
  if (tokens == 0) {
    options.methods = {};
    options.draft_model.clear();
    return {};
  }
  options.tokens_max = tokens;
  if (options.methods.empty()) {
    print_warning(
        "the number of draft tokens changes nothing, as nothing drafts: --model-draft names a "
        "model "
        "that does, --spec-type ngram-simple drafts from the text itself");
  }
  return {};
}

}  // namespace

void add_speculation_options(const CommandSpec& command, speculate::SpeculationOptions& options) {
  using Parsed = Result<speculate::SpeculationOptions>;
  const auto take = [&options](const Parsed& parsed) -> std::string {
    if (!parsed.ok()) return parsed.error().message;
    speculate::SpeculationOptions taken = parsed.value();
    if (taken.draft_model.empty() && !options.draft_model.empty()) {  // --model-draft came first
      taken.methods.insert(speculate::DraftMethod::kDraftModel);
      taken.draft_model = options.draft_model;
    }
    options = taken;
    return {};
  };
  const Flag config =
      command
          .add_parsed(
              "--speculative-config",
              [take](const std::string& text) { return take(app::parse_speculation(text)); },
              fmt::format(
                  "draft tokens, which change no answer: JSON with vLLM's fields, or names "
                  "of methods with commas: prediction, tree, suffix, ngram, constraint, "
                  "and draft_model in JSON with its model; none switches them off (default {})",
                  app::speculation_name(options)))
          .type_name("CONFIG");
  command
      .add_parsed(
          "--spec-type",
          [take](const std::string& text) { return take(app::parse_llama_speculation(text)); },
          "the same by llama.cpp's names: none, ngram-simple, ngram-map-k, ngram-map-k4v, "
          "ngram-mod, which are suffix here, and draft-simple, the model of --model-draft")
      .type_name("TYPE")
      .excludes(config);
  command
      .add_parsed(
          "--model-draft,--spec-draft-model",
          [&options](const std::string& model) -> std::string {
            options.methods.insert(speculate::DraftMethod::kDraftModel);
            options.draft_model = model;
            return {};
          },
          "a smaller model with the same vocabulary that drafts tokens, beside the other methods: "
          "a file, a folder or a name")
      .type_name("MODEL")
      .excludes(config);
  // The parser reads this flag behind those above, in whatever order they were typed.
  command
      .add_parsed(
          "--spec-draft-n-max,--draft-max",
          [&options](const std::string& text) { return choose_draft_tokens(text, options); },
          fmt::format("draft tokens of a sequence in a step, at most (default {}); 0 switches "
                      "drafts off",
                      options.tokens_max))
      .range(0u, speculate::kDraftTokensMax)
      .type_name("N")
      .excludes(config);
}

}  // namespace pagoda::cli
