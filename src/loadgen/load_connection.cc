#include "loadgen/load_connection.h"

#include <fmt/format.h>

#include <functional>

namespace pagoda::loadgen {
namespace {

constexpr std::size_t kRefusalBytesMax = 4 << 10;  // of what is kept of a refusal's words

}  // namespace

void LoadConnection::begin(PlannedRequest planned, std::string request, bool streams,
                           const Outcome& outcome) {
  ++requests_;
  busy_ = true;
  reusable_ = false;
  began_ = false;
  planned_ = std::move(planned);
  request_ = std::move(request);
  written_ = 0;
  reply_.emplace();
  answer_.emplace(streams);
  body_.clear();
  outcome_ = outcome;
  failure_.clear();
}

void LoadConnection::advance(std::span<char> room, std::vector<float>& gaps) {
  if (!busy_) {
    // A server that speaks unasked, or is gone: of no more use.
    std::size_t moved = 0;
    if (socket_.read(room, moved) != net::Socket::Progress::kBlocked) reusable_ = false;
    return;
  }
  write_on();
  read_on(room, gaps);  // also before all is written: a server may refuse what it has not read
}

void LoadConnection::write_on() {
  while (written_ < request_.size()) {
    std::size_t moved = 0;
    const net::Socket::Progress progress =
        socket_.write(std::string_view(request_).substr(written_), moved);
    if (progress == net::Socket::Progress::kBlocked) return;
    if (progress != net::Socket::Progress::kMoved) {
      written_ = request_.size();  // what the server said before it closed is still to be read
      failure_ = socket_.failure();
      return;
    }
    written_ += moved;
  }
}

void LoadConnection::read_on(std::span<char> room, std::vector<float>& gaps) {
  while (busy_) {
    std::size_t moved = 0;
    const net::Socket::Progress progress = socket_.read(room, moved);
    const bool lost = !failure_.empty();  // it could not be written
    if (progress == net::Socket::Progress::kBlocked && !lost) return;
    if (progress != net::Socket::Progress::kMoved) {
      if (progress == net::Socket::Progress::kFailed) failure_ = socket_.failure();
      return lose_connection();
    }
    began_ = true;
    const bool refused = reply_->state() != ReplyReader::State::kHead && reply_->status() != 200;
    if (!refused || body_.size() > kRefusalBytesMax) body_.clear();
    reply_->put({room.data(), moved}, body_);
    outcome_.status = reply_->status();
    if (reply_->state() == ReplyReader::State::kBroken) {
      failure_ = "the reply is not HTTP";
      return end(OutcomeKind::kMalformed);
    }
    if (reply_->status() == 200) take_text(answer_->put(body_), gaps);
    if (reply_->state() == ReplyReader::State::kDone) return end_reply();
  }
}

void LoadConnection::take_text(std::uint32_t pieces, std::vector<float>& gaps) {
  if (pieces == 0) return;
  const std::int64_t now_ns = time_.now_ns();
  if (outcome_.output_tokens == 0) {
    outcome_.first_ns = now_ns;
  } else {
    gaps.push_back(static_cast<float>(seconds_between(outcome_.last_ns, now_ns)));
  }
  // Pieces that came together came without a gap.
  gaps.insert(gaps.end(), pieces - 1, 0.0F);
  outcome_.output_tokens += pieces;
  outcome_.last_ns = now_ns;
}

void LoadConnection::end_reply() {
  if (reply_->status() == 200) answer_->end();
  const OutcomeKind kind = judge();
  reusable_ = reply_->keeps_alive() && written_ == request_.size() && failure_.empty();
  end(kind);
}

void LoadConnection::lose_connection() {
  reply_->end();
  if (reply_->state() == ReplyReader::State::kDone) return end_reply();
  const bool cut = reply_->state() != ReplyReader::State::kHead && outcome_.status == 200;
  if (failure_.empty()) failure_ = "the server closed the connection";
  end(cut ? OutcomeKind::kShort : OutcomeKind::kConnection);
}

// Returns the outcome of a reply that is whole.
OutcomeKind LoadConnection::judge() const {
  if (reply_->status() != 200) return OutcomeKind::kStatus;
  if (answer_->is_malformed()) return OutcomeKind::kMalformed;
  if (!answer_->error().empty()) return OutcomeKind::kServerError;
  if (!answer_->is_complete()) return OutcomeKind::kShort;
  const std::uint64_t tokens = answer_->completion_tokens().value_or(planned_.output_tokens);
  const bool stopped = answer_->finish_reason() != "length";
  return tokens < planned_.output_tokens && !stopped ? OutcomeKind::kShort : OutcomeKind::kAnswered;
}

void LoadConnection::give_up(OutcomeKind kind) {
  failure_ = outcome_name(kind);
  end(kind);
}

void LoadConnection::end(OutcomeKind kind) {
  busy_ = false;
  outcome_.kind = kind;
  outcome_.end_ns = time_.now_ns();
  outcome_.prompt_tokens = answer_->prompt_tokens();
  outcome_.cached_tokens = answer_->cached_tokens();
  outcome_.output_tokens = answer_->completion_tokens().value_or(outcome_.output_tokens);
  outcome_.answer_hash = std::hash<std::string>()(answer_->text());
  if (outcome_.first_ns == 0) outcome_.first_ns = outcome_.last_ns = outcome_.end_ns;
  if (kind == OutcomeKind::kStatus) failure_ = fmt::format("HTTP {}: {}", outcome_.status, body_);
  if (kind == OutcomeKind::kServerError) failure_ = answer_->error();
  if (kind == OutcomeKind::kShort && failure_.empty())
    failure_ = "the output is shorter than asked";
  if (kind == OutcomeKind::kMalformed && failure_.empty()) failure_ = "an event is not JSON";
}

}  // namespace pagoda::loadgen
