"""Mutations of files: of their bytes, and of the parts that their formats have."""

from __future__ import annotations

import bz2
import copy
import gzip
import io
import json
import lzma
import random
import re
import struct
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np

from dsage.models.files.ubjson import read_ubjson

Mutate = Callable[[bytes, random.Random], bytes]

NUMBERS = (
    *(0, 1, -1, 2, 7, 127, -128, 255, 256, 65_535, 1_000_000, 10**9, 2**31 - 1, 2**31, -(2**31)),
    *(2**32, 2**63 - 1, 2**63, -(2**63), 10**30, 0.5, -0.0, 1e-320, 1e300, -1e308),
)
TEXTS = (
    *("", "0", "-1", "1000000", "99999999999", "inf", "nan", "[1,2", "\x00", "\x1b[31m", "=1+1"),
    *("ü", "\ud800", "a" * 5000, "../../etc/passwd", "2024-01-01", "true", "{}"),
)


def deep(depth: int = 100_000) -> str:
    """Return deeply nested JSON."""
    return "[" * depth + "]" * depth


# Bytes


def mutate_bytes(content: bytes, rng: random.Random) -> bytes:
    """Change a few bytes, or cut, repeat and move pieces."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        if not data:
            return bytes(data)
        at = rng.randrange(len(data))
        kind = rng.randrange(8)
        if kind == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at] = rng.randrange(256)
        elif kind == 2:
            data[at:at] = rng.randbytes(rng.choice((1, 2, 8, 100)))
        elif kind == 3:
            del data[at : at + rng.choice((1, 2, 8, 100, 1000))]
        elif kind == 4:
            piece = data[at : at + rng.choice((1, 8, 100, 1000))]
            data[at:at] = piece * rng.choice((1, 1, 3))
        elif kind == 5:
            del data[at:]
        elif kind == 6:
            value = rng.choice((0, 1, 2**31 - 1, 2**32 - 1, 2**63 - 1, 2**64 - 1))
            form = rng.choice(("<Q", ">Q")) if value >= 2**32 else rng.choice(("<I", ">I"))
            packed = struct.pack(form, value)
            data[at : at + len(packed)] = packed
        else:
            other = rng.randrange(len(data))
            size = rng.choice((1, 8, 64))
            data[at : at + size], data[other : other + size] = (
                data[other : other + size],
                data[at : at + size],
            )
    return bytes(data)


# JSON


def _places(value: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:  # noqa: ANN401
    """Return all places of a JSON value, as its container and key."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, each in items:
        found.append((value, key))
        if isinstance(each, (dict, list)):
            _places(each, found)
    return found


