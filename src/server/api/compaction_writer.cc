#include "server/api/compaction_writer.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "chat/compaction.h"
#include "server/api/answer_items.h"
#include "server/api/responses/responses_reply.h"
#include "server/api/responses/responses_request.h"

namespace pagoda::server {
namespace {

std::string summary_of(const Piece& all) {
  std::string text;
  for (const AnswerItem& item : items_of(all)) {
    if (item.kind == AnswerItem::Kind::kText) text += item.text;
  }
  constexpr std::string_view kBlank = " \n\r\t";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) + 1 - begin);
}

// Compactions come in whole replies alone.
class CompactionWriter : public ReplyWriter {
 public:
  explicit CompactionWriter(CompactedChat chat) : chat_(std::move(chat)) {}

  void begin(const ReplyFacts& /*facts*/, std::string& /*out*/) override {}
  void add(const Piece& /*piece*/, std::string& /*out*/) override {}
  void end(const ReplyFacts& /*facts*/, const Piece& /*last*/, std::string& /*out*/) override {}
  void fail(const ReplyFacts& /*facts*/, const ApiError& /*error*/, std::string& /*out*/) override {
  }
  bool takes_long() const override { return true; }  // fill_ahead()

 protected:
  // A model that had nothing to say leaves the conversation as it is.
  Json shorter(const std::string& summary) const {
    if (summary.empty()) return chat_.messages;
    return chat::with_summary(chat_.messages, chat_.kept_begin, summary);
  }
  std::uint64_t fill_ahead(Json messages) const { return chat_.fill_ahead(std::move(messages)); }

 private:
  CompactedChat chat_;
};

class ChatCompactionWriter final : public CompactionWriter {
 public:
  using CompactionWriter::CompactionWriter;

  std::string_view id_prefix() const override { return "chatcmpct-"; }

  std::string whole(const ReplyFacts& facts, const Piece& all) const override {
    const std::string summary = summary_of(all);
    Json messages = shorter(summary);
    const std::uint64_t filling = summary.empty() ? 0 : fill_ahead(messages);
    Json reply = {{"id", facts.id},
                  {"object", "chat.compaction"},
                  {"created", facts.created_s},
                  {"model", facts.model},
                  {"messages", std::move(messages)},
                  {"summary", summary},
                  {"finish_reason", all.finish_reason},
                  {"filling_tokens", filling},
                  {"usage", facts.usage.to_json()}};
    reply.update(facts.cache);
    return dump_json(reply);
  }
};

bool is_system_item(const Json& item) {
  const auto role = item.find("role");
  return role != item.end() && (*role == "system" || *role == "developer");
}

class ResponseCompactionWriter final : public CompactionWriter {
 public:
  ResponseCompactionWriter(CompactedChat chat, Json input, std::size_t first_kept)
      : CompactionWriter(std::move(chat)), input_(std::move(input)), first_kept_(first_kept) {}

  std::string_view id_prefix() const override { return "resp_"; }

  std::string whole(const ReplyFacts& facts, const Piece& all) const override {
    const std::string summary = summary_of(all);
    if (!summary.empty()) fill_ahead(shorter(summary));
    Json reply = {{"id", facts.id},
                  {"object", "response.compaction"},
                  {"created_at", facts.created_s},
                  {"model", facts.model}};
    reply["output"] = summary.empty() ? input_ : output(facts, summary);
    reply["usage"] = responses::usage_json(facts);
    reply.update(facts.cache);
    return dump_json(reply);
  }

 private:
  Json output(const ReplyFacts& facts, const std::string& summary) const {
    Json items = Json::array();
    for (std::size_t i = 0; i < first_kept_; ++i) {
      if (is_system_item(input_[i])) items.push_back(input_[i]);
    }
    items.push_back({{"id", fmt::format("cmp_{}", facts.id.substr(id_prefix().size()))},
                     {"type", "compaction"},
                     {"encrypted_content", fmt::format("{}{}", responses::kSummaryMark, summary)}});
    for (std::size_t i = first_kept_; i < input_.size(); ++i) items.push_back(input_[i]);
    return items;
  }

  Json input_;
  std::size_t first_kept_;
};

}  // namespace

std::shared_ptr<ReplyWriter> make_chat_compaction_writer(CompactedChat chat) {
  return std::make_shared<ChatCompactionWriter>(std::move(chat));
}

std::shared_ptr<ReplyWriter> make_response_compaction_writer(CompactedChat chat, Json input,
                                                             std::size_t first_kept) {
  return std::make_shared<ResponseCompactionWriter>(std::move(chat), std::move(input), first_kept);
}

}  // namespace pagoda::server
