"""An IR that holds nothing, for Triton's compiler front end to build (scripts/runner/compiling.py).

The front end keeps types and shapes in Python, and asks the compiled module only to note operations down. So
it runs, and refuses what it refuses, on a builder that notes down no more than regions and their blocks: the
front end counts those, to find a `return` inside a loop.
"""


class Type:
    """Any type: the front end compares its own."""


TYPE = Type()


class FunctionType:
    """What a function returns, in number."""

    def __init__(self, results: list) -> None:
        self.results = results


class Value:
    """A result of an operation, or an argument."""

    def get_type(self) -> Type:
        return TYPE

    def get_loc(self) -> None:
        return None

    def get_context(self) -> None:
        return None

    def set_loc(self, *_location) -> None:
        """Nothing to note."""

    set_attr = replace_all_uses_with = set_loc


class Region:
    def __init__(self) -> None:
        self.blocks: list[Block] = []

    def size(self) -> int:
        return len(self.blocks)

    def push_back(self, block: "Block") -> None:
        block.region = self
        self.blocks.append(block)


class Block:
    """A block of a region; its arguments are made when they are asked for."""

    def __init__(self, region: Region) -> None:
        self.region, self.arguments = region, {}
        region.blocks.append(self)

    def arg(self, index: int) -> Value:
        return self.arguments.setdefault(index, Value())

    def add_argument(self, *_type) -> None:
        """`arg` makes them."""

    add_argument_at = add_argument

    def get_parent(self) -> Region:
        return self.region

    def has_terminator(self) -> bool:
        return False

    def erase(self) -> None:
        self.region.blocks.remove(self)

    def merge_block_before(self, _other: "Block") -> None:
        self.erase()


class Operation(Value):
    """Any operation; its regions are made, with one block each, when they are asked for."""

    def __init__(self, results: int = 1) -> None:
        self.results, self.regions = results, {}

    def get_result(self, _index: int) -> Value:
        return Value()

    def get_num_results(self) -> int:
        return self.results

    def verify(self) -> bool:
        return True

    def get_region(self, name) -> Region:
        return self.regions.setdefault(name, Region())

    def get_body(self, name) -> Block:
        region = self.get_region(name)
        return region.blocks[0] if region.blocks else Block(region)

    def get_then_block(self) -> Block:
        return self.get_body("then")

    def get_else_block(self) -> Block:
        return self.get_body("else")

    def get_before(self) -> Region:
        return self.get_region("before")

    def get_after(self) -> Region:
        return self.get_region("after")

    def get_induction_var(self) -> Value:
        return Value()


class Function:
    def __init__(self, kind: FunctionType, arguments: int) -> None:
        self.kind, self.arguments, self.region = kind, arguments, Region()

    def add_entry_block(self) -> Block:
        return Block(self.region)

    def get_num_args(self) -> int:
        return self.arguments

    def args(self, _index: int) -> Value:
        return Value()

    def set_arg_attr(self, *_attribute) -> None:
        """Nothing to note."""

    def reset_type(self, kind: FunctionType) -> None:
        self.kind = kind


class Module:
    def __init__(self) -> None:
        self.functions: dict[str, Function] = {}

    def has_function(self, name: str) -> bool:
        return name in self.functions

    def get_function(self, name: str) -> Function:
        return self.functions[name]

    def push_back(self, _function: Function) -> None:
        """`get_or_insert_function` noted it."""


class Builder:
    """ir.builder: every create_* gives a new operation, every get_* a type, constant or attribute."""

    def __init__(self, _context=None) -> None:
        self.block = Block(Region())

    def create_module(self) -> Module:
        return Module()

    def get_function_ty(self, arguments: list, results: list) -> tuple[int, FunctionType]:
        kind = FunctionType(results)
        kind.arguments = len(arguments)
        return kind

    def get_or_insert_function(self, module: Module, name: str, kind: FunctionType, *_rest) -> Function:
        return module.functions.setdefault(name, Function(kind, kind.arguments))

    def call(self, function: Function, _arguments: list) -> Operation:
        return Operation(len(function.kind.results))

    def ret(self, _values: list) -> None:
        """The end of a function."""

    def create_split(self, _value: Value) -> tuple[Value, Value]:
        return Value(), Value()

    # Where the next operation would go.

    def create_block(self) -> Block:
        self.block = Block(self.block.region)
        return self.block

    def new_block(self) -> Block:
        return Block(Region())

    def create_block_with_parent(self, region: Region, _types: list) -> Block:
        self.block = Block(region)
        return self.block

    def get_insertion_block(self) -> Block:
        return self.block

    get_insertion_point = get_insertion_block

    def restore_insertion_point(self, block: Block) -> None:
        self.block = block

    set_insertion_point_to_start = set_insertion_point_to_end = restore_insertion_point

    def get_loc(self) -> str:
        return "somewhere"  # the front end goes back to a node only where it has a location

    def set_loc(self, *_location) -> None:
        """Nothing to note."""

    def __getattr__(self, name: str):
        if name.startswith("create_"):
            return lambda *_arguments: Operation()
        if name.startswith("get_"):
            return lambda *_arguments: TYPE if name.endswith("_ty") else Value()
        raise AttributeError(name)
