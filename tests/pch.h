#pragma once
#include "base/pch/pch.h"
#include "tests/catch.h"
