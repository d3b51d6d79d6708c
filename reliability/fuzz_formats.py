"""Damage that suits a format: what is wrong lies behind the first check as often as before it."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from damage import VALUES, mutated, mutated_json
from fuzz_oracle import FACTS, KNOWN

from murp.config import Config

Damage = Callable[[Random], bytes]


def damaged_text(separator: str, *, width: int = 3) -> Damage:
    """Rows of facts, of their first ``width`` fields, with wounds."""
    facts = FACTS if width == 3 else KNOWN
    plain = "".join(separator.join(_quoted(f, separator) for f in row[:width]) + "\n" for row in facts)
    titled = separator.join(("head", "relation", "tail")[:width]) + "\n" + plain
    seeds = [text.encode() for text in (plain, plain.replace("\n", "\r\n"), titled)]
    return lambda random: mutated(random.choice(seeds), random, seeds)


def _quoted(field: str, separator: str) -> str:
    return '"' + field.replace('"', '""') + '"' if separator == "," and {'"', ","} & set(field) else field


def packed(damage: Damage, pack: Callable[[bytes], bytes]) -> Damage:
    """Compressed after the damage or before it."""

    def damaged(random: Random) -> bytes:
        text = damage(random)
        return pack(text) if random.random() < 0.5 else mutated(pack(text[:2000]), random)

    return damaged


def zstd(data: bytes) -> bytes:
    return bytes(pa.compress(data, codec="zstd", asbytes=True))


def xz(data: bytes) -> bytes:
    return lzma.compress(data, preset=0)


def gz(data: bytes) -> bytes:
    return gzip.compress(data, compresslevel=1)


def damaged_parquet(table: pa.Table) -> Damage:
    """A Parquet file with wounds, or whole with columns of other kinds, other names, or nulls."""
    whole = _parquet(table)

    def damaged(random: Random) -> bytes:
        if random.random() < 0.6:
            return mutated(whole, random)
        columns = {name: table[name].to_pylist() for name in table.column_names}
        column = random.choice(list(columns))
        value = random.choice((None, 1.5, 2**40, b"\xff", ["x"], "", "\0", True, "x" * 1000))
        chance = random.random()
        if chance < 0.3:
            columns[column] = [value] * len(table)
        elif chance < 0.6:
            columns[random.choice(("head", "x", ""))] = columns.pop(column)
        else:
            columns[column] = [None, *columns[column][1:]]
        return _parquet(pa.table({name: pa.array(values) for name, values in columns.items()}))

    return damaged


def _parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def facts_table(width: int = 3) -> pa.Table:
    columns = zip(*(FACTS if width == 3 else KNOWN), strict=True)
    return pa.table(dict(zip(("head", "relation", "tail")[:width], map(list, columns), strict=False)))


def damaged_config(random: Random) -> bytes:
    """A configuration file with wounds in its text, or other values, unknown and repeated keys."""
    text = Config().to_toml()
    if random.random() < 0.5:
        return mutated(text.encode(), random)
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    place = random.randrange(len(lines))
    value = random.choice([*map(repr, VALUES), '"x"', "1979-05-27", "[1, 2]", "{a = 1}", "0x7fffffffffffffffff"])
    key = random.choice((lines[place].split()[0], "unknown", "lr.x", '"\\u0000"'))
    lines.insert(place, f"{key} = {value}") if random.random() < 0.2 else lines.__setitem__(place, f"{key} = {value}")
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def damaged_safetensors(data: bytes, nested: str) -> Damage:
    """A safetensors file with wounds in the bytes, the header, or the JSON of one field of its metadata."""
    length = int.from_bytes(data[:8], "little")
    header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    inner = json.loads(header["__metadata__"][nested])

    def damaged(random: Random) -> bytes:
        chance = random.random()
        if chance < 0.3:
            return mutated(data, random)
        if chance < 0.6:
            text = mutated_json(header, random)
        else:
            words = mutated_json(inner, random).decode("utf-8", "replace")
            metadata = {**header["__metadata__"], nested: words}
            if "state_checksum" in metadata and random.random() < 0.9:
                metadata["state_checksum"] = hashlib.blake2b(words.encode(), digest_size=16).hexdigest()
            text = json.dumps({**header, "__metadata__": metadata}).encode()
        size = len(text) if random.random() < 0.95 else random.choice((0, 2**60, 2**63, len(text) + 1))
        return size.to_bytes(8, "little") + text + body

    return damaged


def damaged_npz(data: bytes) -> Damage:
    """An .npz file with wounds, or with another description or other arrays."""
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    about = json.loads(str(arrays["about"]))
    strange = [
        np.zeros(0),
        np.zeros((12, 2), np.complex64),
        np.array("x"),
        np.array([b"x"]),
        np.arange(12),
        np.zeros(12),
    ]

    def damaged(random: Random) -> bytes:
        chance = random.random()
        if chance < 0.4:
            return mutated(data, random)
        changed: dict[str, Any] = dict(arrays)
        if chance < 0.7:
            changed["about"] = np.array(mutated_json(about, random).decode("utf-8", "replace"))
        else:
            changed[random.choice(list(arrays))] = random.choice(strange)
        sink = io.BytesIO()
        random.choice((np.savez, np.savez_compressed))(sink, **changed)
        return sink.getvalue()

    return damaged


def damaged_export_parquet(file: Path) -> Damage:
    table, whole = pq.read_table(file), file.read_bytes()
    about = json.loads(table.schema.metadata[b"murp"])

    def damaged(random: Random) -> bytes:
        if random.random() < 0.4:
            return mutated(whole, random)
        changed = table if random.random() < 0.6 else table.drop_columns([random.choice(table.column_names)])
        return _parquet(changed.replace_schema_metadata({"murp": mutated_json(about, random)}))

    return damaged


def damaged_member(file: Path) -> Damage:
    """A file of a run folder or hub folder, damaged as suits its kind."""
    data = file.read_bytes()
    if file.suffix == ".safetensors":
        return damaged_safetensors(data, "state" if b'"state":' in data[:3000] or b"checksum" in data[:300] else "murp")
    if file.suffix == ".json":
        return lambda random: mutated_json(json.loads(data), random)
    if file.suffix == ".toml":
        return damaged_config
    if file.suffix == ".jsonl":
        lines = data.decode().splitlines()
        return lambda random: b"\n".join(mutated_json(json.loads(line), random) for line in lines)
    return lambda random: mutated(data, random)


def damaged_coded(file: Path) -> Callable[[Path, Random], int]:
    """A table of a coded graph with other values or columns; how many rows were written."""
    columns = pq.read_table(file).to_pydict()

    def damaged(path: Path, random: Random) -> int:
        changed = {name: list(values) for name, values in columns.items()}
        name = random.choice(list(changed))
        value = random.choice((None, -1, 10**9, 2**40, 1.5, "x", "e1", b"\xff", [1], True))
        chance = random.random()
        if chance < 0.4:
            changed[name] = [value] * len(changed[name])
        elif chance < 0.6:
            del changed[name]
        elif chance < 0.8:
            changed = {key: values[: random.randrange(len(values))] for key, values in changed.items()}
            changed = {key: values[: min(map(len, changed.values()))] for key, values in changed.items()}
        elif type(value) is type(changed[name][0]):
            changed[name][random.randrange(len(changed[name]))] = value
        table = pa.table({key: pa.array(values) for key, values in changed.items()})
        pq.write_table(table, path)
        return len(table)

    return damaged
