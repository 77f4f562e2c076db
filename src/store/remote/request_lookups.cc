// Lookups of RequestPipeline: which of the first keys are there, asked of the nodes that keep them.
#include <algorithm>

#include "store/remote/request_pipeline.h"

namespace pagoda::store {
namespace {

using kv::StoreFault;

// A lookup is asked in pieces of so many keys: keys after a gap are not asked for.
constexpr std::size_t kKeysAtOnce = 256;

bool is_yes(const Reply& reply) {
  return reply.kind == ReplyKind::kDone || (reply.kind == ReplyKind::kNumber && reply.number > 0);
}
bool is_no(const Reply& reply) {
  return reply.kind == ReplyKind::kAbsent ||
         (reply.kind == ReplyKind::kNumber && reply.number == 0);
}

}  // namespace

// A lookup waits while the node of its next key has too much to do.
void RequestPipeline::launch_lookups() {
  while (!lookups_.empty()) {
    const std::string key = page_key(lookups_.front()->keys.front(), form());
    NodeLink* const node = nodes_.node_of(nodes_.slot_of_key(key));
    if (node != nullptr && node->is_on() &&
        node->connection().commands_in_flight() >= kCommandsInFlightMax) {
      return;
    }
    const Shared request = std::move(lookups_.front());
    lookups_.pop_front();
    begun_.push_back(request);
    ask_keys(request);
  }
}

void RequestPipeline::ask_keys(const Shared& request) {
  const std::size_t keys = std::min(kKeysAtOnce, request->keys.size() - request->keys_found);
  request->asked.assign(keys, {});
  request->keys_open = keys + 1;  // one more, so that the last of them ends here
  for (std::size_t key = 0; key < keys; ++key) ask_key(request, key);
  answer_key(request, keys, LookupKey::State::kGone);
}

void RequestPipeline::ask_key(const Shared& request, std::size_t key) {
  const std::string text = page_key(request->keys[request->keys_found + key], form());
  NodeLink* const node = nodes_.node_of(nodes_.slot_of_key(text));
  const bool is_asked =
      node != nullptr && node->is_on() &&
      node->connection().commands_in_flight() < kCommandsInFlightMax + kKeysAtOnce;
  if (!is_asked) return answer_key(request, key, LookupKey::State::kGone);
  send_question(request, key, *node, false);
}

void RequestPipeline::send_question(const Shared& request, std::size_t key, NodeLink& node,
                                    bool asking) {
  if (asking) send_asking(node);
  request->asked[key].node = &node;
  const std::string text = page_key(request->keys[request->keys_found + key], form());
  node.connection().send(
      {.verb = Verb::kHolds, .key = text}, 0,
      [this, request, key, &node](const Reply& reply) { on_key_reply(request, key, node, reply); });
}

void RequestPipeline::on_key_reply(const Shared& request, std::size_t key, NodeLink& node,
                                   const Reply& reply) {
  if (request->over) return;
  if (nodes_.is_cluster() && reply.kind == ReplyKind::kRefused) {
    const auto to = read_redirection(reply.text, node.address());
    if (to && ask_elsewhere(request, key, *to)) return;
    if (to) return answer_key(request, key, LookupKey::State::kGone);
  }
  note(*request, reply);
  if (is_no(reply)) known_.forget(request->keys[request->keys_found + key]);
  answer_key(request, key, is_yes(reply) ? LookupKey::State::kThere : LookupKey::State::kGone);
}

bool RequestPipeline::ask_elsewhere(const Shared& request, std::size_t key, const Redirection& to) {
  ++redirections_;
  if (to.kind != Redirection::Kind::kAsk) nodes_.doubt_map();
  if (++request->asked[key].redirections > kRedirectionsMax) return false;
  if (to.kind != Redirection::Kind::kMoved && to.kind != Redirection::Kind::kAsk) return false;
  NodeLink* const node = nodes_.node_at(to.address);
  if (node == nullptr || !node->is_on()) return false;
  const bool moved = to.kind == Redirection::Kind::kMoved;
  if (moved) nodes_.give_slot(to.slot, *node);
  send_question(request, key, *node, !moved);
  return true;
}

void RequestPipeline::answer_key(const Shared& request, std::size_t key, LookupKey::State state) {
  std::vector<LookupKey>& asked = request->asked;
  if (key < asked.size()) asked[key].state = state;
  if (--request->keys_open > 0) return;
  const auto gap = std::find_if(asked.begin(), asked.end(), [](const LookupKey& each) {
    return each.state != LookupKey::State::kThere;
  });
  const bool is_whole = gap == asked.end();
  request->keys_found += static_cast<std::size_t>(gap - asked.begin());
  if (is_whole && request->keys_found < request->keys.size()) return ask_keys(request);
  finish(request, request->keys_found > 0 ? StoreFault::kNone : request->fault);
}

}  // namespace pagoda::store
