// What is to be done while everything is still there. A handler of exit() comes too late: those of
// libraries that were loaded later run before it. So does the destructor of a static object; what
// belongs to the main thread alone is destroyed before all of them, and that is how a program's end
// is noticed. Where this library was loaded on another thread, nobody tells.
#pragma once

namespace tessera {

// By a language that will call end_everything() before exit(), whatever thread loaded the library.
void promise_end();
void end_everything();
// False where nobody will tell of the end, or it is over.
bool at_end(void (*end)());

}  // namespace tessera
