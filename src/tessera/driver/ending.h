// What is to be done while everything is still there. A handler of exit() comes too late: those of
// libraries that were loaded later run before it.
#pragma once

namespace tessera {

// By a program, or the language it is written in, that will call end_everything() before exit().
void promise_end();
void end_everything();
// False unless that was promised.
bool at_end(void (*end)());

}  // namespace tessera
