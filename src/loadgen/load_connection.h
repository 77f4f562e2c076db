// A connection and the request that is on it, from its first byte out to its last byte in.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "loadgen/completion_reader.h"
#include "loadgen/outcome.h"
#include "loadgen/reply_reader.h"
#include "loadgen/workload.h"
#include "net/socket.h"

namespace pagoda::loadgen {

// Time from the start of a load.
class Timeline {
 public:
  explicit Timeline(const Clock& clock) : clock_(clock), start_ns_(clock.now_ns()) {}
  std::int64_t now_ns() const { return clock_.now_ns() - start_ns_; }

 private:
  const Clock& clock_;
  std::int64_t start_ns_;
};

class LoadConnection {
 public:
  LoadConnection(net::Socket socket, const Timeline& time)
      : socket_(std::move(socket)), time_(time) {}

  // `scheduled_ns` and `sent_ns` are told by the caller.
  void begin(PlannedRequest planned, std::string request, bool streams, const Outcome& outcome);
  // Writes and reads as much as the socket allows; gaps between pieces of text are added to `gaps`.
  void advance(std::span<char> room, std::vector<float>& gaps);
  // Whatever comes next, it is over.
  void give_up(OutcomeKind kind);

  bool is_busy() const { return busy_; }
  // Not busy: another request may follow.
  bool is_reusable() const { return reusable_; }
  // It failed on a connection that had served before, and nothing of a reply had come: the server
  // has closed an idle connection, which is its right. The request may be sent again.
  bool may_try_again() const {
    return outcome_.kind == OutcomeKind::kConnection && requests_ > 1 && !began_;
  }

  std::uint64_t requests() const { return requests_; }
  const Outcome& outcome() const { return outcome_; }
  const std::string& failure() const { return failure_; }  // in words
  const PlannedRequest& planned() const { return planned_; }
  PlannedRequest take_planned() { return std::move(planned_); }
  std::string answer() const { return answer_ ? answer_->text() : std::string(); }
  int descriptor() const { return socket_.descriptor(); }

 private:
  void write_on();
  void read_on(std::span<char> room, std::vector<float>& gaps);
  void take_text(std::uint32_t pieces, std::vector<float>& gaps);
  void end_reply();
  OutcomeKind judge() const;
  void end(OutcomeKind kind);
  void lose_connection();

  net::Socket socket_;
  const Timeline& time_;
  std::uint64_t requests_ = 0;
  bool busy_ = false;
  bool reusable_ = false;
  bool began_ = false;  // some byte of the reply has come
  PlannedRequest planned_;
  std::string request_;
  std::size_t written_ = 0;
  std::optional<ReplyReader> reply_;
  std::optional<CompletionReader> answer_;
  std::string body_;  // bytes of the body that were just read; of a refusal: all
  Outcome outcome_;
  std::string failure_;
};

}  // namespace pagoda::loadgen
