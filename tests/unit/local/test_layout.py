"""Which programs a local cluster has, and the command lines that start them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from utuple.errors import InvalidInput
from utuple.local.folder import ClusterFile, FolderError
from utuple.local.layout import (
    MAX_MANAGERS,
    MAX_SCAS,
    MAX_SERVERS,
    Layout,
    Program,
    Role,
    command_of,
    database_of,
)
from utuple.local.supervising.reuse import cluster_for, policy_of, with_server, with_telemetry


def test_the_usual_cluster_listens_where_the_documentation_says() -> None:
    places = {program.name: program.address for program in Layout().programs}
    assert places == {
        "manager-1": "127.0.0.1:7400",
        "manager-2": "127.0.0.1:7401",
        "manager-3": "127.0.0.1:7402",
        "server-1": "127.0.0.1:7411",
        "server-2": "127.0.0.1:7412",
        "server-3": "127.0.0.1:7413",
        "sca-1": "127.0.0.1:7421",
        "monitor-1": "127.0.0.1:7422",
    }


@given(st.integers(1, MAX_SERVERS), st.integers(1, MAX_MANAGERS), st.integers(1, 65_000))
def test_every_program_has_its_own_name_and_port(servers: int, managers: int, port: int) -> None:
    programs = Layout(servers, managers, port).programs
    assert len({program.name for program in programs}) == len(programs) == servers + managers + 2
    assert len({program.port for program in programs}) == len(programs)
    assert all(0 < program.port < 65_536 for program in programs)


@pytest.mark.parametrize(
    ("layout", "option"),
    [
        ({"servers": 0}, "--servers"),
        ({"servers": 11}, "--servers"),
        ({"managers": 0}, "--managers"),
        ({"managers": 12}, "--managers"),
        ({"port": 0}, "--port"),
        ({"port": 65_530}, "--port"),
        ({"scas": (7,)}, "--scas"),
    ],
)
def test_a_layout_that_does_not_fit_is_refused_by_its_option(
    layout: dict[str, Any], option: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        Layout(**layout)
    assert refused.value.field == option


def command(name: str, **given_: Any) -> list[str]:
    layout = Layout()
    program = next(program for program in layout.programs if program.name == name)
    return command_of(program, layout, python="python", **given_)


def test_a_manager_is_told_its_peers_and_not_itself() -> None:
    assert (
        command("manager-2")
        == (
            "python -P -m assignment_manager --name manager-2 --listen 127.0.0.1:7401 "
            "--peers 127.0.0.1:7400,127.0.0.1:7402"
        ).split()
    )


def test_a_single_manager_has_no_peers() -> None:
    layout = Layout(managers=1)
    assert "--peers" not in command_of(layout.programs[0], layout, python="python")


def test_a_server_is_told_its_database_and_the_managers() -> None:
    assert (
        command("server-1", database="postgresql://x/d")
        == (
            "python -P -m utuple.server --name server-1 --listen 127.0.0.1:7411 "
            "--database postgresql://x/d --database-wait-s 5 --managers 127.0.0.1:7400,127.0.0.1:7401,127.0.0.1:7402"
        ).split()
    )
    assert command("server-1", unsafe=True)[-1] == "--unsafe"


def test_a_database_that_goes_by_the_environment_is_not_on_the_command_line() -> None:
    assert "--database" not in command("server-1")


def test_the_sca_server_is_told_the_managers_only() -> None:
    assert (
        command("sca-1", database="x", unsafe=True)
        == (
            "python -P -m sca_server --name sca-1 --listen 127.0.0.1:7421 "
            "--managers 127.0.0.1:7400,127.0.0.1:7401,127.0.0.1:7402"
        ).split()
    )


def test_only_the_monitor_is_told_where_samples_go() -> None:
    telemetry = ("/samples", 5.0)
    told = command("monitor-1", telemetry=telemetry)
    assert told[-4:] == ["--telemetry", "/samples", "--telemetry-every", "5.0"]
    assert "--telemetry" not in command("server-1", telemetry=telemetry)
    assert "--telemetry" not in command("monitor-1")


def test_samples_need_a_monitor_and_are_kept_on_until_told_otherwise() -> None:
    kept = with_telemetry(KNOWN, "/samples", 5.0)
    assert (kept.telemetry, kept.telemetry_every_s) == ("/samples", 5.0)
    assert with_telemetry(kept, None, None) == kept
    with pytest.raises(InvalidInput, match="--no-monitor"):
        with_telemetry(cluster_for(None, **ASKED_NOTHING, monitor=False), "/samples", None)
    with pytest.raises(InvalidInput, match="telemetry_every"):
        with_telemetry(KNOWN, "/samples", 0.0)


def test_stopping_goes_from_those_who_ask_to_those_who_answer() -> None:
    order = [Role.HTTP, Role.MQTT, Role.MONITOR, Role.SCA, Role.SERVER, Role.MANAGER]
    assert list(reversed(Role)) == order
    assert Program("sca-1", Role.SCA, 7421) in Layout().of_role(Role.SCA)


def test_an_mqtt_door_is_there_if_asked_for_and_stays_until_told_otherwise() -> None:
    made = cluster_for(None, **ASKED_NOTHING, mqtt=1883)
    (door,) = made.layout.of_role(Role.MQTT)
    assert door == Program("mqtt-1", Role.MQTT, 1883)
    command = command_of(door, made.layout, python="python")
    assert command[2:] == [
        *("-m", "utuple.doors.mqtt", "--listen", "127.0.0.1:1883", "--at"),
        "127.0.0.1:7400,127.0.0.1:7401,127.0.0.1:7402",
    ]
    assert cluster_for(made, **ASKED_NOTHING).layout.mqtt == 1883
    assert cluster_for(made, **ASKED_NOTHING, mqtt=0).layout.of_role(Role.MQTT) == []
    with pytest.raises(InvalidInput, match="--mqtt"):
        cluster_for(None, **ASKED_NOTHING, mqtt=70_000)


def test_every_server_has_a_database_of_its_own() -> None:
    assert [database_of(name) for name in Layout(servers=2).server_names] == [
        "utuple_server_1",
        "utuple_server_2",
    ]


# --- an `up` on a folder that has a cluster already

ASKED_NOTHING: dict[str, Any] = {"servers": None, "managers": None, "port": None}
KNOWN = ClusterFile(Layout(4, 2, 9000), created=True)


def test_a_new_folder_gets_the_usual_cluster() -> None:
    assert cluster_for(None, **ASKED_NOTHING) == ClusterFile(Layout(3, 3, 7400))


def test_a_folder_that_has_a_cluster_keeps_it() -> None:
    assert cluster_for(KNOWN, **ASKED_NOTHING) == KNOWN
    assert cluster_for(KNOWN, servers=4, managers=2, port=9000) == KNOWN


@pytest.mark.parametrize(
    "asked", [{"servers": 3}, {"managers": 3}, {"databases": ["postgresql://x/y"]}]
)
def test_asking_for_another_cluster_than_the_folders_is_refused_with_a_way_out(
    asked: dict[str, Any],
) -> None:
    with pytest.raises(FolderError, match=r"leave .* out.*--data"):
        cluster_for(KNOWN, **{**ASKED_NOTHING, **asked})


def test_a_folders_cluster_moves_to_other_ports_and_is_the_same_otherwise() -> None:
    grown = with_server(KNOWN, "", "")
    moved = cluster_for(grown, **{**ASKED_NOTHING, "port": 7500})
    assert moved == replace(grown, layout=replace(grown.layout, port=7500))
    assert [program.port for program in moved.layout.of_role(Role.SERVER)] == [*range(7511, 7516)]
    with pytest.raises(InvalidInput, match="--port"):
        cluster_for(KNOWN, **{**ASKED_NOTHING, "port": 70_000})


def test_a_knob_is_known_by_its_own_name_and_by_the_papers() -> None:
    for name in ("T_p", "t_p", "t-p", "T-P", "processing_start", "processing-start"):
        assert policy_of([f"{name}=0.5"]) == ("processing_start=0.5",)
    assert policy_of(["T_m=0.5", "stay_on_s=30"]) == ("memory_start=0.5", "stay_on_s=30.0")
    with pytest.raises(InvalidInput, match=r"t_q.*T_p \(processing_start\).*silent_s"):
        policy_of(["t_q=0.5"])


A, B, C = (f"postgresql://host/{name}" for name in "abc")


def test_databases_are_given_once_for_each_server() -> None:
    made = cluster_for(None, servers=2, managers=None, port=None, databases=[A, B])
    assert made.databases == (A, B)
    for wrong in ([A], [A, A], [A, B, C], [A, "mysql://host/b"]):
        with pytest.raises(FolderError, match="--database"):
            cluster_for(None, servers=2, managers=None, port=None, databases=wrong)


def test_databases_that_have_moved_are_given_anew() -> None:
    known = ClusterFile(Layout(2), databases=(A, B), created=True)
    assert cluster_for(known, **ASKED_NOTHING).databases == (A, B)
    assert cluster_for(known, **ASKED_NOTHING, databases=[C, B]).databases == (C, B)


def test_sca_servers_come_and_go_and_their_names_are_used_again() -> None:
    three = Layout().with_sca().with_sca()
    assert [(sca.name, sca.port) for sca in three.of_role(Role.SCA)] == [
        ("sca-1", 7421),
        ("sca-2", 7423),
        ("sca-3", 7424),
    ]
    assert three.without_sca("sca-2").sca_names == ["sca-1", "sca-3"]
    assert three.without_sca("sca-2").with_sca().sca_names == ["sca-1", "sca-3", "sca-2"]


@pytest.mark.parametrize(
    ("layout", "name", "rule"),
    [
        (Layout().with_sca(), "sca-9", "must be one of sca-1, sca-2"),
        (Layout().with_sca(), "server-1", "must be one of sca-1, sca-2"),
        (Layout(), "sca-1", "is the last sCA server"),
    ],
)
def test_an_sca_server_that_cannot_go_is_refused(layout: Layout, name: str, rule: str) -> None:
    with pytest.raises(InvalidInput, match=rule):
        layout.without_sca(name)


def test_there_are_only_so_many_sca_servers() -> None:
    with pytest.raises(InvalidInput, match="remove one first"):
        Layout(scas=tuple(range(1, MAX_SCAS + 1))).with_sca()
    for scas in (0, MAX_SCAS + 1):
        with pytest.raises(InvalidInput, match="--scas"):
            cluster_for(None, **{**ASKED_NOTHING, "scas": scas})


def test_the_number_of_sca_servers_is_remembered() -> None:
    made = cluster_for(None, **{**ASKED_NOTHING, "scas": 2})
    assert made.layout.sca_names == ["sca-1", "sca-2"]
    assert cluster_for(made, **ASKED_NOTHING).layout.sca_names == ["sca-1", "sca-2"]
    with pytest.raises(FolderError, match="--scas 3"):
        cluster_for(made, **{**ASKED_NOTHING, "scas": 3})
