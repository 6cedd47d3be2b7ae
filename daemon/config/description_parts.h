// The description's larger objects.
#pragma once

#include "description.h"

namespace oc::config {

ShapePtr settingsShape();
ShapePtr connectionShape();
ShapePtr scopeShape();
ShapePtr bindingShape();
ShapePtr sandboxShape();
ShapePtr containerShape();

}  // namespace oc::config
