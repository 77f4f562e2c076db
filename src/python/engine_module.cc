// The bindings of models and requests. Everything that waits or computes does so without the GIL.
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "app/kv_dtype.h"
#include "python/batch.h"
#include "python/bindings.h"
#include "python/local_model.h"
#include "server/api_error.h"
#include "terminal/version.h"

namespace pagoda::python {
namespace {

using GilFree = nb::call_guard<nb::gil_scoped_release>;

std::shared_ptr<LocalModel> open_model(const LocalModelOptions& options) {
  auto opened = [&] {
    const nb::gil_scoped_release released;
    return LocalModel::open(options);
  }();
  if (!opened.ok()) raise(opened.error());
  return std::move(opened).value();
}

std::vector<std::uint32_t> encode(const LocalModel& model, const std::string& text,
                                  bool add_special_tokens) {
  std::vector<std::uint32_t> ids;
  for (const TokenId id : model.served().tokenizer.encode(
           text, {.special = true, .add_bos_eos = add_special_tokens})) {
    ids.push_back(id.value());
  }
  return ids;
}

nb::bytes decode(const LocalModel& model, const std::vector<std::uint32_t>& ids,
                 bool skip_special_tokens) {
  const std::vector<TokenId> tokens(ids.begin(), ids.end());
  const Result<std::string> text = model.served().tokenizer.decode(tokens, !skip_special_tokens);
  if (!text.ok()) raise(text.error());
  return nb::bytes(text.value().data(), text.value().size());
}

std::uint32_t add_request(RequestBatch& batch, const std::string& kind, const std::string& body,
                          bool fills_context) {
  return batch.add(kind == "chat"        ? BodyKind::kChat
                   : kind == "embedding" ? BodyKind::kEmbedding
                                         : BodyKind::kText,
                   body, fills_context);
}

void bind_options(nb::module_& module) {
  nb::class_<LocalModelOptions>(module, "Options")
      .def(nb::init<>())
      .def_rw("model", &LocalModelOptions::model)
      .def_rw("revision", &LocalModelOptions::revision)
      .def_rw("tokenizer", &LocalModelOptions::tokenizer)
      .def_rw("chat_template", &LocalModelOptions::chat_template)
      .def_rw("device", &LocalModelOptions::device)
      .def_rw("kv_cache_dtype", &LocalModelOptions::kv_cache_dtype)
      .def_rw("kv_cache_memory_bytes", &LocalModelOptions::kv_cache_memory_bytes)
      .def_rw("kv_eviction", &LocalModelOptions::kv_eviction)
      .def_rw("gpu_memory_utilization", &LocalModelOptions::gpu_memory_utilization)
      .def_rw("max_model_len", &LocalModelOptions::max_model_len)
      .def_rw("block_size", &LocalModelOptions::block_size)
      .def_rw("max_num_seqs", &LocalModelOptions::max_num_seqs)
      .def_rw("max_num_batched_tokens", &LocalModelOptions::max_num_batched_tokens)
      .def_rw("threads", &LocalModelOptions::threads)
      .def_rw("enable_prefix_caching", &LocalModelOptions::enable_prefix_caching);
}

void bind_model(nb::module_& module) {
  nb::class_<LocalModel>(module, "Model")
      .def_static("open", open_model)
      .def_prop_ro("name", [](const LocalModel& model) { return model.served().name(); })
      .def_prop_ro("max_model_len",
                   [](const LocalModel& model) { return model.served().context_tokens(); })
      .def_prop_ro("device", [](const LocalModel& model) { return model.backend().device_name(); })
      .def_prop_ro(
          "is_on_gpu",
          [](const LocalModel& model) { return model.backend().weights_digest().has_value(); })
      .def_prop_ro("kv_cache_bytes",
                   [](const LocalModel& model) { return model.backend().kv_bytes(); })
      .def_prop_ro("kv_cache_tokens",
                   [](const LocalModel& model) { return model.backend().kv_tokens(); })
      .def_prop_ro("kv_cache_dtype",
                   [](const LocalModel& model) {
                     return app::kv_choice_name({}, model.backend().page_layout());
                   })
      .def_prop_ro("sequences_running",
                   [](LocalModel& model) { return model.engine().snapshot().sequences_running; })
      .def("encode", encode)
      .def("decode", decode)
      .def("reset_prefix_cache", [](LocalModel& model) { model.engine().reset(std::nullopt); });
}

void bind_batch(nb::module_& module) {
  nb::class_<RequestBatch>(module, "Batch")
      .def(nb::init<std::shared_ptr<LocalModel>>())
      .def("add", add_request, GilFree())
      .def(
          "wait",
          [](RequestBatch& batch, std::int32_t milliseconds) {
            return server::dump_json(batch.wait(milliseconds));
          },
          GilFree())
      .def("fileno", &RequestBatch::descriptor)
      .def_prop_ro("unfinished", &RequestBatch::unfinished)
      .def("cancel", &RequestBatch::cancel, GilFree());
}

void translate_api_error(const std::exception_ptr& thrown, void* /*unused*/) {
  try {
    std::rethrow_exception(thrown);
  } catch (const server::ApiError& error) {
    PyErr_SetString(error.status < 500 ? PyExc_ValueError : PyExc_RuntimeError, error.what());
  }
}

}  // namespace

void raise(const Error& error) {
  PyObject* kind = PyExc_RuntimeError;
  if (error.code == ErrorCode::kNotFound) kind = PyExc_FileNotFoundError;
  if (error.code == ErrorCode::kInvalidArgument || error.code == ErrorCode::kOutOfRange) {
    kind = PyExc_ValueError;
  }
  PyErr_SetString(kind, error.message.c_str());
  throw nb::python_error();
}

}  // namespace pagoda::python

NB_MODULE(_pagoda, module) {
  using namespace pagoda;
  // At the interpreter's end objects of a script may live still; the system takes their memory.
  nanobind::set_leak_warnings(false);
  nanobind::register_exception_translator(python::translate_api_error);
  module.attr("__version__") = terminal::kVersion;
  python::bind_options(module);
  python::bind_model(module);
  python::bind_batch(module);
  python::bind_kv(module);
}
