#include "latile/tool.h"

int main(int argc, char** argv) { return latile::tool_main(argc, argv); }
