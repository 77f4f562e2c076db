#include "loadgen/completion_reader.h"

#include <nlohmann/json.hpp>
#include <vector>

namespace pagoda::loadgen {

// Takes the members that matter while nlohmann's parser walks the text: a value of all of it would
// be built and thrown away for every token.
class CompletionReader::Members : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Members(CompletionReader& answer) : answer_(answer) {}

  bool brought_text() const { return brought_text_; }

  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(number_integer_t /*value*/) override { return true; }
  bool number_float(number_float_t /*value*/, const string_t& /*digits*/) override { return true; }
  bool number_unsigned(number_unsigned_t value) override {
    if (path_ == "/usage/prompt_tokens") answer_.prompt_tokens_ = value;
    if (path_ == "/usage/completion_tokens") answer_.completion_tokens_ = value;
    if (path_ == "/usage/prompt_tokens_details/cached_tokens") answer_.cached_tokens_ = value;
    return true;
  }
  bool string(string_t& value) override {
    if (is_text()) {
      answer_.text_ += value;
      brought_text_ = brought_text_ || !value.empty();
    } else if (path_ == "/choices/finish_reason") {
      answer_.finished_ = true;
      answer_.finish_reason_ = std::move(value);
    } else if (path_ == "/error/message" || path_ == "/error") {
      answer_.error_ = std::move(value);
    }
    return true;
  }
  bool binary(binary_t& /*value*/) override { return true; }

  bool start_object(std::size_t /*size*/) override {
    marks_.push_back(path_.size());
    if (path_ == "/error" && answer_.error_.empty()) answer_.error_ = "error";
    return true;
  }
  bool end_object() override {
    path_.resize(marks_.back());
    marks_.pop_back();
    return true;
  }
  bool start_array(std::size_t /*size*/) override { return true; }
  bool end_array() override { return true; }
  bool key(string_t& value) override {
    path_.resize(marks_.back());
    path_ += '/';
    path_ += value;
    return true;
  }
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    answer_.malformed_ = true;
    return false;
  }

 private:
  bool is_text() const {
    return path_ == "/choices/text" || path_ == "/choices/delta/content" ||
           path_ == "/choices/message/content" || path_ == "/choices/delta/reasoning_content" ||
           path_ == "/choices/message/reasoning_content";
  }

  CompletionReader& answer_;
  bool brought_text_ = false;
  std::string path_;                // of members, without places in arrays: /choices/delta/content
  std::vector<std::size_t> marks_;  // the path's length outside of each open object
};

std::uint32_t CompletionReader::put(std::string_view body) {
  if (!streams_) {
    whole_ += body;
    return 0;
  }
  std::uint32_t with_text = 0;
  for (const std::string& event : events_.push(body)) {
    if (event == "[DONE]") {
      done_ = true;
    } else {
      with_text += read_json(event) ? 1 : 0;
    }
  }
  return with_text;
}

void CompletionReader::end() {
  if (!streams_) read_json(whole_);
}

bool CompletionReader::read_json(std::string_view json) {
  Members members(*this);
  nlohmann::json::sax_parse(json.begin(), json.end(), &members);
  return members.brought_text();
}

}  // namespace pagoda::loadgen
