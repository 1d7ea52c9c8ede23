// For rooms whose sources write text.
#pragma once

#include <fmt/format.h>
