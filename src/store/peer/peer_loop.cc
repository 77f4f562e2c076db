#include "store/peer/peer_loop.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <set>
#include <utility>

#include "store/page_record.h"

namespace pagoda::store {

using kv::StoreFault;

namespace {

// Pages that a link is asked for at a time; PeerConnection takes more.
constexpr std::size_t kLinkReadsMax = 128;
constexpr std::size_t kLinkFindsMax = 128;

// OpenSSL writes to sockets without MSG_NOSIGNAL.
void block_broken_pipes() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

}  // namespace

Result<std::unique_ptr<PeerLoop>> PeerLoop::start(PeerStoreOptions options) {
  std::optional<net::TlsClient> tls;
  if (options.has_tls) {
    ASSIGN_OR_RETURN(tls, net::TlsClient::load({.ca_file = options.tls_ca_file}));
  }
  std::unique_ptr<PeerLoop> loop(new PeerLoop(std::move(options), std::move(tls)));
  loop->thread_ = std::thread([loop = loop.get()] { loop->run(); });
  return loop;
}

PeerLoop::PeerLoop(PeerStoreOptions options, std::optional<net::TlsClient> tls)
    : options_(std::move(options)),
      tls_(std::move(tls)),
      cipher_(options_.key),
      mailbox_(options_.reads_queued_max, options_.keys_known_max),
      terms_{.key = options_.key,
             .tls = tls_ ? &*tls_ : nullptr,
             .frame_bytes_max = 64 + record_bytes(kv::kBlockTokensMax,
                                                  static_cast<std::size_t>(options_.page_bytes)),
             .connect_timeout_ns = options_.connect_timeout_ns,
             .retry_first_ns = options_.retry_first_ns,
             .retry_last_ns = options_.retry_last_ns},
      who_has_(options_.keys_known_max) {
  if (options_.peers.empty()) mailbox_.show({}, 0, /*is_ready=*/true, {});
  for (const PeerAddress& peer : options_.peers) {
    links_.emplace(next_link_++, std::make_unique<PeerLink>(peer, /*is_named=*/false));
  }
}

PeerLoop::~PeerLoop() {
  mailbox_.stop();
  if (thread_.joinable()) thread_.join();
}

void PeerLoop::run() {
  block_broken_pipes();
  for (;;) {
    take_inbox();
    if (is_stopping_) break;
    move_links();
    expire();
    launch_reads();  // nothing that comes after it may make room for more: wait() would not know
    forget_idle_links();
    show();
    mailbox_.notify_if_due();
    wait();
  }
}

void PeerLoop::take_inbox() {
  PeerMailbox::Inbox inbox = mailbox_.take();
  is_stopping_ = inbox.is_stopping;
  terms_.deployment = inbox.deployment;
  for (PeerLookup& lookup : inbox.lookups) begin(std::move(lookup));
  for (PeerRead& read : inbox.reads) queue_.push_back(std::move(read));
  if (!inbox.cancelled.empty()) cancel(inbox.cancelled);
}

PeerLink* PeerLoop::link_of(LinkId id) {
  const auto found = links_.find(id);
  return found == links_.end() ? nullptr : found->second.get();
}

void PeerLoop::note_once(const std::string& kind, const std::string& text) {
  if (options_.note && noted_.insert(kind).second) options_.note(text);
}

// Makes room for a server that is named: one that is not connected and that nobody asks goes.
bool PeerLoop::forget_unused_link() {
  const auto unused = std::find_if(links_.begin(), links_.end(), [&](const auto& entry) {
    const PeerLink& link = *entry.second;
    return link.is_named() && !link.is_on() && link.reads_open == 0 && !is_asked(entry.first);
  });
  if (unused == links_.end()) return false;
  links_.erase(unused);
  return true;
}

bool PeerLoop::is_asked(LinkId id) const {
  return std::any_of(lookups_.begin(), lookups_.end(), [&](const auto& lookup) {
    const std::vector<LinkId>& links = lookup.second.links;
    return std::find(links.begin(), links.end(), id) != links.end();
  });
}

// Returns 0 where too many servers are named at a time.
PeerLoop::LinkId PeerLoop::named_link(const PeerAddress& address) {
  std::size_t named = 0;
  for (const auto& [id, link] : links_) {
    if (link->address() == address) return id;
    named += link->is_named() ? 1 : 0;
  }
  if (named >= options_.named_max && !forget_unused_link()) {
    note_once("many", fmt::format("requests name more than {} servers at a time: prompts are "
                                  "computed instead",
                                  options_.named_max));
    return 0;
  }
  links_.emplace(next_link_, std::make_unique<PeerLink>(address, /*is_named=*/true));
  return next_link_++;
}

void PeerLoop::begin(PeerLookup lookup) {
  OpenLookup open;
  open.deadline_ns = lookup.begun_ns + options_.timeout_ns;
  if (lookup.origin) {
    const LinkId named = named_link(lookup.origin->address);
    if (named != 0) open.links.push_back(named);
    if (named != 0 && lookup.origin->wait_until_ns > lookup.begun_ns) {
      open.deadline_ns = lookup.origin->wait_until_ns + options_.timeout_ns;
    }
  }
  for (const auto& [id, link] : links_) {
    const bool is_first = !open.links.empty() && open.links.front() == id;
    if (!link->is_named() && !is_first) open.links.push_back(id);
  }
  for (const LinkId id : open.links) {
    link_of(id)->want(clock_.now_ns());
    link_of(id)->connect_if_due(terms_, clock_.now_ns());
  }
  open.asked = std::move(lookup);
  const std::uint64_t number = next_number_++;
  lookups_.emplace(number, std::move(open));
  advance(number);
}

// Asks the next link that is on; waits for one that is being connected.
void PeerLoop::advance(std::uint64_t number) {
  OpenLookup& open = lookups_.at(number);
  const std::vector<kv::PageKey>& keys = open.asked.keys;
  while (!open.is_sent) {
    if (open.next_link == open.links.size() || open.keys_found == keys.size()) {
      return end(number, StoreFault::kNone);
    }
    PeerLink* const link = link_of(open.links[open.next_link]);
    if (link == nullptr || link->is_off()) {
      ++open.next_link;
      continue;
    }
    if (!link->is_on() || link->finds_open >= kLinkFindsMax) return;
    const std::int64_t now_ns = clock_.now_ns();
    FindFrame frame = {.number = number};
    const auto& origin = open.asked.origin;
    if (origin && origin->address == link->address() && origin->wait_until_ns > now_ns) {
      frame.wait_ms = static_cast<std::uint32_t>((origin->wait_until_ns - now_ns) / 1'000'000);
    }
    open.keys_sent = std::min(keys.size() - open.keys_found, kFindKeysMax);
    const auto first = keys.begin() + static_cast<std::ptrdiff_t>(open.keys_found);
    frame.keys.assign(first, first + static_cast<std::ptrdiff_t>(open.keys_sent));
    link->send(find_frame(frame));
    ++link->finds_open;
    open.is_sent = true;
  }
}

// The link's answer, should it come, is not waited for any more, and need not be made.
void PeerLoop::forget_find(std::uint64_t number, const OpenLookup& open) {
  if (!open.is_sent) return;
  PeerLink* const link = link_of(open.links[open.next_link]);
  link->send(withdraw_frame({number}));
  --link->finds_open;
}

void PeerLoop::end(std::uint64_t number, StoreFault fault) {
  const auto open = lookups_.find(number);
  mailbox_.report_lookup(open->second.asked, fault, open->second.keys_found);
  lookups_.erase(open);
}

void PeerLoop::launch_reads() {
  std::deque<PeerRead> waiting;
  for (; !queue_.empty(); queue_.pop_front()) {
    PeerRead& read = queue_.front();
    const LinkId* const id = who_has_.find(read.label.key);
    PeerLink* const link = id == nullptr ? nullptr : link_of(*id);
    if (link == nullptr || !link->is_on()) {
      mailbox_.report_read(read, link == nullptr ? StoreFault::kAbsent : StoreFault::kOff);
    } else if (link->reads_open >= kLinkReadsMax) {
      waiting.push_back(std::move(read));
    } else {
      const std::uint64_t number = next_number_++;
      link->send(read_frame({.number = number, .key = read.label.key, .owner = read.label.owner}));
      link->used_ns = clock_.now_ns();
      ++link->reads_open;
      reads_.emplace(number, OpenRead{std::move(read), *id});
    }
  }
  queue_ = std::move(waiting);
}

void PeerLoop::cancel(const std::vector<kv::StoreTicket>& tickets) {
  const auto is_cancelled = [&](kv::StoreTicket ticket) {
    return std::find(tickets.begin(), tickets.end(), ticket) != tickets.end();
  };
  std::vector<std::uint64_t> over;
  for (const auto& [number, open] : lookups_) {
    if (!is_cancelled(open.asked.ticket)) continue;
    forget_find(number, open);
    over.push_back(number);
  }
  for (const std::uint64_t number : over) end(number, StoreFault::kCancelled);
  std::erase_if(queue_, [&](const PeerRead& read) {
    if (!is_cancelled(read.ticket)) return false;
    mailbox_.report_read(read, StoreFault::kCancelled);
    return true;
  });
}

void PeerLoop::move_links() {
  for (const auto& [id, link] : links_) {
    const bool was_off = link->is_off();
    const bool was_on = link->is_on();
    link->connect_if_due(terms_, clock_.now_ns());
    link->move(terms_, clock_.now_ns(),
               [this, id = id](const PeerFrame& frame) { return take(id, frame); });
    if (link->is_off() && !was_off) note_off(id);
    if (link->is_off() && was_off && !link->condition().empty()) tell_off(*link);
    if (!link->is_on() || was_on || link->is_of_this_deployment()) continue;
    note_once("deployment",
              fmt::format("{} has another secret, or keys where this server has none: what tenants "
                          "computed there is computed again here",
                          link->address().shown()));
  }
  std::vector<std::uint64_t> unsent;
  for (const auto& [number, open] : lookups_) {
    if (!open.is_sent) unsent.push_back(number);
  }
  for (const std::uint64_t number : unsent) advance(number);
}

Status PeerLoop::take(LinkId id, const PeerFrame& frame) {
  link_of(id)->timeouts = 0;
  if (frame.type == FrameType::kFound) {
    if (const auto found = read_found(frame.body)) return take_found(id, *found);
  } else if (frame.type == FrameType::kPage) {
    if (const auto page = read_page(frame.body)) {
      take_page(id, *page);
      return ok_status();
    }
  }
  return Error{ErrorCode::kCorrupt, "it sent what nobody asked for"};
}

Status PeerLoop::take_found(LinkId id, const FoundFrame& found) {
  const auto at = lookups_.find(found.number);
  if (at == lookups_.end()) return ok_status();  // it took too long
  OpenLookup& open = at->second;
  const bool is_asked = open.is_sent && open.links[open.next_link] == id;
  if (!is_asked || found.keys_found > open.keys_sent) {
    return Error{ErrorCode::kCorrupt, "it sent what nobody asked for"};
  }
  for (std::size_t i = 0; i < found.keys_found; ++i) {
    const kv::PageKey& key = open.asked.keys[open.keys_found++];
    if (LinkId* const known = who_has_.find(key)) {
      *known = id;
    } else {
      who_has_.put(key, id);
    }
  }
  if (open.asked.origin && open.asked.origin->wait_until_ns > 0 && open.next_link == 0) {
    mailbox_.end_waiting(open.asked.keys);
  }
  open.is_sent = false;
  ++open.next_link;
  --link_of(id)->finds_open;
  advance(found.number);
  return ok_status();
}

void PeerLoop::take_page(LinkId id, const PageFrame& page) {
  const auto at = reads_.find(page.number);
  if (at == reads_.end() || at->second.link != id) return;  // it took too long
  const PeerRead& read = at->second.asked;
  StoreFault fault = page.fault;
  if (fault == StoreFault::kNone) {
    fault = read_record(page.record, read.label, 0, &cipher_, read.into);
    if (fault != StoreFault::kNone) {
      note_once("record", fmt::format("{} sent a page that is not what was asked for: it is "
                                      "computed here",
                                      link_of(id)->address().shown()));
    }
  }
  mailbox_.report_read(read, fault);
  --link_of(id)->reads_open;
  reads_.erase(at);
}

void PeerLoop::tell_off(const PeerLink& link) {
  const std::string kind = link.is_named() ? "off" : "off " + link.address().shown();
  note_once(kind, fmt::format("no pages from {}: {}", link.address().shown(), link.condition()));
}

// Others are asked for what the link was asked for, or it is computed.
void PeerLoop::note_off(LinkId id) {
  PeerLink* const link = link_of(id);
  tell_off(*link);
  std::erase_if(reads_, [&](const auto& read) {
    if (read.second.link != id) return false;
    mailbox_.report_read(read.second.asked, StoreFault::kIo);
    return true;
  });
  link->reads_open = link->finds_open = 0;
  for (auto& [number, open] : lookups_) {
    if (!open.is_sent || open.links[open.next_link] != id) continue;
    open.is_sent = false;
    ++open.next_link;
  }
}

void PeerLoop::note_timeout(LinkId id) {
  PeerLink* const link = link_of(id);
  if (link == nullptr || !link->is_on() || ++link->timeouts < options_.timeouts_max) return;
  link->turn_off("it does not answer in time", terms_, clock_.now_ns());
  note_off(id);
}

void PeerLoop::expire() {
  const std::int64_t now_ns = clock_.now_ns();
  std::set<LinkId> late;  // a link that is late with many pages was late once
  std::vector<std::uint64_t> over;
  for (const auto& [number, open] : lookups_) {
    if (now_ns < open.deadline_ns) continue;
    if (open.is_sent) late.insert(open.links[open.next_link]);
    forget_find(number, open);
    over.push_back(number);
  }
  for (const std::uint64_t number : over) end(number, StoreFault::kTimeout);
  std::erase_if(reads_, [&](const auto& read) {
    if (now_ns < read.second.asked.deadline_ns) return false;
    late.insert(read.second.link);
    --link_of(read.second.link)->reads_open;
    mailbox_.report_read(read.second.asked, StoreFault::kTimeout);
    return true;
  });
  std::erase_if(queue_, [&](const PeerRead& read) {
    if (now_ns < read.deadline_ns) return false;
    mailbox_.report_read(read, StoreFault::kTimeout);
    return true;
  });
  for (const LinkId id : late) note_timeout(id);
}

void PeerLoop::forget_idle_links() {
  const std::int64_t now_ns = clock_.now_ns();
  std::erase_if(links_, [&](const auto& entry) {
    PeerLink& link = *entry.second;
    const bool is_used = is_asked(entry.first) || link.reads_open > 0;
    if (is_used) link.used_ns = now_ns;
    return link.is_named() && !is_used && now_ns >= link.used_ns + options_.named_idle_ns;
  });
}

void PeerLoop::show() {
  std::vector<std::string> peers;
  std::size_t on = 0;
  bool is_ready = true;
  std::string condition;
  for (const auto& [id, link] : links_) {
    if (link->is_named()) continue;
    on += link->is_on() ? 1 : 0;
    is_ready = is_ready && (link->is_on() || link->was_tried());
    const std::string state = link->is_on()               ? "connected"
                              : link->condition().empty() ? "no connection yet"
                                                          : link->condition();
    peers.push_back(fmt::format("{} ({})", link->address().shown(), state));
    if (!link->is_on() && !link->condition().empty()) condition = peers.back();
  }
  if (peers == shown_) return;
  shown_ = peers;
  mailbox_.show(std::move(peers), on, is_ready, condition);
}

void PeerLoop::wait() {
  std::int64_t until_ns = INT64_MAX;
  bool has_more = false;
  sources_.assign({{mailbox_.wakeup().descriptor(), POLLIN, 0}});
  for (const auto& [id, link] : links_) {
    until_ns = std::min(until_ns, link->next_due_ns(terms_));
    if (link->is_named()) until_ns = std::min(until_ns, link->used_ns + options_.named_idle_ns);
    has_more = has_more || link->has_more();
    if (link->descriptor() >= 0) sources_.push_back({link->descriptor(), link->events(), 0});
  }
  for (const auto& [number, open] : lookups_) until_ns = std::min(until_ns, open.deadline_ns);
  for (const auto& [number, read] : reads_) until_ns = std::min(until_ns, read.asked.deadline_ns);
  for (const PeerRead& read : queue_) until_ns = std::min(until_ns, read.deadline_ns);
  int timeout_ms = -1;
  if (has_more) {
    timeout_ms = 0;
  } else if (until_ns != INT64_MAX) {
    const std::int64_t left_ms = (until_ns - clock_.now_ns()) / 1'000'000 + 1;
    timeout_ms = static_cast<int>(std::clamp<std::int64_t>(left_ms, 0, 60'000));
  }
  ::poll(sources_.data(), sources_.size(), timeout_ms);
  mailbox_.wakeup().clear();
}

}  // namespace pagoda::store
