// Doctor's check of a Docker context and an image: is what its containers promise true on this machine? While it is
// not, container bindings run nothing.
#pragma once

#include <kj/async.h>

#include <map>
#include <string>
#include <vector>

#include "base/places.h"
#include "daemon/control/backend.h"
#include "engine.h"

namespace oc::work {

class ContainerChecks {
 public:
  ContainerChecks(supervisor::Supervisor& supervisor, Engines& engines, const Places& places, std::string programs,
                  std::string gatewayImage)
      : supervisor(supervisor),
        engines(engines),
        places(places),
        programs(std::move(programs)),
        gatewayImage(std::move(gatewayImage)) {}

  // All of it, anew: the engine, its version, the gateway's image, the image, and a container like a run's, in which a
  // file is made and the ways out are tried. A line each; never breaks.
  kj::Promise<std::vector<control::DoctorLine>> examine(const EngineFacts& where, const std::string& image);

  // The same for a run, from memory where this engine, image and gateway image have passed since the daemon's start. A
  // refusal (`sandbox_unavailable`) while any of it fails; an empty reason otherwise.
  kj::Promise<Refusal> require(const EngineFacts& engine, const ImageFacts& image, const ImageFacts& gateway);

 private:
  struct Trial;
  kj::Promise<std::vector<control::DoctorLine>> examineImages(kj::Own<supervisor::Instance> task, EngineFacts engine,
                                                              std::string image);
  kj::Promise<std::vector<control::DoctorLine>> tryContainer(kj::Own<supervisor::Instance> task, EngineFacts engine,
                                                             ImageFacts image, ImageFacts gateway);

  supervisor::Supervisor& supervisor;
  Engines& engines;
  const Places& places;
  std::string programs, gatewayImage;
  std::map<std::string, bool> passed;  // by engine, version, image and gateway image
};

}  // namespace oc::work