def _other(value: Any, rng: random.Random) -> Any:  # noqa: ANN401
    """Return a value to take the place of another."""
    kind = rng.randrange(10)
    if kind < 4 and isinstance(value, (int, float)) and not isinstance(value, bool):
        return rng.choice((value + 1, value - 1, -value, rng.choice(NUMBERS), float(value)))
    if kind < 5 and isinstance(value, str):
        if re.fullmatch(r"-?\d+", value):
            return str(rng.choice((int(value) + 1, int(value) - 1, *NUMBERS)))
        return rng.choice((*TEXTS, value[: len(value) // 2], value + value))
    if kind < 7 and isinstance(value, list):
        changed = copy.copy(value)
        if changed and rng.random() < 0.4:
            del changed[rng.randrange(len(changed)) :]
        elif changed and rng.random() < 0.5:
            changed.append(changed[0])
        else:
            rng.shuffle(changed)
        return changed
    choices = (None, True, [], {}, float("nan"), float("inf"), [[]], [None])
    return rng.choice((*choices, rng.choice(NUMBERS), rng.choice(TEXTS)))


def mutate_value(value: Any, rng: random.Random) -> Any:  # noqa: ANN401
    """Change some parts of a JSON value."""
    changed = copy.deepcopy(value)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        places = _places(changed, [])
        if not places:
            break
        # Names of parts as often as the many numbers in long arrays.
        named = [place for place in places if isinstance(place[0], dict)]
        container, key = rng.choice(named if named and rng.random() < 0.6 else places)
        kind = rng.randrange(8)
        if kind == 0:
            del container[key]
        elif kind == 1 and isinstance(container, dict):
            container[rng.choice(TEXTS)] = container.pop(key)
        else:
            container[key] = _other(container[key], rng)
    return changed


def dump(value: Any) -> bytes:  # noqa: ANN401
    """Return JSON text, with NaN and infinities as Python and XGBoost write them."""
    return json.dumps(value).encode()


def mutate_json(content: bytes, rng: random.Random) -> bytes:
    """Change the value of a JSON text, nest it deeply, or repeat a name."""
    kind = rng.randrange(40)
    if kind == 0:
        return deep(rng.choice((500, 100_000))).encode()
    if kind == 1:
        text = content.decode()
        at = [found.end() for found in re.finditer(":", text)]
        here = rng.choice(at) if at else len(text)
        return (text[:here] + deep(rng.choice((500, 100_000))) + "," + text[here:]).encode()
    if kind == 2:
        return content.replace(b'{"', b'{"a":1,"a":2,"', 1)
    return dump(mutate_value(json.loads(content), rng))


# Universal Binary JSON, as XGBoost writes it


def to_ubjson(value: Any) -> bytes:  # noqa: ANN401
    """Return a value in Universal Binary JSON; arrays of NumPy have the type of their numbers."""
    if value is None:
        return b"Z"
    if isinstance(value, bool):
        return b"T" if value else b"F"
    if isinstance(value, int):
        return b"L" + struct.pack(">q", max(min(value, 2**63 - 1), -(2**63)))
    if isinstance(value, float):
        return b"D" + struct.pack(">d", value)
    if isinstance(value, str):
        return b"S" + _name(value)
    if isinstance(value, dict):
        inner = b"".join(_name(key) + to_ubjson(each) for key, each in value.items())
        return b"{" + inner + b"}"
    count = b"#L" + struct.pack(">q", len(value))
    if isinstance(value, np.ndarray):
        mark = _MARKS[value.dtype.str[1:]]
        return b"[$" + mark + count + value.astype(value.dtype.newbyteorder(">")).tobytes()
    return b"[" + count + b"".join(map(to_ubjson, value))


_MARKS = {"f4": b"d", "f8": b"D", "i4": b"l", "i8": b"L", "u1": b"U", "i1": b"i", "i2": b"I"}


def _name(text: str) -> bytes:
    packed = text.encode("utf-8", errors="surrogatepass")
    return b"L" + struct.pack(">q", len(packed)) + packed


def mutate_ubjson(content: bytes, rng: random.Random) -> bytes:
    """Change the value in binary JSON, an array of it, or a length that it states."""
    kind = rng.randrange(10)
    if kind < 3:
        data = bytearray(content)
        at = [found.start() for found in re.finditer(rb"L\0\0\0\0\0", content)]
        here = rng.choice(at) + 1
        value = rng.choice((2**63 - 1, 2**31, 10**9, 0, 1, 2**64 - 1))
        data[here : here + 8] = struct.pack(">Q", value)
        return bytes(data)
    value = read_ubjson(content)
    if kind < 7:
        arrays = [place for place in _places(value, []) if isinstance(_at(place), np.ndarray)]
        arrays = [place for place in arrays if len(_at(place))]
        container, key = rng.choice(arrays)
        array = container[key].copy()
        limits = np.iinfo(array.dtype) if array.dtype.kind in "iu" else np.finfo(array.dtype)
        number = max(min(rng.choice(NUMBERS), limits.max), limits.min)
        array[rng.randrange(len(array))] = number
        container[key] = array[: -1 if rng.random() < 0.2 else None]
        return to_ubjson(value)
    return to_ubjson(mutate_value(value, rng))


def _at(place: tuple[Any, Any]) -> Any:  # noqa: ANN401
    return place[0][place[1]]


# Texts of fields, as LightGBM writes them


def mutate_fields(content: bytes, rng: random.Random) -> bytes:
    """Change lines ``name=values`` and often correct the sizes of trees in the header."""
    lines = content.decode().split("\n")
    for _ in range(rng.choice((1, 1, 2))):
        stop = next((at for at, line in enumerate(lines) if line == "end of trees"), len(lines))
        at = rng.randrange(stop if rng.random() < 0.8 else len(lines))
        name, sign, values = lines[at].partition("=")
        tokens = values.split(" ")
        kind = rng.randrange(8)
        if kind == 0:
            del lines[at]
        elif kind == 1:
            lines.insert(at, lines[at])
        elif kind == 2:
            other = rng.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        elif sign and kind == 3 and tokens:
            del tokens[rng.randrange(len(tokens))]
            lines[at] = name + sign + " ".join(tokens)
        elif sign and kind == 4:
            tokens.append(rng.choice(tokens))
            lines[at] = name + sign + " ".join(tokens)
        elif sign:
            new = rng.choice((*map(str, NUMBERS), *TEXTS))
            tokens[rng.randrange(len(tokens))] = new
            lines[at] = name + sign + " ".join(tokens)
    text = "\n".join(lines)
    if rng.random() < 0.8:
        body, end, rest = text.partition("\nend of trees\n")
        parts = re.split(r"(?m)(?=^Tree=\d+$)", body)
        sizes = [len(part.encode(errors="replace")) for part in parts[1:]]
        if sizes:
            sizes[-1] += 1
        parts[0] = re.sub(
            r"(?m)^tree_sizes=.*$", "tree_sizes=" + " ".join(map(str, sizes)), parts[0]
        )
        text = "".join(parts) + end + rest
    return text.encode("utf-8", errors="replace")


# Archives of arrays


def _npy(shape: str, kind: str, data: bytes) -> bytes:
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


def mutate_array(content: bytes, rng: random.Random) -> bytes:
    """Change the header or the numbers of a file of NumPy."""
    kind = rng.randrange(8)
    start = content.find(b"\n") + 1
    body = content[start:]
    if kind == 0:
        shape = rng.choice(("(1000000000,)", "(-1,)", "(0, 10**9)", "()", "(1000000000000, 8)"))
        return _npy(shape, rng.choice(("<f8", "<i8", "|u1", "<U9", "|O", "<M8[ns]")), body)
    if kind == 1:
        return _npy(f"({len(body) // 8},)", rng.choice(("<f8", "<i8", ">f8", "<M8[s]")), body)
    if kind == 2:
        nested = "(" * 200 + ")" * 200
        return _npy(rng.choice((nested, "[1", "'a'", "1e9", "(1,", "None")), "<f8", body)
    if kind == 3:
        return content[:start] + body[: len(body) // 2]
    if kind == 4:
        return content[:8] + rng.randbytes(2) + content[10:]
    data = bytearray(body)
    for _ in range(rng.choice((1, 1, 4))):
        if len(data) >= 8:
            at = 8 * rng.randrange(len(data) // 8)
            if rng.random() < 0.5:
                number = int(rng.choice(NUMBERS))
                data[at : at + 8] = struct.pack("<q", max(min(number, 2**63 - 1), -(2**63)))
            else:
                value = rng.choice((0.0, -1.0, 1e300, float("nan"), float("inf"), 0.5))
                data[at : at + 8] = struct.pack("<d", value)
    return content[:start] + bytes(data)


def read_archive(content: bytes) -> dict[str, bytes]:
    """Return the members of an archive."""
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        return {name: file.read(name) for name in file.namelist()}


def write_archive(members: dict[str, bytes], how: int = zipfile.ZIP_STORED) -> bytes:
    """Return an archive."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", how) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return stream.getvalue()


def archives(header: str, *, is_array: bool) -> Mutate:
    """Return mutations of archives with one member of JSON, which may be in an array of bytes."""

    def change_header(content: bytes, rng: random.Random) -> bytes:
        if not is_array:
            return mutate_json(content, rng)
        start = content.find(b"\n") + 1
        changed = mutate_json(content[start:], rng)
        return _npy(f"({len(changed)},)", "|u1", changed)

    def mutate(content: bytes, rng: random.Random) -> bytes:
        members = read_archive(content)
        arrays = [name for name in members if name.endswith(".npy") and name != header]
        kind = rng.randrange(12)
        how = zipfile.ZIP_STORED
        if kind < 5:
            members[header] = change_header(members[header], rng)
        elif kind < 9 and arrays:
            name = rng.choice(arrays)
            members[name] = mutate_array(members[name], rng)
        elif kind == 9:
            del members[rng.choice(list(members))]
        elif kind == 10:
            name = rng.choice(list(members))
            members[rng.choice(("a.npy", "b.txt", "../c.npy", "d/" * 50))] = members.pop(name)
        else:
            size = rng.choice((10**6, 10**8))
            members["unused.npy"] = _npy(f"({size},)", "|u1", bytes(size))
            how = zipfile.ZIP_DEFLATED
        return write_archive(members, how)

    return mutate


# Tables


def mutate_csv(content: bytes, rng: random.Random) -> bytes:
    """Change lines and fields of a table of text."""
    lines = content.decode().split("\n")
    for _ in range(rng.choice((1, 2, 5))):
        at = rng.randrange(len(lines))
        fields = lines[at].split(",")
        kind = rng.randrange(7)
        if kind == 0:
            fields[rng.randrange(len(fields))] = rng.choice((*TEXTS, *map(str, NUMBERS)))
        elif kind == 1:
            fields.append(rng.choice(TEXTS))
        elif kind == 2:
            del fields[rng.randrange(len(fields))]
        elif kind == 3:
            fields[rng.randrange(len(fields))] = rng.choice(('"', '"a""b', '"\n', "\r", "\x1a"))
        elif kind == 4:
            lines.insert(at, lines[at])
        elif kind == 5:
            fields = fields * rng.choice((2, 50))
        else:
            fields = []
        lines[at] = ",".join(fields)
    return "\n".join(lines).encode("utf-8", errors="surrogatepass")


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zip": lambda content: write_archive({"table.csv": content}, zipfile.ZIP_DEFLATED),
}
