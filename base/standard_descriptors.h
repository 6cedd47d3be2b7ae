// Standard input, output and error of a program that was started without them (`>&-`).
#pragma once

namespace oc {

// Opens /dev/null for those of the descriptors 0 to 2 that are closed, so that nothing else which the program opens
// takes their place and is written to as if it were the terminal. First in main. Ends the process where even that
// fails.
void fillStandardDescriptors();

}  // namespace oc
