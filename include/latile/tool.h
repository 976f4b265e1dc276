// The `latile` command as a function, for a program that brings operators of its own.
#pragma once

namespace latile {

/// Runs the command on the built-in operators and those registered by then (register_operator in latile/table.h).
/// Prints to standard output and error; gives the exit code: 0 done, 1 `check` found an error above its tolerance,
/// 2 a command line, file or argument is refused, 3 a fault of latile.
///
///     int main(int argc, char** argv) {
///       latile::register_operator({"my_op", my_op, "what it is", 5e-3, 5e-3});
///       return latile::tool_main(argc, argv);
///     }
int tool_main(int argc, char** argv);

}  // namespace latile
