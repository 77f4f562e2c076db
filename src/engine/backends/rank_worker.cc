#include "engine/backends/rank_worker.h"

#include <algorithm>
#include <cstring>

#include "engine/backends/logits_sampler.h"

namespace pagoda::engine {

RankWorker::RankWorker(model::Decoder& decoder, const kv::memory::PageBuffer& pages,
                       const ranks::Communicator& communicator, const ranks::Channel& channel)
    : decoder_(decoder), pages_(pages), communicator_(communicator), channel_(channel) {
  limits_ = {.rows_max = decoder.rows_max(),
             .pages = pages.pages(),
             .groups = static_cast<std::uint32_t>(decoder.group_plan().groups.size()),
             .block_tokens = decoder.page_layout().block_tokens,
             .vocabulary = decoder.config().vocabulary};
}

Status RankWorker::run() {
  ranks::Bytes message;
  while (true) {
    const Result<ranks::MessageHeader> header = channel_.receive_header();
    if (!header.ok() && header.error().code == ErrorCode::kNotFound) return ok_status();
    if (!header.ok()) return header.error();
    if (header.value().kind != ranks::MessageKind::kLaunch) {
      return Error{ErrorCode::kCorrupt, "a message came that is no launch"};
    }
    message.resize(header.value().bytes);
    RETURN_IF_ERROR(channel_.receive_body(message));
    RETURN_IF_ERROR(compute(message));
  }
}

Status RankWorker::check_others() const {
  if (communicator_.failure()) return *communicator_.failure();
  return ok_status();
}

Status RankWorker::compute(std::span<const std::byte> message) {
  RETURN_IF_ERROR(launch_.read(message, limits_));
  for (const kv::Copy& copy : launch_.copies()) {
    kv::memory::copy_rows(decoder_.group_plan().layouts[copy.group], pages_.page(copy.from),
                          pages_.page(copy.to), copy.tokens);
  }
  decoder_.forward(launch_.batch(), pages_, nullptr);
  RETURN_IF_ERROR(check_others());
  if (communicator_.rank() == 0) RETURN_IF_ERROR(send_result());
  const std::size_t together = std::min<std::size_t>(LogitsSampler::kRowsMax, decoder_.rows_max());
  const std::span<const std::uint32_t> rows = launch_.logit_rows();
  for (std::size_t begin = 0; begin < rows.size(); begin += together) {
    RETURN_IF_ERROR(send_logits(rows.subspan(begin, std::min(together, rows.size() - begin))));
  }
  return ok_status();
}

Status RankWorker::send_result() {
  const std::span<const std::uint8_t> flags = decoder_.nonfinite_rows();
  const std::size_t hidden = launch_.hidden_rows().size() * decoder_.config().width;
  const ResultHead head = {
      .rows = flags.size(), .hidden_floats = hidden, .bytes_exchanged = decoder_.bytes_exchanged()};
  message_.resize(sizeof head + flags.size() + hidden * sizeof(float));
  std::memcpy(message_.data(), &head, sizeof head);
  std::memcpy(message_.data() + sizeof head, flags.data(), flags.size());
  if (hidden > 0) {
    floats_.resize(std::max(floats_.size(), hidden));
    decoder_.hidden(launch_.hidden_rows(), floats_.data());
    std::memcpy(message_.data() + sizeof head + flags.size(), floats_.data(),
                hidden * sizeof(float));
  }
  return channel_.send(ranks::MessageKind::kResult, message_);
}

// All ranks compute logits, the first has them.
Status RankWorker::send_logits(std::span<const std::uint32_t> rows) {
  const std::size_t floats = rows.size() * decoder_.config().vocabulary;
  const bool is_first = communicator_.rank() == 0;
  if (is_first) floats_.resize(std::max(floats_.size(), floats));
  decoder_.logits(rows, floats_.data());
  RETURN_IF_ERROR(check_others());
  if (!is_first) return ok_status();
  return channel_.send(ranks::MessageKind::kLogits,
                       std::as_bytes(std::span(floats_).first(floats)));
}

}  // namespace pagoda::engine
