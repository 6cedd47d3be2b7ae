// open-conduitd: the supervisor. Holds the state and the decisions, starts providers and nothing else.
#include <kj/debug.h>
#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "base/standard_descriptors.h"
#include "daemon.h"
#include "proto/rpc.h"

int main(int argc, char** argv) {
  oc::fillStandardDescriptors();
  oc::initLog("open-conduitd");
  try {
    auto options = oc::readDaemonOptions(argc, argv);
    oc::hardenSelf();
    oc::allowManyDescriptors();
    oc::refuseRoot(options);
    if (!options.attack.empty()) return oc::runAttackOnce(options);
    if (options.doctor) return oc::runDoctorOnce(options);
    return oc::runDaemon(options);
  } catch (const oc::DaemonUsage& usage) {
    fprintf(usage.code == 0 ? stdout : stderr, "%s", usage.text.c_str());
    return usage.code;
  } catch (const kj::Exception& exception) {
    oc::logError("{}", oc::describe(exception));
    return 1;
  } catch (const std::exception& exception) {
    oc::logError("{}", exception.what());
    return 1;
  }
}
