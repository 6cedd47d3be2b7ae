#ifndef OPEN_CONDUIT_TESTS_PCH
#define OPEN_CONDUIT_TESTS_PCH
#include "base/pch/pch.h"
#include "tests/catch.h"
#endif
