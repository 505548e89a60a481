"""Owns writing random C headers that a compiler accepts: layouts, expressions and types."""

import random
import re

SCALARS = ("char", "uint8_t", "int16_t", "uint32_t", "int", "int64_t", "double", "float", "bool",
           "void *", "size_t", "long double", "unsigned long", "signed char")  # fmt: skip
BITS = ("uint8_t", "uint16_t", "uint32_t", "uint64_t", "int", "bool")
WIDTH = {"uint8_t": 8, "uint16_t": 16, "uint32_t": 32, "uint64_t": 64, "int": 32, "bool": 1}


class Writer:
    """Makes one header; what was made before may be used by what follows."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.structs: list[str] = []
        self.names = 0
        self.constants: list[str] = []
        self.depths: dict[str, int] = {}

    def fresh(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def choose(self, *options: str) -> str:
        return self.random.choice(options)

    def scalar(self) -> str:
        if self.structs and self.random.random() < 0.25:
            return self.random.choice(self.structs)
        return self.random.choice(SCALARS)

    def member(self, depth: int) -> str:
        kind = self.random.random()
        name = self.fresh("m")
        if kind < 0.2:
            base = self.random.choice(BITS)
            width = self.random.randint(1, WIDTH[base])
            return self.choose(
                f"{base} {name} : {width};", f"{base} {name} : {width};", f"{base} : 0;"
            )
        if kind < 0.35 and depth < 2:
            inner = self.members(depth + 1)
            word = self.choose("struct", "union")
            return f"{word} {{ {inner} }} {self.choose('', name, name + '[2]')};"
        if kind < 0.45:
            return f"{self.choose('int', 'void', 'double')} (*{name})({self.scalar()} a, ...);"
        if kind < 0.5:
            align = self.choose("__attribute__((aligned(8))) ", "alignas(16) ")
            return f"{align}{self.random.choice(SCALARS[:6])} {name};"
        bounds = "".join(
            f"[{self.random.choice(['LEN', '1', '3', 'LEN + 1', 'sizeof(int)'])}]"
            for _ in range(self.random.choice([0, 0, 0, 1, 2]))
        )
        return f"{self.scalar()} {self.choose('', '*', '*const *')}{name}{bounds};"

    def members(self, depth: int) -> str:
        made = [self.member(depth) for _ in range(self.random.randint(0, 5))]
        # C++ gives a struct without members a size, C does not.
        made.insert(
            self.random.randint(0, len(made)), f"{self.choose('int', 'char')} {self.fresh('m')};"
        )
        return " ".join(made)

    def struct(self) -> str:
        name = self.fresh("S")
        word = self.choose("struct", "struct", "struct", "union")
        marks = self.choose("", "", "", "__attribute__((packed)) ", "__attribute__((aligned(32))) ")
        body = f"typedef {word} {marks}{name} {{ {self.members(0)} }} {name};"
        if self.random.random() < 0.2:
            body = f"#pragma pack(push, {self.choose('1', '2', '4')})\n{body}\n#pragma pack(pop)"
        self.structs.append(name)
        return body

    def expression(self, depth: int = 0) -> str:
        if depth > 3 or self.random.random() < 0.3:
            literal = self.choose("7", "0x1F", "3U", "010", "5L", "9ULL", "'a'", "0b101", "255")
            return self.random.choice([literal, literal, *self.constants[-5:]])
        a, b = self.expression(depth + 1), self.expression(depth + 1)
        sign = self.choose("+", "-", "*", "|", "&", "^", "==", "<", ">=", "&&", "||", "!=")
        cast = self.choose("int32_t", "uint8_t", "int64_t", "unsigned int", "bool", "int16_t")
        return self.choose(
            f"({a} {sign} {b})", f"{a} {sign} ({b})", f"(({cast})({a}))", f"(~({a}))", f"(-({a}))",
            f"(!({a}))", f"(({a}) ? ({b}) : 4)", f"(({a}) / 3 + ({b}) % 7)", f"(({a}) >> 2)",
            f"sizeof({cast})", f"(({a} & 0xFF) << 3)",
        )  # fmt: skip

    def constant(self) -> str:
        name = self.fresh("C")
        text = self.expression()
        depth = 1 + max((self.depths[w] for w in re.findall(r"C\d+", text)), default=0)
        self.depths[name] = depth
        if depth < 5:
            self.constants.append(name)
        return f"#define {name} {text}"

    def function(self) -> str:
        def param() -> str:
            base = f"{self.choose('', 'const ')}{self.scalar()}"
            return self.choose(
                f"{base} *a", f"{base} *const *a", f"{base} a[]", f"{base} (*a)[3]", f"{base}",
                f"int (*a)({base} *, int)", f"{base} *const a", f"{base} *&a",
            )  # fmt: skip

        count = self.random.randint(0, 6)
        shown = [param().replace(" a", f" a{i}").replace("*a", f"*a{i}").replace("&a", f"&a{i}")
                 for i in range(count)]  # fmt: skip
        base = self.choose("int", "void", "char")
        returns = f"{self.choose('', 'const ')}{base} {self.choose('', '*')}"
        if returns == "const void ":
            returns = "void "
        return f"{returns}{self.fresh('f')}({', '.join(shown)});"

    def header(self) -> str:
        parts = ['#include <stdint.h>\n#include <stddef.h>\n#define LEN 2\nextern "C" {']
        self.constants.append("LEN")
        for _ in range(40):
            parts += [self.struct(), self.function(), self.constant(), self.constant()]
            members = ", ".join(
                f"{self.fresh('E')}{self.choose('', ' = ' + str(self.random.randint(-9, 99)))}"
                for _ in range(4)
            )
            parts.append(f"enum {self.fresh('T')} {{ {members} }};")
        return "\n".join([*parts, "}\n"])
