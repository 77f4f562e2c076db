#include "server/api/answer_items.h"

#include <utility>

namespace pagoda::server {
namespace {

using chat::AnswerEvent;

class ItemList : public AnswerItemSink {
 public:
  void opened(const AnswerItem& /*item*/, std::size_t /*index*/) override {}
  void added(const AnswerItem& /*item*/, std::size_t /*index*/,
             std::string_view /*delta*/) override {}
  void closed(const AnswerItem& item, std::size_t /*index*/) override { items.push_back(item); }

  std::vector<AnswerItem> items;
};

}  // namespace

void AnswerItems::add(const Piece& piece, AnswerItemSink& sink) {
  append(AnswerItem::Kind::kText, piece.text, sink);
  for (const AnswerEvent& event : piece.events) {
    switch (event.kind) {
      case AnswerEvent::Kind::kReasoning:
        append(AnswerItem::Kind::kReasoning, event.text, sink);
        break;
      case AnswerEvent::Kind::kContent:
        append(AnswerItem::Kind::kText, event.text, sink);
        break;
      case AnswerEvent::Kind::kCallBegin:
        open({.kind = AnswerItem::Kind::kCall, .text = {}, .name = event.text, .id = event.id},
             sink);
        break;
      case AnswerEvent::Kind::kArguments:
        append(AnswerItem::Kind::kCall, event.text, sink);
        break;
    }
  }
}

void AnswerItems::open(AnswerItem item, AnswerItemSink& sink) {
  close(sink);
  item_ = std::move(item);
  ++items_;
  sink.opened(*item_, items_ - 1);
}

void AnswerItems::append(AnswerItem::Kind kind, std::string_view text, AnswerItemSink& sink) {
  if (text.empty()) return;
  if (!item_ || item_->kind != kind) open({.kind = kind, .text = {}}, sink);
  item_->text += text;
  sink.added(*item_, items_ - 1, text);
}

void AnswerItems::close(AnswerItemSink& sink) {
  if (!item_) return;
  sink.closed(*item_, items_ - 1);
  item_.reset();
}

std::vector<AnswerItem> items_of(const Piece& all) {
  ItemList list;
  AnswerItems items;
  items.add(all, list);
  items.close(list);
  return std::move(list.items);
}

}  // namespace pagoda::server
