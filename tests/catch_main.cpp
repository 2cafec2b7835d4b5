#define CATCH_CONFIG_MAIN  // Catch2 2; version 3 brings its main function in a library
#include <catch2/catch.hpp>
