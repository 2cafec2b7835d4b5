#pragma once

// Catch2 3 under the header name of Catch2 2, as far as the tests use it. On the include path only with version 3.
#include <catch2/catch_all.hpp>

using Catch::Approx;
