#include "secrets.h"

#include <fmt/format.h>
#include <kj/debug.h>

#include <algorithm>

#include "base/fd.h"
#include "base/json.h"
#include "base/secret_source.h"
#include "base/session_bus.h"
#include "base/text.h"
#include "keyring.capnp.h"
#include "proto/convert.h"

namespace oc::work {

namespace {

constexpr int busDescriptor = 4, valueDescriptor = 5;
// The keyring has 20 seconds for each answer, and most need two.
constexpr auto callLimit = 60 * kj::SECONDS;
// What a keyring names beyond this, we don't keep.
constexpr size_t mostNames = 1000;

Refusal unavailable(const std::string& name, const std::string& why, const std::string& fix) {
  return {"secret_unavailable", fmt::format("the secret {} cannot be read: {}", name, why), fix};
}

// The same refusal, saying which secret it is about.
Refusal ofSecret(const std::string& name, const Refusal& refusal) {
  return unavailable(name, refusal.what, refusal.fix);
}

bool isCapitalVariable(const std::string& name) {
  return !name.empty() && !(name[0] >= '0' && name[0] <= '9') && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

// ---- the keyring

class KeyringJob {
 public:
  // Connected, but nothing started.
  static OrRefusal<kj::Own<KeyringJob>> dial(const Environment& own) {
    auto bus = dialSessionBus(own);
    if (!bus.ok()) return bus.refusal();
    return kj::heap<KeyringJob>(kj::mv(bus.value()));
  }

  explicit KeyringJob(kj::AutoCloseFd busParam) : bus(kj::mv(busParam)), pipe(makePipe()) {}

  kj::Promise<void> start(supervisor::Supervisor& supervisor, std::vector<std::string> words) {
    supervisor::LaunchSpec spec;
    spec.provider = "keyring";
    spec.label = words.front();
    spec.job = std::move(words);
    spec.descriptors = {{bus.get(), busDescriptor}, {pipe.second.get(), valueDescriptor}};
    return supervisor.start(kj::mv(spec)).then([this](kj::Own<supervisor::Instance> started) {
      instance = kj::mv(started);
      bus = nullptr;
      pipe.second = nullptr;
    });
  }

  proto::Keyring::Client keyring() { return instance->as<proto::Keyring>(); }

  // The value goes from the pipe into memory that is wiped, and nowhere else.
  kj::Promise<size_t> readValue(kj::LowLevelAsyncIoProvider& low) {
    value = SecretBytes(std::string(mostSecretBytes + 1, '\0'));
    stream = low.wrapInputFd(kj::mv(pipe.first));
    auto* bytes = const_cast<char*>(value.view().data());
    return stream->tryRead(bytes, value.size(), value.size());
  }

  SecretBytes firstBytes(size_t size) const { return SecretBytes(value.view().substr(0, size)); }

 private:
  kj::AutoCloseFd bus;
  FdPair pipe;
  kj::Own<supervisor::Instance> instance;
  kj::Own<kj::AsyncInputStream> stream;
  SecretBytes value;
};

kj::Promise<OrRefusal<SecretBytes>> readKeyring(supervisor::Supervisor& supervisor, const Environment& own,
                                                const std::string& name, const std::string& keyringName) {
  using Result = OrRefusal<SecretBytes>;
  auto dialed = KeyringJob::dial(own);
  if (!dialed.ok()) return Result(ofSecret(name, dialed.refusal()));
  auto job = kj::mv(dialed.value());
  auto& ref = *job;
  auto& low = *supervisor.context().lowLevelProvider;
  return ref.start(supervisor, {"get", keyringName})
      .then([&supervisor, &ref, &low]() {
        auto reading = ref.readValue(low).eagerlyEvaluate(nullptr);
        auto refusal =
            ref.keyring().getRequest().send().then([](auto&& response) { return oc::read(response.getRefusal()); });
        return withDeadline(supervisor.timer(), callLimit, "open-conduit-keyring", kj::mv(refusal))
            .then([&supervisor,
                   reading = kj::mv(reading)](Refusal refusal) mutable -> kj::Promise<kj::OneOf<Refusal, size_t>> {
              using Answer = kj::OneOf<Refusal, size_t>;
              if (!refusal.reason.empty()) return Answer(kj::mv(refusal));
              return withDeadline(supervisor.timer(), callLimit, "open-conduit-keyring", kj::mv(reading))
                  .then([](size_t size) { return Answer(size); });
            });
      })
      .then(
          [name, job = kj::mv(job)](kj::OneOf<Refusal, size_t> answer) -> Result {
            if (answer.is<Refusal>()) return ofSecret(name, answer.get<Refusal>());
            auto size = answer.get<size_t>();
            if (size == 0 || size > mostSecretBytes)
              return unavailable(name, "the keyring provider gave no value", "open-conduit doctor");
            return job->firstBytes(size);
          },
          [name](kj::Exception&& exception) -> Result {
            return unavailable(name, describe(exception), "open-conduit doctor");
          });
}

OrRefusal<SecretBytes> readVariable(const std::string& name, const std::string& variable, const Environment& own) {
  auto found = own.find(variable);
  if (found != own.end() && !found->second.empty()) return SecretBytes(found->second);
  return unavailable(name, variable + " is not set in the daemon's environment", "set it where the daemon is started");
}

}  // namespace

OrRefusal<std::vector<SelectedSecret>> selectSecrets(const config::Scope& scope, const config::Binding& binding) {
  auto denied = [](const std::string& name, const std::string& why, const std::string& fix) {
    return Refusal{"secret_denied", fmt::format("the secret {} is not given to this run: {}", name, why), fix};
  };
  auto isSelected = [&binding](const std::string& name) {
    return std::find(binding.secretNames.begin(), binding.secretNames.end(), name) != binding.secretNames.end();
  };
  for (auto& [name, variable] : binding.secretEnv) {
    if (isSelected(name)) continue;
    return denied(name, "the binding does not select it", "add it to the binding's secret_names");
  }
  std::vector<SelectedSecret> selected;
  for (auto& name : binding.secretNames) {
    auto reference = scope.secretRefs.find(name);
    if (reference == scope.secretRefs.end()) {
      return denied(name, "the scope does not define it", "add it to the scope's secret_refs");
    }
    auto mapped = binding.secretEnv.find(name);
    if (mapped != binding.secretEnv.end()) {
      selected.push_back({name, reference->second, mapped->second});
    } else if (isCapitalVariable(name)) {
      selected.push_back({name, reference->second, name});
    }
  }
  return selected;
}

kj::Promise<OrRefusal<SecretBytes>> readSecret(supervisor::Supervisor& supervisor, const Environment& own,
                                               std::string name, std::string reference) {
  using Result = OrRefusal<SecretBytes>;
  return kj::evalNow([&]() -> kj::Promise<Result> {
           auto rest = reference.substr(reference.find(':') + 1);
           if (reference.starts_with("keyring:")) return readKeyring(supervisor, own, name, rest);
           if (reference.starts_with("env:")) return readVariable(name, rest, own);
           if (!reference.starts_with("file:")) {
             return Result(unavailable(name, "its reference has no form that is known",
                                       "write keyring:NAME, file:/path or env:NAME"));
           }
           auto read = readSecretFile(rest);
           if (!read.ok()) return Result(ofSecret(name, read.refusal()));
           return kj::mv(read);
         })
      .catch_([name](kj::Exception&& exception) -> Result { return unavailable(name, describe(exception), ""); });
}

kj::Promise<OrRefusal<RunSecrets>> readSecrets(supervisor::Supervisor& supervisor, const Environment& own,
                                               std::vector<SelectedSecret> selected) {
  auto values = kj::heapArrayBuilder<kj::Promise<OrRefusal<SecretBytes>>>(selected.size());
  for (auto& secret : selected)
    values.add(readSecret(supervisor, own, secret.name, secret.reference).eagerlyEvaluate(nullptr));
  return kj::joinPromises(values.finish())
      .then([selected = std::move(selected)](kj::Array<OrRefusal<SecretBytes>> read) -> OrRefusal<RunSecrets> {
        RunSecrets secrets;
        for (size_t i = 0; i < selected.size(); ++i) {
          if (!read[i].ok()) return read[i].refusal();
          secrets.live.emplace_back(read[i].value().view());
          secrets.byVariable.insert_or_assign(selected[i].variable, kj::mv(read[i].value()));
        }
        return secrets;
      });
}

void writeSecretsFile(const std::string& path, const std::map<std::string, SecretBytes>& values) {
  Json document = Json::object();
  for (auto& [variable, value] : values) document[variable] = std::string(value.view());
  writeFileAtomically(path, document.dump(), 0600);
}

Refusal whyNoSecretsFile(const std::map<std::string, SecretBytes>& values) {
  for (auto& [variable, value] : values) {
    bool hasNul = value.view().find('\0') != std::string_view::npos;
    if (isUtf8(value.view()) && !hasNul) continue;
    return {"secret_unavailable",
            hasNul ? fmt::format("the secret for {} has a NUL in it, which no variable can have", variable)
                   : fmt::format("the secret for {} is no UTF-8 text, which it has to be in a container", variable),
            "store it encoded, by base64 for example"};
  }
  return {};
}

kj::Promise<OrRefusal<std::vector<std::string>>> keyringNames(supervisor::Supervisor& supervisor,
                                                              const Environment& own) {
  using Result = OrRefusal<std::vector<std::string>>;
  auto dialed = KeyringJob::dial(own);
  if (!dialed.ok()) return Result(dialed.refusal());
  auto job = kj::mv(dialed.value());
  auto& ref = *job;
  return ref.start(supervisor, {"list"})
      .then([&supervisor, &ref]() {
        auto listed = ref.keyring().listRequest().send().then([](auto&& response) -> Result {
          auto refusal = oc::read(response.getRefusal());
          if (!refusal.reason.empty()) return refusal;
          std::vector<std::string> names;
          for (auto name : response.getNames()) {
            if (names.size() < mostNames) names.push_back(shortened(printable(toString(name)), 64));
          }
          return names;
        });
        return withDeadline(supervisor.timer(), callLimit, "open-conduit-keyring", kj::mv(listed));
      })
      .attach(kj::mv(job))
      .catch_([](kj::Exception&& exception) -> Result {
        return Refusal{"secret_unavailable", describe(exception), "open-conduit doctor"};
      });
}

}  // namespace oc::work
