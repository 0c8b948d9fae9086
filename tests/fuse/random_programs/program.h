// Random programs over the operators: statements as data, so that one program can be run in several
// modes, made smaller while it still goes wrong, and printed as code.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tessera/tessera.h"

namespace random_programs {

using tessera::Device;
using tessera::Dims;
using tessera::DType;
using tessera::Op;
using tessera::Scalar;
using tessera::TensorBase;
using tessera::Value;

struct Arg {
  enum class Kind : uint8_t {
    kDefault,
    kNone,
    kVar,
    kVars,
    kScalar,
    kInts,
    kDType,
    kDevice,
    kText
  };
  Kind kind = Kind::kDefault;
  int var = -1;
  Scalar scalar;
  Dims ints;  // also the variables of a list
  DType dtype = DType::kFloat32;
  Device device;
  const char* text = "";
};

enum class Do : uint8_t {
  kCall,      // an operator, in one of its forms
  kData,      // a tensor of given bytes
  kForeign,   // ... over memory of somebody else's
  kPoke,      // somebody writes one byte of foreign or exposed memory
  kDelete,    // a variable goes
  kRead,      // the host reads a variable
  kAddress,   // data_ptr
  kThread,    // the next `count` statements run on a thread of their own
  kStream,    // stream `count` of the device becomes current, after what the one before has
  kSync,      // the device is waited for, by `count`'s way
  kToggle,    // deferral is off for the next `count` statements
  kBackward,  // gradients of a variable's sum
};

enum class Form : uint8_t { kFunction, kInplace, kOut };

struct Statement {
  Do what = Do::kCall;
  Form form = Form::kFunction;
  bool no_grad = false;
  bool requires_grad = false;
  DType dtype = DType::kFloat32;
  const Op* op = nullptr;
  int var = -1;  // what it makes, writes or looks at
  int count = 0;
  int results[4] = {-1, -1, -1, -1};
  uint64_t seed = 0;  // of the data
  Device device;
  Dims shape;
  std::vector<Arg> args;
};

struct Program {
  uint64_t seed = 0;
  bool gradients = false;
  int num_vars = 0;
  std::vector<Device> devices;
  std::vector<Statement> statements;
};

// What a program could see: bytes, geometry and versions of what it read, and errors, in order.
struct Outcome {
  std::string log;
  // Where the log has each entry's first byte, and what it is about (a variable, or a statement's
  // error).
  struct Entry {
    size_t at;
    int var;
    int statement;
  };
  std::vector<Entry> entries;
  std::vector<char> worked;  // by statement: it ran, without an error
};

// Two NaNs that meet in one operator leave either, as the compiler likes: its vector loop and its
// tail may take different ones.
enum class Likeness : uint8_t { kSame, kOnlyBitsOfNaN, kDifferent };
Likeness compare(const Outcome& a, const Outcome& b);

// The state of a program that is under way.
class Machine {
 public:
  explicit Machine(const Program& program);
  ~Machine();
  // One statement, and those of its thread; returns the next one's index.
  size_t step(size_t index);
  // Reads everything that is left.
  Outcome finish();
  bool has(int var) const { return vars_[static_cast<size_t>(var)].defined(); }
  const TensorBase& operator[](int var) const { return vars_[static_cast<size_t>(var)]; }
  int grow();  // a further variable
  void forget(int var) { vars_[static_cast<size_t>(var)] = TensorBase(); }
  // Waits for the devices; did one report an error?
  bool late_error() const;

 private:
  void guarded(size_t index);
  void run(const Statement& s);
  void call(const Statement& s);
  void data(const Statement& s);
  void poke(const Statement& s);
  void synchronize(const Statement& s);
  void read(int var, const TensorBase& t);
  void note(int var, int statement);
  void error(size_t index, const char* text);

  const Program& program_;
  std::vector<TensorBase> vars_;
  std::vector<std::vector<char>> foreign_;
  tessera::fuse::Mode mode_;
  size_t toggled_until_ = 0;
  bool in_thread_ = false;
  Outcome out_;
};

// Runs a whole program in a mode.
Outcome run_program(const Program& p, tessera::fuse::Mode mode);
// The program that belongs to a seed. It is run, without deferral, while it is made.
Program make_program(uint64_t seed, const std::vector<Device>& devices, Outcome& unfused);
// Fewest statements that still give different outcomes.
Program shrink(Program p, tessera::fuse::Mode mode, Likeness at_least);
// As Python. Long data are named by their seed, unless they are wanted whole.
std::string to_text(const Program& p, bool whole = false);
std::string to_text(const Statement& s, bool whole = false);
// Statements are printed before they run: for programs that crash.
extern bool tracing;
std::string describe_difference(const Program& p, const Outcome& off, const Outcome& on);
// The elements that a kData statement stands for.
std::vector<char> data_bytes(const Statement& s);
// What a pointwise operator makes of an element must not depend on where in a tensor it lies:
// groups are cut into tiles otherwise than single operators are. Prints and counts operators of
// which it does.
int check_positions(Device device);
// Can the generator make arguments for it?
bool is_drawn(const Op& op, bool on_device);

}  // namespace random_programs
