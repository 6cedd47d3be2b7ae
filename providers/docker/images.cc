#include "images.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "json_fields.h"
#include "refusals.h"

namespace oc::docker {

namespace {

bool isDigest(std::string_view text) {
  auto hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return text.size() == 71 && text.starts_with("sha256:") && std::all_of(text.begin() + 7, text.end(), hex);
}

// What a registry's and a repository's name may have.
bool isName(std::string_view text) {
  auto proper = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("._-/:").find(c) != std::string_view::npos;
  };
  return !text.empty() && text.size() <= 255 && std::all_of(text.begin(), text.end(), proper) &&
         text.find("..") == std::string_view::npos && text[0] != '/' && text[0] != '-';
}

Image readImage(const Json& body) {
  Image image;
  image.id = textField(body, "Id");
  image.os = textField(body, "Os", 32);
  image.architecture = textField(body, "Architecture", 32);
  image.repoDigests = textsField(body, "RepoDigests");
  image.size = static_cast<uint64_t>(std::max<int64_t>(0, numberField(body, "Size")));
  return image;
}

// An id is known to the engine that made it alone.
Refusal idNotThere(const std::string& id, const std::string& context) {
  return {"sandbox_unavailable", fmt::format("the image {} is not there, and an id can be pulled from nowhere", id),
          fmt::format("make the image on this engine, and write the id that it has there as the binding's "
                      "container.config.image: {}",
                      imagesCommand(context))};
}

bool isTheOne(const Image& image, const std::string& pinned) {
  auto at = pinned.find('@');
  if (at == std::string::npos) return image.id == pinned;
  auto digest = pinned.substr(at);
  return image.id == pinned.substr(at + 1) || std::any_of(image.repoDigests.begin(), image.repoDigests.end(),
                                                          [&digest](auto& known) { return known.ends_with(digest); });
}

}  // namespace

OrRefusal<std::string> pinnedReference(const std::string& reference) {
  if (isDigest(reference)) return reference;
  auto at = reference.rfind('@');
  auto malformed = [&reference]() {
    return Refusal{
        "sandbox_config", fmt::format("\"{}\" names no image by its digest", shortened(printable(reference), 300)),
        "write it as name@sha256:… (docker image inspect shows it under RepoDigests), or as an id, sha256:…"};
  };
  if (at == std::string::npos || !isDigest(std::string_view(reference).substr(at + 1))) return malformed();
  auto name = reference.substr(0, at);
  // A colon behind the last slash is a tag's; one before it, a port's.
  auto slash = name.rfind('/');
  auto colon = name.rfind(':');
  if (colon != std::string::npos && (slash == std::string::npos || colon > slash)) name.resize(colon);
  if (!isName(name)) return malformed();
  return name + reference.substr(at);
}

kj::Promise<OrRefusal<std::optional<Image>>> findImage(Engine& engine, const std::string& reference,
                                                       const std::string& architecture, const std::string& context) {
  using Result = OrRefusal<std::optional<Image>>;
  auto pinned = pinnedReference(reference);
  if (!pinned) return Result(pinned.refusal());
  auto name = pinned.value();
  return engine.get("/images/" + name + "/json").then([name, architecture, context](Answer answer) -> Result {
    if (answer.status == 404) return std::optional<Image>();
    if (!answer.good()) return refusalOf(answer, "tell of the image", context);
    auto image = readImage(answer.body);
    if (!isDigest(image.id)) return malformedAnswer("an image's id");
    if (!isTheOne(image, name)) return malformedAnswer("the image's digest");
    if (image.os != "linux" || image.architecture != architecture) {
      return Refusal{"sandbox_unavailable",
                     fmt::format("the image {} is for {}/{}, and the engine runs linux/{}", name, image.os,
                                 image.architecture, architecture),
                     fmt::format("use an image for linux/{}", architecture)};
    }
    return std::optional<Image>(image);
  });
}

Step pullImage(Engine& engine, const std::string& reference, const std::string& context) {
  auto pinned = pinnedReference(reference);
  if (!pinned) return std::optional<Refusal>(pinned.refusal());
  auto name = pinned.value();
  auto at = name.find('@');
  if (at == std::string::npos) return std::optional<Refusal>(idNotThere(name, context));
  auto path =
      fmt::format("/images/create?fromImage={}&tag={}", encoded(name.substr(0, at)), encoded(name.substr(at + 1)));
  auto failure = kj::heap<std::string>();
  auto& told = *failure;
  auto pulled = engine.postForLines(path, [&told](const Json& line) {
    auto error = textField(line, "error", 600);
    if (!error.empty()) told = error;
  });
  return pulled.then([name, context, failure = kj::mv(failure)](Answer answer) -> std::optional<Refusal> {
    if (!answer.good()) return pullRefusal(name, answer.message, context);
    if (!failure->empty()) return pullRefusal(name, *failure, context);
    return std::nullopt;
  });
}

}  // namespace oc::docker
