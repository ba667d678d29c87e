"""A list of tariffs on the engines: previewed, ordered, refreshed and reordered."""

from tests.support.programs import Program


def declare(program: Program, names: list[str]) -> None:
    program.write(f"""
        web = Server("web", tariff={names!r}, os="debian-12")
        pulumi.export("tariff", web.tariff)
        pulumi.export("tariff_id", web.tariff_id)
    """)


def test_the_second_tariff_is_taken_recorded_and_no_difference_later(program: Program) -> None:
    declare(program, ["VDS-2", "VDS-1"])
    program.control("PATCH", "/tariffs/2", {"in_stock": False})
    preview = program.run(program.stack.preview())
    assert "charge at most 10.00 EUR (VDS-1, unless VDS-2 can be ordered by then, 1 month)" in preview.output
    run = program.run(program.stack.up())
    assert "ordering VDS-1 instead" in run.output
    assert program.stack.outputs() == {"tariff": "VDS-1", "tariff_id": 1}
    program.control("PATCH", "/tariffs/2", {"in_stock": True})
    program.run(program.stack.refresh())
    for names in (["VDS-2", "VDS-1"], ["VDS-1", "VDS-2"]):
        declare(program, names)
        program.run(program.stack.up(), {})
    assert ([server["tariff_id"] for server in program.living], program.charges) == ([1], 1)


def test_a_list_that_is_an_output_is_the_same(program: Program) -> None:
    program.write("""
        names = pulumi.Output.from_input(["VDS-2", "VDS-1"])
        web = Server("web", tariff=names, os="debian-12")
        one = Server("one", tariff=names[1], os="debian-12")
        pulumi.export("tariffs", [web.tariff, one.tariff])
    """)
    for changed in ({"create": 3}, {}):
        program.run(program.stack.up(), changed)
        assert program.stack.outputs() == {"tariffs": ["VDS-2", "VDS-1"]}
    assert sorted(server["tariff_id"] for server in program.living) == [1, 2]
