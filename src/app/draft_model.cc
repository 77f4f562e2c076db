#include "app/draft_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "app/loaded_model.h"

namespace pagoda::app {
namespace {

constexpr std::size_t kPaddingMax = 512;  // tokens

Error refused(const std::string& message) {
  return {ErrorCode::kInvalidArgument, fmt::format("draft model: {}", message)};
}

}  // namespace

Status check_draft_vocabulary(const text::Tokenizer& target, const text::Tokenizer& draft) {
  const auto [least, most] = std::minmax({target.size(), draft.size()});
  if (most - least > kPaddingMax) {
    return refused(
        fmt::format("its vocabulary has {} tokens, the model's has {}; it must have the "
                    "same ones",
                    draft.size(), target.size()));
  }
  for (std::uint32_t id = 0; id < least; ++id) {
    const TokenId token(id);
    if (target.text_of(token) == draft.text_of(token)) continue;
    return refused(
        fmt::format("token {} is \"{}\" in its vocabulary, in the model's it is \"{}\"; "
                    "it must have the same ones",
                    id, draft.text_of(token), target.text_of(token)));
  }
  return ok_status();
}

Result<std::optional<engine::DraftModelParts>> load_draft_model(
    const speculate::SpeculationOptions& options, const text::Tokenizer& tokenizer,
    const kernels::KernelSet& kernels) {
  if (!options.methods.contains(speculate::DraftMethod::kDraftModel)) {
    return std::optional<engine::DraftModelParts>();
  }
  if (options.draft_model.empty()) return refused("none is named: `model_draft` names one");
  auto loaded = LoadedModel::load(options.draft_model, kernels);
  if (!loaded.ok()) return Error{loaded.error().code, refused(loaded.error().message).message};
  const std::shared_ptr<const LoadedModel> model = std::move(loaded).value();
  RETURN_IF_ERROR(check_draft_vocabulary(tokenizer, model->tokenizer()));
  return std::optional(engine::DraftModelParts{.name = options.draft_model,
                                               .config = &model->config(),
                                               .weights = &model->weights(),
                                               .on_pack = model->pack_progress(),
                                               .owner = model});
}

}  // namespace pagoda::app
