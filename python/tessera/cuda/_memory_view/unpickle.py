"""Pickles of plain data, and of nothing else.

torch.load's machine reads the protocol that torch.save writes, 2; snapshots come in 4, and 5 from
newer Pythons. This one knows no way to name a class or to call anything: it has dicts, lists,
tuples, text, numbers, True, False and None, and any other opcode ends the reading.
"""

from struct import unpack_from

_NAMES = {
    "c": "GLOBAL", "\x93": "STACK_GLOBAL", "R": "REDUCE", "b": "BUILD", "i": "INST", "o": "OBJ",
    "\x81": "NEWOBJ", "\x92": "NEWOBJ_EX", "\x82": "EXT1", "\x83": "EXT2", "\x84": "EXT4",
    "P": "PERSID", "Q": "BINPERSID", "\x8f": "EMPTY_SET", "\x90": "ADDITEMS", "\x91": "FROZENSET",
    "B": "BINBYTES", "C": "SHORT_BINBYTES", "\x8e": "BINBYTES8", "\x96": "BYTEARRAY8",
    "\x97": "NEXT_BUFFER", "\x98": "READONLY_BUFFER",
}  # fmt: skip
_KEYS = {str, int}


class Refused(ValueError):
    """A pickle with something else in it than plain data, or a broken one."""


def unpickle(data):
    """What a pickle of protocol 2 to 5 holds."""
    machine = _Machine(data)
    try:
        return machine.run()
    except (IndexError, KeyError):
        why = "it is broken: a value is used that is not there"
    except (ValueError, TypeError, OverflowError) as error:
        why = str(error)
    except Exception as error:  # struct.error
        why = f"it is cut short ({error})"
    raise Refused(f"byte {machine.at}: {why}")


class _Machine:
    def __init__(self, data):
        self.data = data
        self.at = 0

    def run(self):
        data = self.data
        if data[:1] != b"\x80" or data[1] not in (2, 3, 4, 5):
            raise ValueError("not a pickle of protocol 2 to 5")
        stack, marks, memo = [], [], {}
        push, at = stack.append, 2
        while True:  # in order of how often each comes
            op = data[at]
            self.at = at
            if op == 0x68:  # BINGET
                push(memo[data[at + 1]])
                at += 2
            elif op == 0x6A:  # LONG_BINGET
                push(memo[int.from_bytes(data[at + 1 : at + 5], "little")])
                at += 5
            elif op == 0x94:  # MEMOIZE
                memo[len(memo)] = stack[-1]
                at += 1
            elif op == 0x8A:  # LONG1
                end = at + 2 + data[at + 1]
                push(int.from_bytes(data[at + 2 : end], "little", signed=True))
                at = end
            elif op == 0x4B:  # BININT1
                push(data[at + 1])
                at += 2
            elif op == 0x4A:  # BININT
                push(unpack_from("<i", data, at + 1)[0])
                at += 5
            elif op == 0x4D:  # BININT2
                push(data[at + 1] | data[at + 2] << 8)
                at += 3
            elif op == 0x7D:  # EMPTY_DICT
                push({})
                at += 1
            elif op == 0x28:  # MARK
                marks.append(len(stack))
                at += 1
            elif op == 0x75:  # SETITEMS
                items = _above(stack, marks)
                _set(stack[-1], items)
                at += 1
            elif op == 0x71:  # BINPUT
                memo[data[at + 1]] = stack[-1]
                at += 2
            elif op == 0x72:  # LONG_BINPUT
                memo[int.from_bytes(data[at + 1 : at + 5], "little")] = stack[-1]
                at += 5
            elif op == 0x2E:  # STOP
                return stack[-1]
            elif op in _SIZED:
                at = _text(data, at, op, push)
            else:
                at = self._seldom(op, at, stack, marks)

    def _seldom(self, op, at, stack, marks):
        data, push = self.data, stack.append
        kind = chr(op)
        if kind == "]":
            push([])
        elif kind == "e":
            items = _above(stack, marks)
            _list(stack[-1]).extend(items)
        elif kind == "a":
            item = stack.pop()
            _list(stack[-1]).append(item)
        elif kind == "s":
            value, key = stack.pop(), stack.pop()
            _set(stack[-1], [key, value])
        elif kind == ")":
            push(())
        elif kind == "t":
            push(tuple(_above(stack, marks)))
        elif kind in "\x85\x86\x87":
            size = op - 0x84
            if len(stack) < size:
                raise IndexError
            items = tuple(stack[-size:])
            del stack[-size:]
            push(items)
        elif kind in "N\x88\x89":
            push({"N": None, "\x88": True, "\x89": False}[kind])
        elif kind == "G":
            push(unpack_from(">d", data, at + 1)[0])
            return at + 9
        elif kind == "0":
            stack.pop()
        elif kind == "\x95":  # FRAME: says how much follows
            return at + 9
        else:
            raise ValueError(_why(kind, data, at, stack))
        return at + 1


_SIZED = {0x8C: ("<B", 1), 0x58: ("<I", 4), 0x8D: ("<Q", 8)}  # texts


def _text(data, at, op, push):
    form, width = _SIZED[op]
    begin = at + 1 + width
    end = begin + unpack_from(form, data, at + 1)[0]
    if end > len(data):
        raise ValueError("it is cut short")
    push(data[begin:end].decode("utf-8", "replace"))
    return end


def _above(stack, marks):
    mark = marks.pop()
    items = stack[mark:]
    del stack[mark:]
    return items


def _list(target):
    if type(target) is not list:
        raise ValueError(f"it appends to {type(target).__name__}")
    return target


def _set(target, items):
    if type(target) is not dict:
        raise ValueError(f"it sets items of {type(target).__name__}")
    keys = items[::2]
    if not {*map(type, keys)} <= _KEYS:  # a tuple's hash may take all the stack there is
        raise ValueError("a key of a dict is neither text nor a number")
    if len(items) % 2:
        raise IndexError
    target.update(zip(keys, items[1::2]))


def _why(kind, data, at, stack):
    name = _NAMES.get(kind)
    if name is None:
        return f"unknown opcode 0x{ord(kind):02x}"
    what = ""
    if kind in "ci":
        what = ".".join(data[at + 1 : at + 200].decode("utf-8", "replace").split("\n")[:2])
    elif kind == "\x93":
        what = ".".join(str(part)[:80] for part in stack[-2:])
    return f"{name} {what!r}: it names something to call" if what else f"{name} is not plain data"
